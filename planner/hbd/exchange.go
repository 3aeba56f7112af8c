package hbd

import (
	"fmt"
	"slices"
	"strings"

	"ringlight/proto"
)

// In a step of Binary Exchange ([IHBD] sec 7) member n of a ring talks with n xor 2^i
// alone: the ring is cut into pairs, and a pair is a line of two nodes over the fibre that
// spans 2^i, with loopback at both ends. Its members are told so by a generation of its
// own; the ring keeps its number, its members and its job. Whatever else is planned of it
// is planned of a ring, so that one that loses a member is mended as ever: its step ends.

// paired is a ring's step of an exchange, from 1: members pair with those 2^(step-1) places
// on. 0: all of them are one ring.
type paired uint8

// steps are their names. chosen: fibres span 8 hops at most.
var steps = [...]string{proto.PhaseRing, proto.ExchangeStep(1), proto.ExchangeStep(2), proto.ExchangeStep(3), proto.ExchangeStep(4)}

// peer is the place that a member's side is joined to by plan, -1: it ends there.
func (r *ringView) peer(at int, s proto.Side) int {
	to := at - 1
	if s == proto.Right {
		to = at + 1
	}
	if r.step > 0 {
		if to = at ^ 1<<(r.step-1); (to > at) != (s == proto.Right) {
			return -1
		}
	}
	if to >= len(r.nodes) {
		return -1
	}
	return to
}

// line is the line of nodes that a member is in by plan, and its place there.
func (r *ringView) line(at int) (nodes []proto.NodeID, place int) {
	if r.step == 0 {
		return r.nodes, at
	}
	if left := r.peer(at, proto.Left); left >= 0 {
		return []proto.NodeID{r.nodes[left], r.nodes[at]}, 1
	}
	return []proto.NodeID{r.nodes[at], r.nodes[r.peer(at, proto.Right)]}, 0
}

// links are those by plan: the places of their left and right ends.
func (r *ringView) links(yield func(at, to int) bool) {
	for at := range r.nodes {
		if to := r.peer(at, proto.Right); to >= 0 && !yield(at, to) {
			return
		}
	}
}

// linkCount is how many links it has by plan.
func (r *ringView) linkCount() int {
	if r.step > 0 {
		return len(r.nodes) / 2
	}
	return max(0, len(r.nodes)-1)
}

// missing: the member beside another one has lost its light.
func (r *ringView) missing(at int, s proto.Side) bool {
	by := r.peer(at, s)
	return by >= 0 && r.lost(by, 1-s)
}

// alone: both members of a pair cannot be told anything, and nobody else would see that
// their light is gone.
func (r *ringView) alone() (mute bool) {
	if r.step > 0 {
		for at, to := range r.links {
			mute = mute || r.at(at).blocks() && r.at(to).blocks()
		}
	}
	return mute
}

// unpaired says why a ring cannot have a step, "" when it can.
func (r *ringView) unpaired(step paired, broken func(a, b proto.NodeID) bool) string {
	n := len(r.nodes)
	switch {
	case n < r.size:
		return fmt.Sprintf("it has %d of %s", n, proto.Count(r.size, "node"))
	case n&(n-1) != 0:
		return fmt.Sprintf("%d nodes are not a power of two", n)
	case step > 0 && 1<<step > n:
		return fmt.Sprintf("%s have no step %d", proto.Count(n, "node"), step)
	}
	for at, to := range (&ringView{nodes: r.nodes, step: step}).links {
		a, b := r.nodes[at], r.nodes[to]
		if _, ok := r.pl.fab.Link(a, b); !ok || step > 0 && broken(a, b) {
			return fmt.Sprintf("no fibre from node %d to node %d that it could use", a, b)
		}
	}
	return ""
}

// Exchange has rings go to a step, all by one generation; 0: be rings again.
func Exchange(q *proto.OpRequest, r *proto.OpReply, h *Rings) {
	refuse := func(code proto.Code, limit, format string, args ...any) {
		r.Refuse(&proto.Error{Code: code, Field: "phase", Limit: limit, Reason: fmt.Sprintf(format, args...)})
	}
	step := paired(slices.Index(steps[:], q.Name))
	if int8(step) < 0 {
		refuse(proto.NotFound, strings.Join(steps[:], ", "), "%.80q", q.Name)
		return
	}
	p := &proposal{pl: h.Placed, next: h.nextRing}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(q.Rings))) {
		v := h.Placed.ring(id)
		if v == nil {
			refuse(proto.Conflict, "rings that stand", "no ring %d", id)
			return
		}
		if v.step == step {
			continue
		}
		if state := v.stateNow(); step > 0 && state != proto.RingInService || v.frozen(h.j.Now) {
			refuse(proto.Conflict, "a ring in service that can be told", "ring %d is %s", id, state)
			return
		}
		if why := v.unpaired(step, h.Evidence.broken); step > 0 && why != "" {
			refuse(proto.Conflict, "whole rings that have all fibres of the step", "ring %d: %s", id, why)
			return
		}
		next := h.Placed.view(id, slices.Clone(v.nodes), v.size)
		next.step = step
		p.rings = append(p.rings, next)
	}
	switch {
	case !h.rest() || h.root.Listening() || !h.j.LinkUp:
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "another generation is under way"})
	case len(p.rings) > 0 && !q.DryRun:
		h.prepare(p)
	}
}
