package wiring

import (
	"cmp"
	"fmt"
	"slices"
)

// Piece is a part of a reconfiguration that cannot be divided: cross-connects
// of one pair of switches that take each other's ports, with their mirror.
// Pieces share no port, so they may be made in any order.
type Piece struct {
	Group, Even int    // the even switch; with its odd one, switches 2*Even and 2*Even+1
	Steps       []Step // of the even switch; the odd one has them with the ends exchanged
}

// Pieces takes the reconfiguration of all groups apart.
func Pieces(old, wanted []Half) ([]Piece, error) {
	if len(old) != len(wanted) {
		return nil, wrong("groups", "as many wanted as there are", "%d old, %d wanted", len(old), len(wanted))
	}
	var out []Piece
	for h := range old {
		if old[h].Pods != wanted[h].Pods || old[h].Switches != wanted[h].Switches {
			return nil, wrong(fmt.Sprintf("groups[%d]", h), "halves of one size", "%d pods and %d switches, wanted %d and %d",
				old[h].Pods, old[h].Switches, wanted[h].Pods, wanted[h].Switches)
		}
		for k := range old[h].Switches {
			for _, steps := range apart(old[h].Row(k), wanted[h].Row(k)) {
				out = append(out, Piece{Group: h, Even: k, Steps: steps})
			}
		}
	}
	return out, nil
}

// apart divides the steps of one switch by the ports they share, in order of
// the first in port of each part. In a part what goes comes before what comes.
func apart(old, wanted []int32) [][]Step {
	pods := len(old)
	set := make([]int32, 2*pods) // ports joined by steps: in ports, then out ports
	for n := range set {
		set[n] = int32(n)
	}
	root := func(n int32) int32 {
		for set[n] != n {
			set[n] = set[set[n]]
			n = set[n]
		}
		return n
	}
	steps := Steps(old, wanted)
	for _, st := range steps {
		a, b := root(int32(st.In)), root(int32(pods+st.Out))
		set[max(a, b)] = min(a, b)
	}
	var out [][]Step
	part := make(map[int32]int)
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(root(int32(a.In)), root(int32(b.In))) })
	for _, st := range steps {
		r := root(int32(st.In))
		n, known := part[r]
		if !known {
			n = len(out)
			part[r] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], st)
	}
	return out
}
