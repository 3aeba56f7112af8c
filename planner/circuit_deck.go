package planner

import (
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// deck is what one even switch carries, and with it its odd one, which has the
// same circuits the other way round. Under uniform wiring it is one switch,
// which has both ways, so to is symmetric.
type deck struct {
	to  []int32 // of a sending pod: the receiving one, -1 = none
	job []proto.JobID
}

// deckSet is what one deck is to hold.
type deckSet struct {
	at int
	deck
}

func newDeck(pods int) deck {
	d := deck{make([]int32, pods), make([]proto.JobID, pods)}
	for i := range d.to {
		d.to[i] = -1
	}
	return d
}

func (d deck) clone() deck { return deck{slices.Clone(d.to), slices.Clone(d.job)} }

func (d deck) equal(o deck) bool { return slices.Equal(d.to, o.to) && slices.Equal(d.job, o.job) }

func cloneDecks(decks []deck) []deck {
	out := make([]deck, len(decks))
	for k := range decks {
		out[k] = decks[k].clone()
	}
	return out
}

func (c *circuits) uniform() bool { return c.core.Wiring == fabric.Uniform }

// groupDecks is the number of decks of a group.
func (c *circuits) groupDecks() int {
	if c.uniform() {
		return c.core.SpinePorts
	}
	return c.core.SpinePorts / 2
}

// deckSwitches are the switches of a deck, the even one first.
func (c *circuits) deckSwitches(at int) []int {
	if c.uniform() {
		return []int{at}
	}
	return []int{2 * at, 2*at + 1} // groups have an even number of switches
}

// deckOf is the deck of a switch, and whether the switch is its odd one.
func (c *circuits) deckOf(sw int) (at int, odd bool) {
	if c.uniform() {
		return sw, false
	}
	return sw / 2, sw%2 == 1
}

// groupOf is the group of a deck.
func (c *circuits) groupOf(at int) int { return at / c.groupDecks() }

// circuitsOf is what a switch carries when its deck holds d, by port of side A.
func (c *circuits) circuitsOf(sw int, d deck) []proto.Circuit {
	var out []proto.Circuit
	_, odd := c.deckOf(sw)
	for i, j := range d.to {
		switch {
		case j < 0:
		case odd:
			out = append(out, proto.Circuit{A: uint16(j), B: uint16(i), Job: d.job[i]})
		default:
			out = append(out, proto.Circuit{A: uint16(i), B: uint16(j), Job: d.job[i]})
		}
	}
	slices.SortFunc(out, func(a, b proto.Circuit) int { return int(a.A) - int(b.A) })
	return out
}

// links calls f for every link of a deck once, by its sending pod; under
// uniform wiring that is the lower one.
func (c *circuits) links(d deck, f func(i, j int32, job proto.JobID)) {
	for i, j := range d.to {
		if j >= 0 && (!c.uniform() || int32(i) < j) {
			f(int32(i), j, d.job[i])
		}
	}
}

// free reports whether a link from i to j finds its ports free.
func (c *circuits) free(d deck, i, j int32) bool {
	if d.to[i] >= 0 {
		return false
	}
	if c.uniform() {
		return i != j && d.to[j] < 0
	}
	return !slices.Contains(d.to, j)
}

func (c *circuits) put(d deck, i, j int32, job proto.JobID) {
	d.to[i], d.job[i] = j, job
	if c.uniform() {
		d.to[j], d.job[j] = i, job
	}
}

func (c *circuits) drop(d deck, i int32) {
	j := d.to[i]
	d.to[i], d.job[i] = -1, 0
	if c.uniform() && j >= 0 {
		d.to[j], d.job[j] = -1, 0
	}
}

// slots are the cross-connects of a link of a deck.
func (c *circuits) slots(at int, i, j int32) [2]slot {
	s := c.deckSwitches(at)
	a, b := uint16(i), uint16(j)
	return [2]slot{{s[0], a, b}, {s[len(s)-1], b, a}}
}

// isBad: a circuit of this link did not come up.
func (c *circuits) isBad(at int, i, j int32) bool {
	s := c.slots(at, i, j)
	return c.bad[s[0]] || c.bad[s[1]]
}

// changedDecks lists the decks in which two states differ.
func changedDecks(was, is []deck) []deckSet {
	var out []deckSet
	for at := range is {
		if !is[at].equal(was[at]) {
			out = append(out, deckSet{at, is[at].clone()})
		}
	}
	return out
}
