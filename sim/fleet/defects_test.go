package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/hal/pca953x"
	"ringlight/planner/fabric"
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
		return &mutant{undone: func(st *station, op *hal.Op) bool {
			return st.id == 4 && st.watch.switched[proto.Right].at != 0 && op.Class == hal.ClassSwitch
		}}
	}},
	{"a loss that nobody heeds", []string{"closed rings", "no half switch"}, "1s node dark 5", func() *mutant {
		return &mutant{unheard: func(st *station, e *hal.Edge) bool { return st.id == 4 && !e.High }}
	}},
	{"an event number that is given out twice", []string{"nothing lost"}, "1s node dark 5\n2s agent crash 4\n3s agent start 4", func() *mutant {
		return &mutant{restored: func(_ *station, j *agent.Journal) {
			if n := uint64(3); j.Last > n {
				j.Last, j.Acked, j.Reserved, j.Events = j.Last-n, j.Last-n, j.Last-n, nil
			}
		}}
	}},
	{"light of a stranger", []string{"no stranger's light"}, "1s agent crash 5\n2s agent start 5", func() *mutant {
		return &mutant{rewrite: desired(func(r *Run, d *proto.Desired) {
			// The last node of the first ring and the first of the second are
			// told of each other.
			last := proto.NodeID(r.cfg.Fabric.GroupNodes() - 1)
			for i := range d.Rings {
				a := &d.Rings[i]
				if d.Node == last {
					a.Right = []proto.Candidate{candidate(r, last, last+1)}
				}
				if d.Node == last+1 {
					a.Left = []proto.Candidate{candidate(r, last+1, last)}
				}
			}
		})}
	}},
	{"a heater over its limit", []string{"limits"}, "1s node dark 5", func() *mutant {
		return &mutant{at: 2 * time.Second, act: func(r *Run) {
			m := &r.board.Bundles[0].Modules[0]
			submit(r, r.stations[3], m.SPI, &hal.Op{Msgs: []hal.Msg{{Addr: m.ChipSelects[0], Frame: 3,
				W: []byte{0x79, 0xFF, 0xFF}}}}) // all channels at once; the heaters' driver cannot build it
		}}
	}},
	{"a node that stays dead", []string{"usable and out"}, "1s agent crash 5\n2s agent start 5", func() *mutant {
		return &mutant{swallow: func(st *station, p proto.Packet) bool {
			topic, err := proto.ParseTopic(p.Topic)
			return err == nil && topic.Kind == proto.TopicPresence && st.id == 5 && st.life > 1
		}}
	}},
	{"a fibre that stays banned", []string{"usable and out"}, "1s fibre cut 5/0/external1 both\n3s fibre mend 5/0/external1 both", func() *mutant {
		return &mutant{unheard: func(st *station, e *hal.Edge) bool { return st.id == 5 && e.High && st.r.epoch != 0 }}
	}},
	{"a spare that is never used", []string{"usable and out"}, "1s node dark 5", func() *mutant {
		return &mutant{swallow: func(st *station, p proto.Packet) bool {
			topic, err := proto.ParseTopic(p.Topic)
			if err != nil || topic.Kind != proto.TopicAck || st.r.epoch == 0 {
				return false
			}
			var a proto.Ack
			_, err = proto.Decode(p.Payload, &a)
			var r proto.Reported
			st.host.View().Report(&r)
			return err == nil && a.Phase == proto.PhasePrepare && len(r.Rings) == 0
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
		submit(r, st, l.Bus, &hal.Op{Msgs: []hal.Msg{{Addr: l.Addr, W: pca953x.Of(l.Part).AppendWriteAll(nil, pca953x.Output, 0)}}})
	}
}

// desired lets a defect change what a planner wants of a node.
func desired(change func(*Run, *proto.Desired)) func(*Run, proto.Packet) proto.Packet {
	return func(r *Run, p proto.Packet) proto.Packet {
		topic, err := proto.ParseTopic(p.Topic)
		if err != nil || topic.Kind != proto.TopicDesired {
			return p
		}
		var d proto.Desired
		if _, err := proto.Decode(p.Payload, &d); err != nil {
			panic(err)
		}
		change(r, &d)
		if p.Payload, err = proto.Encode(&d); err != nil {
			panic(err)
		}
		return p
	}
}

// candidate is the link between two nodes as one of them is told of it.
func candidate(r *Run, from, to proto.NodeID) proto.Candidate {
	link, ok := r.cfg.Fabric.Link(from, to)
	if !ok {
		panic("no fibre")
	}
	return proto.Candidate{Bundle: link.Local.Bundle, Path: link.Local.Path, Peer: to, Others: true, Crossed: link.Crossed}
}

// closed makes a ring of all nodes that light goes round, where the planner's
// own is a line with loopback at its ends.
func closed(r *Run, d *proto.Desired) {
	f := r.cfg.Fabric
	for i := range d.Rings {
		a := &d.Rings[i]
		a.Left, a.Right = nil, nil
		for hop := 1; hop <= f.K; hop++ {
			a.Left = append(a.Left, candidate(r, d.Node, proto.NodeID((int(d.Node)+f.Nodes-hop)%f.Nodes)))
			a.Right = append(a.Right, candidate(r, d.Node, proto.NodeID((int(d.Node)+hop)%f.Nodes)))
		}
	}
}

// Goal: a ring that is closed by light is whole with a crossed seam, and found
// to be two with a straight one.
// Method: the planner's word is changed so that a ring of all nodes of a
// wrapped fabric is closed; then its fibres are laid straight as well. A node
// in the middle and the one beside the seam are lost and come back.
func TestCheckersFindAStraightSeam(t *testing.T) {
	for _, straight := range []bool{false, true} {
		cfg := testConfig(t, 16, 2, 64, fabric.Ring)
		cfg.Span = 10 * time.Second
		cfg.Faults = script(t, "1s agent crash 5", "2s agent start 5", "3s broker down", "4s node dark 8", "6s node dark 0")
		cfg.mutant = &mutant{rewrite: desired(closed)}
		cfg.Fabric.Fibres = cfg.Fabric.AllFibres()
		for i := range cfg.Fabric.Fibres {
			cfg.Fabric.Fibres[i].Crossed = cfg.Fabric.Fibres[i].Crossed && !straight
		}
		res := run(t, cfg)
		found := slices.ContainsFunc(res.ViolationList, func(v string) bool { return strings.HasPrefix(v, "closed rings") })
		if found != straight {
			t.Errorf("straight %t: %q", straight, res.ViolationList)
		}
	}
}
