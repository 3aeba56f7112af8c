package ring

import (
	"fmt"
	"slices"
	"testing"

	"ringlight/proto"
)

// groupsOf reads a tracker's groups.
func groupsOf(t *Tracker) map[int32][]proto.NodeID {
	out := map[int32][]proto.NodeID{}
	t.Each(func(g int32, _ proto.NodeID) { out[g] = t.Members(g, nil) })
	return out
}

// checkTracker compares all that a tracker says with the definition.
func checkTracker(t *testing.T, tr *Tracker, seen string) {
	t.Helper()
	groups := groupsOf(tr)
	var list [][]proto.NodeID
	for _, g := range groups {
		list = append(list, g)
	}
	checkGroups(t, tr.Order, tr.size, tr.Usable, list)
	want := len(Place(Problem{Order: tr.Order, Size: tr.size, Usable: tr.Usable, Want: -1}))
	usable := 0
	for n := range proto.NodeID(tr.Nodes) {
		if tr.Usable(n) {
			usable++
		}
		if g := tr.Group(n); g != 0 && !slices.Contains(groups[g], n) {
			t.Fatalf("%+v size %d %s: node %d says group %d, which is %v", tr.Order, tr.size, seen, n, g, groups[g])
		}
	}
	if len(groups) != want || tr.Groups() != want || tr.Idle() != usable-want*tr.size {
		t.Fatalf("%+v size %d %s: %d groups %v, %d idle of %d, want %d groups", tr.Order, tr.size, seen, len(groups), groups, tr.Idle(), usable, want)
	}
}

// toggle fails or repairs a node and checks what the change says about itself.
func toggle(t *testing.T, tr *Tracker, n proto.NodeID, seen string) *Change {
	t.Helper()
	before := groupsOf(tr)
	var c *Change
	if tr.Usable(n) {
		c = tr.Fail(n)
	} else {
		c = tr.Repair(n)
	}
	checkTracker(t, tr, seen)
	after := groupsOf(tr)
	var touched, gone, fresh []int32
	moved := 0
	for g, nodes := range before {
		if now, ok := after[g]; !ok {
			touched, gone = append(touched, g), append(gone, g)
		} else if !slices.Equal(now, nodes) {
			touched = append(touched, g)
		}
		for _, node := range nodes {
			if now := tr.Group(node); now != 0 && now != g {
				moved++
			}
		}
	}
	for g := range after {
		if _, ok := before[g]; !ok {
			fresh = append(fresh, g)
		}
	}
	slices.Sort(touched)
	said := slices.Clone(c.Touched)
	for _, s := range [][]int32{touched, gone, fresh, said} {
		slices.Sort(s)
	}
	// A group that broke and came back unchanged cannot be: a node left it.
	if !slices.Equal(touched, said) || len(gone) != len(c.Gone) || len(fresh) != len(c.New) {
		t.Fatalf("%+v size %d %s: touched %v gone %v new %v, said %+v", tr.Order, tr.size, seen, touched, gone, fresh, *c)
	}
	return c
}

// After any sequence of faults and repairs the placement is sound, maximal
// and says truly what it changed.
// Random walks on small fabrics, lines and rings, K from 1 to 5.
func TestTrackerStaysMaximal(t *testing.T) {
	seed := uint64(1)
	for _, nodes := range []int{7, 11, 16, 40, 130} {
		for k := 1; k <= 5; k++ {
			for variant := range 4 {
				o := Order{Nodes: nodes, K: k, Wrap: variant&1 == 1, Shared: variant&2 == 2 && k%2 == 1 && k >= 3}
				if o.Wrap && nodes < 2*k+1 {
					continue
				}
				for size := 1; size <= 5; size++ {
					faulty := draw(nodes, 300_000, seed)
					tr := NewTracker(o, size, func(n proto.NodeID) bool { return !faulty[n] })
					checkTracker(t, tr, "at first")
					for step := range 200 {
						seed = seed*6364136223846793005 + 1442695040888963407
						toggle(t, tr, proto.NodeID(seed>>33%uint64(nodes)), fmt.Sprintf("step %d", step))
					}
				}
			}
		}
	}
}

// arc is a group with all that lies between its ends.
type arc struct{ nodes, all uint32 }

// arcs lists every group of a size in every way it can lie.
func arcs(o Order, size int) []arc {
	var out []arc
	for _, l := range lines(o, size) {
		nodes := members(l)
		for turn := range nodes {
			g := append(slices.Clone(nodes[turn:]), nodes[:turn]...)
			if turn > 0 && !o.Wrap || o.Check(g) != nil {
				continue
			}
			out = append(out, arcOf(o, g))
		}
	}
	return out
}

func arcOf(o Order, g []proto.NodeID) arc {
	a := arc{nodes: maskOf(g)}
	for n := g[0]; ; n = (n + 1) % proto.NodeID(o.Nodes) {
		if a.all |= 1 << n; n == g[len(g)-1] {
			return a
		}
	}
}

// mostKept is the largest number of groups in a mask that lie one behind the
// other and, among such placements, the most that are old.
func mostKept(all []arc, usable uint32, old []arc) (groups, kept int) {
	type key struct{ open, taken uint32 }
	memo := map[key][2]int{}
	var best func(k key) [2]int
	best = func(k key) [2]int {
		if k.open == 0 {
			return [2]int{}
		}
		if b, ok := memo[k]; ok {
			return b
		}
		low := k.open & -k.open
		b := best(key{k.open &^ low, k.taken})
		for _, a := range all {
			if a.nodes&low == 0 || a.nodes&^k.open != 0 || a.all&k.taken != 0 {
				continue
			}
			rest := best(key{k.open &^ a.all, k.taken | a.all})
			rest[0]++
			if slices.Contains(old, a) {
				rest[1]++
			}
			if rest[0] > b[0] || rest[0] == b[0] && rest[1] > b[1] {
				b = rest
			}
		}
		memo[k] = b
		return b
	}
	b := best(key{usable, 0})
	return b[0], b[1]
}

// No placement of as many groups, one behind the other, leaves more running
// groups alone.
// Random walks on small fabrics against exhaustion, lines and rings.
func TestTrackerTouchesFewest(t *testing.T) {
	seed := uint64(5)
	for _, nodes := range []int{7, 9, 11, 12} {
		for k := 1; k <= 4; k++ {
			for _, wrap := range []bool{false, true} {
				if o := (Order{Nodes: nodes, K: k, Wrap: wrap}); !wrap || nodes >= 2*k+1 {
					for size := 2; size <= 4; size++ {
						seed = touchesFewest(t, o, size, seed)
					}
				}
			}
		}
	}
}

func touchesFewest(t *testing.T, o Order, size int, seed uint64) uint64 {
	all := arcs(o, size)
	tr := NewTracker(o, size, func(proto.NodeID) bool { return true })
	for range 200 {
		var old []arc
		tr.Each(func(g int32, _ proto.NodeID) { old = append(old, arcOf(o, tr.Members(g, nil))) })
		seed = seed*6364136223846793005 + 1442695040888963407
		n := proto.NodeID(seed >> 33 % uint64(o.Nodes))
		c := toggle(t, tr, n, "walk")
		var usable []proto.NodeID
		for n := range proto.NodeID(o.Nodes) {
			if tr.Usable(n) {
				usable = append(usable, n)
			}
		}
		if groups, kept := mostKept(all, maskOf(usable), old); tr.Groups() != groups || len(old)-len(c.Touched) != kept {
			t.Fatalf("%+v size %d node %d usable %v old %b: %d groups, %d of %d kept, want %d and %d", o, size, n, usable, old, tr.Groups(), len(old)-len(c.Touched), len(old), groups, kept)
		}
	}
	return seed
}

func BenchmarkTrackerNew(b *testing.B) {
	faulty := draw(250_000, 25_000, 3)
	b.ReportAllocs()
	for b.Loop() {
		NewTracker(Order{Nodes: 250_000, K: 3, Shared: true}, 8, func(n proto.NodeID) bool { return !faulty[n] })
	}
}

// A fault and a repair at random nodes. With K = 3 and few faults the fabric
// is one line with fewer idle nodes than a group has: then an event moves the
// groups of a good part of it, which is the worst case.
func BenchmarkTrackerFault(b *testing.B) {
	for _, c := range []struct{ k, limit int }{{2, 0}, {3, 0}, {3, 32}} {
		for _, nodes := range []int{2_500, 25_000, 250_000} {
			k := c.k
			b.Run(fmt.Sprintf("k%dlimit%dnodes%d", k, c.limit, nodes), func(b *testing.B) {
				faulty := draw(nodes, 10_000, 3)
				tr := NewTracker(Order{Nodes: nodes, K: k, Wrap: true}, 8, func(n proto.NodeID) bool { return !faulty[n] })
				tr.Limit = c.limit
				b.ReportAllocs()
				seed, touched, events := uint64(9), 0, 0
				for b.Loop() {
					seed = seed*6364136223846793005 + 1442695040888963407
					n := proto.NodeID(seed >> 33 % uint64(nodes))
					touched += len(tr.Fail(n).Touched)
					touched += len(tr.Repair(n).Touched)
					events += 2
				}
				b.ReportMetric(float64(touched)/float64(events), "groups/event")
			})
		}
	}
}

// With a limit no event touches more groups for one, and what stays idle is
// what no group within the limit can be made of.
// Random walks against a look at every row of idle nodes.
func TestTrackerLimit(t *testing.T) {
	seed := uint64(3)
	for _, o := range []Order{{Nodes: 300, K: 2}, {Nodes: 300, K: 3, Wrap: true}, {Nodes: 64, K: 4, Wrap: true}, {Nodes: 300, K: 3, Shared: true}} {
		for size := 2; size <= 4; size++ {
			tr := NewTracker(o, size, all)
			tr.Limit = 3
			for range 600 {
				seed = seed*6364136223846793005 + 1442695040888963407
				n := proto.NodeID(seed >> 33 % uint64(o.Nodes))
				change := tr.Fail
				if !tr.Usable(n) || seed>>30&3 == 0 {
					change = tr.Repair
				}
				// Two groups at most come anew; each may move three, and one broke.
				if c := change(n); len(c.Touched) > 7 {
					t.Fatalf("%+v size %d: touched %v", o, size, c.Touched)
				}
				var list [][]proto.NodeID
				for _, g := range groupsOf(tr) {
					list = append(list, g)
				}
				checkGroups(t, o, size, tr.Usable, list)
				for i := tr.start.next(0); i >= 0; i = tr.start.next(i + 1) {
					next := tr.start.after(i)
					if tr.idle.within(i, next, o.Nodes) < size {
						continue
					}
					if _, groups := tr.window(tr.idleIn(i, next)); groups <= tr.Limit {
						t.Fatalf("%+v size %d: a group that moves %d was not formed", o, size, groups)
					}
				}
			}
		}
	}
}
