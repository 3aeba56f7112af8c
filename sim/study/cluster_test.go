package study

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"ringlight/mzi/detmath"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// recount is the waste of every model from the definition, GPU by GPU.
func recount(s Size, down []bool) map[Model]Waste {
	tp, total := s.TPs[0], s.GPUsTotal()
	bad := func(gpu int) bool { return down[gpu/s.GPUsPerNode] }
	healthy := 0
	for g := range total {
		if !bad(g) {
			healthy++
		}
	}
	unit := func(size int) (groups int) {
		for from := 0; from < total; from += size {
			h := 0
			for g := from; g < min(total, from+size); g++ {
				if !bad(g) {
					h++
				}
			}
			groups += h / tp
		}
		return groups
	}
	fixed := func(cube int) (groups int) {
		for from := 0; from < total; from += cube {
			for b := from; b+tp <= min(total, from+cube); b += tp {
				if !slices.ContainsFunc(seq(b, b+tp), bad) {
					groups++
				}
			}
		}
		return groups
	}
	hop := func(k int, shared bool) int {
		return len(ring.Place(ring.Problem{Order: ring.Order{Nodes: s.Nodes, K: k, Wrap: s.Ring, Shared: shared}, Size: tp / s.GPUsPerNode, Want: -1,
			Usable: func(n proto.NodeID) bool { return !down[n] }}))
	}
	groups := []int{unit(total), hop(2, false), hop(3, false), hop(3, true), unit(36), unit(72), unit(576), fixed(cubeGPUs), fixed(tp)}
	out := map[Model]Waste{}
	for i, m := range Models {
		out[m] = Waste{healthy - tp*groups[i]}
	}
	return out
}

func seq(from, to int) []int {
	out := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// Goal: every architecture wastes what its definition says, last partial
// units, nodes across two units and groups larger than a unit included.
// Method: random clusters and faults against a recount from nothing.
func TestWasteFollowsTheDefinitions(t *testing.T) {
	r := detmath.Stream(2, 98)
	for range 1500 {
		gpus := []int{1, 2, 3, 4, 5, 8, 16}[r.Next()%7]
		s := Size{Nodes: 8 + int(r.Next()%300), GPUsPerNode: gpus, Ring: r.Next()%2 == 0, TPs: []int{gpus * (1 + int(r.Next()%20))}}
		rate := float64(r.Next()%40) / 100
		var faulty []int
		down := make([]bool, s.Nodes)
		for n := range down {
			if r.Chance(rate) {
				faulty, down[n] = append(faulty, n), true
			}
		}
		got, err := WasteOf(s, faulty)
		if err != nil {
			t.Fatal(err)
		}
		want := recount(s, down)
		for _, m := range Models {
			if got[m] != want[m] {
				t.Fatalf("%+v faulty %v: %s wastes %d, want %d", s, faulty, m, got[m].WastedGPUs, want[m].WastedGPUs)
			}
		}
	}
}

// Goal: counts kept over failures and repairs are those of the moment.
// Method: flip nodes at random and compare with a new cluster now and then.
func TestRepairsAreTakenBack(t *testing.T) {
	s := Size{Nodes: 601, GPUsPerNode: 4, Ring: true, TPs: []int{8, 32, 48, 128}}
	c := newCluster(s)
	r := detmath.Stream(3, 97)
	for i := range 3000 {
		if n := int(r.Next() % 601); c.down[n] || len(c.faulty) < 80 {
			c.flip(n)
		}
		if i%50 > 0 {
			continue
		}
		fresh := newCluster(s)
		for _, n := range c.faulty {
			fresh.flip(n)
		}
		for m := range Models {
			for t2 := range s.TPs {
				if a, b := c.wasted(m, t2), fresh.wasted(m, t2); a != b {
					t.Fatalf("step %d, %s, TP-%d: %d kept, %d counted", i, Models[m], s.TPs[t2], a, b)
				}
			}
		}
	}
}

// Goal: the answer for one fault list has the form that scripts rely on.
// Method: the JSON of a case counted by hand: 72 nodes of 4 GPUs, five faulty,
// two of them side by side and one that makes a double gap.
func TestGivenFaults(t *testing.T) {
	got, err := WasteOf(Size{Nodes: 72, GPUsPerNode: 4, TPs: []int{32}}, []int{10, 11, 40, 41, 42})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"models": got})
	if err != nil {
		t.Fatal(err)
	}
	// 67 healthy nodes. K=2: 10, 28 and 29 nodes in one piece each; K=3: 38 and
	// 29. NVL-36 (9 nodes): each unit holds one group of 8 at most; the units
	// of nodes 10 and 11, and of 40 to 42, hold none.
	const want = `{"models":{"big-switch":{"wasted_gpus":12},"infinitehbd-k2":{"wasted_gpus":44},"infinitehbd-k3":{"wasted_gpus":44},` +
		`"infinitehbd-k3-wired":{"wasted_gpus":44},"nvl-36":{"wasted_gpus":76},"nvl-576":{"wasted_gpus":12},"nvl-72":{"wasted_gpus":44},` +
		`"sip-ring":{"wasted_gpus":44},"tpuv4":{"wasted_gpus":44}}}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// Goal: what is not acceptable is refused with its field and its limit.
// Method: a table.
func TestRefusals(t *testing.T) {
	good := Size{Nodes: 10, GPUsPerNode: 4, TPs: []int{8}}
	for _, c := range []struct {
		field  string
		size   Size
		faulty []int
	}{
		{"nodes", Size{0, 4, false, []int{8}}, nil},
		{"nodes", Size{maxNodes + 1, 4, false, []int{8}}, nil},
		{"gpus", Size{10, 0, false, []int{8}}, nil},
		{"gpus", Size{10, 65, false, []int{65}}, nil},
		{"tp", Size{10, 4, false, []int{6}}, nil},
		{"tp", Size{10, 4, false, []int{0}}, nil},
		{"tp", Size{10, 4, false, []int{-4}}, nil},
		{"tp", Size{10, 4, false, []int{1 << 20}}, nil},
		{"tp", Size{10, 4, false, nil}, nil},
		{"tp", Size{10, 4, false, []int{8, 16}}, nil},
		{"tp", Size{10, 4, false, []int{8, 8}}, nil},
		{"faulty[0]", good, []int{10}},
		{"faulty[1]", good, []int{3, -1}},
		{"faulty[2]", good, []int{3, 4, 3}},
	} {
		_, err := WasteOf(c.size, c.faulty)
		var e *proto.Error
		if !errors.As(err, &e) || e.Field != c.field || e.Limit == "" {
			t.Errorf("%+v %v: %v, want one that names %s and its limit", c.size, c.faulty, err, c.field)
		}
	}
}

// Nothing panics, and no architecture beats the big switch or one with more
// hops.
func FuzzWasteOf(f *testing.F) {
	f.Add(uint16(72), uint8(4), uint16(32), true, []byte{1, 2, 3, 9})
	f.Add(uint16(3), uint8(8), uint16(8), false, []byte{0, 0})
	f.Fuzz(func(t *testing.T, nodes uint16, gpus uint8, tp uint16, wrap bool, list []byte) {
		faulty := make([]int, len(list))
		at := -1
		for i, b := range list {
			at += int(b)
			faulty[i] = at
		}
		s := Size{Nodes: int(nodes), GPUsPerNode: int(gpus), Ring: wrap, TPs: []int{int(tp)}}
		w, err := WasteOf(s, faulty)
		if err != nil {
			return
		}
		healthy := (s.Nodes - len(faulty)) * s.GPUsPerNode
		for _, m := range Models {
			if n := w[m].WastedGPUs; n < w[BigSwitch].WastedGPUs || n > healthy || (healthy-n)%s.TPs[0] != 0 {
				t.Fatalf("%+v %v: %s wastes %d of %d", s, faulty, m, n, healthy)
			}
		}
		if w[IHBDK2].WastedGPUs < w[IHBDK3].WastedGPUs || w[IHBDK3W].WastedGPUs < w[IHBDK3].WastedGPUs {
			t.Fatalf("%+v %v: %v", s, faulty, w)
		}
	})
}
