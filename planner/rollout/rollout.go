package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Times of a restart.
const (
	// startPatience is how long a node may take from being told to its first report.
	// chosen: a start takes well under a second, a slow controller's some; what is
	// installed may be looked at for 20 s twice before.
	startPatience = time.Minute
	// handPatience is the same of one that people start. chosen: a script on a host.
	handPatience = 15 * time.Minute
	// settlePatience is how long a node that is back may report other light than before:
	// it is still looking. chosen: many times the 200 ms between two reports.
	settlePatience = 5 * time.Second
	// faultPatience is the same while its ring has a fault, or its plan was changed
	// meanwhile: that has to be over. chosen: a repair takes under a second, a return of
	// a dead node some.
	faultPatience = time.Minute
	// holdTime is how long it must be as before until the next wave. chosen: what dies of
	// its release does so at its first round of health readings, or is started again.
	holdTime = 3 * time.Second
	// tellAgain is when one that was busy, or whose answer was lost, is told again.
	tellAgain = 3 * time.Second
	// lookEvery is how often all of that is looked at.
	lookEvery = 250 * time.Millisecond
	// maxAsking bounds the hosts that wait for leave. chosen: every node of a large cell.
	maxAsking = 1 << 16
)

// state is where the roll-out stands.
//
//	IDLE, STOPPED, DONE ──a──► RUNNING ──b──► DONE
//	RUNNING ──c──► STOPPING ──d──► STOPPED
//	RUNNING, STOPPING, DONE, IDLE ──e──► STOPPED ──f──► IDLE
//
//	a  an operator begins one
//	b  nobody is left who could be restarted
//	c  an operator ends it
//	d  the wave under way is back
//	e  a node came back otherwise than it went, or not at all; without a roll-out, one
//	   that its host asked for
//	f  an operator has seen it
type state = proto.RolloutState

// edges[s] has a bit for each state that s may become.
var edges = [...]uint8{
	proto.RolloutIdle:     1<<proto.RolloutRunning | 1<<proto.RolloutStopped,
	proto.RolloutRunning:  1<<proto.RolloutStopping | 1<<proto.RolloutStopped | 1<<proto.RolloutDone,
	proto.RolloutStopping: 1 << proto.RolloutStopped,
	proto.RolloutStopped:  1<<proto.RolloutIdle | 1<<proto.RolloutRunning,
	proto.RolloutDone:     1<<proto.RolloutRunning | 1<<proto.RolloutStopped,
}

// become is the only place that changes the state.
func (r *Rollout) become(s state) {
	if edges[r.State]&(1<<s) == 0 {
		panic("rollout: illegal edge " + r.State.String() + " to " + s.String())
	}
	r.State, r.Since = s, r.j.Wall
}

// head is the roll-out as the store keeps it.
type head struct {
	State    state         `json:"state"`
	Software string        `json:"software,omitempty"`
	Firmware bool          `json:"firmware,omitempty"` // Software is that of the modules
	Author   string        `json:"author,omitempty"`
	Since    uint64        `json:"since_ms,omitempty"` // of the state, by the wall clock
	Reason   string        `json:"reason,omitempty"`
	Node     *proto.NodeID `json:"node,omitempty"` // that it stopped for
	Wave     int           `json:"wave,omitempty"`
	Back     int           `json:"back,omitempty"`
}

// restart is a node that was told, or that somebody is to start, and that is not back
// for good yet.
type restart struct {
	Node   proto.NodeID `json:"node"`
	Asked  bool         `json:"asked,omitempty"` // by its host; else of a wave
	ByHand bool         `json:"by_hand,omitempty"`
	Before Hold         `json:"before"`

	corr  proto.Corr
	tell  time.Duration // when it is told again
	until time.Duration // by when it must be there, or as before
	born  time.Duration // first seen in its new session, 0: not
	well  time.Duration // since when it is as before, 0: it is not
	now   proto.Session // new
	// Of firmware, as it answered.
	done          bool
	failed, waits string
}

// Rollout is the machine. New makes one.
type Rollout struct {
	head
	fab    Fabric
	j      *journal.Journal
	way    []restart             // under way, by node
	asking []proto.NodeID        // hosts that wait for leave
	at     time.Duration         // when it is looked at again
	waits  string                // what the next wave waits for
	idleAt time.Duration         // since when it waits, 0: it does not
	dirty  bool                  // the head is not in the store as it is
	has    map[proto.NodeID]bool // the firmware, as they said to this planner; nil: none was asked
}

// New makes a machine that does nothing.
func New(fab Fabric, j *journal.Journal) *Rollout { return &Rollout{fab: fab, j: j} }

// active: there is something to look at.
func (r *Rollout) active() bool {
	return len(r.way) > 0 || len(r.asking) > 0 || r.State == proto.RolloutRunning || r.State == proto.RolloutStopping
}

// Next is when Run wants to be called.
func (r *Rollout) Next() time.Duration {
	if !r.active() {
		return journal.Never
	}
	return r.at
}

// Begin begins a roll-out, of agents' software or of modules' firmware, or says why not.
func (r *Rollout) Begin(software, author string, firmware bool) *proto.Error {
	switch {
	case proto.Release(software) == "":
		return &proto.Error{Code: proto.Invalid, Field: "software", Limit: "the version that is installed, as ocs-agent version prints it", Reason: "none"}
	case r.State == proto.RolloutRunning && proto.Release(r.Software) == proto.Release(software) && r.Firmware == firmware:
		return &proto.Error{Code: proto.Duplicate, Field: "software", Reason: "it is under way"}
	case r.State == proto.RolloutRunning || r.State == proto.RolloutStopping:
		return &proto.Error{Code: proto.Busy, Field: "software", Limit: "one roll-out at a time", Reason: "that of " + r.Software + " is under way; ocsctl rollout stop ends it"}
	}
	r.head = head{State: r.State, Software: proto.Release(software), Firmware: firmware, Author: author}
	r.has = map[proto.NodeID]bool{}
	r.become(proto.RolloutRunning)
	r.at, r.waits, r.idleAt = r.j.Now, "", 0
	r.keep()
	to := "all agents"
	if firmware {
		to = "all modules"
	}
	r.note(journal.Info, "roll-out begins", everyone, fmt.Sprintf("%s to %s%s", r.Software, to, by(author)))
	return nil
}

// Stop ends it with the wave under way. One that has stopped is forgotten.
func (r *Rollout) Stop(author string) *proto.Error {
	switch r.State {
	case proto.RolloutRunning:
		r.become(proto.RolloutStopping)
		r.Reason = "stopped" + by(author)
		r.note(journal.Info, "roll-out is to stop", everyone, r.Reason+", with the wave under way")
		r.at = r.j.Now
	case proto.RolloutStopping:
	case proto.RolloutStopped:
		r.become(proto.RolloutIdle)
		r.head = head{Since: r.Since}
	default:
		return &proto.Error{Code: proto.Duplicate, Field: "rollout", Limit: "one that runs, or has stopped", Reason: "there is none"}
	}
	r.keep()
	return nil
}

func by(author string) string {
	if author == "" {
		return ""
	}
	return " by " + author
}

// Asked hears that the host of a node asks for leave.
func (r *Rollout) Asked(id proto.NodeID) {
	at, known := slices.BinarySearch(r.asking, id)
	if !known && len(r.asking) < maxAsking {
		r.asking = slices.Insert(r.asking, at, id)
		r.at = min(r.at, r.j.Now)
	}
}

// Run moves it on. It is called while the planner is in service.
func (r *Rollout) Run() {
	if !r.active() || r.j.Now < r.at || !r.j.LinkUp {
		return
	}
	r.at = r.j.Now + lookEvery
	for i := 0; i < len(r.way); {
		done, why := r.judge(&r.way[i])
		switch x := &r.way[i]; {
		case why != "" && x.Asked && x.now == 0 && r.fab.Look(x.Node).Present:
			r.j.Persist(journal.Record{Key: key(x.Node)}) // its own wish, and its own affair: nobody else's roll-out stops
			r.note(journal.Warn, "a node that asked for it does not start anew", x.Node, why)
		case why != "":
			r.fail(x, why)
		case done:
			r.back(x)
		default:
			i++
			continue
		}
		r.way = slices.Delete(r.way, i, i+1)
	}
	r.wave()
	r.leave()
	if r.dirty {
		r.keep()
	}
}

// wave begins the next one when the one before is back, and ends the roll-out when
// there is none.
func (r *Rollout) wave() {
	if slices.ContainsFunc(r.way, func(x restart) bool { return !x.Asked }) {
		return
	}
	switch r.State {
	case proto.RolloutStopping:
		r.become(proto.RolloutStopped)
		r.dirty = true
		return
	case proto.RolloutRunning:
	default:
		return
	}
	left, why := 0, ""
	shape := r.fab.Shape()
	next := newChoice(shape, r.way).wave(r.Wave+1, func(id proto.NodeID) bool {
		l := r.fab.Look(id)
		if !l.Present || r.runs(id, &l) {
			return false
		}
		not := r.whyNot(&l)
		if left++; not != "" && why == "" {
			why = fmt.Sprintf("node %d: %s", id, not)
		}
		return not == ""
	}, r.watched)
	switch {
	case len(next) > 0:
		r.Wave++
		r.waits, r.idleAt, r.dirty = "", 0, true
		r.note(journal.Info, "roll-out wave", everyone, fmt.Sprintf("wave %d: %s to %s", r.Wave, r.Software, r.they(next)))
		for _, id := range next {
			r.tell(id, false)
		}
	case left == 0 && len(r.way) == 0:
		r.become(proto.RolloutDone)
		r.dirty = true
		r.note(journal.Info, "roll-out is done", everyone, fmt.Sprintf("%s in %s, all that are online have %s", proto.Count(r.Back, "node"), proto.Count(r.Wave, "wave"), r.Software))
	default:
		if r.waits = cmp.Or(why, "a node nearby that its host restarts"); r.idleAt == 0 {
			r.idleAt = max(1, r.j.Now)
		}
	}
}

// watched: neighbours have light from it.
func (r *Rollout) watched(id proto.NodeID) bool {
	l := r.fab.Look(id)
	return len(l.Hold.Beside) > 0
}

// leave lets hosts have what they ask for.
func (r *Rollout) leave() {
	if r.State == proto.RolloutStopped || len(r.asking) == 0 {
		return
	}
	var c *choice
	r.asking = slices.DeleteFunc(r.asking, func(id proto.NodeID) bool {
		l := r.fab.Look(id)
		if !l.Asks || slices.ContainsFunc(r.way, func(x restart) bool { return x.Node == id }) {
			return true
		}
		if c == nil {
			c = newChoice(r.fab.Shape(), r.way)
		}
		if l.Why != "" || !l.Present || int(id) >= len(c.near) || c.near[id] {
			return false
		}
		c.take(id)
		r.tell(id, true)
		return true
	})
}

// tell has a node start anew. What it must hold afterwards is in the store before it is
// told.
func (r *Rollout) tell(id proto.NodeID, asked bool) {
	l := r.fab.Look(id)
	x := restart{Node: id, Asked: asked, ByHand: !l.Can && !r.Firmware, Before: l.Hold}
	r.j.Persist(journal.Encode(key(id), &x))
	r.begin(&x)
	at, _ := slices.BinarySearchFunc(r.way, id, func(x restart, id proto.NodeID) int { return cmp.Compare(x.Node, id) })
	r.way = slices.Insert(r.way, at, x)
	if x.ByHand {
		r.note(journal.Info, "somebody must start an agent", id, "it is of a release that does not start itself anew")
	}
}

// begin tells it, and sets its time.
func (r *Rollout) begin(x *restart) {
	x.tell, x.until = journal.Never, r.j.Now+handPatience
	if !x.ByHand {
		x.until = r.j.Now + r.patience(x)
		r.command(x)
	}
}

func (r *Rollout) command(x *restart) {
	c, again := proto.Command{Verb: proto.VerbRestart, Software: r.Software}, tellAgain
	switch {
	case x.Asked:
		c.Software = "" // what is installed there its host knows
	case r.Firmware:
		c.Verb, again = proto.VerbFirmware, firmwareAgain
	}
	x.corr, x.tell = r.j.Command(x.Node, x.Before.Session, c), r.j.Now+again
}

// Answer takes an agent's answer to a command, and reports whether it was ours.
func (r *Rollout) Answer(id proto.NodeID, m *proto.Ack) bool {
	i := slices.IndexFunc(r.way, func(x restart) bool { return x.Node == id && x.corr == m.Corr && m.Corr != (proto.Corr{}) })
	if i < 0 {
		return false
	}
	if x := &r.way[i]; r.Firmware && !x.Asked {
		r.took(x, m)
		return true
	}
	switch x := &r.way[i]; m.Code {
	case proto.OK, proto.Duplicate:
		x.tell = journal.Never
	case proto.Busy, proto.WrongSession, proto.Expired, proto.Stale: // again, or it is on its way
	default:
		r.fail(x, "it refused to start: "+m.Words())
		r.way = slices.Delete(r.way, i, i+1)
	}
	return true
}

// judge looks at a node under way: is it back, or what is wrong with it?
func (r *Rollout) judge(x *restart) (done bool, why string) {
	if r.Firmware && !x.Asked {
		return r.judgeFirmware(x)
	}
	l, now := r.fab.Look(x.Node), r.j.Now
	switch {
	case x.now != 0 && l.Present && l.Hold.Session != x.now:
		return false, "it started once more by itself"
	case x.now == 0 && (!l.Present || l.Hold.Session == x.Before.Session):
		if now < x.until {
			if now >= x.tell {
				r.command(x)
			}
			return false, ""
		}
		if l.Present {
			return false, "it did not start anew within " + r.patience(x).String()
		}
		return false, "it went, and is not back within " + r.patience(x).String()
	case x.now == 0:
		x.now, x.born = l.Hold.Session, now
	case !l.Present && now < x.born+faultPatience:
		return false, ""
	case !l.Present:
		return false, "it was back, and is gone"
	}
	if !x.Asked && r.Software != "" && !r.runs(x.Node, &l) {
		return false, fmt.Sprintf("it runs %s, was to run %s", cmp.Or(proto.Release(l.Software), "a nameless release"), r.Software)
	}
	if why := x.Before.lost(&l.Hold); why != "" {
		return false, why // what is lost stays counted
	}
	diff := x.Before.differs(&l.Hold)
	if diff == "" {
		x.well = cmp.Or(x.well, now)
		return now >= x.well+holdTime, ""
	}
	x.well = 0
	limit := settlePatience
	if l.Why != "" || l.Hold.Wanted != x.Before.Wanted {
		limit = faultPatience
	}
	if now < x.born+limit {
		return false, ""
	}
	return false, diff
}

// back notes that a restarted node is back.
func (r *Rollout) back(x *restart) {
	if !x.Asked {
		r.Back++
		r.dirty = true
	}
	r.j.Persist(journal.Record{Key: key(x.Node)})
	if x.done {
		return // told when it said so
	}
	r.note(journal.Info, "node is back", x.Node, "started anew; plan, light and calibrations as before")
}

// fail stops the roll-out for a node. Those that are under way are awaited, nobody else
// is told.
func (r *Rollout) fail(x *restart, why string) {
	r.j.Persist(journal.Record{Key: key(x.Node)})
	id := x.Node
	text := proto.Clip(fmt.Sprintf("node %d: %s", id, why))
	r.note(journal.Error, "roll-out stops", id, why)
	if r.State == proto.RolloutStopped {
		return // for another one, which came first
	}
	r.become(proto.RolloutStopped)
	r.Reason, r.Node, r.dirty = text, &id, true
	r.at = min(r.at, r.j.Now)
}

func (r *Rollout) note(level journal.Level, what string, node proto.NodeID, text string) {
	n := journal.Note{Rule: "rollout", Node: int64(node), Cause: proto.CauseOperator, Text: text}
	if node == everyone {
		n.Node = -1
	}
	r.j.Note(level, what, n)
}

// everyone stands for no single node.
const everyone = ^proto.NodeID(0)
