package fleet

import (
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/hal/ltc2688"
	"ringlight/hal/pca9535"
	"ringlight/proto"
)

// The defects that the checkers must find, each with the invariants by which
// it may show and a script that does no harm without it.
var defects = []struct {
	name       string
	invariants []string
	script     string
	plant      func() *mutant
}{
	{"a lost event", []string{"nothing lost"}, "1s node dark 5", func() *mutant {
		return &mutant{swallow: func(st *station, p proto.Packet) bool {
			topic, err := proto.ParseTopic(p.Topic)
			if err != nil || topic.Kind != proto.TopicEvent || st.id != 4 {
				return false
			}
			var e proto.Event
			_, err = proto.Decode(p.Payload, &e)
			return err == nil && e.Kind == proto.EvSwitched
		}}
	}},
	{"a generation that goes back", []string{"monotone"}, "1s agent crash 5\n2s agent start 5", func() *mutant {
		return &mutant{restored: func(_ *station, j *agent.Journal) { j.State = nil }}
	}},
	{"an agent that re-drives on restart", []string{"fail static"}, "1s agent crash 5\n2s agent start 5", func() *mutant {
		return &mutant{born: darken}
	}},
	{"a half switch", []string{"no half switch", "closed rings"}, "1s node dark 5", func() *mutant {
		return &mutant{undone: func(st *station, o *agent.Output) bool {
			return st.id == 4 && st.watch.switched[proto.Right].at != 0 && o.Op.Class == hal.ClassSwitch
		}}
	}},
	{"a loss that nobody heeds", []string{"closed rings", "no half switch"}, "1s node dark 5", func() *mutant {
		return &mutant{unheard: func(st *station, e *hal.Edge) bool { return st.id == 4 && !e.High }}
	}},
	{"a heater over its limit", []string{"limits"}, "1s node dark 5", func() *mutant {
		return &mutant{at: 2 * time.Second, act: func(r *Run) {
			m := &r.board.Bundles[0].Modules[0]
			submit(r, r.stations[3], m.SPI, &hal.Op{Msgs: []hal.Msg{{Addr: m.ChipSelects[0], Frame: 3,
				W: ltc2688.AppendWrite(nil, ltc2688.CmdCodeAllUpdate, 0xFFFF)}}})
		}}
	}},
}

func submit(r *Run, st *station, bus hal.BusID, op *hal.Op) {
	if err := r.world.Submit(r.now, st.board, bus, op); err != nil {
		panic(err)
	}
}

// darken writes the latch as an agent would that begins from nothing: all
// outputs low, every bundle in loopback.
func darken(r *Run, st *station) {
	for _, l := range r.board.Latches {
		submit(r, st, l.Bus, &hal.Op{Msgs: []hal.Msg{{Addr: l.Addr, W: pca9535.AppendWritePair(nil, pca9535.RegOutput, 0)}}})
	}
}
