package fleet

import (
	"fmt"
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

// audit is what the checkers share: the list of violations, and how they look
// at the fleet. They read the world's light and what is said about it, and
// change nothing.
type audit struct {
	r          *Run
	violations int
	list       []string
	on         bool // the fabric stands
	stamp      []uint32
	stamps     uint32
	strand     []sim.GPU
	report     proto.Reported
	sides      []proto.SideReport
	looks      uint64
	stillSince time.Duration
	stills     []still
}

// maxViolations listed; all are counted.
const maxViolations = 20

func newAudit(r *Run) *audit {
	return &audit{r: r, stamp: make([]uint32, r.cfg.Fabric.Nodes*r.cfg.Fabric.GPUsPerNode)}
}

// violate counts a broken invariant, with all that is needed to see it again.
func (a *audit) violate(id proto.NodeID, invariant, text string) {
	a.violations++
	line := fmt.Sprintf("%s: node %d: %s (seed %d, at %v, %v after the fabric stood; again: %s)",
		invariant, id, text, a.r.cfg.Seed, a.r.now, a.r.now-a.r.epoch, a.r.cfg.Replay)
	a.r.traceText(line)
	if len(a.list) < maxViolations {
		a.list = append(a.list, line)
	}
	if a.r.cfg.TraceLine != nil {
		a.r.cfg.TraceLine(line)
	}
}

// stand begins the checks: rings are formed.
func (a *audit) stand() {
	a.on = true
	a.sweep()
}

// reportOf is what a node's machine says, valid until the next call.
func (a *audit) reportOf(st *station) *proto.Reported {
	st.agent.Machine().Report(&a.report)
	return &a.report
}

// busy is the time until which things at a node may still follow from what
// happened there.
func (st *station) busy() time.Duration { return max(st.watch.touched, st.watch.acted) + closeBound }

// coldStart is how long a node may take from its agent's start after power-on
// until its optics have been read, staged and set. chosen: an SPI bus writes
// the codes of a bundle in some 10 ms; all is read and verified first.
const coldStart = time.Second

// busyAround is the same for a node and its neighbours; blind says that one of
// them cannot act: no agent, hardware that does not obey, an operator's order.
func (a *audit) busyAround(id proto.NodeID) (until time.Duration, blind bool) {
	a.r.neighbours(id, func(st *station) {
		until = max(until, st.busy())
		blind = blind || !st.dark && (st.agent == nil || st.lame(a.r.now) || a.tied(st))
		if st.watch.born != 0 {
			until = max(until, st.watch.born+coldStart)
		}
	})
	return until, blind
}

// remedies is how long a node may try its optics again after they are whole.
// chosen: its tries come at growing distances, up to a minute apart, and one that
// trims calibrates, which takes up to 20 s.
const remedies = 3 * time.Minute

// lame: the board does not do all that it is told, or did not a moment ago. A
// matrix that drifts brings each diode the light of another lane, which looks
// right: what a node calibrated while its optics drifted is wrong once they
// stand still, and no light says so.
func (st *station) lame(now time.Duration) bool {
	return st.broken > 0 || st.watch.walked || st.watch.mended != 0 && now < st.watch.mended+remedies
}

// check looks at a node and its neighbours when it has been quiet.
func (a *audit) check(st *station) {
	st.watch.checking = false
	if !a.on {
		return
	}
	if at := st.busy(); at > a.r.now && st.watch.openSince == 0 {
		st.watch.checking = true
		a.r.agenda.push(task{at: at, kind: taskCheck, who: int32(st.id)})
		return
	}
	a.stamps++
	a.r.neighbours(st.id, a.examine)
}

// sweep looks at everything.
func (a *audit) sweep() {
	a.stamps++
	for _, st := range a.r.stations {
		a.examine(st)
		a.limits(st)
	}
}

// examine walks every strand of light through a node's GPUs.
func (a *audit) examine(st *station) {
	if st.dark {
		return
	}
	a.looks++
	gpus := a.r.cfg.Fabric.GPUsPerNode
	strands := 0
	for g := range gpus {
		if a.stamp[int(st.id)*gpus+g] == a.stamps {
			strands = max(strands, 1) // seen from another node
			continue
		}
		strands++
		var closed bool
		a.strand, closed = a.r.world.Strand(sim.GPU{Board: st.board, Index: g}, a.strand[:0])
		for _, at := range a.strand {
			a.stamp[int(at.Board)*gpus+at.Index] = a.stamps
		}
		a.closed(st, a.strand, closed)
		if closed && strands > 1 {
			a.twice(st)
		}
		a.full(a.strand, closed)
	}
	a.half(st)
	a.strangers(st)
}

// full keeps which nodes lie in a whole group: a closed cycle of exactly so
// many GPUs.
func (a *audit) full(strand []sim.GPU, closed bool) {
	whole := closed && len(strand) == a.r.cfg.Fabric.TP
	for _, at := range strand {
		if st := a.r.stations[at.Board]; st.watch.full != whole {
			st.watch.full = whole
			a.r.measure.groups(whole)
		}
	}
}
