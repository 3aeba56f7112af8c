package fleet

import (
	"time"

	"ringlight/planner/ring"
	"ringlight/proto"
)

// Waste: healthy GPUs in no whole group, over all GPUs. Counted by the light,
// beside what arithmetic alone and the best static placement would give.

// stand begins to count.
func (m *measure) stand() {
	m.counting = true
	m.since = m.r.now
	m.whole = 0
	for _, st := range m.r.nodes {
		if st.watch.full {
			m.whole++
		}
	}
	m.count()
}

// until adds the time since the last change.
func (m *measure) until(t time.Duration) {
	if !m.counting || t <= m.since {
		return
	}
	d := t - m.since
	m.since = t
	m.wasted[max(0, m.well-m.whole)] += d
	m.ideal += float64(float64(d) * float64(m.well%max(1, m.r.cfg.Fabric.GroupNodes())))
	m.static += float64(float64(d) * float64(m.leastWaste))
}

// groups: one node more, or less, in a whole group.
func (m *measure) groups(more bool) {
	m.until(m.r.now)
	if more {
		m.whole++
	} else {
		m.whole--
	}
}

// health is called when a node is lost or well again.
func (m *measure) health() {
	m.until(m.r.now)
	if m.counting {
		m.count()
	}
}

func (st *station) well() bool { return !st.dark && !st.hostBad }

func (m *measure) count() {
	m.well, m.whole = 0, 0
	for _, st := range m.r.nodes[:m.r.cfg.Fabric.Nodes] {
		if st.well() {
			m.well++
		}
		if st.watch.full {
			m.whole++
		}
	}
	f := m.r.cfg.Fabric
	demands := ring.DemandsOf(f)
	if n := len(demands); n > 0 { // else no node is in a ring
		demands[n-1].Want = -1
	}
	if m.wired.Nodes == 0 {
		m.wired = ring.ProblemOf(f, func(n proto.NodeID) bool { return m.r.stations[n].well() })
	}
	best := ring.PlaceSizes(m.wired, demands)
	m.leastWaste = m.well
	for i, d := range demands {
		m.leastWaste -= len(best[i]) * d.Size
	}
}

// replan counts by another description from now on.
func (m *measure) replan() {
	m.until(m.r.now)
	m.wired = ring.Problem{}
	if m.counting {
		m.count()
	}
}

// ratios are the mean and the value not exceeded in 99 % of the time, the mean
// by arithmetic alone, and that of the static placement.
func (m *measure) ratios() (mean, p99, ideal, static float64) {
	total, sum := 0.0, 0.0
	nodes := float64(len(m.r.nodes))
	for n, d := range m.wasted {
		total += float64(d)
		sum += float64(float64(d) * float64(n))
	}
	if total == 0 || nodes == 0 {
		return 0, 0, 0, 0
	}
	below := 0.0
	for n, d := range m.wasted {
		if below += float64(d); below >= 0.99*total {
			p99 = float64(n) / nodes
			break
		}
	}
	return sum / total / nodes, p99, m.ideal / total / nodes, m.static / total / nodes
}
