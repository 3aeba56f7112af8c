package hbd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// Request makes the command that carries an operator's request for one side
// to its agent; nil: r says why not, or what it would cost.
func (h *Rings) Request(q *proto.OpRequest, r *proto.OpReply) *proto.Command {
	refuse := func(e *proto.Error) *proto.Command {
		r.Refuse(e)
		return nil
	}
	n := &h.Placed.nodes[q.Node]
	if len(n.Device.Whole().Rings) == 0 {
		return refuse(&proto.Error{Code: proto.NotFound, Field: "node", Limit: "a node in a ring", Reason: fmt.Sprintf("node %d reports no ring", n.Device.ID)})
	}
	c := proto.Command{Verb: proto.VerbRequest, Side: q.Side, Request: q.Request, Path: proto.Loopback}
	list := candidates(n.Device.Whole(), q.Side)
	switch {
	case q.Peer != nil:
		k := slices.IndexFunc(list, func(x proto.Candidate) bool { return x.Peer == *q.Peer })
		if k < 0 {
			return refuse(&proto.Error{Code: proto.NotFound, Field: "peer", Limit: "a candidate: " + peers(list),
				Reason: fmt.Sprintf("node %d is not in reach of the %s side of node %d", *q.Peer, q.Side, n.Device.ID)})
		}
		c.Bundle, c.Path = list[k].Bundle, list[k].Path
	case q.Request == proto.ManualSwitch:
		return refuse(&proto.Error{Code: proto.Invalid, Field: "peer", Limit: "a candidate: " + peers(list), Reason: "a manual switch needs one"})
	}
	if q.DryRun {
		cost := proto.Cost{Rings: []proto.RingID{n.Device.Group}, Jobs: 1, Links: 2, Stages: 0}
		if v := h.Placed.ring(n.Device.Group); v != nil && v.allReady() {
			e := h.Placed.envelope(v.nodes)
			cost.DarkMicros = uint64(e.SwitchMaxMicros) + 2*uint64(e.DetectMaxMicros)
		}
		if q.Request == proto.NoRequest {
			cost.Jobs, cost.Links = 0, 0
		}
		r.Cost = &cost
		return nil
	}
	return &c
}

func peers(list []proto.Candidate) string {
	var all []string
	for i := range list {
		all = append(all, fmt.Sprint(list[i].Peer))
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// Undrain makes the command that lets a drained node in again; nil: r says why
// not. The placement then gives the node a ring that lacks one.
func (h *Rings) Undrain(q *proto.OpRequest, r *proto.OpReply) *proto.Command {
	n := &h.Placed.nodes[q.Node]
	if n.hold != nil && n.hold.Quarantine {
		r.Refuse(&proto.Error{Code: proto.Invalid, Field: "node", Limit: "a drained node", Reason: fmt.Sprintf("node %d is %s; 'ocsctl quarantine %d -lift' ends that", n.Device.ID, n.hold.about(), n.Device.ID)})
		return nil
	}
	if n.hold != nil && !n.drained() && !n.leaving && !q.DryRun {
		h.drains.drop(n) // its agent does not know of it
		h.j.Note(journal.Info, "node is let in again", journal.Note{Rule: "drain", Node: int64(n.Device.ID), Cause: proto.CauseOperator, Text: "its agent had not been told to leave"})
		h.Agenda.markNode(n)
		h.Agenda.replan(0)
		return nil
	}
	if err := n.mayUndrain(); err != nil {
		r.Refuse(err)
		return nil
	}
	if q.DryRun {
		cost := h.Evidence.cost(n, func(id proto.NodeID) bool { return h.Placed.nodes[id].wanted() }, func(id proto.NodeID) bool { return id == n.Device.ID || h.Placed.free(id) })
		r.Cost = &cost
		return nil
	}
	if n.Device.Online() {
		h.drains.drop(n)
	}
	h.Evidence.tryFirst(func(f fabric.Fibre) bool { return f.A.Node == n.Device.ID || f.B.Node == n.Device.ID })
	return &proto.Command{Verb: proto.VerbUndrain}
}

// Answer answers an operator about rings and nodes; the node that q names
// exists.
func (p *placement) Answer(q *proto.OpRequest, r *proto.OpReply) {
	switch q.Noun {
	case proto.NounNodes:
		r.Nodes, r.Next = proto.PageOf(len(p.nodes), q.Page, nil, func(i int) proto.NodeStatus { return p.status(proto.NodeID(i)) })
	case proto.NounNode:
		r.Nodes = p.Shown(q.Node)
	case proto.NounRings:
		r.Rings, r.Next = proto.PageOf(len(p.rings), q.Page, func(i int) uint64 { return uint64(p.rings[i].id) }, func(i int) proto.RingStatus { return p.rings[i].status() })
	case proto.NounRing:
		s := p.Ring(q.Ring)
		if s == nil {
			limit := "there are no rings"
			if len(p.rings) > 0 {
				limit = fmt.Sprintf("%d to %d", p.rings[0].id, p.rings[len(p.rings)-1].id)
			}
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: "ring", Limit: limit, Reason: fmt.Sprintf("no ring %d", q.Ring)})
			return
		}
		r.Rings = []proto.RingStatus{*s}
	}
}

// Shown are nodes with all that they report; those that the fabric has not are left out.
func (p *placement) Shown(ids ...proto.NodeID) (out []proto.NodeStatus) {
	for _, id := range ids {
		if int(id) >= len(p.nodes) {
			continue
		}
		s := p.status(id)
		if n := &p.nodes[id]; n.Device.Known {
			s.Reported = n.Device.Whole()
		}
		out = append(out, s)
	}
	return out
}

// Ring is one with its joints and the order of its GPUs, nil when there is none.
func (p *placement) Ring(id proto.RingID) *proto.RingStatus {
	v := p.ring(id)
	if v == nil {
		return nil
	}
	s := v.status()
	s.Joints, s.GPUOrder = v.joints(), v.gpuOrder()
	return &s
}

// Drain begins to take a node out, or says why not. It reports whether the
// answer comes later.
func (h *Rings) Drain(client string, q *proto.OpRequest, r *proto.OpReply) bool {
	return h.drains.begin(client, q, &h.Placed.nodes[q.Node], r)
}

// Subject is a node as the journal knows it.
func (p *placement) Subject(id proto.NodeID) journal.Subject {
	n := &p.nodes[id]
	return journal.Subject{Node: id, Ring: n.Device.Group, Gen: n.Device.Want.Gen}
}

// status is a node as operators see it, with the name that they gave it.
func (p *placement) status(id proto.NodeID) proto.NodeStatus {
	s := p.nodes[id].status()
	if int(id) < len(p.fab.NodeNames) {
		s.Name = p.fab.NodeNames[id]
	}
	return s
}

// Totals are the figures of a shell's overview.
type Totals struct {
	Generation                 proto.Generation // committed last
	Rings, InService, Degraded int
	Online, Spares, Pending    int // nodes
	LinksTotal, LinksConfirmed int
}

// Totals counts rings and nodes.
func (p *placement) Totals() Totals {
	o := Totals{Rings: len(p.rings)}
	for _, r := range p.rings {
		o.Generation = max(o.Generation, r.Gen)
		links, state := r.linkCount(), proto.RingInService
		o.LinksTotal += links
		if !r.serves() {
			links, state = r.linksConfirmed(), r.stateNow()
		}
		o.LinksConfirmed += links
		switch state {
		case proto.RingInService:
			o.InService++
		case proto.RingDegraded:
			o.Degraded++
		}
	}
	o.Online, o.Spares = p.there()
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.Device.Online() && n.usable() && (n.Device.Pending() || n.Device.Unassigned) {
			o.Pending++
		}
		o.Generation = max(o.Generation, n.Device.Want.Gen)
	}
	return o
}

// there counts nodes that somebody speaks for, and spare ones.
func (p *placement) there() (online, spares int) {
	for i := range p.nodes {
		if n := &p.nodes[i]; n.Device.Online() {
			online++
		}
		if p.nodes[i].spare() {
			spares++
		}
	}
	return online, spares
}

// Touched gives the members of a ring, and whether it was in service until the
// last generation gave it others.
func (p *placement) Touched(id proto.RingID) (nodes []proto.NodeID, moved bool) {
	r := p.ring(id)
	if r == nil {
		return nil, false
	}
	return r.nodes, r.moved
}

// Statuses are the rings as operators see them, by id.
func (p *placement) Statuses() []proto.RingStatus {
	out := make([]proto.RingStatus, 0, len(p.rings))
	for _, r := range p.rings {
		out = append(out, r.status())
	}
	return out
}
