package hbd

import (
	"slices"
	"time"

	"ringlight/planner/ring"
	"ringlight/proto"
)

// What fails again and again is used again later and later, and what has been well
// for a while is forgiven: each time doubles the wait, and each half-life without
// another takes one doubling back, as with routes that flap (RFC 2439).

// outsFree is how often a node may go out of service and come back without a wait.
// chosen: a board that is mended fails and returns a few times; a demonstration has a
// year of faults in a minute.
const (
	outsFree = 8
	outsLast = 4 * time.Second // after the last time; chosen: a ring that lacks a node may need it
)

// renewsFree is how often a node is told again at once that says it holds what was
// never given.
const renewsFree = 2

// undamp lets nodes in again that have waited.
func (o *obstacles) undamp() {
	o.damped = slices.DeleteFunc(o.damped, func(id proto.NodeID) bool {
		n := &o.h.Placed.nodes[id]
		if n.outs.held && o.h.j.Now < n.outs.until {
			o.at = min(o.at, n.outs.until)
			return false
		}
		if n.outs.held {
			n.own().outs.held = false
			o.h.Agenda.markNode(n)
		}
		return true
	})
}

// damper counts how often something failed.
type damper struct {
	count int
	until time.Duration // not used before
	held  bool          // and that has not come
}

const (
	dampFirst = 2 * time.Second // chosen: longer than a plug takes to stop rattling
	dampLast  = 2 * time.Minute // chosen: the longest that a node waits which is well after an hour of failures
	halfLife  = time.Minute     // chosen: half of the longest wait
	dampMost  = 7               // times that count; more make no longer wait
)

// forgiven takes off what time has made good.
func (d *damper) forgiven(now time.Duration) {
	if well := int((now - d.until) / halfLife); well > 0 && d.count > 0 {
		d.count = max(0, d.count-well)
		d.until += time.Duration(well) * halfLife
	}
}

// strike counts a failure and holds it off, the first times at no wait.
func (d *damper) strike(now time.Duration, first int, last time.Duration) (wait time.Duration) {
	d.forgiven(now)
	if d.count >= first {
		wait = min(dampFirst<<(d.count-first), last)
	}
	d.count = min(d.count+1, dampMost+first)
	d.until, d.held = now+wait, wait > 0
	return wait
}

// timeOutage counts how long a node is not usable: that says how many rings are worth to move.
func timeOutage(p *ring.Patience, n *node, now time.Duration) {
	switch out := !n.usable(); {
	case out && n.outAt == 0:
		n.own().outAt = max(1, now)
	case !out && n.outAt != 0:
		p.Away(now - n.outAt)
		n.own().outAt = 0
		n.eased()
	}
}
