package fleet

import (
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

type taskKind uint8

const (
	taskUp        taskKind = iota // a packet reaches the broker
	taskDown                      // a packet reaches a client
	taskConnect                   // a client tries to connect
	taskLost                      // a client finds its connection broken
	taskWill                      // the broker gives a client up
	taskPersisted                 // a record is on disk
	taskFault                     // a fault of the script
	taskStep                      // the next step of a fault that has several
	taskStart                     // an agent's process starts
	taskCheck                     // the checkers look at a node
	taskMeasure                   // what became of a fault
	taskMove                      // what became of a ring that a plan moved
	taskSweep                     // the checkers look at everything
	taskMutant                    // a planted defect acts
	taskCompare                   // what was noted before a death is compared
)

// timeline is a run's clock, and what will happen on it.
type timeline struct {
	world  *sim.World
	now    time.Duration
	agenda agenda
}

// task is one thing that will happen. gen must still be that of its owner.
type task struct {
	at     time.Duration
	seq    uint64
	kind   taskKind
	who    int32 // node, or nobody
	gen    uint32
	n      int
	packet proto.Packet
}

// agenda is a heap by time, then by the order in which tasks were made.
type agenda struct {
	list []task
	seq  uint64
}

func (a *agenda) less(i, j int) bool {
	x, y := &a.list[i], &a.list[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

func (a *agenda) push(t task) {
	a.seq++
	t.seq = a.seq
	a.list = append(a.list, t)
	for i := len(a.list) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.less(i, up) {
			break
		}
		a.list[i], a.list[up] = a.list[up], a.list[i]
		i = up
	}
}

func (a *agenda) pop() task {
	top := a.list[0]
	n := len(a.list) - 1
	a.list[0] = a.list[n]
	a.list[n] = task{}
	a.list = a.list[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && a.less(c+1, c) {
			c++
		}
		if !a.less(c, i) {
			break
		}
		a.list[i], a.list[c] = a.list[c], a.list[i]
		i = c
	}
	return top
}

// roster is a heap of the nodes by the time when their agents want to be
// polled, then by number. Each node knows its place in it. The time is kept in
// the heap too: with ten thousand nodes, to look at each is a miss of the cache.
type roster []waiter

type waiter struct {
	next time.Duration
	st   *station
}

func (a *waiter) before(b *waiter) bool {
	return a.next < b.next || a.next == b.next && a.st.id < b.st.id
}

func (q roster) swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].st.slot, q[j].st.slot = i, j
}

// place puts a node where it belongs after its time has changed.
func (q roster) place(st *station) {
	i := st.slot
	q[i].next = st.next
	for i > 0 && q[i].before(&q[(i-1)/2]) {
		q.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		c := 2*i + 1
		if c+1 < len(q) && q[c+1].before(&q[c]) {
			c++
		}
		if c >= len(q) || !q[c].before(&q[i]) {
			return
		}
		q.swap(i, c)
		i = c
	}
}
