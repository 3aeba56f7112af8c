package hbd

import (
	"testing"
	"time"

	"ringlight/planner/member"
	"ringlight/proto"
)

// Goal: of members that are lost together, one that still told of its neighbour
// before it went is probed with the others, not after they were found silent.
// Method: three members are gone, the middle one has told; the two outside have
// lost their light.
func TestOneThatToldAndWentIsProbedToo(t *testing.T) {
	p := standing(t, 64, 0)
	r := p.rings[0]
	r.seeLight()
	p.j.Now += time.Second
	lose := func(at int, s proto.Side) { r.at(at).lose(s, lossView{lost: true, at: p.j.Now}) }
	lose(2, proto.Right)
	lose(4, proto.Left)
	lose(6, proto.Left)
	p.probes.doubt(r)
	for at := range r.nodes {
		if open, want := r.at(at).probe.open, at > 2 && at < 6; open != want {
			t.Errorf("member %d is probed: %t, want %t", at, open, want)
		}
	}
}

// Goal: a generation does not wait until it is late for a member that is gone
// and that nobody else could miss: the last of a line, whose only neighbour died
// with it, and that still told of that.
// Method: all but the last answer the prepare that leaves the dead one out.
// When nobody answers it is the planner's own link, and nobody is dead.
func TestWhoDoesNotAnswerAPrepareIsAsked(t *testing.T) {
	for _, stalled := range [2]bool{false, true} {
		silentEnd(t, stalled)
	}
}

func silentEnd(t *testing.T, stalled bool) {
	p := standing(t, 64, 0)
	r := p.rings[0]
	r.seeLight()
	p.j.Now += time.Second
	last := len(r.nodes) - 1
	dead := r.at(last - 1)
	before := dead.flags()
	p.say(dead, true, proto.ModeHostDown, 0)
	r.at(last-2).lose(proto.Right, lossView{lost: true, at: p.j.Now})
	r.at(last).lose(proto.Left, lossView{lost: true, at: p.j.Now})
	p.changed(dead, before)
	p.j.Now += settleWait
	q := p.look()
	if q == nil {
		t.Fatal("nothing is planned")
	}
	p.prepare(q)
	for _, part := range p.txn.Parts {
		if !stalled && part.Device.ID != r.nodes[last] {
			p.table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
		}
	}
	for range 4 {
		p.j.Now = min(p.Next(), p.j.Now+member.PrepareTimeout)
		p.Conclude()
		p.Resend()
	}
	if stalled {
		for _, id := range r.nodes {
			if p.nodes[id].dead || p.nodes[id].probe.open {
				t.Errorf("nobody answers, and node %d is doubted", id)
			}
		}
		return
	}
	if took := p.j.Now - time.Second - settleWait; p.txn.Phase() != member.Resting || !r.at(last).dead || took > joinWait+2*probeWait {
		t.Errorf("after %v: %s, node %d dead %t", took, p.txn.Phase(), r.nodes[last], r.at(last).dead)
	}
}
