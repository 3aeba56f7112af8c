package agent

import (
	"strconv"
	"time"

	"ringlight/node"
	"ringlight/proto"
)

func micros(t time.Duration) uint64 { return uint64(max(t, 0).Microseconds()) }

func itoa(i int) string { return strconv.Itoa(i) }

// own completes an event that the agent itself has to tell: it measured
// nothing.
func own(now time.Duration, e proto.Event) proto.Event {
	e.AtMicros, e.Measured, e.Expected = micros(now), proto.NoPower, proto.NoPower
	return e
}

// note queues an event for the planner.
func (a *Agent) note(now time.Duration, e proto.Event) {
	e.Version, e.Node, e.Session = proto.Version, a.cfg.Node, a.cfg.Session
	a.outbox.add(e)
	a.report(now)
}

// noteSwitch is note with the ledger of a switch, when there was one.
func (a *nodeHands) noteSwitch(now time.Duration, e proto.Event, s node.Stamps) {
	if s != (node.Stamps{}) {
		l := a.ledger(s)
		e.Ledger = &l
	}
	a.note(now, e)
}

// ledger splits the time from the loss of light to its confirmation. The
// machine stamps what it saw; the agent knows when the light itself went and
// when the write that moved it was over:
//
//	light gone | heard | first Select | on the bus | written | settled | confirmed
//	   detect    holdoff    decide         bus        settle    confirm
//
// Each moment is cut to whole microseconds before the parts are taken, so
// that they add up.
func (a *nodeHands) ledger(s node.Stamps) proto.Ledger {
	gone, wrote, onBus := s.Lost-a.detect(s.Lost), s.Settled, s.Decided
	for i := range a.bundles {
		for _, w := range a.bundles[i].switches {
			if w.filled && w.asked == s.Decided && w.wrote <= wrote {
				wrote, onBus = w.wrote, w.onBus
			}
		}
	}
	if a.cfg.Decide > 0 {
		onBus = s.Decided + a.cfg.Decide
	}
	marks := [...]time.Duration{gone, s.Lost, s.Decided, onBus, wrote, s.Settled, s.Confirmed}
	var parts [len(marks) - 1]uint32
	for i := range parts {
		marks[i+1] = max(marks[i], marks[i+1])
		parts[i] = uint32(min(floorMicros(marks[i+1])-floorMicros(marks[i]), maxPart))
	}
	return proto.Ledger{DetectMicros: parts[0], HoldoffMicros: parts[1], DecideMicros: parts[2],
		BusMicros: parts[3], SettleMicros: parts[4], ConfirmMicros: parts[5]}
}

// maxPart keeps the sum of a ledger's parts within its 32 bits.
const maxPart = 1 << 29

// floorMicros rounds towards the past, also before the clock's zero.
func floorMicros(t time.Duration) int64 {
	us := int64(t / time.Microsecond)
	if t%time.Microsecond < 0 {
		us--
	}
	return us
}

// detect is how long before heard the light went: exactly, where the board
// can tell, else as calibration measured it; none when it was no edge that
// was heard.
func (a *nodeHands) detect(heard time.Duration) time.Duration {
	longest := time.Duration(0)
	for i := range a.bundles {
		b := &a.bundles[i]
		for p := range b.losses {
			l := &b.losses[p]
			if l.heard != heard || heard == 0 {
				continue
			}
			took := heard - l.origin
			if l.origin == 0 {
				t := b.optics.Status().Timing
				took = (t.DetectMax + t.DetectMin) / 2
			}
			longest = max(longest, took)
		}
	}
	return longest
}
