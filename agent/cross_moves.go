package agent

import (
	"time"

	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// noteMoves tells where the time went in which an interface of a server was
// dark: from the planner's word to the far side's light.
//
//	told | on the bus | written | settled | light
//	  decide       bus      settle    confirm
//
// Until then its old path had light of no use to anybody, so nothing was
// detected or held off. What a peer that was told later costs is in confirm.
func (o *crossOptics) noteMoves(now time.Duration, ev *circuit.Event) {
	marks := [...]time.Duration{ev.Moves.Asked, ev.Moves.BusStart, ev.Moves.BusEnd, ev.Moves.Settled, now}
	var parts [len(marks) - 1]uint32
	for i := range parts {
		marks[i+1] = max(marks[i], marks[i+1])
		parts[i] = uint32(min(floorMicros(marks[i+1])-floorMicros(marks[i]), maxPart))
	}
	e := own(now, proto.Event{Kind: proto.EvSwitched, Cause: proto.CausePlan, Bundle: proto.BundleID(ev.Pair.A), PortA: ev.Pair.A, PortB: ev.Pair.B, Count: 1,
		Ledger: &proto.Ledger{DecideMicros: parts[0], BusMicros: parts[1], SettleMicros: parts[2], ConfirmMicros: parts[3]}})
	e.Path = proto.External1 + proto.Path(int(ev.Pair.B)/len(o.agent.cfg.Board.Bundles))
	e.FirstMicros = e.AtMicros
	if o.agent.cfg.Decide == 0 {
		e.LedgerMark = proto.RealClock
	}
	if held := o.sw.State().Applied; held != nil {
		e.Generation = held.Desired.Generation
		for _, c := range held.Desired.Circuits {
			if c.A == ev.Pair.A && c.B == ev.Pair.B {
				e.Job = c.Job
			}
		}
	}
	o.agent.note(now, e)
}
