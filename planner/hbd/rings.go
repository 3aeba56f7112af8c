package hbd

import (
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Root is what the rings need of the planner above them.
type Root interface {
	// Listening: the first look round is not over, so nobody is judged yet.
	Listening() bool
	// Busy names what keeps the planner from commanding agents, "" when nothing
	// does.
	Busy() string
	// Reply answers an operator who had to wait.
	Reply(client string, r *proto.OpReply)
}

// Rings is the planner of rings.
type Rings struct {
	Placed   *placement
	Agenda   *agenda
	Evidence *evidence
	j        *journal.Journal
	root     Root
	Table    *member.Table // the nodes as devices

	nextRing     proto.RingID
	idleDecision member.Decided // the last one on ring 0's topic

	txn      member.Txn
	bypasses bypasses
	proposal *proposal     // of the generation in txn
	text     string        // that explains it
	joinAt   time.Duration // when those who would join and do not answer are left out
	joinDue  bool          // they are, when those who are needed have answered
	doubtAt  time.Duration // when nodes that did not answer are asked whether they are there
	refusing []proto.NodeID

	drains    drains
	obstacles obstacles

	surplus  bool     // there may be more stock than jobs leave room for
	released []string // jobs that gave all back while a decision was on its way to the store

	stage        []proto.RingID // told again by the last generation that told any
	stageAt      time.Duration
	stageStopped bool
}

// New makes the planner of a fabric's rings.
func New(fab *fabric.Fabric, j *journal.Journal, root interface {
	Root
	member.Root
}) *Rings {
	pl := newPlacement(fab)
	a := &agenda{pl: pl, j: j, planAt: journal.Never, lookAt: journal.Never}
	h := &Rings{Placed: pl, Agenda: a, j: j, root: root, nextRing: 1, joinAt: journal.Never, doubtAt: journal.Never, bypasses: newBypasses(fab.K)}
	h.Evidence = &evidence{pl: pl, agenda: a, j: j, root: root, died: h.participantLost,
		cuts: cuts{known: map[[2]proto.NodeID]*cut{}, at: journal.Never}, probes: probes{j: j, at: journal.Never}}
	h.Table = member.NewTable(0, fab.Nodes, j, root, h)
	h.Evidence.doubt, h.Evidence.probes.other = h.Table.Doubt, h.Evidence.askOther
	for i := range h.Placed.nodes {
		h.Placed.nodes[i].Device = &h.Table.Devices[i]
	}
	h.txn = member.NewTxn(h.Table)
	h.drains.h, h.drains.holds.h, h.obstacles = h, h, obstacles{h: h, at: journal.Never}
	return h
}

// Gathered ends the gathering at the start: running rings that are not known are adopted,
// and everything is judged.
func (h *Rings) Gathered() {
	if h.Table.Numbers.Contradicted() {
		forget(h)
	}
	h.drains.resume()
	h.Table.Numbers.Find()
	if h.Table.Numbers.Fresh {
		h.adopt()
	} else { // what was tried died with the planner before; spares are, not to be in a ring's way
		h.Evidence.tryFirst(func(f fabric.Fibre) bool {
			return awaits(h.Placed.fab, &h.Placed.nodes[f.A.Node], &h.Placed.nodes[f.B.Node])
		})
	}
	for i := range h.Placed.nodes {
		h.judge(&h.Placed.nodes[i])
		h.Evidence.update(&h.Placed.nodes[i])
	}
	for _, r := range h.Placed.rings {
		h.Evidence.concludeDead(r)
		h.Evidence.watchRing(r)
	}
	h.Table.SweepNow()
	h.Evidence.reindex()
	h.Agenda.markAll()
	h.Agenda.replan(0)
}

// LinkUp: what was asked and sent without a broker did not arrive.
func (h *Rings) LinkUp() {
	h.Evidence.probes.forget(h.Placed.reads)
	if h.txn.Phase() == member.Preparing {
		h.markJoins()
		h.txn.LinkUp()
	}
	h.Agenda.markAll()
	h.Agenda.replan(0)
}

// Resend sends again what was not answered or taken.
func (h *Rings) Resend() {
	if h.txn.Phase() == member.Preparing {
		h.checkPrepare()
	}
	h.Table.Sweep(h.root.Busy() == "")
}

// Plan moves drains on, and looks at the placement when that is due.
func (h *Rings) Plan() {
	h.drains.check()
	h.obstacles.check()
	if h.Agenda.lookAt <= h.j.Now {
		h.Agenda.lookAt = journal.Never
		h.Agenda.replan(0)
	}
	if h.rest() && h.j.LinkUp && h.Agenda.planAt <= h.j.Now {
		if q := h.look(); q != nil {
			h.prepare(q)
		}
	}
}

// rest: no generation is under way, and one may begin.
func (h *Rings) rest() bool { return h.root.Busy() == "" && h.txn.Phase() == member.Resting }

// Quiet: nothing is planned, prepared, or waited for.
func (h *Rings) Quiet() bool { return h.rest() && h.Agenda.rests() }

// Deciding: a decision is on its way to the disk.
func (h *Rings) Deciding() bool { return h.txn.Phase() == member.Deciding }

// Asking: devices are asked, and not all have answered.
func Asking(h *Rings) bool {
	return h.txn.Phase() == member.Preparing || h.Evidence.probes.at != journal.Never || !h.Table.Quiet()
}

// Next is when a look is wanted. Without a link only drains are looked at.
func (h *Rings) Next() time.Duration {
	next := h.drains.next()
	if !h.j.LinkUp {
		return next
	}
	next = min(next, h.Table.NextSweep(), h.Evidence.probes.at, h.Evidence.cuts.at, h.Agenda.lookAt, h.obstacles.at, h.txn.Next())
	if h.txn.Phase() == member.Preparing {
		next = min(next, h.joinAt, h.doubtAt, h.obstacles.givesAt())
	}
	if h.rest() {
		next = min(next, h.Agenda.planAt)
	}
	return next
}
