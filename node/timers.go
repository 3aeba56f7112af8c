package node

import (
	"strconv"
	"time"

	"ringlight/proto"
)

// Times that do not depend on the hardware.
const (
	persist    = 100 * time.Microsecond  // chosen: light shorter than this moves nobody
	answer     = 500 * time.Microsecond  // chosen: at least 2 D; light after the deadline is already there, so rarely waited for
	shortRetry = 2 * time.Millisecond    // chosen: rides out what comes back by itself, where hardware allows less
	rideOut    = 2500 * time.Microsecond // chosen: a glitch of this length must not part a link

	banLosses = 8 // of one candidate within banWindow; chosen: faults and repairs make two or three, a bad connector hundreds
	banWindow = 10 * time.Second
	banClear  = 10 * time.Second // of steady light

	// planWait is how long a side that works elsewhere waits for light of the
	// candidate that a plan names before it goes there itself. chosen: longer
	// than a commit takes to reach every member, shorter than the 250 ms in
	// which a planner has pieces joined again.
	planWait = 50 * time.Millisecond

	// maxAsks is how often a closed side goes to its planned candidate without
	// light, at growing intervals. chosen: each opens its piece for a dwell.
	maxAsks = 3

	// tardy is how late a step may be. chosen: a prompt thread wakes within 150 us, and the
	// waits of a search have little more to spare.
	tardy = 200 * time.Microsecond
	// A closed side whose node was late searches again maxSearches times, first after
	// searchFirst, then at twice the distance, searchLast at most. chosen: each opens its
	// piece for some ms, or for as long as its node gets no processor; and two of the
	// longest pass within 5 s.
	maxSearches = 3
	searchFirst = 50 * time.Millisecond
	searchLast  = 1600 * time.Millisecond

	// A closed side whose node was late stays as long on each candidate as the node
	// was late, maxLag at most: the other end may be as late to see it. chosen: longer than
	// an agent with a twentieth of a processor mostly waits for its turn.
	maxLag = searchFirst

	// maxJumps bounds how often one search may go to a light. chosen: once to
	// each of the candidates that K = 4 gives.
	maxJumps = 4

	recoveryTarget = time.Millisecond      // from the loss of light to confirmed light
	maxWait        = 2 * time.Second       // of any timer; chosen: slower hardware is not protected, it is rebuilt
	granule        = 50 * time.Microsecond // timers are rounded up to it
	// A bundle that has not settled after lateSwitches switch times and lateMargin is
	// late, and told to be. chosen: three tries of 25 ms on a bus, and 64 agents on two
	// busy cores were seen 40 ms late.
	lateMargin   = 250 * time.Millisecond
	lateSwitches = 8
	minSwitchMax = 10 * time.Microsecond  // chosen: no element switches faster; catches milliseconds sent as microseconds
	_            = uint(answer - persist) // answer must outlast persist
)

// envelope is a proto.Envelope as times: D and d, the longest and shortest to
// find light or its loss; S and s, to switch; W, between a dying node's lasers.
type envelope struct{ detectMax, detectMin, switchMax, switchMin, skew time.Duration }

func envelopeOf(e proto.Envelope) envelope {
	us := func(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
	return envelope{us(e.DetectMaxMicros), us(e.DetectMinMicros), us(e.SwitchMaxMicros), us(e.SwitchMinMicros), us(e.SkewMicros)}
}

// timers are what a side waits with, derived from its ring's envelope.
type timers struct {
	dwell  time.Duration // on one step of a search
	grace  time.Duration // for the target before the probe is adopted
	retry  time.Duration // on the lost candidate, and after a jump
	answer time.Duration // after light that came late
	alone  time.Duration // on the lost candidate, when there is no other
	steady time.Duration // of light before a switch counts as restored
	late   time.Duration // for a bundle to settle
}

// derive chooses the shortest timers that are safe for an envelope: the
// differences D-d and S-s lie between the two ends of a link, so only the
// envelope over a whole ring will do.
func derive(e envelope) timers {
	up := func(t time.Duration) time.Duration { return (t + granule - 1) / granule * granule }
	t := timers{
		dwell:  up(max(e.dwellFloor(), e.dwellFloorLight())),
		grace:  up(e.graceFloor()),
		retry:  max(shortRetry, up(e.retryFloor())),
		answer: max(answer, up(2*e.detectMax)),
		late:   lateSwitches*e.switchMax + lateMargin,
	}
	// Unlike the rest of a search nothing comes before this wait: it alone
	// must see the glitch end, the other end find the light and answer it.
	t.alone = max(t.retry, up(rideOut+persist+e.switchMax+2*e.detectMax))
	// A one-way cut gives false light for as long as its other end asks.
	t.steady = t.alone + e.switchMax + e.detectMax
	return t
}

// The two ends of a gap start to search up to a dying node's skew and the
// spread of their hardware apart; the earlier must still be there when the
// later one's light has been found.
func (e envelope) dwellFloor() time.Duration {
	return e.skew + e.detectMax - e.detectMin + e.switchMax - e.switchMin + e.detectMax
}

// A side must stay long enough for a neighbour to go to its light.
func (e envelope) dwellFloorLight() time.Duration { return persist + 2*e.detectMax + e.switchMax }

func (e envelope) graceFloor() time.Duration {
	return e.detectMax - e.detectMin + e.switchMax - e.switchMin
}

func (e envelope) retryFloor() time.Duration { return 2*e.switchMax + persist + e.detectMax }

// check refuses an envelope that no hardware has, and timers that break an
// ordering inequality. The error's field is within an assignment.
func check(e envelope, t timers) *proto.Error {
	for _, c := range []struct {
		ok           bool
		field, limit string
		have         time.Duration
	}{
		{e.detectMin > 0, "detect_min_micros", "over 0", e.detectMin},
		{e.detectMax >= e.detectMin, "detect_max_micros", "at least detect_min_micros", e.detectMax},
		{e.switchMin > 0, "switch_min_micros", "over 0", e.switchMin},
		{e.switchMax >= e.switchMin, "switch_max_micros", "at least switch_min_micros", e.switchMax},
		{e.switchMax >= minSwitchMax, "switch_max_micros", "at least " + micros(minSwitchMax), e.switchMax},
		{t.dwell >= e.dwellFloor(), "dwell", "at least skew + (D-d) + (S-s) + D = " + micros(e.dwellFloor()), t.dwell},
		{t.dwell >= e.dwellFloorLight(), "dwell", "at least persist + 2 D + S = " + micros(e.dwellFloorLight()), t.dwell},
		{t.grace >= e.graceFloor(), "grace", "at least (D-d) + (S-s) = " + micros(e.graceFloor()), t.grace},
		{t.retry >= e.retryFloor(), "retry", "at least 2 S + persist + D = " + micros(e.retryFloor()), t.retry},
		{t.answer >= 2*e.detectMax, "answer", "at least 2 D = " + micros(2*e.detectMax), t.answer},
		{t.dwell <= maxWait, "dwell", "at most " + micros(maxWait), t.dwell},
		{t.retry <= maxWait, "retry", "at most " + micros(maxWait), t.retry},
	} {
		if !c.ok {
			return proto.Wrong("envelope."+c.field, c.limit, "%s breaks the order of the timers", micros(c.have))
		}
	}
	return nil
}

// bound is the longest recovery from one loss: found, switched, the other end
// found, and with a probe pair the grace before it.
func bound(e envelope, t timers, probes bool) time.Duration {
	b := e.detectMax + e.switchMax + e.detectMax
	if probes {
		b += t.grace
	}
	return b
}

func micros(t time.Duration) string { return strconv.FormatInt(t.Microseconds(), 10) + " us" }
