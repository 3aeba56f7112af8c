package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// Copies of a planner that have one store open. The store's election chooses the
// one in service; the others follow: they hear all that it hears, and take its
// place without a look round. The election keeps two of them from one store at
// once; what keeps two from one fabric is the term, as ever.

// election is what a planner knows of it, and of itself as a copy.
type election struct {
	p      *Planner
	number uint64 // of the store, 0: it has none
	warm   bool   // it followed before it began
	stored uint64 // batches of the store that this process holds
	since  uint64 // wall clock, when its service began
	knew   int    // devices that its former planner had heard, the last new one at knewAt
	knewAt time.Duration
}

// begin takes what a planner's process knows of the election and of its former
// planners.
func (e *election) begin(p *Planner, cfg *Config) {
	e.p, e.number, p.others.mates = p, cfg.Election, cfg.Election
	if b := cfg.Before; b != nil {
		p.others.list, p.others.dropped = slices.Clone(b.others.list), b.others.dropped
		p.pulse.beat, p.pulse.given, p.lastLayout = b.pulse.beat, b.pulse.given, b.lastLayout
		p.j.Beat = b.pulse.beat
		p.seenTerm = max(p.seenTerm, b.seenTerm)
		e.knew, e.knewAt = b.heard()
	}
	if cfg.Follow {
		p.state, e.warm, p.j.Mute = following, true, cfg.Picture
	}
}

// lead ends the following. Others of our election are not waited for; nor is
// anybody, where the link has been up for long enough to hear him.
func (e *election) lead() {
	p := e.p
	if p.state != following {
		return
	}
	p.become(listening)
	p.listened()
}

// copies are those of this planner's store: who is in service, and who stands by.
func (e *election) copies(s *proto.Status) {
	p := e.p
	own := proto.PlannerCopy{Planner: p.j.Planner, Life: p.j.Life, Host: p.pulse.host}
	s.Planner, s.Since = own, e.since
	if p.state == following {
		s.Planner = proto.PlannerCopy{}
		if r := p.others.latest(); r != nil {
			s.Planner = r.copy()
			own.Behind = behind(r.stored, e.stored)
		}
		s.Standbys = append(s.Standbys, own)
	}
	for i := range p.others.list {
		if r := &p.others.list[i]; r.standby && p.j.Now < r.last+standbyAlive {
			c := r.copy()
			c.Behind = r.behind
			s.Standbys = append(s.Standbys, c)
		}
	}
}

func (r *rival) copy() proto.PlannerCopy {
	return proto.PlannerCopy{Planner: r.planner, Life: r.life, Host: r.host}
}

// behind is how many batches of the store one has yet to read.
func behind(leader, standby uint64) uint64 { return max(leader, standby) - standby }

// awaited says for whom one that follows waits.
func (e *election) awaited() string {
	who := "nobody is heard to be in service"
	if r := e.p.others.latest(); r != nil {
		who = fmt.Sprintf("%s is in service", r)
	}
	return "following: nothing is planned or commanded; " + who + ", and this one takes its place when the store's election chooses it"
}
