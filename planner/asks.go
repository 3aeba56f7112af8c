package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/member"
	"ringlight/proto"
)

// What operators ask of agents, through the planner.

const (
	askTimeout = 3 * time.Second
	maxAsks    = 64  // operator requests waiting for an agent; chosen: people are few
	maxLate    = 256 // acts whose answer is still listened for; chosen: many times as many
)

// ask is a request that waits for an agent.
type ask struct {
	client   string
	request  proto.OpRequest
	node     proto.NodeID
	corr     proto.Corr
	deadline time.Duration
	events   []proto.Event // pages so far

	deed // of one that nobody waits for any more
}

// asks are the requests that wait for agents.
type asks struct {
	p    *Planner
	list []ask
	late []ask // acts that were given up
}

// begin forwards a request; false: it cannot, and r says why. Where there is no room
// the client that has most of it gives some up.
func (l *asks) begin(client string, q *proto.OpRequest, d *member.Device, r *proto.OpReply, c proto.Command) bool {
	p := l.p
	switch {
	case !d.Online():
		r.Refuse(&proto.Error{Code: proto.Expired, Field: "node", Reason: fmt.Sprintf("the agent of node %d is offline", d.ID)})
	case p.state == listening || p.state == raising:
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "the planner is listening for another one"})
	case len(l.list) >= maxAsks && !l.makeRoom(client):
		r.Refuse(tooManyAsks())
	default:
		wait := min(askTimeout, time.Duration(q.TTLMillis)*time.Millisecond)
		l.list = append(l.list, ask{client: client, request: *q, node: d.ID, corr: p.j.Command(d.ID, d.Session, c), deadline: p.j.Now + wait})
		return true
	}
	if q.Noun == proto.NounWhy {
		*r = proto.OpReply{Corr: q.Corr} // the planner's own half is still an answer
	}
	return false
}

func tooManyAsks() *proto.Error {
	return &proto.Error{Code: proto.Busy, Limit: fmt.Sprintf("%d at a time", maxAsks), Reason: "too many requests wait for agents"}
}

// makeRoom ends the newest request of the client with most requests, if that one
// has more than client would have.
func (l *asks) makeRoom(client string) bool {
	who, n := most(l.list)
	own := 1
	for i := range l.list {
		if l.list[i].client == client {
			own++
		}
	}
	if n <= own {
		return false
	}
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].client == who {
			l.giveUp(i, tooManyAsks())
			return true
		}
	}
	return false
}

// answer takes an agent's answer to a command of ours.
func (l *asks) answer(d *member.Device, m *proto.Ack) {
	p := l.p
	its := func(a ask) bool { return a.node == d.ID && a.corr == m.Corr }
	at := slices.IndexFunc(l.list, its)
	if at < 0 {
		if at = slices.IndexFunc(l.late, its); at >= 0 {
			l.tooLate(&l.late[at], m)
			l.late = slices.Delete(l.late, at, at+1)
		}
		return
	}
	a := &l.list[at]
	if a.request.Noun == proto.NounWhy && m.Code == proto.OK {
		a.events = append(a.events, m.Events...)
		if m.Next != 0 && len(m.Events) > 0 && len(a.events) < proto.MaxPage {
			a.corr = p.j.Command(d.ID, d.Session, proto.Command{Verb: proto.VerbEvents, Next: m.Next})
			return
		}
	}
	r := proto.OpReply{Corr: a.request.Corr}
	if a.request.Noun == proto.NounWhy {
		p.whyPage(&a.request, &r, a.events)
	} else {
		r.Code, r.Field, r.Limit, r.Reason = m.Code, m.Field, m.Limit, m.Reason
		r.Bins, r.Next = m.Bins, uint64(m.Next)
	}
	p.reply(a.client, &r)
	l.list = slices.Delete(l.list, at, at+1)
}

// tooLate writes down what an act came to of which it was said that nobody answered; who
// asks again is told, too.
func (l *asks) tooLate(a *ask, m *proto.Ack) {
	p := l.p
	r := proto.OpReply{Version: proto.Version, Corr: a.request.Corr, Code: m.Code, Field: m.Field, Limit: m.Limit, Reason: m.Reason}
	if payload, err := proto.Encode(&r); err == nil {
		p.acts.answered(p.j.Now, a.client, r.Corr, payload)
	}
	e := a.deed.answered(&r)
	e.Why = fmt.Sprintf("the agent answered %v after that was waited for", (p.j.Now - a.deadline).Round(time.Millisecond))
	p.j.Persist(p.j.Audit(e)...)
}

// check answers for agents that did not.
func (l *asks) check() {
	p := l.p
	for i := 0; i < len(l.list); {
		if a := &l.list[i]; p.j.Now >= a.deadline {
			l.giveUp(i, &proto.Error{Code: proto.Expired, Field: "node", Reason: fmt.Sprintf("the agent of node %d did not answer", a.node)})
			continue
		}
		i++
	}
	l.late = slices.DeleteFunc(l.late, func(a ask) bool { return p.j.Now > a.deadline+lateAnswer })
}

// giveUp answers without the agent. What an act comes to all the same is listened for.
func (l *asks) giveUp(at int, why *proto.Error) {
	p := l.p
	a := l.list[at]
	l.list = slices.Delete(l.list, at, at+1)
	r := proto.OpReply{Corr: a.request.Corr}
	if a.request.Noun == proto.NounWhy {
		p.whyPage(&a.request, &r, a.events)
	} else {
		r.Refuse(why)
	}
	p.reply(a.client, &r)
	known := p.acts.find(a.client, a.request.Corr)
	if known == nil {
		return
	}
	a.deadline, a.deed = p.j.Now, known.deed
	if len(l.late) == maxLate {
		who, _ := most(l.late)
		first := slices.IndexFunc(l.late, func(a ask) bool { return a.client == who })
		l.late = slices.Delete(l.late, first, first+1)
	}
	l.late = append(l.late, a)
}

// most is the client with most entries of a list, and how many; the first of several.
func most(list []ask) (who string, n int) {
	count := map[string]int{}
	for i := range list {
		count[list[i].client]++
	}
	for i := range list {
		if w := list[i].client; count[w] > n {
			who, n = w, count[w]
		}
	}
	return who, n
}
