package planner

import (
	"ringlight/planner/member"
	"ringlight/proto"
)

// state is where the planner stands as a whole.
//
//	GATHERING ──a──► SERVING
//	    ▲               │
//	    │  any of them ──b──► FENCED ──c──► RAISING
//	    └────────────────────d───────────────┘
//	       any of them ──e──► EXITED
//
//	a  every device was heard, or nothing new for a while: adopt, restore
//	b  someone knows a higher term than ours
//	c  no other planner was heard for three beats
//	d  a term above it is on disk
//	e  another planner is alive
type state uint8

const (
	gathering state = iota
	serving
	fenced
	raising
	exited
)

var stateNames = [...]string{"gathering", "serving", "fenced", "raising", "exited"}

func (s state) String() string { return stateNames[s] }

// edges[s] has a bit for each state that s may become.
var edges = [...]uint8{
	gathering: 1<<serving | 1<<fenced | 1<<exited,
	serving:   1<<fenced | 1<<exited,
	fenced:    1<<raising | 1<<exited,
	raising:   1<<gathering | 1<<exited,
	exited:    0,
}

// become is the only place that changes the planner's state.
func (p *Planner) become(s state) {
	if edges[p.state]&(1<<s) == 0 {
		panic("planner: illegal edge " + p.state.String() + " to " + s.String())
	}
	p.state = s
	p.stateSince = p.j.Now
}

// above is the planner as its rooms see it.
type above struct{ p *Planner }

// SawTerm hears of a term that somebody knows.
func (a above) SawTerm(t proto.Term) { a.p.sawTerm(t) }

// Answer takes a device's answer to a command.
func (a above) Answer(d *member.Device, m *proto.Ack) { a.p.onAnswer(d, m) }

// Listening: the first look round is not over.
func (a above) Listening() bool { return a.p.state == gathering }

// Busy names what keeps the planner from commanding agents.
func (a above) Busy() string {
	if a.p.state == serving {
		return ""
	}
	return a.p.state.String()
}

// Reply answers an operator who had to wait.
func (a above) Reply(client string, r *proto.OpReply) { a.p.reply(client, r) }
