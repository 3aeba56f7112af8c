package core

import (
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// State is where the circuits stand between two generations.
//
//	RESTING ──a──► VERIFYING
//	   ▲               │
//	   └───────b───────┘
//
//	a  a stage is committed, or the store holds one that is not proven
//	b  light proves the stage, or it is given up
//
// From both a generation may be prepared (member.Txn): from RESTING a stage or
// a switch told again, from VERIFYING a roll-back, or a switch of the stage told
// again.
type State uint8

const (
	Resting State = iota
	Verifying
)

var stateNames = [...]string{"resting", "verifying"}

func (s State) String() string { return stateNames[s] }

// edges[s] has a bit for each state that s may become.
var edges = [...]uint8{Resting: 1 << Verifying, Verifying: 1 << Resting}

// become is the only place that changes the state of the circuits.
func (c *stages) become(s State) {
	if edges[c.state]&(1<<s) == 0 {
		panic("core: illegal edge " + c.state.String() + " to " + s.String())
	}
	c.state = s
}

const (
	// debounce lets the news of one change arrive before it is planned for.
	// chosen: as the rings'.
	debounce = 5 * time.Millisecond
	// stagePatience is how long a committed stage waits for a switch that does
	// not show it. chosen: as a roll call after an outage of the broker; an agent
	// that comes back does so within that.
	stagePatience = 40 * time.Second
	// lightPatience is how long a switch that has applied a stage may take to
	// prove its circuits. chosen: several times the longest tuning.
	lightPatience = 10 * time.Second
	// maxConflicts is how often in a row a switch that was changed by hand is
	// asked again at once. chosen: nobody is that quick.
	maxConflicts = 4
	// searchSteps is the search budget of a group, a link. chosen: with all
	// ports in use a search then keeps nine tenths of what it ever does, in some
	// 15 ms a thousand links, which is small beside a stage of mirrors.
	searchSteps = 200
	// searchSeed is one, so that the same list always gives the same circuits.
	searchSeed = 1
)

// Root is what the circuits need of the planner above them.
type Root interface {
	// Busy names what keeps the planner from commanding agents, "" when nothing
	// does.
	Busy() string
}

// Circuits is the planner of circuits.
type Circuits struct {
	Evidence *evidence
	Stages   *stages
	agenda   *agenda
	drains   *drains
	designer designer
	j        *journal.Journal
	root     Root
	Table    *member.Table // the switches as devices
	jobs     *jobList
	heard    bool // the first look round is over

	Change proto.ChangeStatus // the one under way or the last
	named  proto.JobID        // the last number that a job with a name got in this life
}

// agenda says when circuits are looked at next.
type agenda struct {
	j          *journal.Journal
	planAt     time.Duration // when maps may have to change
	unreported bool          // something may be otherwise than when it was asked last
}

// New makes the planner of a core's circuits.
func New(fab *fabric.Core, j *journal.Journal, root interface {
	Root
	member.Root
}) *Circuits {
	a, jobs := &agenda{j: j, planAt: journal.Never}, &jobList{fab: fab, saved: map[proto.JobID]string{}}
	e := &evidence{j: j, agenda: a, jobs: jobs, bad: map[slot]proto.Session{}, tried: map[slot]proto.Generation{}}
	d := &drains{j: j, agenda: a, Evidence: e, of: map[string]*PortDrain{}}
	c := &Circuits{Evidence: e, agenda: a, drains: d, designer: designerOf(fab), j: j, root: root, jobs: jobs}
	c.Table = member.NewTable(proto.FirstSwitch, fab.Switches(), j, root, c)
	c.Stages = &stages{j: j, agenda: a, Evidence: e, drains: d, table: c.Table, Txn: member.NewTxn(c.Table)}
	e.fit(fab, c.Table, nil)
	return c
}

// designerOf is the designer of a core's kind.
func designerOf(fab *fabric.Core) designer {
	switch {
	case fab.LeafSpine != nil:
		return newIsolated(fab)
	case fab.Direct != nil:
		return direct{fab: fab, layout: layout{fab}}
	}
	return newInterleaved(fab)
}

// replan asks for a look at the maps after a delay at most.
func (a *agenda) replan(after time.Duration) { a.planAt = min(a.planAt, a.j.Now+after) }

// due begins a look that is due.
func (a *agenda) due() bool {
	due := a.planAt <= a.j.Now
	if due {
		a.planAt = journal.Never
	}
	return due
}

// may: the planner as a whole is in a state in which it commands.
func (c *Circuits) may() bool { return c.j.LinkUp && c.heard && c.root.Busy() == "" }

// Run does what is due.
func (c *Circuits) Run() {
	if !c.may() {
		return
	}
	for s := range c.Evidence.switches {
		if c.Evidence.switches[s].Retry(c.j.Now) {
			c.agenda.replan(0)
		}
	}
	switch {
	case c.Stages.Txn.Phase() == member.Preparing:
		c.Stages.checkPrepare()
	case c.Stages.Txn.Phase() == member.Resting && c.Stages.state == Verifying:
		c.Stages.checkOpen()
	}
	c.Table.Sweep(true)
	if c.Stages.rests() && c.agenda.due() {
		c.plan()
	}
}

func (c *stages) rests() bool { return c.state == Resting && c.Txn.Phase() == member.Resting }

// Next is when Run wants to be called.
func (c *Circuits) Next() time.Duration {
	if !c.may() {
		return journal.Never
	}
	next := min(c.Table.NextSweep(), c.Stages.Txn.Next())
	for s := range c.Evidence.switches {
		next = min(next, c.Evidence.switches[s].RetryAt())
	}
	switch {
	case c.Stages.Txn.Phase() != member.Resting:
	case c.Stages.state == Verifying:
		next = min(next, c.Stages.openDue())
	default:
		next = min(next, c.agenda.planAt)
	}
	return next
}

// LinkUp: nothing sent without a broker arrived.
func (c *Circuits) LinkUp() {
	c.Stages.Txn.LinkUp()
	if c.Stages.open.active() {
		c.Stages.open.since = c.j.Now
	}
	c.agenda.replan(0)
}

// plan starts what is next: a switch that has to be told again, the next
// stage, or a new look at all.
func (c *Circuits) plan() {
	if c.Stages.open.active() {
		c.Stages.become(Verifying)
		c.Stages.checkOpen()
		return
	}
	for s := range c.Evidence.switches {
		if v := &c.Evidence.switches[s]; v.Ready() {
			c.readCircuits(v)
		}
	}
	if c.Stages.tellSwitches() {
		c.agenda.replan(0)
		return
	}
	if len(c.Stages.todo) > 0 && !c.drains.waits() { // one that waits for routers is looked at anew
		c.Stages.nextStage()
		return
	}
	c.agenda.unreported = true
	proven, back := c.Evidence.prove(), c.Evidence.watch()
	d := c.design(c.jobs.all, proven || back)
	was := c.jobs.all
	c.jobs.all, c.Change, c.Stages.todo = d.jobs, d.change, d.stages
	c.saveJobs()
	noteStarts(c, was)
	if len(c.Stages.todo) > 0 {
		c.Stages.nextStage()
	} else {
		c.drains.release(none)
	}
}

// nextStage begins the first of the stages to do, if its switches can take it;
// else all is looked at anew.
func (c *stages) nextStage() {
	sets := c.todo[0]
	for _, set := range sets {
		for _, s := range c.Evidence.layout.switchesOf(set.at) {
			if !c.Evidence.switches[s].able() {
				c.todo = nil
				c.agenda.replan(debounce)
				return
			}
		}
	}
	if until := c.drains.wait(sets); until > 0 {
		if until != journal.Never {
			c.agenda.replan(until - c.j.Now)
		}
		return
	}
	c.todo = c.todo[1:]
	c.prepareSets(stageForward, sets)
}

// awaits says whose words the next stage waits for, "" when for none.
func (c *stages) awaits() string {
	if len(c.todo) == 0 || !c.rests() {
		return ""
	}
	return c.drains.why()
}

// Quiet: nothing is under way, told, or waiting to be told.
func (c *Circuits) Quiet() bool {
	if !c.heard || !c.Stages.rests() || c.agenda.planAt != journal.Never || len(c.Stages.todo) > 0 || c.Stages.open.active() {
		return false
	}
	for s := range c.Evidence.switches {
		v := &c.Evidence.switches[s]
		if v.Online() && (v.Pending() || v.Unassigned || v.Known && v.tuning() && c.j.Now < v.shownAt+lightPatience) {
			return false
		}
	}
	return true
}

// Phase names the phase of the circuits' generation.
func (c *stages) Phase() string {
	if p := c.Txn.Phase(); p != member.Resting {
		return p.String()
	}
	return c.state.String()
}
