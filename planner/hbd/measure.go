package hbd

import (
	"slices"
	"time"

	"ringlight/proto"
	"ringlight/proto/metric"
)

// What is counted of rings and nodes, for people and their alarms.

// bypassBounds are in microseconds. chosen: twice as fine as doubling between
// the fastest board and the target of 1 ms, then coarse up to what a lost
// planner costs.
var bypassBounds = []int64{100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000, 5000, 10_000, 50_000, 200_000, 1_000_000}

// bypasses counts sides that went to another candidate, by how many members
// they passed by: 1 to K, 0: not known.
type bypasses []metric.Tally

func newBypasses(k int) bypasses {
	b := make(bypasses, k+1)
	for i := range b {
		b[i] = metric.NewTally(bypassBounds)
	}
	return b
}

func (b bypasses) take(r *ringView, m *proto.Event) {
	if m.Kind != proto.EvSwitched || !m.SideBypassed || m.Ledger == nil {
		return
	}
	losses := 0
	if r != nil {
		from, to := slices.Index(r.nodes, m.Node), slices.Index(r.nodes, m.Peer)
		if from >= 0 && to >= 0 {
			losses = max(from-to, to-from) - 1
		}
	}
	if losses < 0 || losses >= len(b) {
		losses = 0
	}
	b[losses].Observe(int64(m.Ledger.TotalMicros()))
	if r != nil {
		r.bypass = m.Ledger.TotalMicros()
	}
}

// Census is what Count counts.
type Census struct {
	Rings                       [proto.RingDown + 1]int
	Links, LinksConfirmed       int
	GPUs, GPUsWasted, Spares    int
	Pending                     int // nodes online and not yet where they should be
	HostDown, Isolated, Drained int // nodes out of service, by what they say
	Bypasses                    []metric.Tally
	Commits                     metric.Tally
	Aborts                      uint64
}

// Count looks at all rings and nodes. A GPU is wasted that is well and in no ring of full
// size that has light; those of as many spares as are wanted are not.
func Count(h *Rings) Census {
	t := h.Placed.Totals()
	c := Census{Links: t.LinksTotal, LinksConfirmed: t.LinksConfirmed, Spares: t.Spares, Pending: t.Pending, GPUs: len(h.Placed.nodes) * h.Placed.fab.GPUsPerNode, Commits: h.txn.Took.Clone(), Aborts: h.txn.Aborts}
	for i := range h.bypasses {
		c.Bypasses = append(c.Bypasses, h.bypasses[i].Clone())
	}
	used := 0
	for _, r := range h.Placed.rings {
		state := r.stateNow()
		c.Rings[state]++
		if len(r.nodes) >= r.size && (state == proto.RingInService || state == proto.RingDegraded) &&
			!slices.ContainsFunc(r.nodes, func(id proto.NodeID) bool { return !h.Placed.nodes[id].usable() }) {
			used += len(r.nodes)
		}
	}
	well := 0
	for i := range h.Placed.nodes {
		n := &h.Placed.nodes[i]
		if n.Device.Heard() && n.usable() {
			well++
		}
		switch {
		case !n.said.out:
		case n.said.mode == proto.ModeHostDown:
			c.HostDown++
		case n.said.mode == proto.ModeDrained:
			c.Drained++
		default:
			c.Isolated++
		}
	}
	c.GPUsWasted = max(0, well-used-min(c.Spares, h.Placed.fab.Spares)) * h.Placed.fab.GPUsPerNode
	return c
}

// NodeCensus is one node as its measures have it.
type NodeCensus struct {
	Node                     proto.NodeID
	Ring                     proto.RingID
	Online, Usable, Silent   bool
	Bypassed                 int8 // sides on another candidate than planned
	Alarms                   int16
	Known                    uint16 // bit b: the margin of bundle b was measured
	Margins                  [proto.MaxBundles]proto.MilliDBm
	Flaps, Bypasses, Refused uint64
	CaseMillikelvin          int32 // the warmest module's, 0: never told
}

// CountNodes appends every node. linkSince: nobody could be heard before.
func CountNodes(h *Rings, out []NodeCensus, linkSince time.Duration) []NodeCensus {
	for i := range h.Placed.nodes {
		n := &h.Placed.nodes[i]
		c := NodeCensus{Node: n.Device.ID, Ring: n.Device.Group, Online: n.Device.Online(), Usable: n.usable() && n.Device.Ready(), Silent: n.hold == nil && (!n.Device.Answers() || h.Table.Mute(n.Device, linkSince))}
		m := &n.Device.Report
		c.Bypasses, c.Refused, c.Alarms = m.BypassSeq(), n.Device.Scalars().RefusedMessages, int16(m.Alarms())
		for s := range m.Sides {
			if s.State == proto.SideWork && int(s.Current) != int(s.Working) {
				c.Bypassed++
			}
		}
		for b := range m.Bundles {
			c.Flaps += uint64(b.Flaps)
			if margin, ok := b.Margin(); ok {
				c.Known |= 1 << b.Bundle
				c.Margins[b.Bundle] = margin
			}
		}
		for _, r := range n.health.samples {
			if r.Sensor == proto.SensorCase {
				c.CaseMillikelvin = max(c.CaseMillikelvin, r.Value)
			}
		}
		out = append(out, c)
	}
	return out
}
