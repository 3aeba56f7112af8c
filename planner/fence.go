package planner

import (
	"fmt"
	"strconv"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Terms, other planners, and the first look round.

const (
	// BeatPeriod is the time between two signs of life. chosen: three of them
	// are short enough to wait out before a term is raised.
	BeatPeriod = 2 * time.Second
	beatsAlive = 3 // periods within which a live planner is heard

	// gatherQuiet ends the listening at start when some device stays unheard.
	// chosen: longer than an agent's first retry to connect.
	gatherQuiet = 6 * time.Second
)

// established is the number of beats after which a planner no longer gives
// way to one that was there before.
const established = beatsAlive

func (p *Planner) sendBeat() {
	p.beat++
	p.j.Beat = p.beat
	p.beatAt = p.j.Now + BeatPeriod
	p.j.Send(p.j.Topics.Planner(), proto.TopicPlanner, &proto.PlannerState{
		Version: proto.Version, Planner: p.j.Planner, Online: true, Term: p.j.Term, Seq: p.beat,
		PeriodMillis: uint32(BeatPeriod.Milliseconds()), Fabric: p.fab.Name,
	})
}

// Will is the planner's death note: the packet that its link registers.
func (p *Planner) Will() proto.Packet {
	return WillOf(p.fab.Name, p.j.Planner, p.j.Term)
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
	if m.Planner == p.j.Planner || !m.Online || retained {
		if m.Planner != p.j.Planner {
			p.sawTerm(m.Term)
		}
		return
	}
	var leave bool
	switch {
	case p.state == fenced || p.state == raising:
		leave = true
	case p.beat <= established:
		leave = m.Seq > p.beat || m.Seq == p.beat && m.Planner < p.j.Planner
	case m.Seq > established:
		leave = m.Term > p.j.Term || m.Term == p.j.Term && m.Planner < p.j.Planner
	}
	if !leave {
		return
	}
	p.become(exited)
	p.j.Exit(fmt.Sprintf("planner %d (term %d) is alive on fabric %s; this is planner %d (term %d)",
		m.Planner, m.Term, p.fab.Name, p.j.Planner, p.j.Term))
}

// sawTerm notes a term that someone knows. A higher one than ours means that
// another planner was here, or that our store was lost.
func (p *Planner) sawTerm(t proto.Term) {
	p.seenTerm = max(p.seenTerm, t)
	if t <= p.j.Term || p.state == fenced || p.state == raising || p.state == exited {
		return
	}
	p.rings.Drop()
	if p.core != nil {
		p.core.Drop()
	}
	if p.rings.Deciding() {
		return // the decision is on its way to the disk; the term is looked at again after it
	}
	p.become(fenced)
	p.j.Note(Warn, "a higher term is known; listening for another planner", journal.Note{Rule: "fence", Node: -1,
		Text: fmt.Sprintf("term %d is known, ours is %d", t, p.j.Term)})
}

// checkFence raises the term when nobody else was heard for long enough.
func (p *Planner) checkFence() {
	if !p.j.LinkUp || p.j.Now < p.fenceEnd() {
		return
	}
	p.become(raising)
	p.raise = p.j.Persist(Record{Key: keyTerm, Value: strconv.AppendUint(nil, uint64(p.seenTerm+1), 10)})
}

// fenceEnd counts from the link too: what another planner said while we were
// away we did not hear.
func (p *Planner) fenceEnd() time.Duration {
	return max(p.stateSince, p.linkSince) + beatsAlive*BeatPeriod
}

func (p *Planner) raised() {
	p.j.Term = p.seenTerm + 1
	p.seenTerm = p.j.Term
	p.become(gathering)
	p.beatAt, p.listenFrom = p.j.Now, p.j.Now
	p.j.Note(Info, "term raised", journal.Note{Rule: "fence", Node: -1, Text: fmt.Sprintf("term %d", p.j.Term)})
}

// heard is how many devices have spoken, and since when nothing new was heard.
func (p *Planner) heard() (count int, since time.Duration) {
	since = p.listenFrom
	for _, t := range p.tables() {
		n, at := t.Heard()
		count, since = count+n, max(since, at)
	}
	return count, since
}

// gather waits until every device was heard, or until nothing new came for a
// while. With an empty store it waits for the first one however long.
func (p *Planner) gather() {
	heard, since := p.heard()
	if !p.j.LinkUp || heard == 0 && p.rings.Fresh() {
		return
	}
	all := 0
	for _, t := range p.tables() {
		all += len(t.Devices)
	}
	if heard < all && p.j.Now < since+gatherQuiet {
		return
	}
	p.become(serving)
	p.rings.Gathered()
	if p.core != nil {
		p.core.Gathered()
	}
}
