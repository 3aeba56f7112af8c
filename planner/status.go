package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/health"
	"ringlight/planner/wear"
	"ringlight/proto"
)

// Status is where the fabric stands, at a glance: for operators, for the live
// view.
func (p *Planner) Status() proto.Status {
	o := p.Rings.Placed.Totals()
	s := proto.Status{Term: p.j.Term, Generation: o.Generation,
		Spares: uint32(o.Spares), Links: uint32(o.LinksTotal), Confirmed: uint32(o.LinksConfirmed), Waiting: p.waits()}
	s.Nodes, s.Rings = p.Rings.Placed.Counts()
	p.election.copies(&s)
	var all []proto.AlarmStatus
	s.Health, all = p.Alarms.Health()
	for _, a := range all {
		if a.Under != "" {
			continue
		}
		s.Alarms++
		if a.AckMillis != 0 {
			s.Acked++
		}
	}
	var x health.Facts
	p.Rings.Evidence.FactsOf(&x)
	s.Unproven, s.RingsWanted, s.GPUs, s.GPUWanted, s.SparesWanted = uint32(x.LinksUnproven), uint32(x.RingsWanted), uint32(x.GPUsLit), uint32(x.GPUsWanted), uint32(x.SparesWanted)
	if p.Core != nil {
		c := p.Core.Status()
		s.Switches, s.SwitchesOn = c.Switches, c.Online
	}
	return s
}

// standbyAlive is how long a standby's message is believed: three
// of its signs of life.
const standbyAlive = 3 * beatsAlive * BeatPeriod

const (
	// lossesAStep bounds what a step tries of what breaks next; at 50 us each it
	// keeps no other message waiting.
	lossesAStep = 8
	maxBreaks   = 16 // that are told; chosen: a screen
)

// statusAsks are questions of where the fabric stands. What breaks next takes longer
// than a step: it is tried bit by bit, once for all clients that wait.
type statusAsks struct {
	ahead *hbd.Outlook // nil: nobody waits
	asked []statusAsk
}

type statusAsk struct {
	client string
	corr   proto.Corr
}

// ask takes a question; the same one again waits already.
func (g *statusAsks) ask(p *Planner, client string, corr proto.Corr) {
	if g.ahead == nil {
		g.ahead = p.Rings.Evidence.Outlook()
	}
	if slices.Contains(g.asked, statusAsk{client, corr}) {
		return
	}
	if len(g.asked) == maxAsks {
		r := proto.OpReply{Corr: corr}
		r.Refuse(&proto.Error{Code: proto.Busy, Limit: fmt.Sprintf("%d at a time", maxAsks), Reason: "too many wait for the same"})
		p.reply(client, &r)
		return
	}
	g.asked = append(g.asked, statusAsk{client, corr})
}

// run goes on trying, and answers when all is tried.
func (g *statusAsks) run(p *Planner) {
	if g.ahead == nil || !g.ahead.Try(lossesAStep) {
		return
	}
	s := p.Status()
	for _, l := range g.ahead.Worst(maxBreaks) {
		s.Breaks = append(s.Breaks, proto.Break{Lose: l.What(), Rings: uint32(len(l.Down)), GPUs: uint32(l.GPUs), Text: proto.Clip(l.Comes())})
	}
	if p.Core != nil {
		for _, l := range p.Core.Evidence.LookAhead() {
			s.Breaks = append(s.Breaks, proto.Break{Lose: l.What(), Links: uint32(l.Links), Jobs: uint32(l.Jobs), Down: uint32(l.Down)})
		}
		slices.SortStableFunc(s.Breaks, func(a, b proto.Break) int { return cmp.Compare(b.Rings+b.Down, a.Rings+a.Down) })
		s.Breaks = s.Breaks[:min(len(s.Breaks), maxBreaks)]
	}
	for _, a := range ageing(&p.wear, p.Fabric, 0) {
		s.Ageing = append(s.Ageing, proto.Ageing{Node: a.Node, Bundle: a.Bundle, Module: a.Module, What: a.What(), Is: int32(a.Is), Limit: int32(min(a.Limit, math.MaxInt32)), Days: uint32(a.Days)})
	}
	s.Ageing = s.Ageing[:min(len(s.Ageing), maxBreaks)]
	asked := g.asked
	*g = statusAsks{}
	for _, x := range asked {
		p.reply(x.client, &proto.OpReply{Corr: x.corr, Status: &s})
	}
}

// ageing lists the modules whose lasers or heaters reach their limit within days, the first first.
func ageing(b *wear.Book, f *fabric.Fabric, days int) []wear.Ageing {
	q := f.Qualifies()
	return b.Ageing(q.BiasPercent, q.HeaterPercent, float64(cmp.Or(days, q.AgeingDays)))
}

// farOff is when nobody cares yet. chosen.
const farOff = 365 // days

// LookAhead copies what is committed: each node and fibre can be lost on it, in one's own time; and
// what ages, within a year.
func LookAhead(p *Planner) (*hbd.Outlook, []wear.Ageing) {
	return p.Rings.Evidence.Outlook(), ageing(&p.wear, p.Fabric, farOff)
}
