package planner

import "ringlight/proto"

// Status is where the fabric stands, at a glance: for operators, for the live
// view.
func (p *Planner) Status() proto.Status {
	o := p.rings.Totals()
	s := proto.Status{Planner: proto.PlannerCopy{Planner: p.j.Planner, Life: p.j.Life, Host: p.host}, Term: p.j.Term, Generation: o.Generation,
		Spares: uint32(o.Spares), Links: uint32(o.LinksTotal), Confirmed: uint32(o.LinksConfirmed), Waiting: p.waits()}
	s.Nodes, s.Rings = p.rings.Counts()
	for i := range p.others.list {
		if r := &p.others.list[i]; r.standby && p.j.Now < r.last+standbyAlive {
			s.Standbys = append(s.Standbys, proto.PlannerCopy{Planner: r.planner, Life: r.life, Host: r.host})
		}
	}
	for _, a := range p.Alarms() {
		s.Alarms++
		if a.AckMillis != 0 {
			s.Acked++
		}
	}
	if p.core != nil {
		c := p.core.Status()
		s.Switches, s.SwitchesOn = c.Switches, c.Online
	}
	return s
}

// standbyAlive is for how long the word of one that stands by is believed: three
// of its signs of life.
const standbyAlive = 3 * beatsAlive * BeatPeriod

// Alarms are what is not as it should be: the worst first, then the oldest.
func (p *Planner) Alarms() []proto.AlarmStatus {
	return p.alarms.list()
}
