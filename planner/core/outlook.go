package core

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/proto"
)

// Loss is what the loss of one more switch comes to, before other switches have taken
// over what they can. Mirrors hold without their agent, so it is the switch's light
// that is meant.
type Loss struct {
	Switch int // its index
	Links  int // that go dark
	Jobs   int // whose they are
	Down   int // of those, jobs that have no other link
}

// What is lost, for people.
func (l *Loss) What() string { return fmt.Sprintf("switch %d", l.Switch) }

// LookAhead tells what the loss of each switch that carries a link comes to, the gravest first.
func (e *evidence) LookAhead() []Loss {
	all, over := map[proto.JobID]int{}, make([]map[proto.JobID]int, len(e.switches))
	for k, d := range e.maps {
		e.layout.links(k, d, func(i, j int32, id proto.JobID) {
			all[id]++
			way := e.layout.slots(k, i, j)
			for x, s := range way {
				if slices.ContainsFunc(way[:x], func(o slot) bool { return o.sw == s.sw }) {
					continue // both ways of it
				}
				if over[s.sw] == nil {
					over[s.sw] = map[proto.JobID]int{}
				}
				over[s.sw][id]++
			}
		})
	}
	var out []Loss
	for s := range over {
		l := Loss{Switch: s}
		for id, n := range over[s] { // any order: counted
			l.Links += n
			l.Jobs++
			if n == all[id] {
				l.Down++
			}
		}
		if l.Links > 0 {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(b.Down, a.Down), cmp.Compare(b.Links, a.Links))
	})
	return out
}
