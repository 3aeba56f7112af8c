package fleet

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

// check is one invariant, or several that look at the same: what it wants to
// be told of a run. What it does not name it is not told. A check reads the
// world's light and what is said about it, and changes nothing.
type check struct {
	said    func(*station, proto.Topic, proto.Packet) // a device publishes
	planned func(*process, proto.Topic, proto.Packet) // a planner does
	heard   func(proto.Topic, proto.Packet)           // a planner is handed a publication
	strand  func(st *station, strand []sim.GPU, closed bool, strands int)
	quiet   func(*station) // a node that has power, when it has been quiet
	swept   func(*station) // a node, now and then and at the end
	dies    func(*station) // before a process does; nil: the broker or a planner
	returns func(*station) // an agent starts beside a board that kept its light
	stands  func()         // all is quiet and done
	finish  func()         // everything must have been said
}

// audit is the list of checks and what they share: the violations, and how
// they look at a fleet.
type audit struct {
	r          *Run
	checks     []check
	violations int
	list       []string
	on         bool // the fabric stands
	stamp      []uint32
	stamps     uint32
	strand     []sim.GPU
	report     proto.Reported
	other      proto.Reported
	looks      uint64
	snapshots  []snapshot
	kepts      []kept    // edits to look at again, by time
	guards     int       // looks at rings that an edit had to leave alone
	circuits   *circuits // nil: no switches

	disturbances int           // lines of the script so far
	disturbedAt  time.Duration // the last of them
	rests        int           // looks at a fabric at rest at which all was in use
	restless     time.Duration // for how long it is not
	ended        bool          // the script is over
}

// maxViolations listed; all are counted.
const maxViolations = 20

func newAudit(r *Run) *audit {
	a := &audit{r: r, stamp: make([]uint32, r.cfg.Fabric.Nodes*r.cfg.Fabric.GPUsPerNode)}
	a.checks = []check{
		{strand: a.rings},                     // closed rings
		{quiet: a.half},                       // no half switch
		{quiet: a.strangers},                  // no stranger's light
		{dies: a.dying, returns: a.restarted}, // fail static
		{said: a.monotone, planned: a.terms},  // monotone
		{swept: a.limits},                     // limits
		{said: a.numbered, heard: a.handed, finish: a.delivered}, // nothing lost
		{planned: a.replied, finish: a.lit},                      // edits
		{planned: a.trials},
	}
	if r.mirrors != nil {
		a.circuits = newCircuits(r)
		a.checks = append(a.checks, a.circuits.check())
	}
	return a
}

// violate counts a broken invariant, with all that is needed to see it again.
func (a *audit) violate(id proto.NodeID, invariant, text string) {
	a.violations++
	line := fmt.Sprintf("%s: %s: %s (seed %d, at %v, %v after the fabric stood; again: %s)",
		invariant, deviceName(id), text, a.r.cfg.Seed, a.r.now, a.r.now-a.r.epoch, a.r.cfg.Replay)
	a.r.tracer.text(line)
	if len(a.list) < maxViolations {
		a.list = append(a.list, line)
	}
	if a.r.cfg.TraceLine != nil {
		a.r.cfg.TraceLine(line)
	}
}

// stand begins the looks at nodes: rings are formed.
func (a *audit) stand() {
	a.on = true
	a.sweep()
	a.disturbed()
}

func (a *audit) said(st *station, p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		a.violate(st.id, "protocol", "speaks on topic "+p.Topic)
		return
	}
	for i := range a.checks {
		if said := a.checks[i].said; said != nil {
			said(st, topic, p)
		}
	}
}

func (a *audit) planned(b *process, p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	for i := range a.checks {
		if planned := a.checks[i].planned; planned != nil && err == nil {
			planned(b, topic, p)
		}
	}
}

func (a *audit) heard(p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	for i := range a.checks {
		if heard := a.checks[i].heard; heard != nil && err == nil {
			heard(topic, p)
		}
	}
}

// tell calls one hook of every check that has it.
func (a *audit) tell(st *station, hook func(*check) func(*station)) {
	for i := range a.checks {
		if do := hook(&a.checks[i]); do != nil {
			do(st)
		}
	}
}

func (a *audit) dies(st *station)    { a.tell(st, func(c *check) func(*station) { return c.dies }) }
func (a *audit) returns(st *station) { a.tell(st, func(c *check) func(*station) { return c.returns }) }

// done looks when all is quiet; last: and everything must have been said.
func (a *audit) done(last bool) {
	for i := range a.checks {
		if c := &a.checks[i]; c.stands != nil {
			c.stands()
		}
	}
	for i := range a.checks {
		if c := &a.checks[i]; last && c.finish != nil {
			c.finish()
		}
	}
}

// decode reads what a device says.
func (a *audit) decode(st *station, p proto.Packet, m any) bool {
	_, err := proto.Decode(p.Payload, m)
	if err != nil {
		a.violate(st.id, "protocol", "says what does not decode: "+err.Error())
	}
	return err == nil
}

// reportOf is what a device's machine says, valid until the next call.
func (a *audit) reportOf(st *station) *proto.Reported {
	st.host.View().Report(&a.report)
	return &a.report
}

// closeBound is within what everything at a node must be closed again
// (invariant 1 of package node) where calls are prompt.
const closeBound = 12 * time.Millisecond

// lateCalls is how many late calls may come on the way there: an agent that
// starts reads its board in some hundred. chosen: of calls that are late one
// time in a hundred more than these are met once in a million starts.
const lateCalls = 8

// closeWithin is closeBound with the late calls of the boards, and with the turns
// that starved agents wait for.
func closeWithin(cfg *Config) time.Duration {
	bound := closeBound + closeTurns*longestPeriod(cfg)
	if o := cfg.Optics; o != nil && o.Physics != nil && o.Physics.LateCall > 0 {
		bound += lateCalls * time.Duration(o.Physics.LateCallUS*float64(time.Microsecond))
	}
	return bound
}

// busy is the time until which things at a node may still follow from what
// happened there.
func (st *station) busy() time.Duration {
	return max(st.watch.touched, st.watch.acted) + st.r.closeBound
}

// coldStart is how long a node may take from its agent's start after power-on
// until its optics have been read, staged and set. chosen: an SPI bus writes
// the codes of a bundle in some 10 ms; all is read and verified first.
const coldStart = time.Second

// busyAround is the same for a node and its neighbours; blind says that one of
// them cannot act: no agent, hardware that does not obey, an operator's order.
func (a *audit) busyAround(id proto.NodeID) (until time.Duration, blind bool) {
	a.r.neighbours(id, func(st *station) {
		until = max(until, st.busy())
		blind = blind || !st.dark && (st.host == nil || st.lame(a.r.now) || a.tied(st))
		if st.watch.born != 0 {
			until = max(until, st.watch.born+a.r.coldStart)
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

// look looks at a node and its neighbours when it has been quiet.
func (a *audit) look(st *station) {
	st.watch.checking = false
	if !a.on {
		return
	}
	if at := st.busy(); at > a.r.now && st.watch.openSince == 0 {
		st.watch.checking = true
		a.r.agenda.Push(at, task{kind: taskCheck, who: st.who})
		return
	}
	a.stamps++
	a.r.neighbours(st.id, a.examine)
}

// sweep looks at every node.
func (a *audit) sweep() {
	a.stamps++
	for _, st := range a.r.nodes {
		a.examine(st)
		a.tell(st, func(c *check) func(*station) { return c.swept })
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
		for i := range a.checks {
			if strand := a.checks[i].strand; strand != nil {
				strand(st, a.strand, closed, strands)
			}
		}
		a.full(a.strand, closed)
	}
	a.tell(st, func(c *check) func(*station) { return c.quiet })
}

// full keeps which nodes lie in a whole group: a closed cycle of exactly as
// many GPUs as one of the fabric's sizes has, or a pair of an exchange.
func (a *audit) full(strand []sim.GPU, closed bool) {
	whole := closed && (a.r.cfg.Fabric.WholeRing(len(strand)) || a.r.cfg.Exchange && len(strand) == 2*a.r.cfg.Fabric.GPUsPerNode)
	for _, at := range strand {
		if st := a.r.stations[at.Board]; st.watch.full != whole {
			st.watch.full = whole
			a.r.measure.groups(whole)
		}
	}
}

// tied tells whether a node may be open by order: of an operator, or of a planner
// that tries fibres of a node in no ring.
func (a *audit) tied(st *station) bool {
	if a.ordered(st) {
		return true
	}
	return st.host != nil && a.r.now < st.watch.tried && len(a.other.Rings) == 0
}

// ordered tells whether an operator's request holds a side of a node where it is,
// with light or without: what is open there is open by order.
func (a *audit) ordered(st *station) bool {
	if st.host == nil {
		return false
	}
	st.host.View().Report(&a.other)
	return slices.ContainsFunc(a.other.Sides, func(s proto.SideReport) bool { return s.Request >= proto.ForcedSwitch })
}
