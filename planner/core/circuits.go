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
func (c *Circuits) become(s State) {
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
	fab      *fabric.Core
	layout   layout
	designer designer
	j        *journal.Journal
	root     Root
	table    *member.Table
	state    State
	gen      proto.Generation // the highest that is known of
	decided  proto.Generation // the last that the store knows of
	fresh    bool             // the store held no circuits: what is there is adopted
	heard    bool             // the first look round is over

	switches []switchView
	maps     []crossMap // as committed
	jobs     jobList
	bad      map[slot]proto.Session // did not come up, and not when told again, in this life of the switch
	out      out
	drains   drains
	lapses   uint64                    // how often what is out, or did not come up, was otherwise
	tried    map[slot]proto.Generation // failed with this one, and told again
	dim      map[string]time.Duration  // leaves and spines from which no light comes, and since when

	txn    member.Txn
	about  purpose   // of the generation in txn
	open   openStage // committed, not yet proven
	stages [][]mapSet
	change proto.ChangeStatus // the one under way or the last

	named      proto.JobID // the last number that a job with a name got in this life
	unreported bool        // something may be otherwise than when it was asked last

	backs  int  // roll-backs in a row
	dirty  bool // maps may have to change
	planAt time.Duration
	dark   uint32 // microseconds, the longest that a switch reported
}

// New makes the planner of a core's circuits.
func New(fab *fabric.Core, j *journal.Journal, root interface {
	Root
	member.Root
}) *Circuits {
	c := &Circuits{fab: fab, layout: layout{fab}, j: j, root: root, fresh: true, bad: map[slot]proto.Session{}, out: newOut(fab, nil), tried: map[slot]proto.Generation{}, drains: drains{of: map[string]*PortDrain{}}, planAt: journal.Never}
	c.table = member.NewTable(proto.FirstSwitch, fab.Switches(), j, root, c)
	c.txn = member.NewTxn(c.table)
	c.switches = make([]switchView, fab.Switches())
	for s := range c.switches {
		c.switches[s].Device = &c.table.Devices[s]
		c.switches[s].Group = fab.GroupID(s / fab.GroupSwitches())
	}
	c.maps = make([]crossMap, fab.Groups()*c.layout.groupMaps())
	for at := range c.maps {
		c.maps[at] = c.layout.bare(at)
	}
	c.jobs = jobList{fab: fab, saved: map[proto.JobID]string{}}
	c.designer = designerOf(fab)
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

// Table are the switches as devices.
func (c *Circuits) Table() *member.Table { return c.table }

// replan asks for a look at the maps after a delay at most.
func (c *Circuits) replan(after time.Duration) {
	if !c.dirty || c.j.Now+after < c.planAt {
		c.planAt = c.j.Now + after
	}
	c.dirty = true
}

// may: the planner as a whole is in a state in which it commands.
func (c *Circuits) may() bool { return c.j.LinkUp && c.heard && c.root.Busy() == "" }

// Run does what is due.
func (c *Circuits) Run() {
	if !c.may() {
		return
	}
	for s := range c.switches {
		if c.switches[s].Retry(c.j.Now) {
			c.replan(0)
		}
	}
	switch {
	case c.txn.Phase() == member.Preparing:
		c.checkPrepare()
	case c.txn.Phase() == member.Resting && c.state == Verifying:
		c.checkOpen()
	}
	c.table.Sweep(true)
	if c.rests() && c.dirty && c.planAt <= c.j.Now {
		c.plan()
	}
}

func (c *Circuits) rests() bool { return c.state == Resting && c.txn.Phase() == member.Resting }

// Next is when Run wants to be called.
func (c *Circuits) Next() time.Duration {
	if !c.may() {
		return journal.Never
	}
	next := min(c.table.NextSweep(), c.txn.Next())
	for s := range c.switches {
		next = min(next, c.switches[s].RetryAt())
	}
	switch {
	case c.txn.Phase() != member.Resting:
	case c.state == Verifying:
		next = min(next, c.openDue())
	case c.dirty:
		next = min(next, c.planAt)
	}
	return next
}

// LinkUp: nothing sent without a broker arrived.
func (c *Circuits) LinkUp() {
	c.txn.LinkUp()
	if c.open.active() {
		c.open.since = c.j.Now
	}
	c.replan(0)
}

// plan starts what is next: a switch that has to be told again, the next
// stage, or a new look at all.
func (c *Circuits) plan() {
	c.dirty, c.planAt = false, journal.Never
	if c.open.active() {
		c.become(Verifying)
		c.checkOpen()
		return
	}
	for s := range c.switches {
		if v := &c.switches[s]; v.Ready() {
			c.readCircuits(v)
		}
	}
	if c.tellSwitches() {
		c.replan(0)
		return
	}
	if len(c.stages) > 0 && !(drainer{c}).waits() { // one that waits for routers is looked at anew
		c.nextStage()
		return
	}
	c.unreported = true
	proven, back := Growth{c}.prove(), Growth{c}.watch()
	d := c.design(c.jobs.all, proven || back)
	was := c.jobs.all
	c.jobs.all, c.change, c.stages = d.jobs, d.change, d.stages
	c.saveJobs()
	noteStarts(c, was)
	if len(c.stages) > 0 {
		c.nextStage()
	} else {
		drainer{c}.release(none)
	}
}

// nextStage begins the first of the stages to do, if its switches can take it;
// else all is looked at anew.
func (c *Circuits) nextStage() {
	sets := c.stages[0]
	for _, set := range sets {
		for _, s := range c.layout.switchesOf(set.at) {
			if !c.switches[s].able() {
				c.stages = nil
				c.replan(debounce)
				return
			}
		}
	}
	if until := (drainer{c}).wait(sets); until > 0 {
		if until != journal.Never {
			c.replan(until - c.j.Now)
		}
		return
	}
	c.stages = c.stages[1:]
	c.prepareSets(stageForward, sets)
}

// Generation is the highest that was given out or heard of.
func (c *Circuits) Generation() proto.Generation { return c.gen }

// Quiet: nothing is under way, told, or waiting to be told.
func (c *Circuits) Quiet() bool {
	if !c.heard || !c.rests() || c.dirty || len(c.stages) > 0 || c.open.active() {
		return false
	}
	for s := range c.switches {
		v := &c.switches[s]
		if v.Online() && (v.Pending() || v.Unassigned || v.Report != nil && v.tuning() && c.j.Now < v.shownAt+lightPatience) {
			return false
		}
	}
	return true
}

// Phase names the phase of the circuits' generation.
func (c *Circuits) Phase() string {
	if p := c.txn.Phase(); p != member.Resting {
		return p.String()
	}
	return c.state.String()
}
