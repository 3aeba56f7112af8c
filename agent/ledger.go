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
	a.outbox.add(e)
	a.report(now)
}

// alarm notes a fault of our own, or that it is over.
func (a *Agent) alarm(now time.Duration, x Alarm) {
	e := proto.Event{Kind: proto.EvAlarm, Severity: proto.SeverityCritical, Cause: proto.CauseOwnFault, Bundle: x.Bundle, Path: x.Path,
		Module: x.Module, Text: proto.Clip(x.Text), Resolved: x.Resolved}
	if x.Resolved {
		e.Severity = proto.SeverityOK
	}
	a.note(now, own(now, e))
}

// ledger splits the time from the loss of light to its confirmation. The
// machine stamps what it heard; the agent knows when the edge was noted below
// it and when the write that moved the light was over; when the light itself
// went the board knows, if it is a simulated one:
//
//	light gone | edge noted | heard | first Select | on the bus | written | settled | confirmed
//	   detect      decide    holdoff    decide         bus       settle     confirm
//
// A real clock runs while the agent is woken and thinks, and both are measured.
// On a virtual one they take no time, and Config.Decide stands for them.
//
// Each moment is cut to whole microseconds before the parts are taken, so
// that they add up.
func (o *nodeOptics) ledger(s node.Stamps) (proto.Ledger, proto.LedgerMark) {
	gone, noted, modelled := o.loss(s.Lost)
	wrote, onBus := s.Settled, s.Decided
	for i := range o.bundles {
		for _, w := range o.bundles[i].switches {
			if w.filled && w.asked == s.Decided && w.wrote <= wrote {
				wrote, onBus = w.wrote, w.onBus
			}
		}
	}
	mark := proto.LedgerMark(0)
	switch {
	case o.agent.cfg.Decide > 0:
		onBus = s.Decided + o.agent.cfg.Decide
	case modelled:
		mark = proto.RealClock | proto.DetectModelled
	default:
		mark = proto.RealClock
	}
	marks := [...]time.Duration{gone, noted, s.Lost, s.Decided, onBus, wrote, s.Settled, s.Confirmed}
	var parts [len(marks) - 1]uint32
	for i := range parts {
		marks[i+1] = max(marks[i], marks[i+1])
		parts[i] = uint32(min(floorMicros(marks[i+1])-floorMicros(marks[i]), maxPart))
	}
	return proto.Ledger{DetectMicros: parts[0], HoldoffMicros: parts[2], DecideMicros: parts[1] + parts[3],
		BusMicros: parts[4], SettleMicros: parts[5], ConfirmMicros: parts[6]}, mark
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

// loss is when the light went whose loss was heard at a moment, and when its
// edge was noted; both are that moment when it was no edge that was heard. The
// first is exact where the board can tell, else modelled: before the edge by
// what detection took in calibration, on the average. That includes how long
// edges took to be heard there, so that the light is rather said to have gone
// too early than too late.
func (o *nodeOptics) loss(heard time.Duration) (gone, noted time.Duration, modelled bool) {
	gone, noted = heard, heard
	for i := range o.bundles {
		b := &o.bundles[i]
		for p := range b.losses {
			l := &b.losses[p]
			if l.heard != heard || heard == 0 {
				continue
			}
			went := l.origin
			if went == 0 {
				t := b.optics.Status().Timing
				went = l.noted - (t.DetectMax+t.DetectMin)/2
			}
			if went < gone {
				gone, noted, modelled = went, l.noted, l.origin == 0
			}
		}
	}
	return gone, noted, modelled
}
