package planner

import (
	"fmt"
	"strconv"
	"time"

	"ringlight/proto"
)

// Terms, other planners, and the first look round.

// established is the number of beats after which a planner no longer gives
// way to one that was there before.
const established = beatsAlive

func (p *Planner) sendBeat() {
	p.beat++
	p.beatAt = p.now + BeatPeriod
	p.send(p.topics.Planner(), proto.TopicPlanner, &proto.PlannerState{
		Version: proto.Version, Planner: p.cfg.PlannerID, Online: true, Term: p.term, Seq: p.beat,
		PeriodMillis: uint32(BeatPeriod.Milliseconds()), Fabric: p.fab.Name,
	})
}

// Will is the planner's death note: the packet that its link registers.
func (p *Planner) Will() proto.Packet {
	return WillOf(p.fab.Name, p.cfg.PlannerID, p.term)
}

// WillOf is the death note of a planner that is not made yet.
func WillOf(fabricName string, planner uint64, term proto.Term) proto.Packet {
	payload, err := proto.Encode(&proto.PlannerState{Version: proto.Version, Planner: planner, Term: term,
		PeriodMillis: uint32(BeatPeriod.Milliseconds()), Fabric: fabricName})
	if err != nil {
		panic("planner: own death note is refused: " + err.Error())
	}
	return proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: fabricName}.Planner(), Payload: payload,
		QoS: proto.TopicPlanner.QoS(), Retain: proto.TopicPlanner.Retain()}
}

// onPlanner hears another planner. A retained message proves nothing. Of two
// that are alive the newcomer goes, and of two that met after a partition the
// one with the lower term.
func (p *Planner) onPlanner(m *proto.PlannerState, retained bool) {
	if m.Planner == p.cfg.PlannerID || !m.Online || retained {
		if m.Planner != p.cfg.PlannerID {
			p.sawTerm(m.Term)
		}
		return
	}
	var leave bool
	switch {
	case p.state == fenced || p.state == raising:
		leave = true
	case p.beat <= established:
		leave = m.Seq > p.beat || m.Seq == p.beat && m.Planner < p.cfg.PlannerID
	case m.Seq > established:
		leave = m.Term > p.term || m.Term == p.term && m.Planner < p.cfg.PlannerID
	}
	if !leave {
		return
	}
	p.become(exited)
	p.out = append(p.out, Action{Kind: Exit, Reason: fmt.Sprintf(
		"planner %d (term %d) is alive on fabric %s; this is planner %d (term %d)", m.Planner, m.Term, p.fab.Name, p.cfg.PlannerID, p.term)})
}

// sawTerm notes a term that someone knows. A higher one than ours means that
// another planner was here, or that our store was lost.
func (p *Planner) sawTerm(t proto.Term) {
	p.seenTerm = max(p.seenTerm, t)
	if t <= p.term || p.state == fenced || p.state == raising || p.state == exited {
		return
	}
	if p.state == preparing {
		p.txn = txn{}
	}
	p.dropCircuits()
	if p.state == deciding {
		return // the decision is on its way to the disk; the term is looked at again after it
	}
	p.become(fenced)
	p.note(Warn, "a higher term is known; listening for another planner", note{Rule: "fence", Node: -1,
		Text: fmt.Sprintf("term %d is known, ours is %d", t, p.term)})
}

// checkFence raises the term when nobody else was heard for long enough.
func (p *Planner) checkFence() {
	if !p.linkUp || p.now < p.fenceEnd() {
		return
	}
	p.become(raising)
	p.raise = p.persist([]Record{{keyTerm, strconv.AppendUint(nil, uint64(p.seenTerm+1), 10)}})
}

// fenceEnd counts from the link too: what another planner said while we were
// away we did not hear.
func (p *Planner) fenceEnd() time.Duration {
	return max(p.stateSince, p.linkSince) + beatsAlive*BeatPeriod
}

func (p *Planner) raised() {
	p.term = p.seenTerm + 1
	p.seenTerm = p.term
	p.become(gathering)
	p.beatAt, p.heardAt = p.now, p.now
	p.note(Info, "term raised", note{Rule: "fence", Node: -1, Text: fmt.Sprintf("term %d", p.term)})
}

// gather waits until every node was heard, or until nothing new came for a
// while. With an empty store it waits for the first node however long.
func (p *Planner) gather() {
	if !p.linkUp || p.heard == 0 && p.fresh {
		return
	}
	if p.heard < p.agents() && p.now < p.heardAt+gatherQuiet {
		return
	}
	p.become(idle)
	p.resumeDrains()
	if p.fresh {
		p.adopt()
	}
	for i := range p.nodes {
		p.judge(&p.nodes[i])
	}
	for _, r := range p.rings {
		p.concludeDead(r)
		p.watchRing(r)
	}
	p.sweepAt = p.now
	p.stirAll()
	p.replan(0)
	p.circuitsGathered()
}
