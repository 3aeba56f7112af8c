package wiring

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What cannot be accepted is refused with the field and the reason.
// Method: a table of every kind of wrong input.
func TestBadInputIsRefused(t *testing.T) {
	half := func(field string, pods, switches int, rows [][]int) error {
		_, err := HalfFrom(field, pods, switches, rows)
		return err
	}
	links := func(pods int, l ...Link) error {
		_, err := NewTopology(pods, l)
		return err
	}
	rewire := func(g Group) error {
		_, err := Rewire(g, 1, 10)
		_, published := CrossRewire(g)
		_, split := g.Split()
		if (err == nil) != (published == nil) || (err == nil) != (split == nil) {
			return fmt.Errorf("methods differ: %v, %v, %v", err, published, split)
		}
		return err
	}
	spread := func(l Leaves, need ...Link) error {
		_, err := l.SpreadNeed(Topology{len(l.PodOf), need})
		return err
	}
	two := Leaves{PodOf: []int32{0, 0, 1}, Pods: 2, Spines: 1, Tau: 2}
	for _, c := range []struct {
		name  string
		err   error
		field string
		words string
	}{
		{"odd diagonal", links(3, Link{1, 1, 3}), "links[0]", "cannot be joined in pairs"},
		{"unknown pod", links(3, Link{0, 3, 1}), "links[0]", "unknown pod"},
		{"negative pod", links(3, Link{-1, 2, 1}), "links[0]", "unknown pod"},
		{"wrong way round", links(3, Link{0, 1, 1}, Link{2, 1, 1}), "links[1]", "wrong way round"},
		{"twice", links(3, Link{0, 1, 1}, Link{1, 2, 1}, Link{0, 1, 1}), "links", "comes twice"},
		{"negative count", links(3, Link{0, 1, -1}), "links[0]", "count -1"},
		{"count too large", links(3, Link{0, 1, MaxSpinePorts + 1}), "links[0]", "0..4096"},
		{"no pods", links(0), "pods", "0 pods"},
		{"too many pods", links(MaxPods + 1), "pods", "1..4096"},
		{"odd spine ports", ValidateSize(4, 7), "spine_ports", "cannot be paired"},
		{"no spine ports", ValidateSize(4, 0), "spine_ports", "0 ports"},
		{"no pods to wire", ValidateSize(0, 8), "pods", "0 pods"},
		{"rows missing", half("old_even", 2, 2, [][]int{{-1, -1}}), "old_even", "2 rows"},
		{"row too short", half("old_even", 2, 1, [][]int{{-1}}), "old_even[0]", "one entry a pod"},
		{"pod out of range", half("old_even", 2, 1, [][]int{{-1, 2}}), "old_even[0][1]", "-1 or a pod 0..1"},
		{"below none", half("old_even", 2, 1, [][]int{{-2, 1}}), "old_even[0][0]", "-2"},
		{"not a permutation", half("old_even", 3, 1, [][]int{{1, -1, 1}}), "old_even[0]", "pods 0 and 2 both lead to pod 1"},
		{"too many ports", rewire(Group{Topology{2, []Link{{0, 1, 3}}}, NewHalf(2, 1)}), "links", "pod 0 has 3"},
		{"no switches", rewire(Group{Topology{2, nil}, NewHalf(2, 0)}), "spine_ports", "0 ports"},
		{"other pods", rewire(Group{Topology{2, nil}, NewHalf(3, 1)}), "old_even", "dimensions"},
		{"old not a permutation", rewire(Group{Topology{2, nil}, Half{2, 1, []int32{0, 0}}}), "old_even[0]", "permutation"},
		{"tau", spread(Leaves{PodOf: []int32{0}, Pods: 1, Spines: 1, Tau: 3}), "tau", "1 or 2"},
		{"no spines", spread(Leaves{PodOf: []int32{0}, Pods: 1, Tau: 1}), "spines", "1..4096"},
		{"leaf without pod", spread(Leaves{PodOf: []int32{1}, Pods: 1, Spines: 1, Tau: 1}), "pod of leaf 0", "0..0"},
		{"need within a pod", spread(two, Link{0, 1, 1}), "need[0]", "both in pod 0"},
		{"need beyond ports", spread(two, Link{0, 2, 3}), "need", "leaf 0 needs 3"},
	} {
		var e *Error
		if !errors.As(c.err, &e) {
			t.Errorf("%s: %v", c.name, c.err)
			continue
		}
		if e.Field != c.field || !strings.Contains(e.Error(), c.words) {
			t.Errorf("%s: field %q, %v", c.name, e.Field, e)
		}
	}
}

// The postcondition sees every kind of wrong result.
// Method: a right one with one thing changed.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	top := Topology{4, []Link{{0, 1, 1}, {0, 2, 2}, {1, 3, 1}, {3, 3, 2}}}
	right, err := top.Orient().Layout(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(top, right); err != nil {
		t.Fatal(err)
	}
	for s, j := range right.To {
		for other := int32(None); other <= int32(top.Pods); other++ {
			if other == j {
				continue
			}
			wrong := right.Clone()
			wrong.To[s] = other
			if Check(top, wrong) == nil {
				t.Errorf("entry %d as %d instead of %d passed", s, other, j)
			}
		}
	}
	if Check(top, NewHalf(4, 2)) == nil || Check(top, NewHalf(5, 2)) == nil || Check(Topology{4, top.Links[:2]}, right) == nil {
		t.Error("links missing, pods too many or links not asked for passed")
	}
}

// What a circuit joins under interleaved wiring its mirror joins the other way.
// Method: the ports at a pair of switches.
func TestSwitchesAreInterleaved(t *testing.T) {
	for sw := 0; sw < 6; sw += 2 {
		if egressPort(sw) != ingressPort(sw+1) || ingressPort(sw) != egressPort(sw+1) {
			t.Errorf("switches %d and %d do not use the same ports", sw, sw+1)
		}
		if egressPort(sw) == ingressPort(sw) {
			t.Errorf("switch %d is not interleaved", sw)
		}
	}
}

// A phase that may not follow is a broken invariant.
// Method: every illegal edge.
func TestIllegalPhasesPanic(t *testing.T) {
	for from := keeping; from <= settled; from++ {
		for to := keeping; to <= settled; to++ {
			legal := false
			for _, f := range follows[from] {
				legal = legal || f == to
			}
			func() {
				defer func() {
					text, _ := recover().(string)
					if !legal && (!strings.Contains(text, from.String()) || !strings.Contains(text, to.String())) {
						t.Errorf("%v to %v: %q", from, to, text)
					}
				}()
				b := &Block{phase: from}
				b.become(to)
				if !legal {
					t.Errorf("%v became %v", from, to)
				}
			}()
		}
	}
}

// Whatever links and circuits are given, they are refused by field or
// realised exactly by every method.
// Method: bytes as a small group: links by three, then the old even switches.
func FuzzGroup(f *testing.F) {
	f.Add([]byte{3, 1, 3, 0, 1, 1, 0, 2, 1, 1, 2, 1, 2, 0, 1}, uint16(200))
	f.Add([]byte{2, 2, 2, 1, 1, 4, 0, 0, 2, 0, 1, 1, 0}, uint16(9))
	f.Add([]byte{5, 17, 1, 0, 4, 30, 255, 255, 255, 255, 0}, uint16(0))
	f.Add([]byte{9, 20, 4, 0, 8, 20, 1, 7, 21, 2, 6, 19, 3, 5, 1}, uint16(3000))
	f.Fuzz(func(t *testing.T, data []byte, steps uint16) {
		at := 0
		next := func() int {
			if at == len(data) {
				return 255
			}
			at++
			return int(int8(data[at-1]))
		}
		pods, switches := 1+(next()&15), 1+(next()&31)
		var links []Link
		for range next() & 63 {
			links = append(links, Link{int32(next()), int32(next()), int32(next())})
		}
		top, err := NewTopology(pods, links)
		if err != nil {
			mustName(t, err)
			return
		}
		rows := make([][]int, switches)
		for k := range rows {
			for range pods {
				j := next()
				rows[k] = append(rows[k], max(j, None))
			}
		}
		old, err := HalfFrom("old_even", pods, switches, rows)
		if err != nil {
			mustName(t, err)
			old = NewHalf(pods, switches)
		}
		g := Group{top, old}
		if err := g.Validate(); err != nil {
			mustName(t, err)
			return
		}
		h, err := Rewire(g, 1, int(steps&4095))
		if err != nil {
			t.Fatal(err)
		}
		count(t, top, h)
		published, err := CrossRewire(g)
		if err != nil {
			t.Fatal(err)
		}
		count(t, top, published)
		for k := range h.Switches {
			sw := Steps(old.Row(k), h.Row(k))
			for n := 1; n < len(sw); n++ {
				if sw[n-1].Create && !sw[n].Create {
					t.Fatalf("%v: makes before it takes away", sw)
				}
			}
		}
		if published.Kept(old) > g.UpperBound() || h.Kept(old) > g.UpperBound() {
			t.Fatal("more kept than can be")
		}
	})
}

func mustName(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Field == "" || e.Reason == "" {
		t.Fatalf("%v names no field", err)
	}
}
