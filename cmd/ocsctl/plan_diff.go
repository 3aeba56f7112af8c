package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
)

type diffChange struct {
	From   int            `json:"from"`
	To     int            `json:"to"`
	Left   []proto.NodeID `json:"left"`
	Joined []proto.NodeID `json:"joined"`
}

type diffOutput struct {
	Unchanged     int          `json:"unchanged"`
	Changed       []diffChange `json:"changed"`
	Ended         []int        `json:"ended"`
	New           []int        `json:"new"`
	Moved         int          `json:"moved"`
	SidesSwitched int          `json:"sides_switched"`
}

func planDiff(text []byte, next func() ([]byte, error)) (any, error) {
	before, err := readGroups(text)
	if err == nil {
		text, err = next()
	}
	if err != nil {
		return nil, err
	}
	after, err := readGroups(text)
	if err != nil {
		return nil, err
	}
	o := diffOutput{Changed: []diffChange{}, Ended: []int{}, New: []int{}, Moved: ring.Moved(before, after), SidesSwitched: sidesSwitched(before, after)}
	same := ring.Same(before, after)
	for i, j := range same {
		switch {
		case j < 0:
			o.Ended = append(o.Ended, i)
		case slices.Equal(before[i], after[j]):
			o.Unchanged++
		default:
			o.Changed = append(o.Changed, diffChange{i, j, without(before[i], after[j]), without(after[j], before[i])})
		}
	}
	for j := range after {
		if !slices.Contains(same, j) {
			o.New = append(o.New, j)
		}
	}
	return o, nil
}

// readGroups reads the groups of a plan; the other keys may be there.
func readGroups(data []byte) ([][]proto.NodeID, error) {
	var groups [][]int
	var rest json.RawMessage
	keys := []planKey{{"groups", &groups, "an array of arrays of integers"}}
	for _, name := range []string{"idle", "moved", "lost_to_wiring", "inner_sets", "cross_tor_flows", "inner_flows", "unaligned_groups"} {
		keys = append(keys, planKey{name, &rest, "as a plan has it"})
	}
	if err := decodePlan(data, keys); err != nil {
		return nil, err
	}
	if groups == nil {
		return nil, wrongUsage("groups", "an array of arrays of integers", "it is not there")
	}
	seen := map[int]bool{}
	out := make([][]proto.NodeID, len(groups))
	for i, g := range groups {
		if len(g) == 0 {
			return nil, wrongUsage(fmt.Sprintf("groups[%d]", i), "at least one node", "it is empty")
		}
		for k, n := range g {
			if n < 0 || n >= fabric.MaxNodes || seen[n] {
				return nil, wrongUsage(fmt.Sprintf("groups[%d][%d]", i, k), fmt.Sprintf("0 to %d, each node once", fabric.MaxNodes-1), "%d", n)
			}
			seen[n] = true
			out[i] = append(out[i], proto.NodeID(n))
		}
	}
	return out, nil
}

func without(a, b []proto.NodeID) []proto.NodeID {
	return slices.DeleteFunc(listOf(a), func(n proto.NodeID) bool { return slices.Contains(b, n) })
}

// sidesSwitched counts the sides of nodes that lead elsewhere.
func sidesSwitched(before, after [][]proto.NodeID) int {
	type side struct {
		node  proto.NodeID
		right bool
	}
	peers := func(groups [][]proto.NodeID) map[side]proto.NodeID {
		out := map[side]proto.NodeID{}
		for _, g := range groups {
			for i := 1; i < len(g); i++ {
				out[side{g[i-1], true}], out[side{g[i], false}] = g[i], g[i-1]
			}
		}
		return out
	}
	was, is := peers(before), peers(after)
	n := 0
	for s, peer := range was { // any order: only counted
		if now, ok := is[s]; !ok || now != peer {
			n++
		}
	}
	for s := range is { // any order: only counted
		if _, ok := was[s]; !ok {
			n++
		}
	}
	return n
}
