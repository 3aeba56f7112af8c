package flow

import "time"

// traffic is links and the flows on them.
type traffic struct {
	sharing Sharing
	plain   bool
	links   []link
	flows   []live
	free    []int32 // of flows

	// What an instant has changed, and scratch of solving.
	seeds     []Link
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
	mark       uint32
	on         bool // in the lists of its links
	coupled    bool // its end changes the rate of others
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

// link is a link and who is on it.
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
}

func (t *traffic) newFlow() int32 {
	if n := len(t.free); n > 0 {
		id := t.free[n-1]
		t.free = t.free[:n-1]
		return id
	}
	t.flows = append(t.flows, live{})
	return int32(len(t.flows) - 1)
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
}
