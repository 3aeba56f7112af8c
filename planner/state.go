package planner

import (
	"ringlight/planner/member"
	"ringlight/proto"
)

// state is where the planner stands as a whole.
//
//	LISTENING ──a──► RAISING ──b──► GATHERING ──c──► SERVING
//	  ▲ ▲  │                          │   │           │  │
//	  │ │  └────d──► STANDBY ◄────────┼─d─┴────d──────┘  │
//	  │ └─────e─────────┘             e                  e
//	  └───────────────────────────────┴──────────────────┘
//	LISTENING, GATHERING, STANDBY ──f──► EXITED
//	FOLLOWING ──g──► LISTENING
//
//	a  no other planner was heard for three beats, or it is to be replaced
//	b  a term above all that are known is on disk
//	c  every device was heard, or nothing new for a while: adopt, restore
//	d  another planner is in service
//	e  someone knows a higher term than ours; the other planner is silent
//	f  the fabric is planned from another description: a person has to look
//	g  the election of a store that several have open has chosen this one
type state uint8

const (
	listening state = iota
	raising
	gathering
	serving
	standby
	exited
	following
)

var stateNames = [...]string{"listening", "raising", "gathering", "serving", "standing by", "exited", "following"}

func (s state) String() string { return stateNames[s] }

// edges[s] has a bit for each state that s may become.
var edges = [...]uint8{
	listening: 1<<raising | 1<<standby | 1<<exited,
	raising:   1 << gathering,
	gathering: 1<<serving | 1<<listening | 1<<standby | 1<<exited,
	serving:   1<<listening | 1<<standby,
	standby:   1<<listening | 1<<exited,
	exited:    0,
	following: 1 << listening,
}

// become is the only place that changes the planner's state.
func (p *Planner) become(s state) {
	if edges[p.state]&(1<<s) == 0 {
		panic("planner: illegal edge " + p.state.String() + " to " + s.String())
	}
	p.state = s
}

// above is the planner as its rooms see it.
type above struct{ p *Planner }

// Voiced: a device knows of another planner, it says.
func (a above) Voiced() {
	if p := a.p; p.voicesAt == Never {
		p.voicesAt = p.j.Now + voicesWait
	}
}

// Answer takes a device's answer to a command.
func (a above) Answer(d *member.Device, m *proto.Ack) {
	if !a.p.edits.answer(d, m) && !a.p.Rollout.Answer(d.ID, m) {
		a.p.asks.answer(d, m)
	}
}

// Listening: the first look round is not over.
func (a above) Listening() bool { return a.p.state != serving }

// Busy names what keeps the planner from commanding agents.
func (a above) Busy() string {
	if a.p.state == serving {
		return ""
	}
	return a.p.state.String()
}

// Reply answers an operator who had to wait.
func (a above) Reply(client string, r *proto.OpReply) { a.p.reply(client, r) }
