package wiring

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ringlight/mzi/detmath"
)

// fourGroups is a spread over leaves with two links to each of four spines.
func fourGroups(t *testing.T, r *detmath.Random, most int) Spread {
	t.Helper()
	l := Leaves{Pods: 6, Spines: 4, Tau: 2}
	for a := range 24 {
		l.PodOf = append(l.PodOf, int32(a/4))
	}
	s, err := l.SpreadNeed(randomNeed(r, l, most))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func layouts(t *testing.T, groups []Topology, switches int) []Half {
	t.Helper()
	out := make([]Half, len(groups))
	for h, g := range groups {
		var err error
		if out[h], err = g.Orient().Layout(switches); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The links that a reconfiguration moves at a leaf are those whose circuits
// are not kept; backups count for nobody.
// Method: a spread realised with a backup beside it; all circuits taken away,
// none, and a spread without circuits.
func TestPiecesCountMovedLinks(t *testing.T) {
	r := detmath.Random(2)
	for range 30 {
		s := fourGroups(t, &r, 6)
		groups := s.groups()
		dark := []Half{NewHalf(6, 4), NewHalf(6, 4), NewHalf(6, 4), NewHalf(6, 4)}
		old, err := FillIdle(layouts(t, groups, 4), dark)
		if err != nil {
			t.Fatal(err)
		}
		if same, _, err := s.pieces(old, old); err != nil || len(same) != 0 {
			t.Fatalf("nothing changes, but %v, %v", same, err)
		}
		_, all, err := s.pieces(old, dark)
		if err != nil {
			t.Fatal(err)
		}
		links := s.links()
		for _, m := range Together(all).Moved {
			if links[m.Leaf] != m.Links {
				t.Fatalf("leaf %d loses %d links of %d", m.Leaf, m.Links, links[m.Leaf])
			}
			links[m.Leaf] = 0
		}
		if slices.Max(links) != 0 {
			t.Fatalf("links that are gone were not counted: %v", links)
		}
		if _, _, err := s.pieces(dark, layouts(t, groups, 4)); err == nil && len(groups[0].Links) > 0 {
			t.Fatal("a spread without circuits was accepted")
		}
	}
}

// A roll-out ends with what is wanted in even and odd switches, gives no
// switch a conflict at any stage, keeps what stays alight, and moves no more
// than iota of any leaf's links at once.
// Method: random needs, rewired; every stage applied to switches that refuse
// conflicts, the moved share counted from the circuits that go dark.
// Reference: [LUMOS] A.8
func TestRolloutKeepsItsBound(t *testing.T) {
	r := detmath.Random(3)
	staged, refused := 0, 0
	for n := range 200 {
		s := fourGroups(t, &r, 2+r.Below(7))
		old := layouts(t, s.groups(), 4)
		next := fourGroups(t, &r, 2+r.Below(7))
		wanted := make([]Half, len(old))
		for h, g := range next.groups() {
			var err error
			if wanted[h], err = Rewire(Group{g, old[h]}, uint64(n), 300); err != nil {
				t.Fatal(err)
			}
		}
		iota := 200 + r.Below(500)
		rollout, err := s.rollout(old, wanted, iota)
		if err != nil {
			var bound *Error
			if !errors.As(err, &bound) || bound.Field != "iota" {
				t.Fatal(err)
			}
			refused++
			if rollout, err = s.rollout(old, wanted, leastIota(t, s, old, wanted)); err != nil {
				t.Fatalf("refused at the least bound: %v", err)
			}
			iota = leastIota(t, s, old, wanted)
		}
		if len(rollout.Stages) > 1 {
			staged++
		}
		checkRollout(t, s, old, wanted, rollout, iota)
	}
	if staged < 100 || refused == 0 || refused == 200 {
		t.Errorf("%d of 200 in several stages, %d refused: the test shows little", staged, refused)
	}
}

// leastIota is the smallest bound, in thousandths, that no change alone
// exceeds.
func leastIota(t *testing.T, s Spread, old, wanted []Half) int {
	t.Helper()
	_, changes, err := s.pieces(old, wanted)
	if err != nil {
		t.Fatal(err)
	}
	least, links := 1, s.links()
	for _, c := range changes {
		for _, m := range c.Moved {
			least = max(least, (m.Links*1000+links[m.Leaf]-1)/links[m.Leaf])
		}
	}
	return least
}

func checkRollout(t *testing.T, s Spread, old, wanted []Half, r rollout, iota int) {
	t.Helper()
	links := s.links()
	now := make([][]Half, len(old)) // of a group: even and odd
	for h := range old {
		now[h] = []Half{old[h].Clone(), old[h].Mirror()}
	}
	worstMoved, worstOf := 0, 1
	for _, stage := range r.Stages {
		moved := make([]int, len(links))
		for _, w := range stage {
			row := now[w.Group][w.Switch%2].Row(w.Switch / 2)
			carried, err := s.carried(w.Group, old[w.Group])
			if err != nil {
				t.Fatal(err)
			}
			taken := make([]bool, len(row))
			for _, j := range row {
				if j >= 0 {
					taken[j] = true
				}
			}
			for _, st := range w.Steps {
				if st.Create == (row[st.In] >= 0) || st.Create == taken[st.Out] || !st.Create && row[st.In] != int32(st.Out) {
					t.Fatalf("switch %d: %v is a conflict", w.Switch, st)
				}
				row[st.In], taken[st.Out] = None, st.Create
				if st.Create {
					row[st.In] = int32(st.Out)
				} else if path := carried[w.Switch/2*s.Pods+st.In]; w.Switch%2 == 0 && path.Count > 0 {
					moved[path.I]++
					moved[path.J]++
				}
			}
		}
		for leaf, n := range moved {
			if n*1000 > links[leaf]*iota {
				t.Fatalf("%d of leaf %d's %d links move at once, the bound is %d thousandths", n, leaf, links[leaf], iota)
			}
			if n*worstOf > worstMoved*links[leaf] {
				worstMoved, worstOf = n, links[leaf]
			}
		}
	}
	if worstMoved*r.Of != r.Moved*worstOf {
		t.Fatalf("%d of %d links move at once, the roll-out says %d of %d", worstMoved, worstOf, r.Moved, r.Of)
	}
	for h := range old {
		if !slices.Equal(now[h][0].To, wanted[h].To) || !slices.Equal(now[h][1].To, wanted[h].Mirror().To) {
			t.Fatalf("group %d does not end as wanted", h)
		}
	}
}

// Pieces are as small as they can be: two changes at ports of their own are
// two, a chain that hands its ports on is one.
// Method: one switch by hand.
func TestPiecesAreSmall(t *testing.T) {
	parts := apart([]int32{1, 0, 3, 2, None, 5}, []int32{None, 0, 2, 4, 3, 5})
	want := [][]Step{
		{{false, 0, 1}},
		{{false, 2, 3}, {false, 3, 2}, {true, 2, 2}, {true, 3, 4}, {true, 4, 3}},
	}
	if len(parts) != len(want) {
		t.Fatalf("%v, want %v", parts, want)
	}
	for n := range want {
		if !slices.Equal(parts[n], want[n]) {
			t.Errorf("%v, want %v", parts[n], want[n])
		}
	}
}

// A need that grows leaves the paths that are there on their spines while the
// rest finds room, keeps every promise of SpreadNeed, and one that shrinks
// moves none at all.
// Method: random needs grown and shrunk by random ones, tau 1 and 2.
func TestRespreadMovesNoPathWithoutNeed(t *testing.T) {
	r := detmath.Random(4)
	stayed, moved := 0, 0
	for n := range 600 {
		l := someLeaves(&r, 1+n%2)
		part := randomNeed(&r, l, 1+r.Below(max(1, l.Ports()/2)))
		more := randomNeed(&r, l, 1+r.Below(max(1, l.Ports()-slices.Max(part.Ports()))))
		need := Merge(part, more)
		if l.CheckNeed(need) != nil {
			continue
		}
		old, err := l.SpreadNeed(part)
		if err != nil {
			t.Fatal(err)
		}
		next, err := l.Respread(need, old)
		if err != nil {
			t.Fatal(err)
		}
		checkSpread(t, need, next)
		limit := 2
		if l.Tau == 1 && l.sparse(need) {
			limit = 1
		}
		if next.Load() > limit {
			t.Fatalf("a leaf has %d paths on one spine, want %d at most", next.Load(), limit)
		}
		if holds(next, old) {
			stayed++
		} else {
			moved++
		}
		back, err := l.Respread(part, next)
		if err != nil {
			t.Fatal(err)
		}
		if l.Tau == 2 && !holds(next, back) { // with one link a smaller need may have a smaller limit
			t.Fatal("a path that stays changed its spine")
		}
		checkSpread(t, part, back)
	}
	if stayed < 300 || moved == 0 {
		t.Errorf("all paths stayed %d times, some moved %d times: the test shows little", stayed, moved)
	}
}

// Where new paths find no room beside the old ones, few of these move.
// Method: leaves with two links to each of eight spines, fifteen or all of
// their sixteen ports in use, a tenth of the paths changed; spreading anew
// beside it.
func TestNearlyFullSpreadsKeepMostPaths(t *testing.T) {
	r := detmath.Random(7)
	l := Leaves{Pods: 12, Spines: 8, Tau: 2}
	for a := range 48 {
		l.PodOf = append(l.PodOf, int32(a/4))
	}
	for _, c := range []struct{ ports, permille int }{{15, 800}, {16, 650}} {
		was := randomNeed(&r, l, c.ports)
		need := Topology{Pods: was.Pods}
		for _, link := range churned(&r, was, 100).Links {
			if l.PodOf[link.I] != l.PodOf[link.J] {
				need.Links = append(need.Links, link)
			}
		}
		old, err := l.SpreadNeed(was)
		if err != nil {
			t.Fatal(err)
		}
		next, err := l.Respread(need, old)
		if err != nil {
			t.Fatal(err)
		}
		checkSpread(t, need, next)
		if next.Load() > 2 {
			t.Errorf("a leaf has %d paths on one spine", next.Load())
		}
		anew, err := l.SpreadNeed(need)
		if err != nil {
			t.Fatal(err)
		}
		if holds(next, old) || 1000*inBoth(next, old) < c.permille*was.Circuits() || inBoth(anew, old) > was.Circuits()/2 {
			t.Errorf("%d ports in use: of %d paths %d stay, spread anew %d", c.ports, was.Circuits(), inBoth(next, old), inBoth(anew, old))
		}
	}
}

// inBoth counts the paths that two spreads have on the same spine.
func inBoth(a, b Spread) int {
	n := 0
	for h, t := range a.Spine {
		have := map[[2]int32]int32{}
		for _, l := range b.Spine[h].Links {
			have[[2]int32{l.I, l.J}] = l.Count
		}
		for _, l := range t.Links {
			n += int(min(l.Count, have[[2]int32{l.I, l.J}]))
		}
	}
	return n
}

// holds says whether a spread has every path of another on the same spine.
func holds(s, part Spread) bool {
	for h, t := range part.Spine {
		have := map[[2]int32]int32{}
		for _, l := range s.Spine[h].Links {
			have[[2]int32{l.I, l.J}] = l.Count
		}
		for _, l := range t.Links {
			if have[[2]int32{l.I, l.J}] < l.Count {
				return false
			}
		}
	}
	return true
}

// A spread or halves of another core are refused by field.
// Method: one of each.
func TestRolloutRefusesOtherSizes(t *testing.T) {
	r := detmath.Random(5)
	s := fourGroups(t, &r, 4)
	halves := layouts(t, s.groups(), 4)
	small := slices.Clone(halves)
	small[1] = NewHalf(5, 4)
	need := Topology{Pods: 24}
	for _, c := range []struct {
		name, field string
		err         error
	}{
		{"groups missing", "groups", second(s.rollout(halves[:3], halves, 500))},
		{"other pods", "groups[1]", second(s.rollout(halves, small, 500))},
		{"no iota", "iota", second(s.rollout(halves, halves, 0))},
		{"other spines", "spread", second(s.Respread(need, Spread{Leaves: s.Leaves, Spine: s.Spine[:2]}))},
		{"other leaves", "spread of spine 0", second(s.Respread(need, Spread{Leaves: s.Leaves, Spine: make([]Topology, 4)}))},
		{"unknown leaf", "need", second(s.Respread(Topology{Pods: 3}, s))},
	} {
		var e *Error
		if !errors.As(c.err, &e) || !strings.HasPrefix(e.Field, c.field) {
			t.Errorf("%s: %v, want field %s", c.name, c.err, c.field)
		}
	}
}

func second[T any](_ T, err error) error { return err }
