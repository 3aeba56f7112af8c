package ring

import (
	"fmt"
	"testing"

	"ringlight/proto"
)

// A plan without a number of groups wanted holds as many as there can be, and
// among such plans the most running groups stay exactly as they are.
// Running groups of an earlier fault pattern against exhaustion: lines and
// rings of up to 9 nodes, with and without the shared bundle.
func TestPlansKeepTheMost(t *testing.T) {
	seed := uint64(11)
	for nodes := 3; nodes <= 9; nodes++ {
		for _, o := range orders(nodes) {
			for size := 1; size <= 4; size++ {
				best := packing(o, size)
				for range 40 {
					seed = seed*6364136223846793005 + 1442695040888963407
					before, now := uint32(seed>>20)&(1<<nodes-1), uint32(seed>>40)&(1<<nodes-1)
					running := runningGroups(Place(Problem{Order: o, Size: size, Usable: usable(before), Want: -1, Spread: seed>>19&1 == 1}))
					for i := range running {
						running[i].Size = size
					}
					m := Mend{Order: o, Sizes: []Demand{{size, -1}}, Usable: usable(now), Free: usable(now), Moves: Any}
					groups, kept := checkState(t, m, size, now, running, m.Replace(running))
					if want, most := mostOf(running, size, nodes, now, best); groups != want || kept != most {
						t.Fatalf("%+v size %d running %v now %b: %d groups, %d kept, want %d and %d", o, size, running, now, groups, kept, want, most)
					}
				}
			}
		}
	}
}

// Running groups may be anything: torn, of other sizes, faulty, nodes in any
// order; nothing of that is kept, and the number of groups stays the largest.
func TestPlansTakeAnyRunningGroups(t *testing.T) {
	m := Mend{Order: Order{Nodes: 16, K: 2}, Sizes: []Demand{{4, -1}}, Usable: but(5), Free: but(5), Moves: Any}
	running := runningGroups([][]proto.NodeID{{3, 2, 1, 0}, {4, 5}, {8, 15, 9}, {10, 11, 12, 13, 14}})
	r := m.Replace(running)
	checkGroups(t, m.Order, 4, m.Usable, wholeOf(r, 4))
	if n := whole(r, 4); n != 3 {
		t.Errorf("%d groups: %+v", n, r.Groups)
	}
}

// A node that is not in the group that its group has become has moved, and so
// has one that is in no group any more.
func TestMoved(t *testing.T) {
	before := [][]proto.NodeID{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}
	for _, c := range []struct {
		after [][]proto.NodeID
		moved int
		same  string
	}{
		{before, 0, "[0 1 2]"},
		{nil, 9, "[-1 -1 -1]"},
		{[][]proto.NodeID{{6, 7, 9}, {0, 1, 3}}, 5, "[1 -1 0]"},
		{[][]proto.NodeID{{0, 3, 4}, {1, 2, 5}}, 5, "[1 0 -1]"},
	} {
		if got, same := Moved(before, c.after), fmt.Sprint(Same(before, c.after)); got != c.moved || same != c.same {
			t.Errorf("%v: moved %d, same %s, want %d and %s", c.after, got, same, c.moved, c.same)
		}
	}
}

// Every idle node and group is explained by what is true of its component.
func TestExplain(t *testing.T) {
	p := Problem{Order: Order{Nodes: 24, K: 3, Shared: true}, Size: 6, Usable: but(4, 5, 7, 8, 16, 17, 18), Want: -1}
	groups := Place(p)
	reasons := Explain(p, groups)
	if got := fmt.Sprint(groups); got != "[[6 9 10 11 12 13]]" && got != "[[9 10 11 12 13 14]]" {
		t.Fatalf("groups %s", got)
	}
	if len(reasons) != 2 || reasons[0].Bound != 2 || fmt.Sprint(reasons[0].Groups, reasons[0].Pinned, reasons[1].Groups) != "[0] [6] []" {
		t.Fatalf("reasons %+v", reasons)
	}
	if a, b := reasons[0].IdleRule(6), reasons[1].IdleRule(6); a != RuleWiring || b != RuleTooShort {
		t.Errorf("rules %s and %s", a, b)
	}
	for _, c := range []struct {
		was  []proto.NodeID
		want Rule
	}{{nil, RuleFirstFit}, {groups[0], RuleKept}, {[]proto.NodeID{10, 11, 12, 13, 14, 15}, RuleShifted}, {[]proto.NodeID{5, 6, 9}, RuleMended}} {
		if got := GroupRule(p, groups[0], c.was); got != c.want {
			t.Errorf("was %v: %s, want %s", c.was, got, c.want)
		}
	}
}
