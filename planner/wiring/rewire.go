package wiring

import (
	"fmt"

	"ringlight/mzi/detmath"
)

// Group is one group's rewiring: what is wanted, and the even half as it is.
type Group struct {
	Topology
	Old Half
}

// SpinePorts is the number of ports each spine of the group has.
func (g Group) SpinePorts() int { return 2 * g.Old.Switches }

// Validate says whether the group can be rewired at all.
func (g Group) Validate() error {
	if g.Old.Switches < 1 || g.SpinePorts() > MaxSpinePorts {
		return wrong("spine_ports", "2..4096", "%d ports", g.SpinePorts())
	}
	if g.Old.Pods != g.Pods || len(g.Old.To) != g.Pods*g.Old.Switches {
		return wrong("old_even", fmt.Sprintf("%d rows of %d pods", g.Old.Switches, g.Pods), "other dimensions")
	}
	if err := g.Old.checkPermutations("old_even"); err != nil {
		return err
	}
	return g.CheckPorts(g.SpinePorts())
}

// UpperBound is the sum over pairs of min(C_ij, U_ij + U_ji): more circuits
// than that of what is wanted were not there.
func (g Group) UpperBound() int { return InCommon(g.Links, g.Old.Links()) }

// InCommon is the number of circuits that two sorted lists of links share:
// over pairs the lesser of both.
func InCommon(a, b []Link) int {
	n, at := 0, 0
	for _, l := range a {
		for at < len(b) && byPair(b[at], l) < 0 {
			at++
		}
		if at < len(b) && byPair(b[at], l) == 0 {
			n += int(min(l.circuits(), b[at].circuits()))
		}
	}
	return n
}

// Split realises the topology without a look at what was there, by Euler
// splits alone.
func (g Group) Split() (Half, error) {
	if err := g.Validate(); err != nil {
		return Half{}, err
	}
	h, err := g.Topology.Orient().Layout(g.Old.Switches)
	if err != nil {
		return Half{}, err
	}
	mustCheck(g.Topology, h)
	return h, nil
}

// Rewiring searches, for one group, the configuration that realises its
// topology exactly and leaves as many old circuits in place as it can.
// Whoever has several cores runs the blocks of all groups side by side.
type Rewiring struct {
	Group
	Block  *Block // nil: the group has more switches than are searched
	AtOnce Half   // the first answer
}

// NewRewiring is the first answer and, up to MaxBlock even switches, the search
// for a better one. Groups should differ by seed: see Seed.
func NewRewiring(g Group, seed uint64) (*Rewiring, error) {
	atOnce, err := g.First()
	if err != nil {
		return nil, err
	}
	r := &Rewiring{Group: g, AtOnce: atOnce}
	if g.Old.Switches <= MaxBlock {
		r.Block = newBlock(g.Topology, g.Old, Seed(seed, 0))
	}
	return r, nil
}

// UpperBound is as the group's, or what the search has proved: a dual solution of
// its linear programme.
func (r *Rewiring) UpperBound() int {
	if r.Block == nil {
		return r.Group.UpperBound()
	}
	return min(r.Group.UpperBound(), r.Block.prices.bound)
}

// Seed derives the seed of the n-th part of something.
func Seed(seed uint64, n int) uint64 {
	r := detmath.Random(seed ^ uint64(n+1)*0xd1342543de82ef95)
	return r.Next()
}

// Run makes so many steps more.
func (r *Rewiring) Run(steps int) {
	if r.Block != nil {
		r.Block.Run(steps)
	}
}

// Share is the n-th of so many equal parts of a number of steps; the first
// ones get the remainder.
func Share(steps, parts, n int) int {
	share := steps / parts
	if n < steps%parts {
		share++
	}
	return share
}

// Half is the best configuration so far, checked: what the search found, or the
// first answer where that keeps more.
func (r *Rewiring) Half() Half {
	h := r.AtOnce.Clone()
	if r.Block != nil {
		if found := r.Block.Half(); found.Kept(r.Old) >= h.Kept(r.Old) {
			h = found
		}
	}
	mustCheck(r.Topology, h)
	return h
}

// Rewire makes so many steps of the search and returns the result.
func Rewire(g Group, seed uint64, steps int) (Half, error) {
	if steps <= 0 {
		return g.Split()
	}
	r, err := NewRewiring(g, seed)
	if err != nil {
		return Half{}, err
	}
	r.Run(steps)
	return r.Half(), nil
}

func mustCheck(t Topology, h Half) {
	if err := Check(t, h); err != nil {
		panic("wiring: invariant: every result realises its topology exactly: " + err.Error())
	}
}
