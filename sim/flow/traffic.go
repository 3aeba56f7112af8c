package flow

import (
	"math/bits"
	"slices"
	"time"
)

// traffic is links and the flows on them.
type traffic struct {
	sharing Sharing
	plain   bool
	links   []link
	flows   []live
	free    [32][]int32 // blocks of 2^i flows that nobody has

	// What an instant has changed, and scratch of solving.
	seeds     []Link
	begun     []int32 // flows that have no rate yet
	least     int64   // rate of the slowest flow that ended; slower ones than that and begun stay as they are
	woken     []int32 // flows that others have begun to notice
	mark      uint32
	partLinks []Link
	partFlows []int32
	levels    levels
	lowest    []int32
}

// live is a flow, or several with the same way and volume, under way.
type live struct {
	left       amount // at since
	rate       int64  // bit/s, -1 before the first
	since, end time.Duration
	cap        int64 // what the links give it that it shares with nobody
	slots      []slot
	run        *run
	at         int32 // of the run's flows
	mark       uint32
	on         bool // in the lists of its links
	coupled    bool // its end may change the rate of others
	wanted     int64
}

// slot is a flow on a link.
type slot struct {
	link   Link
	pos    int32 // in the link's list
	weight int64 // parts of weightOne that it takes of the link's share
}

// Weights are in parts of weightOne, capacities in fillings as fine.
const (
	weightBits = 12
	weightOne  = int64(1) << weightBits
)

// entry is a flow in the list of a link: which, and which of its slots.
type entry struct{ flow, slot int32 }

// link is a link and its flows.
type link struct {
	capacity int64
	flows    []entry
	load     int64 // weights of flows
	jobs     int32 // that may use it
	users    int32 // the same, and one more where a job meets itself
	owner    int32 // exclusive or of the numbers of the jobs: with one, that one
	mark     uint32
	epoch    uint32 // of the capacities, when this one changed
	used     int32  // scratch of folding
	chain    int32
	left     int64 // scratch of filling
	waiting  int64 // weights of flows that have no rate yet
	level    int64 // share at which it held flows back, -1: none
	held     int32 // how many
}

// block is n flows side by side.
func (t *traffic) block(n int) int32 {
	c := bits.Len(uint(n - 1))
	if k := len(t.free[c]); k > 0 {
		first := t.free[c][k-1]
		t.free[c] = t.free[c][:k-1]
		return first
	}
	first := int32(len(t.flows))
	t.flows = slices.Grow(t.flows, 1<<c)[:int(first)+1<<c]
	return first
}

func (t *traffic) freeBlock(first int32, n int) {
	clear(t.flows[first : int(first)+n])
	c := bits.Len(uint(n - 1))
	t.free[c] = append(t.free[c], first)
}

func (t *traffic) putOn(id int32) {
	f := &t.flows[id]
	for i := range f.slots {
		sl := &f.slots[i]
		l := &t.links[sl.link]
		sl.pos = int32(len(l.flows))
		l.flows = append(l.flows, entry{id, int32(i)})
		l.load += sl.weight
		t.seeds = append(t.seeds, sl.link)
	}
	f.on = true
	t.begun = append(t.begun, id)
}

func (t *traffic) takeOffLinks(id int32) {
	f := &t.flows[id]
	for i := range f.slots {
		sl := &f.slots[i]
		l := &t.links[sl.link]
		last := l.flows[len(l.flows)-1]
		l.flows[sl.pos] = last
		t.flows[last.flow].slots[last.slot].pos = sl.pos
		l.flows = l.flows[:len(l.flows)-1]
		l.load -= sl.weight
		t.seeds = append(t.seeds, sl.link)
	}
	f.on = false
	t.least = min(t.least, f.rate)
}
