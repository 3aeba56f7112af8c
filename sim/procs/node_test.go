package procs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/live"
	"ringlight/sim/step"
)

// loss is a node without power and what became of it.
type loss struct {
	ring              procRing
	left, dead, right int
	over              fabric.Link // from left to right
	before            []live.BoardRecord
	took              time.Duration // of the bypass, from the light lost to the light found
}

// loser finds what can be lost, from the n-th ring on: the first inner node with
// a fibre past it without which its ring can be whole. A fabric that has stepped
// over nodes may have none.
func (p *procs) loser(rings []procRing, n int) (x loss, err error) {
	for k := range rings {
		x.ring = rings[(n+k)%len(rings)]
		for i := 1; i < len(x.ring.Nodes)-1; i++ {
			ok := false
			x.left, x.dead, x.right = x.ring.Nodes[i-1], x.ring.Nodes[i], x.ring.Nodes[i+1]
			if x.over, ok = p.f.Link(proto.NodeID(x.left), proto.NodeID(x.right)); ok && (p.spared == nil || !p.spared(x.dead)) && p.mends(rings, x.dead, x.dead) {
				return x, nil
			}
		}
	}
	return x, fmt.Errorf("rings %v: want one with an inner node that has a fibre past it, and a spare that reaches it", rings)
}

// mends: the ring of two nodes can be whole without the fibre between them, or without
// the one where they are the same, of its own nodes and of those in no ring, all of
// them being well: enough of them stand in a line. No other ring moves for it.
func (p *procs) mends(rings []procRing, a, b int) bool {
	used, longest := map[int]bool{}, make([]int, p.f.Nodes)
	for _, r := range rings {
		for _, n := range r.Nodes {
			used[n] = !slices.Contains(r.Nodes, a)
		}
	}
	for n := range longest {
		if used[n] || a == b && n == a {
			continue
		}
		longest[n] = 1
		for before := max(0, n-p.f.K); before < n; before++ {
			if _, ok := p.f.Link(proto.NodeID(before), proto.NodeID(n)); ok && longest[before] > 0 && (before != min(a, b) || n != max(a, b)) {
				longest[n] = max(longest[n], 1+longest[before])
			}
		}
	}
	return slices.Max(longest) >= p.f.GroupNodes()
}

// lose takes a node's supply away: its neighbours bypass it by themselves, and
// no other light changes.
func (p *procs) lose(ctx context.Context, x *loss) {
	p.unpower(x)
	p.stepsOver(ctx, x, procsBypass)
	p.unchanged(x.before, "a node without power", x.touched())
}

// unpower takes a node's supply away.
func (p *procs) unpower(x *loss) {
	x.before = p.records()
	p.unplug(x.dead)
}

// stepsOver waits until the neighbours have bypassed a node.
func (p *procs) stepsOver(ctx context.Context, x *loss, limit time.Duration) {
	await(ctx, limit, "bypass", func() (bool, string) {
		now := time.Now()
		a, lostA, foundA := p.bypassed(x.left, x.over.Local)
		b, lostB, foundB := p.bypassed(x.right, x.over.Remote)
		late := time.Since(now) // the second record is younger
		x.took = max(lostA, lostB-late) - min(foundA, foundB-late)
		return a && b, fmt.Sprintf("%d: %v, %d: %v", x.left, a, x.right, b)
	})
}

func (x *loss) touched() map[int]bool { return map[int]bool{x.left: true, x.dead: true, x.right: true} }

// repaired waits until a ring is in service without the node that it lost, and returns
// whose light may have changed: who was in the ring meanwhile.
func (p *procs) repaired(ctx context.Context, x loss) (may map[int]bool) {
	may = x.touched()
	await(ctx, procsService, "the planner hears of it", func() (bool, string) {
		for _, r := range p.rings(ctx) {
			if r.Ring != x.ring.Ring {
				continue
			}
			for _, n := range r.Nodes {
				may[n] = true
			}
			return r.State == "in_service" && !slices.Contains(r.Nodes, x.dead), fmt.Sprintf("ring %d is %s with %v", r.Ring, r.State, r.Nodes)
		}
		return false, "no such ring"
	})
	p.unchanged(x.before, "repair", may)
	return may
}

// dieUnheard cuts the broker off and takes a node's supply away.
func (p *procs) dieUnheard(ctx context.Context) {
	began := time.Now()
	rings := p.rings(ctx)
	x := step.Got(p.loser(rings, len(rings)/2))
	p.signal("broker", syscall.SIGSTOP)
	p.lose(ctx, &x)
	p.done(began, fmt.Sprintf("broker stopped; node %d loses its power", x.dead),
		"%d <-> %d bypassed in %.1f ms of wall time, no other light changed", x.left, x.right, milliseconds(x.took))
	p.signal("broker", syscall.SIGCONT)
	began = time.Now()
	p.repaired(ctx, x)
	p.done(began, "broker goes on", "a spare took the place, in service; other rings untouched")
}

// hold stops a process while something is done.
func (h *processes) hold(name string, do func()) {
	h.signal(name, syscall.SIGSTOP)
	defer h.signal(name, syscall.SIGCONT)
	do()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// dieUnderFlood takes nodes' supplies away in turn, without and with a flood on
// the topics of the planner and of the neighbours that bypass.
func (p *procs) dieUnderFlood(ctx context.Context) {
	if p.Floods == 0 {
		return
	}
	began, f := time.Now(), &FloodResult{}
	var took [2][]time.Duration // quietly, and under a flood
	for i := range 2 * p.Floods {
		began := time.Now()
		rings := p.rings(ctx)
		x, err := p.loser(rings, i/2)
		if err != nil && i >= 2 { // all have stepped over nodes by now: a median of fewer
			p.done(began, "no further flood", "%v", err)
			break
		}
		step.Must(err)
		what, stop := "quiet", func() int { return 0 }
		if i%2 == 1 {
			what, stop = "under a flood", p.flood(ctx, x.ring.Nodes)
		}
		step.Within(what, func() { p.hold("planner", func() { p.lose(ctx, &x) }) }) // its repair would hide the bypass
		took[i%2] = append(took[i%2], x.took)
		p.done(began, fmt.Sprintf("%s: node %d loses its power", what, x.dead), "%d <-> %d bypassed in %.1f ms of wall time, no other light changed",
			x.left, x.right, milliseconds(x.took))
		began = time.Now()
		step.Within(what, func() { p.repaired(ctx, x) })
		repaired := time.Since(began)
		f.RepairMillis[i%2] = max(f.RepairMillis[i%2], repaired.Milliseconds())
		sent := stop()
		p.done(began, what, "repaired after %.1f s; %d messages of the flood", repaired.Seconds(), sent)
		f.Messages += sent
		f.peaks(p.processes)
		p.comeBack(ctx)
	}
	quiet, under := median(took[0]), median(took[1])
	f.QuietMicros, f.FloodMicros = quiet.Microseconds(), under.Microseconds()
	p.res.Flood = f
	p.done(began, fmt.Sprintf("side by side, medians of %d and %d", len(took[0]), len(took[1])), "%.1f ms quietly, %.1f ms under a flood: %.1f times; peak memory: planner %.1f MiB, an agent %.1f MiB",
		milliseconds(quiet), milliseconds(under), float64(under)/float64(max(quiet, 1)), float64(f.PlannerKiB)/1024, float64(f.AgentKiB)/1024)
}

// FloodResult is bypasses without and with a flood, and what the flood cost.
type FloodResult struct {
	QuietMicros  int64    `json:"quiet_us"` // median
	FloodMicros  int64    `json:"flood_us"`
	RepairMillis [2]int64 `json:"repair_ms"` // the longest, quietly and under a flood
	Messages     int      `json:"messages"`
	PlannerKiB   int      `json:"planner_kib"` // resident, at most
	AgentKiB     int      `json:"agent_kib"`   // of the largest agent
}

// peaks takes the most memory that planner and agents had.
func (f *FloodResult) peaks(h *processes) {
	for name, c := range h.runs { // any order: the largest counts
		kib := peakKiB(c.Process.Pid)
		switch {
		case name == "planner":
			f.PlannerKiB = max(f.PlannerKiB, kib)
		case strings.HasPrefix(name, "agent"):
			f.AgentKiB = max(f.AgentKiB, kib)
		}
	}
}

func median(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// flood begins one, and lets it bite.
func (p *procs) flood(ctx context.Context, nodes []int) (stop func() int) {
	ctx, cancel := context.WithCancel(ctx)
	sent := make(chan int, 1)
	go func() { sent <- p.Flood(ctx, p.url, p.f.Name, nodes) }()
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Second):
	}
	return func() int { cancel(); return <-sent }
}

// comeBack gives every node without power its supply and agent back.
func (p *procs) comeBack(ctx context.Context) {
	began := time.Now()
	// Who was stepped over, as a busy machine makes it, may still be on its way out of its ring.
	boards := p.records()
	await(ctx, procsService, "all that have power hold their plan", func() (bool, string) {
		for _, n := range p.nodes(ctx) {
			if boards[n.Node].Powered && !n.Usable {
				return false, fmt.Sprintf("node %d: %s", n.Node, n.Reason)
			}
		}
		return true, ""
	})
	before := p.records()
	back := map[int]bool{}
	for n := range before {
		if before[n].Powered {
			continue
		}
		back[n] = true
		p.plugIn(n)
	}
	p.serving(ctx)
	p.unchanged(before, "a node returned", back)
	p.done(began, "the node boots again", "online as a spare; no other light changed")
}

// bypassed reports whether a board sends and listens on a port, with light;
// how long ago the light of the bundle's other fibre went, and this one's came.
func (p *procs) bypassed(node int, at fabric.Port) (ok bool, lost, found time.Duration) {
	r := p.tell(boardName(node), "record")
	other := true
	for _, path := range r.Paths {
		switch ago := time.Duration(path.AgoUS) * time.Microsecond; {
		case path.Bundle != int(at.Bundle) || path.Path == "loopback":
		case path.Path == at.Path.String():
			ok, found = path.Selected && path.Lit, ago
		default:
			other, lost = path.Lit, ago
		}
	}
	return ok && !other, lost, found
}
