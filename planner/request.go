package planner

import (
	"fmt"
	"slices"

	"ringlight/proto"
)

// requestSide carries an operator's request for one side to its agent, or
// says why not. It reports whether the answer comes later.
func (p *Planner) requestSide(client string, q *proto.OpRequest, n *nodeView, r *proto.OpReply) bool {
	refuse := func(e *proto.Error) bool {
		r.Refuse(e)
		return false
	}
	if n.report == nil || len(n.report.Rings) == 0 {
		return refuse(&proto.Error{Code: proto.NotFound, Field: "node", Limit: "a node in a ring", Reason: fmt.Sprintf("node %d reports no ring", n.id)})
	}
	c := proto.Command{Verb: proto.VerbRequest, Side: q.Side, Request: q.Request, Path: proto.Loopback}
	list := n.report.Rings[0].Left
	if q.Side == proto.Right {
		list = n.report.Rings[0].Right
	}
	switch {
	case q.Peer != nil:
		k := slices.IndexFunc(list, func(x proto.Candidate) bool { return x.Peer == *q.Peer })
		if k < 0 {
			return refuse(&proto.Error{Code: proto.NotFound, Field: "peer", Limit: "a candidate: " + peers(list),
				Reason: fmt.Sprintf("node %d is no candidate of the %s side of node %d", *q.Peer, q.Side, n.id)})
		}
		c.Bundle, c.Path = list[k].Bundle, list[k].Path
	case q.Request == proto.ManualSwitch:
		return refuse(&proto.Error{Code: proto.Invalid, Field: "peer", Limit: "a candidate: " + peers(list), Reason: "a manual switch needs one"})
	}
	if q.DryRun {
		cost := proto.Cost{Rings: []proto.RingID{n.ring}, Jobs: 1, Links: 2, Stages: 0}
		if v := p.ring(n.ring); v != nil && p.allReady(v) {
			e := p.envelope(v.nodes)
			cost.DarkMicros = uint64(e.SwitchMaxMicros) + 2*uint64(e.DetectMaxMicros)
		}
		if q.Request == proto.NoRequest {
			cost.Jobs, cost.Links = 0, 0
		}
		r.Cost = &cost
		return false
	}
	if !p.askAgent(client, q, n, r, c) {
		return false
	}
	p.note(Info, "operator's request", note{Rule: "request", Node: int64(n.id), Ring: n.ring, Cause: proto.CauseOperator,
		Text: fmt.Sprintf("%s of the %s side", q.Request, q.Side)})
	return true
}

func peers(list []proto.Candidate) string {
	s := "none"
	for i := range list {
		if i == 0 {
			s = ""
		} else {
			s += ", "
		}
		s += fmt.Sprint(list[i].Peer)
	}
	return s
}

// held: an operator's request, not its light, keeps a side of the node where
// it is.
func (n *nodeView) held() bool {
	return slices.ContainsFunc(n.report.Sides, func(s proto.SideReport) bool {
		return s.Request >= proto.ForcedSwitch || s.Request == proto.ManualSwitch && s.State == proto.SideWork
	})
}
