package flow

import (
	"testing"
	"time"
)

const gbit = int64(1e9)

// ends advances to the end of all jobs and tells when each ended.
func ends(t *testing.T, s *Sim) map[Job]time.Duration {
	t.Helper()
	out := map[Job]time.Duration{}
	for s.Live() > 0 {
		next := s.Next()
		if next == Never {
			t.Fatal("jobs that never end")
		}
		for _, j := range s.Advance(next) {
			out[j] = s.Now()
		}
	}
	return out
}

func once(flows ...Flow) *Script {
	return &Script{Stages: []Stage{{{Rounds: []Round{{flows, 1}}}}}, Iterations: 1}
}

func mustSim(t *testing.T, sharing Sharing, capacity ...int64) *Sim {
	t.Helper()
	s, err := New(capacity, sharing)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, s *Sim, sc *Script) Job {
	t.Helper()
	j, err := s.Add(sc)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Goal: two flows on one link take half of it each, and the longer one takes
// all when the shorter has gone.
// Method: 8 Gbit/s is 1 byte/ns: 1,000 and 3,000 bytes end at 2,000 and 4,000.
func TestTwoFlowsOnOneLink(t *testing.T) {
	s := mustSim(t, Rounds, 8*gbit)
	a := add(t, s, once(Flow{[]Link{0}, 1000}))
	b := add(t, s, once(Flow{[]Link{0}, 3000}))
	if got := ends(t, s); got[a] != 2000 || got[b] != 4000 {
		t.Errorf("ends %v, want 2000 and 4000", got)
	}
}

// Goal: the parking lot: a long flow and one on each of three links share with
// 1/2 each; two long ones leave a third; a wider link gives the rest.
// Method: links of 9, 9 and 18 bit a ns: flows on (0,1,2), (0), (0), (1), (2):
// 3 for all of link 0, then 6 on link 1, 15 on link 2.
func TestParkingLot(t *testing.T) {
	s := mustSim(t, Rounds, 9*gbit, 9*gbit, 18*gbit)
	long := add(t, s, once(Flow{[]Link{0, 1, 2}, 3000}))
	x := add(t, s, once(Flow{[]Link{0}, 3000}))
	y := add(t, s, once(Flow{[]Link{0}, 3000}))
	one := add(t, s, once(Flow{[]Link{1}, 6000}))
	two := add(t, s, once(Flow{[]Link{2}, 15000}))
	got := ends(t, s)
	for _, j := range []Job{long, x, y, one, two} {
		if got[j] != 8000 {
			t.Errorf("job %d ends at %d, want 8000", j, got[j])
		}
	}
}

// Goal: the bottleneck moves when a flow ends.
// Method: link 0 of 8 bit a ns with a and b, link 1 of 6 with b and c. First
// b and c have 3, a has 5. c (300 bytes) ends at 800: b is then held by link 0,
// with 4, as a is. a (1,000 bytes = 8,000 bit): 4,000 by 800, the rest at 4
// until 1,800. b (2,000 bytes = 16,000 bit): 2,400 by 800, 4,000 until 1,800,
// the rest, 9,600, at 6 until 3,400.
func TestBottleneckMoves(t *testing.T) {
	s := mustSim(t, Rounds, 8*gbit, 6*gbit)
	a := add(t, s, once(Flow{[]Link{0}, 1000}))
	b := add(t, s, once(Flow{[]Link{0, 1}, 2000}))
	c := add(t, s, once(Flow{[]Link{1}, 300}))
	if got := ends(t, s); got[a] != 1800 || got[b] != 3400 || got[c] != 800 {
		t.Errorf("ends %v, want 1800, 3400, 800", got)
	}
}

// small is 4 leaves of 4 GPUs, 4 spines, 8 Gbit/s: 1 byte a ns.
func small(t *testing.T) *LeafSpine {
	t.Helper()
	n, err := NewLeafSpine(4, 4, 4, 1, 4, 8*gbit, 64*gbit)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func script(t *testing.T, gpus []int, route Route, iterations int64, e []Exchange) *Script {
	t.Helper()
	p := Placed{GPUs: gpus, Route: route}
	rounds, err := p.Rounds(e)
	if err != nil {
		t.Fatal(err)
	}
	return &Script{Stages: []Stage{{{Rounds: rounds}}}, Iterations: iterations}
}

// Goal: alone, a ring takes 2(N-1)/N of the bytes at the rate of a link, and
// halving-doubling the same when N is a power of two.
// Method: 8 ranks on two leaves by source routing, 8,000 bytes at 1 byte/ns;
// with 6 ranks halving-doubling folds two onto others first and last.
func TestAllReduceAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		e    []Exchange
		want time.Duration
	}{
		{"ring", 8, Ring(8, 8000), 14 * 1000},
		{"halving-doubling", 8, HalvingDoubling(8, 8000), 14 * 1000},
		{"halving-doubling of 6", 6, HalvingDoubling(6, 8000), 8000 + 12*1000 + 8000},
		{"hierarchical", 8, HierarchicalRing(8, 4, 8000), 6*2000 + 2*1000},
		{"all-to-all", 8, AllToAll(8, 1000), 7 * 1000},
	} {
		n := small(t)
		s := mustSim(t, Rounds, n.Capacities()...)
		gpus := []int{0, 1, 2, 3, 4, 5, 6, 7}[:c.n]
		j := add(t, s, script(t, gpus, n.Source(func(_, port int) int { return port }), 3, c.e))
		if got := ends(t, s)[j]; got != 3*c.want {
			t.Errorf("%s: 3 iterations in %d ns, want %d", c.name, got, 3*c.want)
		}
	}
}

// Goal: two rings that meet on one spine take twice as long when both cross
// it, and are as fast as alone with uplinks of their own.
func TestTwoRingsOnOneSpine(t *testing.T) {
	for _, c := range []struct {
		uplink int
		want   time.Duration
	}{{0, 12000}, {1, 6000}} {
		n := small(t)
		s := mustSim(t, Rounds, n.Capacities()...)
		a := add(t, s, script(t, []int{0, 1, 4, 5}, n.Source(func(_, _ int) int { return 0 }), 1, Ring(4, 4000)))
		b := add(t, s, script(t, []int{2, 3, 6, 7}, n.Source(func(_, _ int) int { return c.uplink }), 1, Ring(4, 4000)))
		if got := ends(t, s); got[a] != c.want || got[b] != c.want {
			t.Errorf("uplinks 0 and %d: ends %v, want %d", c.uplink, got, c.want)
		}
	}
}

// Goal: communication hides behind compute that runs beside it, no further.
func TestOverlap(t *testing.T) {
	s := mustSim(t, Rounds, 8*gbit)
	comm := func(bytes int64) Phase { return Phase{Rounds: []Round{{[]Flow{{[]Link{0}, bytes}}, 1}}} }
	sc := &Script{Iterations: 2, Stages: []Stage{
		{{Compute: 1000}},
		{{Compute: 2000}, comm(1500)},
		{comm(500)},
	}}
	j := add(t, s, sc)
	if got := ends(t, s)[j]; got != 2*3500 {
		t.Errorf("ends at %d, want 7000", got)
	}
}

// Goal: a link that is dark for a while holds its flows for as long; a stopped
// job stands still and gives its share to others; a removed one too.
func TestDarkStoppedRemoved(t *testing.T) {
	s := mustSim(t, Rounds, 8*gbit)
	a := add(t, s, once(Flow{[]Link{0}, 1000}))
	s.Advance(400)
	if err := s.SetCapacity(0, 0); err != nil || s.Next() != Never {
		t.Errorf("dark: next is %v, %v", s.Next(), err)
	}
	s.Advance(1000)
	s.SetCapacity(0, 8*gbit)
	s.Advance(1100)
	b := add(t, s, once(Flow{[]Link{0}, 1000}))
	s.Stop(a)
	s.Advance(1600)
	s.Resume(a)
	s.Advance(2000)
	s.Remove(b)
	if got := ends(t, s); got[a] != 2300 || len(got) != 1 {
		t.Errorf("ends %v, want 2300", got)
	}
}

// Goal: what is out of its limits is refused with the field and the limit.
func TestRefused(t *testing.T) {
	s := mustSim(t, Rounds, 1)
	for name, sc := range map[string]*Script{
		"iterations": {Stages: []Stage{{{Compute: 1}}}},
		"no time":    {Iterations: 1, Stages: []Stage{{{}}}},
		"bytes":      {Iterations: 1, Stages: []Stage{{{Rounds: []Round{{[]Flow{{[]Link{0}, -1}}, 1}}}}}},
		"link":       {Iterations: 1, Stages: []Stage{{{Rounds: []Round{{[]Flow{{[]Link{1}, 1}}, 1}}}}}},
		"twice":      {Iterations: 1, Stages: []Stage{{{Rounds: []Round{{[]Flow{{[]Link{0, 0}, 1}}, 1}}}}}},
		"times":      {Iterations: 1, Stages: []Stage{{{Rounds: []Round{{[]Flow{{[]Link{0}, 1}}, 0}}}}}},
	} {
		if _, err := s.Add(sc); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if s.SetCapacity(1, 1) == nil || s.SetCapacity(0, -1) == nil || s.SetCapacity(0, MaxCapacity+1) == nil {
		t.Error("a capacity out of its limits is taken")
	}
}

// Goal: a job that communicates for a known share of its time on an idle
// network does so, whatever its collective; what is hidden shortens it.
// Method: alpha 1/4 of 1 ms; then half of it beside a longer backward.
func TestSizedByItsShareOfTime(t *testing.T) {
	n := small(t)
	route := n.Source(func(_, port int) int { return port })
	for _, e := range [][]Exchange{Ring(8, 8000), HalvingDoubling(6, 8000), AllToAll(8, 100), DoubleBinaryTree(8, 8000)} {
		p := Placed{GPUs: []int{0, 1, 2, 3, 4, 5, 6, 7}, Route: route}
		rounds, err := p.Rounds(e)
		if err != nil {
			t.Fatal(err)
		}
		reduce := Phase{Rounds: rounds}
		has, err := Alone(n.Capacities(), []Stage{{reduce}})
		if err != nil {
			t.Fatal(err)
		}
		reduce = reduce.Scale(int64(250*time.Microsecond), int64(has))
		for hidden, want := range map[int64]time.Duration{0: 1000, 50: 875, 100: 750} {
			got, err := Alone(n.Capacities(), Iteration(250*time.Microsecond, 500*time.Microsecond, nil, reduce, hidden, 100))
			if err != nil {
				t.Fatal(err)
			}
			if off := got - want*time.Microsecond; off < 0 || off > 40 { // a byte rounded up in each round
				t.Errorf("hidden %d %%: %v, want %v us", hidden, got, want)
			}
		}
	}
}

// Goal: the models differ as they should: a link that one flow leaves part of
// is given on in rounds, not in equal; phases share by flows; isolated jobs
// have no Sim.
// Method: link 0 of 8 bit a ns with a and b, link 1 of 2 with b alone: b is
// held at 2, a gets 6, or 4. c has two flows on link 2 where d has one:
// 16 of 24 bit a ns; it moves twice as much, so both end together.
func TestModelsOfSharing(t *testing.T) {
	for sharing, want := range map[Sharing]time.Duration{Rounds: 1000, Equal: 1500, Phases: 1000} {
		s := mustSim(t, sharing, 8*gbit, 2*gbit, 24*gbit)
		a := add(t, s, once(Flow{[]Link{0}, 750}))
		b := add(t, s, once(Flow{[]Link{0, 1}, 1000}))
		c := add(t, s, once(Flow{[]Link{2}, 1000}, Flow{[]Link{2}, 1000}))
		d := add(t, s, once(Flow{[]Link{2}, 1000}))
		both := [2]time.Duration{1000, 1000}
		if got := ends(t, s); got[a] != want || got[b] != 4000 || got[c] != both[0] || got[d] != both[1] {
			t.Errorf("%v: ends %v, want %v, 4000, %v", sharing, got, want, both)
		}
	}
	if _, err := New([]int64{8 * gbit}, Isolated); err == nil {
		t.Error("a Sim of isolated jobs")
	}
}

// Goal: without barriers a phase takes as long as its fullest link, alone, and
// two that meet there as long as both together.
// Method: two rounds of which each fills another link first: 3,000 and 1,000
// bytes on links 0 and 1, then 1,000 and 3,000, at 8 bit a ns: with barriers
// 6,000 ns, without 4,000 and one that rounding up takes.
func TestFullestLinkIsThePhase(t *testing.T) {
	rounds := []Round{{[]Flow{{[]Link{0}, 3000}, {[]Link{1}, 1000}}, 1}, {[]Flow{{[]Link{0}, 1000}, {[]Link{1}, 3000}}, 1}}
	sc := &Script{Stages: []Stage{{{Rounds: rounds}}}, Iterations: 3}
	for sharing, want := range map[Sharing]time.Duration{Rounds: 18000, Phases: 18000, Fullest: 12003} {
		s := mustSim(t, sharing, 8*gbit, 8*gbit)
		j := add(t, s, sc)
		if got := ends(t, s); got[j] != want {
			t.Errorf("%v: alone it ends at %d, want %d", sharing, got[j], want)
		}
	}
	s := mustSim(t, Fullest, 8*gbit, 8*gbit)
	a, b := add(t, s, sc), add(t, s, sc)
	if got := ends(t, s); got[a] != 24003 || got[b] != 24003 {
		t.Errorf("two end at %d and %d, want 24003", got[a], got[b])
	}
}
