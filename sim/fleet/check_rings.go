package fleet

import (
	"fmt"
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

// Invariant 1, closed rings: every piece is closed within closeBound of the
// last thing that happened at or beside one of its nodes, as long as all of
// them can act. The walk goes from GPU to GPU through the light.

// restless is how long a piece may stay open while its nodes keep switching.
// chosen: a search takes some 10 ms, a plan that reaches its nodes one after
// the other some 100.
const restless = time.Second

func (a *audit) rings(st *station, strand []sim.GPU, closed bool, strands int) {
	a.closed(st, strand, closed)
	if closed && strands > 1 {
		a.twice(st)
	}
}

func (a *audit) closed(st *station, strand []sim.GPU, closed bool) {
	w := &st.watch
	if closed {
		for _, at := range strand { // another of them may have begun the walk that found it open
			w := &a.r.stations[at.Board].watch
			w.openSince, w.listed = 0, false
		}
		return
	}
	busy := time.Duration(0)
	serving := false
	last := proto.NodeID(1<<32 - 1)
	for _, at := range strand {
		other := a.r.stations[at.Board]
		if other.id == last {
			continue
		}
		last = other.id
		until, blind := a.busyAround(other.id)
		if blind || other.hostBad || other.dark {
			w.openSince = 0 // a node that cannot act cannot close, and the last lasers fall; the next start looks again
			return
		}
		mode := other.host.View().Mode()
		serving = serving || mode == proto.ModeService
		busy = max(busy, until)
	}
	if !serving {
		return // dark by order, or optics that failed are alone
	}
	if w.openSince == 0 {
		w.openSince = a.r.now
	}
	if busy > a.r.now && a.r.now-w.openSince < restless+a.r.coldStart {
		a.r.look(st)
		return
	}
	if !w.listed {
		w.listed = true
		a.violate(st.id, "closed rings", fmt.Sprintf("%d GPUs from node %d to node %d lie in an open strand since %v",
			len(strand), strand[0].Board, strand[len(strand)-1].Board, w.openSince))
	}
}

// shines: every bundle of a node is on some path.
func (a *audit) shines(st *station) bool {
	for b := range a.r.cfg.Fabric.Bundles {
		if _, shining := a.r.world.Selected(st.board, b); !shining {
			return false
		}
	}
	return true
}

// twice: a node lies in two strands of light. In a line with loopback at its
// ends both its arcs belong to one; a ring that is closed round all of its
// nodes by straight links is two cycles of GPUs, however whole it looks.
func (a *audit) twice(st *station) {
	if st.host == nil || st.hostBad || st.host.View().Mode() != proto.ModeService {
		return
	}
	if until, blind := a.busyAround(st.id); blind || until > a.r.now || !a.shines(st) {
		return
	}
	a.violate(st.id, "closed rings", "its GPUs lie in two cycles of light")
}
