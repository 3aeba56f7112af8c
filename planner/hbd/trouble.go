package hbd

import (
	"maps"
	"slices"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/health"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Trouble is a short word for what keeps a node out of plans though nobody took
// it out, "" when nothing does, and the reason.
func (p *placement) Trouble(id proto.NodeID) (what, why string) {
	n := &p.nodes[id]
	what, why = n.Device.Trouble()
	switch {
	case n.hold != nil && n.hold.Quarantine:
		return "quarantined", n.over
	case n.dead:
		what, _, _ = strings.Cut(n.reason, ":")
		return what, n.reason
	case n.over != "":
		return "stepped over", n.over
	case n.said.out && n.said.mode != proto.ModeDrained:
		return n.said.mode.Words(), n.reason
	case what != "" || n.unmeasured == "":
		return what, why
	}
	return "no ring possible", n.unmeasured
}

// FactsOf says what there is to know of rings, fibres and spares.
func (e *evidence) FactsOf(x *health.Facts) {
	x.Nodes, x.SparesWanted = len(e.pl.nodes), e.pl.fab.Spares
	x.Heard, x.Spares = e.pl.there()
	for _, d := range e.pl.demands(e.pl.fab) {
		if gpus := d.Size * e.pl.fab.GPUsPerNode; d.Want > 0 {
			x.RingsWanted, x.GPUsWanted = x.RingsWanted+d.Want, x.GPUsWanted+d.Want*gpus
			if x.SmallestRing == 0 || gpus < x.SmallestRing {
				x.SmallestRing = gpus
			}
		}
	}
	for _, r := range e.pl.rings {
		r.unproven(x)
		x.GPUs += r.size * e.pl.fab.GPUsPerNode
		if r.serves() {
			x.GPUsLit += r.size * e.pl.fab.GPUsPerNode
			continue
		}
		f := r.facts(r.stateNow())
		if f.State == proto.RingInService || f.State == proto.RingDegraded && r.closed() {
			x.GPUsLit += f.GPUs
		}
		if f.State != proto.RingInService {
			x.Rings = append(x.Rings, f)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(e.cuts.known), func(x, y [2]proto.NodeID) int { return slices.Compare(x[:], y[:]) }) {
		if l, ok := e.pl.fab.Link(at[0], at[1]); ok {
			s := e.LinkOf(&fabric.Fibre{A: l.Local, B: l.Remote, ID: e.pl.fibre(at[0], at[1])})
			c := e.cuts.known[at]
			if c.first {
				continue
			}
			if s.State == proto.FibreDark || s.State == proto.FibreDoubted || s.State == proto.FibreLit && c.count >= flaps {
				x.Fibres = append(x.Fibres, health.Fibre{Name: s.Fibre, A: at[0], B: at[1], Ring: s.Ring, State: s.State, Since: s.SinceMillis, Next: s.NextMillis, Losses: c.count, Shown: c.shown})
			}
		}
	}
}

// flaps is how often a fibre that is lit was lost, and not forgiven, to be told.
const flaps = 2

func (r *ringView) facts(s proto.RingState) health.Ring {
	x := health.Ring{ID: r.id, State: s, Whole: r.size * r.pl.fab.GPUsPerNode, Links: r.linkCount(), Confirmed: r.linksConfirmed(), Members: slices.Clone(r.nodes)}
	if s == r.state {
		x.Since = r.since
	}
	for at, id := range r.nodes {
		if n := &r.pl.nodes[id]; n.usable() {
			x.GPUs += r.pl.fab.GPUsPerNode
		} else {
			x.Out = append(x.Out, id)
		}
		if to := r.peer(at, proto.Right); to >= 0 && len(x.Dark) < 8 && r.at(at).usable() && r.at(to).usable() && !r.confirmed(at) {
			x.Dark = append(x.Dark, r.pl.fibre(id, r.nodes[to]))
		}
	}
	if len(r.nodes) < r.size {
		x.Waits = "no usable spare is within reach"
	}
	return x
}

// FactsOfNode says what only the rings know of a node, or that there is nothing to be said of
// it at all.
func (e *evidence) FactsOfNode(d *health.Device) (plain bool) {
	n := &e.pl.nodes[d.ID]
	if member.Plain(n.Device) && n.plight == noPlight && !n.dead && !n.said.out && !n.stale {
		return true
	}
	if n.hold != nil && !n.hold.Quarantine {
		d.Held = n.hold.about()
	} else if n.drained() {
		d.Held = "drained"
	}
	d.What, d.Why = e.pl.Trouble(d.ID)
	if !n.Device.Known {
		return false
	}
	if at, is := n.boardSilent(); is && n.Device.Answers() {
		d.Board = e.j.Wall - min(e.j.Wall, uint64((e.j.Now-at).Milliseconds()))
	}
	for b := range n.Device.Report.Bundles {
		if missing := member.Missing(&b); missing > 0 {
			d.Low = append(d.Low, health.Low{Bundle: b.Bundle, Missing: missing})
		}
	}
	return false
}

// boardSilent: its agent has read nothing of its board, since when.
func (n *node) boardSilent() (since time.Duration, is bool) {
	for _, r := range n.health.samples {
		since = max(since, n.health.at-time.Duration(r.AgeMillis)*time.Millisecond)
	}
	told, gap := n.Device.Telemetry()
	return since, len(n.health.samples) > 0 && told-since >= max(boardSilent, 2*gap)
}

// boardSilent is how old the newest reading of a board may be that its agent tells.
// chosen: two rounds of telemetry.
const boardSilent = 20 * time.Second

// Counts are nodes and rings by state.
func (p *placement) Counts() (nodes proto.NodeCounts, rings proto.RingCounts) {
	nodes.Total, rings.Total = uint32(len(p.nodes)), uint32(len(p.rings))
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.Device.Answers() {
			nodes.Online++
		} else {
			nodes.Silent++
		}
		if !n.said.out {
			continue
		}
		switch n.said.mode {
		case proto.ModeIsolated:
			nodes.Isolated++
		case proto.ModeHostDown:
			nodes.HostDown++
		}
		if n.drained() {
			nodes.Drained++
		}
	}
	for _, r := range p.rings {
		switch r.stateNow() {
		case proto.RingInService:
			rings.InService++
		case proto.RingDegraded:
			rings.Degraded++
		case proto.RingForming:
			rings.Forming++
		case proto.RingDown:
			rings.Down++
		}
	}
	return nodes, rings
}
