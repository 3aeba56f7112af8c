package planner

import (
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/proto"
)

// The planner of circuits: which jobs run on which servers between pods, which
// cross-connects that takes, and how the switches get from what they carry to
// what they should, a stage at a time. It shares term, link, log and store
// with the planner of rings and has generations of its own, so that a slow
// stage never delays a ring.

// circuitState is where the circuits stand as a whole.
//
//	RESTING ──a──► PREPARING ──c──► DECIDING ──d──► VERIFYING
//	   ▲  ▲             │                             │   │
//	   │  └──────b──────┘◄────────────e───────────────┘   │
//	   └─────────────────────────f────────────────────────┘
//
//	a  a stage begins, or a switch is told again: desired states are out
//	b  refused, timed out or a switch gone: presumed abort; back to VERIFYING
//	   where an earlier stage is still open
//	c  every switch has prepared: the decision goes to the store
//	d  the decision is on disk: commit
//	e  the next stage, a roll-back, or a switch of the stage told again
//	f  light proves the stage, or it is given up
type circuitState uint8

const (
	circuitsResting circuitState = iota
	circuitsPreparing
	circuitsDeciding
	circuitsVerifying
)

var circuitStateNames = [...]string{"resting", "preparing", "deciding", "verifying"}

func (s circuitState) String() string { return circuitStateNames[s] }

var circuitEdges = [...]uint8{
	circuitsResting:   1<<circuitsPreparing | 1<<circuitsVerifying,
	circuitsPreparing: 1<<circuitsResting | 1<<circuitsDeciding | 1<<circuitsVerifying,
	circuitsDeciding:  1 << circuitsVerifying,
	circuitsVerifying: 1<<circuitsPreparing | 1<<circuitsResting,
}

// become is the only place that changes the state of the circuits.
func (c *circuits) become(s circuitState) {
	if circuitEdges[c.state]&(1<<s) == 0 {
		panic("planner: circuits: illegal edge " + c.state.String() + " to " + s.String())
	}
	c.state = s
}

const (
	// stagePatience is how long a committed stage waits for a switch that does
	// not show it. chosen: as rollPatience; an agent that comes back does so
	// within that.
	stagePatience = 40 * time.Second
	// lightPatience is how long a switch that has applied a stage may take to
	// prove its circuits. chosen: several times the longest tuning.
	lightPatience = 10 * time.Second
	// maxConflicts is how often in a row a switch that was changed by hand is
	// asked again at once. chosen: nobody is that quick.
	maxConflicts = 4
	// circuitSteps is the search budget of a group. chosen: a few milliseconds
	// for cores of some 30 pods, which is small beside a stage of mirrors.
	circuitSteps = 4000
	// circuitSeed is the search's; one seed, so that the same list always gives
	// the same circuits.
	circuitSeed = 1
)

// circuits is that planner.
type circuits struct {
	core  *fabric.Core
	sched sched.Core
	state circuitState
	gen   proto.Generation // given out last
	fresh bool             // the store held no circuits: what is there is adopted
	heard bool             // the first look round is over

	switches []switchView
	decks    []deck                    // as committed
	jobs     []*job                    // by id
	bad      map[slot]bool             // did not come up, and not when told again
	tried    map[slot]proto.Generation // failed with this one, and told again

	saved    map[proto.JobID]string // records of jobs as stored
	savedIDs []proto.JobID

	txn    circuitTxn
	open   openStage // committed, not yet proven
	stages [][]deckSet
	change proto.ChangeStatus // the one under way or the last

	backs   int  // roll-backs in a row
	dirty   bool // decks may have to change
	planAt  time.Duration
	sweepAt time.Duration
	dark    uint32 // microseconds, the longest that a switch reported
}

// slot is one cross-connect of one switch, by the switch's index.
type slot struct {
	sw   int
	a, b uint16
}

func newCircuits(core *fabric.Core) *circuits {
	if core == nil {
		return nil
	}
	c := &circuits{core: core, fresh: true, bad: map[slot]bool{}, tried: map[slot]proto.Generation{}, saved: map[proto.JobID]string{}, planAt: Never, sweepAt: Never}
	c.sched.Leaves = wiring.Leaves{Pods: core.Pods, Spines: core.SpinesPerPod, Tau: core.LeafLinks}
	c.sched.GPUsPerServer = core.GPUsPerServer
	for p := range core.Pods {
		for range core.LeavesPerPod {
			c.sched.PodOf = append(c.sched.PodOf, int32(p))
			c.sched.Servers = append(c.sched.Servers, core.ServersPerLeaf)
		}
	}
	c.switches = make([]switchView, core.Switches())
	for s := range c.switches {
		c.switches[s].nodeView = nodeView{id: proto.FirstSwitch + proto.NodeID(s), resendAt: Never}
	}
	c.decks = make([]deck, core.Groups()*c.groupDecks())
	for d := range c.decks {
		c.decks[d] = newDeck(core.Pods)
	}
	return c
}

// replanCircuits asks for a look at the decks after a delay at most.
func (p *Planner) replanCircuits(after time.Duration) {
	c := p.core
	if !c.dirty || p.now+after < c.planAt {
		c.planAt = p.now + after
	}
	c.dirty = true
}

// circuitsMay: the planner as a whole is in a state in which it commands.
func (p *Planner) circuitsMay() bool {
	return p.linkUp && p.core.heard && (p.state == idle || p.state == preparing || p.state == deciding)
}

// runCircuits does what is due.
func (p *Planner) runCircuits() {
	c := p.core
	if c == nil || !p.circuitsMay() {
		return
	}
	p.retrySwitches()
	switch c.state {
	case circuitsPreparing:
		p.checkCircuitPrepare()
	case circuitsVerifying:
		p.checkOpen()
	}
	if c.sweepAt <= p.now {
		p.sweepSwitches()
	}
	if c.state == circuitsResting && c.dirty && c.planAt <= p.now {
		p.planCircuits()
	}
}

// nextCircuits is when runCircuits wants to be called.
func (p *Planner) nextCircuits() time.Duration {
	c := p.core
	if c == nil || !p.circuitsMay() {
		return Never
	}
	next := c.sweepAt
	for s := range c.switches {
		if v := &c.switches[s]; v.refusal.code != proto.OK {
			next = min(next, v.refusal.until)
		}
	}
	switch c.state {
	case circuitsPreparing:
		next = min(next, c.txn.deadline, c.txn.resendAt)
	case circuitsVerifying:
		next = min(next, p.openDue())
	case circuitsResting:
		if c.dirty {
			next = min(next, c.planAt)
		}
	}
	return next
}

// planCircuits starts what is next: a switch that has to be told again, the
// next stage, or a new look at all.
func (p *Planner) planCircuits() {
	c := p.core
	c.dirty, c.planAt = false, Never
	if c.open.active() {
		c.become(circuitsVerifying)
		p.checkOpen()
		return
	}
	for s := range c.switches {
		if v := &c.switches[s]; v.ready() && v.report != nil {
			p.readCircuits(v)
		}
	}
	if p.tellSwitches() {
		p.replanCircuits(0)
		return
	}
	if len(c.stages) > 0 {
		p.nextStage()
		return
	}
	d := c.design(copyJobs(c.jobs))
	c.jobs, c.change, c.stages = d.jobs, d.change, d.stages
	p.saveJobs()
	if len(c.stages) > 0 {
		p.nextStage()
	}
}

// nextStage begins the first of the stages to do, if its switches can take it;
// else all is looked at anew.
func (p *Planner) nextStage() {
	c := p.core
	sets := c.stages[0]
	for _, set := range sets {
		for _, s := range c.deckSwitches(set.at) {
			if !c.switches[s].able() {
				c.stages = nil
				p.replanCircuits(debounce)
				return
			}
		}
	}
	c.stages = c.stages[1:]
	p.prepareCircuits(stageForward, sets)
}

// changedCircuits follows up on anything new about a switch.
func (p *Planner) changedCircuits(v *switchView, wasAble bool) {
	p.judgeSwitch(v)
	if v.able() != wasAble || v.unassigned {
		p.replanCircuits(debounce)
	}
}

// circuitsQuiet: nothing is under way, told, or waiting to be told.
func (p *Planner) circuitsQuiet() bool {
	c := p.core
	if c == nil {
		return true
	}
	if !c.heard || c.state != circuitsResting || c.dirty || len(c.stages) > 0 || c.open.active() {
		return false
	}
	for s := range c.switches {
		v := &c.switches[s]
		if v.online && (v.pending() || v.unassigned || v.report != nil && p.tuning(s) && p.now < v.shownAt+lightPatience) {
			return false
		}
	}
	return true
}
