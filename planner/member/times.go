package member

import "time"

// Times and limits that we chose, with their reasons.
const (
	// rollPatience is how long after the broker came back a device may stay
	// away. chosen: an agent's link pauses for 30 s at most between two tries;
	// and everything must have converged within 90 s.
	rollPatience = 40 * time.Second

	// ResendFirst and resendLast bound the re-sending of what was not
	// acknowledged. chosen: an answer takes milliseconds; doubling spares a
	// device that is away.
	ResendFirst = 2 * time.Second
	resendLast  = 32 * time.Second
	resentMost  = 4 // times that ResendFirst doubles up to resendLast
	// sweepPeriod is how often re-sending looks for what is due.
	sweepPeriod = 500 * time.Millisecond

	// PrepareTimeout gives up a generation. chosen: half of what a ring waits to be
	// whole again, and several re-sends fit; the first comes after prepareAgain, which
	// doubles up to a second: an answer takes milliseconds, and a ring waits for it.
	PrepareTimeout = 4 * time.Second
	prepareAgain   = 250 * time.Millisecond

	// retryLast bounds the wait after a refusal, which doubles from
	// ResendFirst. chosen: what an operator mends is seen within minutes.
	retryLast = 5 * time.Minute

	// reportWait is how long after a birth the first report may take. chosen: it comes
	// with the birth.
	reportWait = 2 * time.Second

	// slowAnswer is how long after a prepare a device that has not answered is named. chosen: three
	// times asked, and an operator sees who it is while the ring still waits.
	slowAnswer = 1500 * time.Millisecond
	// MaxRecounts is how often in a row a plan refused for an old bypass count is made
	// again at once. chosen: a side that moves more often flaps.
	MaxRecounts = 3

	// trailLeast is how many doublings of ResendFirst a device that did not follow a plan is left
	// out at least. chosen: longer than its ring waits before it goes round it.
	trailLeast = 2
	// A device that has prepared a plan is sent it again and asked trailAsks times, trailWait
	// apart, before it is held not to follow. chosen: one message in a hundred may be lost.
	trailAsks = 2
	trailWait = time.Second

	// askFirst is the first wait before a device is asked again to announce itself; it
	// doubles up to resendLast. chosen: the broker brings an answer in
	// milliseconds.
	askFirst  = time.Second
	askAnswer = 500 * time.Millisecond // a birth within this time answers
	timesGone = 3                      // that one is asked whose death note came, or no birth
	askGone   = time.Minute            // apart, after that, while nobody speaks for it; chosen: 10,000 of them are 170 messages a second
	always    = 1 << 30                // a silent device is asked until it speaks,
	askAlways = 4 * time.Second        // and this long apart at most: its ring may wait for it
	// A word of another life than the one known may be late by strangerLate;
	// another one after that contradicts the planner. chosen: a broker that
	// delivers late does so within milliseconds of the new birth.
	strangerLate      = time.Second
	strangerForgotten = time.Minute

	// Two lives that follow each other in turn are two agents; from the first return
	// on the number is held. chosen: one old
	// birth may come late or be forged; two agents show four in two seconds.
	returnsDisputed = 2
	returnsWithin   = time.Minute
	// quarantine is how long one of them must be alone. chosen: four times the
	// longest pause of an agent's link.
	quarantine = 2 * time.Minute
	// unverified is how long nothing must be heard of a second one that never
	// answered. chosen: an agent that is there answers in milliseconds, and one
	// that is thrown off again and again was heard of before.
	unverified = 2 * time.Second

	// sayAgain is how soon the same fault of a device is written down again.
	// chosen: whoever provokes it must not push the events out.
	sayAgain = time.Minute

	// claimStands is how long an alarm of a claim outlives it. chosen: a device that makes it
	// and takes it back in turn is named all the time.
	claimStands = 20 * time.Second
	// refusalStands is how long a refusal of a plan is an alarm when its device has taken
	// one since. chosen: a person who looks as it happens sees it, and nobody looks for
	// what is over.
	refusalStands = 5 * time.Second

	// gapPatience is how long a missing event is waited for: after a while
	// without a planner an agent sends again only every 16 s, while what is new
	// goes out at once. chosen: two re-sends of an agent at their slowest.
	gapPatience = 40 * time.Second
	maxAhead    = 128 // events held while an earlier one is missing; chosen: twice an agent's window
)

// Backoff is the wait after the n-th failure in a row, doubling from
// ResendFirst.
func Backoff(n int) time.Duration { return min(ResendFirst<<min(n-1, 10), retryLast) }
