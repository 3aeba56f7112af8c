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
	Blocks []*Block
	AtOnce Half  // the first answer
	first  []int // of each block: its first even switch
}

// NewRewiring cuts a group into blocks. Blocks differ by seed, and groups
// should: see Seed. Whoever has several cores gives a function that calls do
// for 0 to n-1 on them, in any order; nil: one after the other.
func NewRewiring(g Group, seed uint64, sideBySide func(n int, do func(int))) (*Rewiring, error) {
	atOnce, err := g.First()
	if err != nil {
		return nil, err
	}
	if sideBySide == nil {
		sideBySide = inTurn
	}
	r := &Rewiring{Group: g, AtOnce: atOnce}
	parts := g.blocks(sideBySide)
	r.Blocks = make([]*Block, len(parts))
	first := 0
	for _, part := range parts {
		r.first = append(r.first, first)
		first += part.Old.Switches
	}
	sideBySide(len(parts), func(n int) { r.Blocks[n] = newBlock(parts[n].Topology, parts[n].Old, Seed(seed, n)) })
	return r, nil
}

func inTurn(n int, do func(int)) {
	for i := range n {
		do(i)
	}
}

// UpperBound is as the group's, or what the search has proved where the group
// is one block: a dual solution of its linear programme.
func (r *Rewiring) UpperBound() int {
	if len(r.Blocks) > 1 {
		return r.Group.UpperBound()
	}
	return min(r.Group.UpperBound(), r.Blocks[0].prices.bound)
}

// Seed derives the seed of the n-th part of something.
func Seed(seed uint64, n int) uint64 {
	r := detmath.Random(seed ^ uint64(n+1)*0xd1342543de82ef95)
	return r.Next()
}

// Run gives every block its share of so many steps, one after the other.
func (r *Rewiring) Run(steps int) {
	for n, b := range r.Blocks {
		b.Run(Share(steps, len(r.Blocks), n))
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

// Half is the best configuration so far, checked: what the blocks found, or the
// first answer where that keeps more.
func (r *Rewiring) Half() Half {
	h := NewHalf(r.Pods, r.Old.Switches)
	for n, b := range r.Blocks {
		copy(h.To[r.first[n]*r.Pods:], b.Half().To)
	}
	mustCheck(r.Topology, h)
	if r.AtOnce.Kept(r.Old) > h.Kept(r.Old) {
		return r.AtOnce.Clone()
	}
	return h
}

// Rewire gives every block its share of steps and returns the result.
func Rewire(g Group, seed uint64, steps int) (Half, error) {
	if steps <= 0 {
		return g.Split()
	}
	r, err := NewRewiring(g, seed, nil)
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
