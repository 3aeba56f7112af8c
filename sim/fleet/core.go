package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// A run of the optical switches between pods: the production agent of every
// switch of a core on its simulated mirrors, the production planner, and a
// broker, on one virtual clock. Job lists follow one another; while the
// planner rolls one out, strikes kill whoever they are told to. What is
// checked is in core_check.go.

// CoreConfig of one run.
type CoreConfig struct {
	Fabric  *fabric.Fabric // its core
	Seed    uint64
	Health  time.Duration
	Lists   [][]proto.JobSpec // one after the other
	Strikes []Strike
	Rates   Rates
	Replay  string // the command that runs it again
	// TraceLine, when not nil, is given strikes, violations and the planner's
	// log, as text.
	TraceLine func(line string)
	// defect, when not nil, spoils what an agent's next life finds on its disk.
	defect func(j *agent.Journal)
}

// Strike is a fault in the middle of a stage: some time after the planner has
// published its so-manieth commit, counted over the run, to one of the
// switches of that stage.
type Strike struct {
	Commit int           // from 0
	After  time.Duration // since it was published
	Verb   Verb          // AgentCrash, NodeDark, PlannerKill, BrokerDown, or BoardBreak: a mirror is stuck
	Pick   int           // of the stage's switches
	For    time.Duration // until it is mended
}

// Strikes draws one strike in each of the first commits of a run, and one more
// in some: an agent dies in the middle of every stage, the planner or the
// broker in some of them.
func Strikes(seed uint64, commits int) []Strike {
	draw := random{seed: detmath.Hash(seed, streamFaults)}
	var out []Strike
	for n := range commits {
		s := Strike{Commit: n, Verb: AgentCrash, After: draw.between(0, 150*time.Millisecond), Pick: draw.below(1 << 16),
			For: draw.between(10*time.Millisecond, 5*time.Second)}
		out = append(out, s)
		if draw.chance(300_000) {
			s.After, s.For = draw.between(0, 500*time.Millisecond), draw.between(time.Second, 8*time.Second)
			s.Verb = []Verb{AgentCrash, PlannerKill, BrokerDown}[draw.below(3)]
			s.Pick = draw.below(1 << 16)
			out = append(out, s)
		}
	}
	return out
}

// CoreResult is what came of a run.
type CoreResult struct {
	Seed       uint64        `json:"seed"`
	Switches   int           `json:"switches"`
	Lists      int           `json:"lists"`
	Commits    int           `json:"commits"` // generations that were committed
	Killed     int           `json:"killed"`  // agents that died after a commit of theirs
	Struck     int           `json:"struck"`  // strikes in all
	Links      uint32        `json:"links_realised"`
	Granted    uint32        `json:"links_granted"`
	Circuits   uint32        `json:"circuits"`
	Guarded    int           `json:"guarded"` // looks at circuits that had to stay
	Dark       time.Duration `json:"-"`
	DarkMicros int64         `json:"dark_us"` // longest of one switch in one stage
	Violations int           `json:"violations"`
	List       []string      `json:"violation_list,omitempty"`
	Steps      uint64        `json:"steps"`
	Virtual    float64       `json:"virtual_s"`
	SHA256     string        `json:"trace_sha256"`
}

// CoreRun is one run. Make it with NewCore, run it with Do.
type CoreRun struct {
	timeline
	cfg      CoreConfig
	core     *fabric.Core
	mirrors  *Mirrors
	switches []*coreSwitch
	net      *network
	brain    coreBrain
	disk     random
	mends    []Strike // to be mended, by task number
	mending  int
	mended   time.Duration // the last of them
	check    coreCheck
	sum      hash.Hash
	res      CoreResult
	asked    uint64
}

// NewCore puts up the switches.
func NewCore(cfg CoreConfig) (*CoreRun, error) {
	r := &CoreRun{cfg: cfg, core: cfg.Fabric.Core, disk: random{seed: detmath.Hash(cfg.Seed, streamCrash)}, sum: sha256.New()}
	if r.core == nil {
		return nil, fmt.Errorf("fleet: fabric %s has no optical switches", cfg.Fabric.Name)
	}
	r.world = sim.NewWorld(sim.WorldConfig{Seed: cfg.Seed})
	var err error
	if r.mirrors, err = BuildMirrors(r.world, r.core, cfg.Seed); err != nil {
		return nil, err
	}
	n := r.core.Switches()
	for s := range n {
		r.switches = append(r.switches, &coreSwitch{client: client{who: int32(s)}, id: proto.FirstSwitch + proto.NodeID(s), board: r.mirrors.ID(s), next: agent.Never})
	}
	r.brain = coreBrain{client: client{who: plannerID}, store: map[string][]byte{}}
	var devices []*client
	for _, st := range r.switches {
		devices = append(devices, &st.client)
	}
	r.net = newNetwork(&r.timeline, cfg.Seed, devices, 0, []*client{&r.brain.client})
	r.net.rates = cfg.Rates
	r.check = newCoreCheck(r, n)
	r.res = CoreResult{Seed: cfg.Seed, Switches: n, Lists: len(cfg.Lists)}
	return r, nil
}

// listWithin is how long a job list may take with all that happens to it.
// chosen: the planner's longest patiences, several times.
const listWithin = 15 * time.Minute

// Do runs it.
func (r *CoreRun) Do() (*CoreResult, error) {
	for _, st := range r.switches {
		if err := r.startAgent(st); err != nil {
			return nil, err
		}
	}
	if err := r.startPlanner(); err != nil {
		return nil, err
	}
	if err := r.settle("the switches"); err != nil {
		return nil, err
	}
	for n, list := range r.cfg.Lists {
		if err := r.applyList(list); err != nil {
			return nil, err
		}
		if err := r.settle(fmt.Sprintf("job list %d", n)); err != nil {
			return nil, err
		}
		r.check.end()
	}
	s := r.brain.planner.CoreStatus()
	r.res.Links, r.res.Granted, r.res.Circuits = s.Realised, s.Granted, s.Tuned
	r.res.DarkMicros, r.res.Virtual = r.res.Dark.Microseconds(), r.now.Seconds()
	r.res.SHA256 = hex.EncodeToString(r.sum.Sum(nil))
	return &r.res, nil
}

// applyList asks the planner to run these jobs; it may be away for a while.
func (r *CoreRun) applyList(list []proto.JobSpec) error {
	for end := r.now + listWithin; r.brain.planner == nil || !r.brain.up; {
		if r.now > end {
			return fmt.Errorf("fleet: no planner takes the job list")
		}
		if err := r.runTo(r.now + time.Second); err != nil {
			return err
		}
	}
	r.asked++
	payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr(proto.DigestOf(fmt.Append(nil, r.asked))),
		TTLMillis: operatorPatience, Noun: proto.NounApply, Bundle: -1, Jobs: list})
	if err != nil {
		return err
	}
	r.net.publish(operatorID, proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: r.cfg.Fabric.Name}.Request("script"), Payload: payload, QoS: 1})
	return r.runTo(r.now + time.Second)
}

// operatorPatience in milliseconds. chosen.
const operatorPatience = 10_000

// settle runs until all are there, nothing is planned and nothing is broken.
func (r *CoreRun) settle(what string) error {
	end := r.now + listWithin
	for !r.quiet() {
		if r.now > end {
			return fmt.Errorf("fleet: %s: not done after %v: %+v (seed %d; again: %s)", what, listWithin, r.status(), r.cfg.Seed, r.cfg.Replay)
		}
		if err := r.runTo(r.now + 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (r *CoreRun) status() proto.CoreStatus {
	if r.brain.planner == nil {
		return proto.CoreStatus{}
	}
	return r.brain.planner.CoreStatus()
}

// tellWithin is how long who came back may take to be heard: until then the
// planner goes by what it last knew. chosen: several tries to connect.
const tellWithin = 5 * time.Second

func (r *CoreRun) quiet() bool {
	if r.mending > 0 || r.brain.planner == nil || !r.brain.up || r.now < max(r.mended, r.net.joined)+tellWithin {
		return false
	}
	for _, st := range r.switches {
		if !st.up {
			return false
		}
	}
	s := r.status()
	return s.Quiet && int(s.Online) == len(r.switches) && s.Circuits == s.Tuned
}

// runTo lets everything happen that is due up to t, and sets the clock to t.
func (r *CoreRun) runTo(t time.Duration) error {
	for {
		at, st := t+1, (*coreSwitch)(nil)
		what := 0
		for _, x := range r.switches {
			if x.next < at {
				at, st, what = x.next, x, 1
			}
		}
		if w, moves := r.world.Next(); moves && w <= at {
			at, what = w, 2
		}
		if due := r.brain.due(r.now); due < at {
			at, what = due, 3
		}
		if len(r.agenda.list) > 0 && r.agenda.list[0].at < at {
			at, what = r.agenda.list[0].at, 4
		}
		if at > t {
			break
		}
		r.res.Steps++
		if err := r.step(what, at, st); err != nil {
			return fmt.Errorf("%w (at %v, seed %d; again: %s)", err, r.now, r.cfg.Seed, r.cfg.Replay)
		}
	}
	if t > r.now {
		r.world.AdvanceTo(t)
		r.now = t
	}
	return nil
}

func (r *CoreRun) step(what int, at time.Duration, st *coreSwitch) error {
	if what == 2 {
		board, ev, visible := r.world.Step()
		r.now = max(r.now, r.world.Now())
		s := int(board - r.mirrors.First)
		r.check.look(s)
		if !visible {
			return nil
		}
		return r.hardware(r.switches[s], ev)
	}
	if at > r.now {
		r.now = at
		r.world.AdvanceTo(at)
	}
	switch what {
	case 1:
		return r.poll(st)
	case 3:
		r.think(planner.Event{Kind: planner.Tick})
		return nil
	}
	t := r.agenda.pop()
	return r.do(&t)
}

func (r *CoreRun) do(t *task) error {
	switch t.kind {
	case taskUp:
		r.net.arrived(t)
	case taskDown:
		return r.receive(t)
	case taskConnect:
		if c := r.client(t.who); c.conn == t.gen {
			r.net.connect(c)
		}
	case taskLost:
		if c := r.client(t.who); c.conn == t.gen && c.up {
			return r.lost(c)
		}
	case taskWill:
		if c := r.client(t.who); c.session == t.gen && r.net.up {
			r.net.bury(c)
		}
	case taskPersisted:
		return r.persisted(t)
	case taskFault:
		return r.strike(r.cfg.Strikes[t.n], int(t.who))
	case taskStep:
		return r.mend(r.mends[t.n], int(t.who))
	}
	return nil
}

func (r *CoreRun) client(who int32) *client { return r.net.client(who) }

// committed is told of every commit that the planner publishes for the first
// time, with the switches that it is for.
func (r *CoreRun) committed(stage []int) {
	n := r.res.Commits
	r.res.Commits++
	for i, s := range r.cfg.Strikes {
		if s.Commit == n && len(stage) > 0 {
			r.agenda.push(task{at: r.now + s.After, kind: taskFault, who: int32(stage[s.Pick%len(stage)]), n: i})
			r.mending++
		}
	}
}

// strike lets a fault happen to switch s, and plans its end.
func (r *CoreRun) strike(f Strike, s int) error {
	st := r.switches[s]
	r.trace(fmt.Sprintf("%v %v of switch %d for %v", r.now, f.Verb, s, f.For))
	r.res.Struck++
	switch f.Verb {
	case AgentCrash:
		if st.agent != nil {
			r.res.Killed++
		}
		r.endAgent(st)
	case NodeDark:
		r.endAgent(st)
		r.world.SetPower(st.board, false)
		r.check.dark(s)
	case BoardBreak:
		side, port := r.mirrorOf(f)
		r.world.StickMirror(st.board, side, port, true)
	case PlannerKill:
		r.killPlanner()
	case BrokerDown:
		if r.net.up {
			r.net.die()
		}
	default:
		return fmt.Errorf("fleet: %v is no strike at a switch", f.Verb)
	}
	r.mends = append(r.mends, f)
	r.agenda.push(task{at: r.now + f.For, kind: taskStep, who: int32(s), n: len(r.mends) - 1})
	return nil
}

// mirrorOf is the mirror that a strike is about.
func (r *CoreRun) mirrorOf(f Strike) (side, port int) {
	return f.Pick & 1, f.Pick >> 1 % r.core.Pods
}

func (r *CoreRun) mend(f Strike, s int) error {
	r.mending--
	r.mended = r.now
	st := r.switches[s]
	switch f.Verb {
	case NodeDark:
		r.world.SetPower(st.board, true)
		return r.startAgent(st)
	case BoardBreak:
		side, port := r.mirrorOf(f)
		r.world.StickMirror(st.board, side, port, false)
	case AgentCrash:
		return r.startAgent(st) // also where the board has no power
	case PlannerKill:
		return r.startPlanner()
	case BrokerDown:
		r.net.rise(0, r.now)
	}
	return nil
}

// trace adds a line to what a replay must repeat.
func (r *CoreRun) trace(line string) {
	r.sum.Write([]byte(line))
	r.sum.Write([]byte{'\n'})
	if r.cfg.TraceLine != nil {
		r.cfg.TraceLine(line)
	}
}

// violate counts a broken invariant, with all that is needed to see it again.
func (r *CoreRun) violate(s int, invariant, text string) {
	r.res.Violations++
	line := fmt.Sprintf("%s: switch %d: %s (seed %d, at %v; again: %s)", invariant, s, text, r.cfg.Seed, r.now, r.cfg.Replay)
	r.trace(line)
	if len(r.res.List) < maxViolations && !slices.Contains(r.res.List, line) {
		r.res.List = append(r.res.List, line)
	}
}

// hardware hands a board's completion to its agent, if it is of this life.
func (r *CoreRun) hardware(st *coreSwitch, ev hal.Event) error {
	if st.agent == nil || ev.Completion == nil {
		return nil
	}
	at := slices.Index(st.flying, ev.Completion.Op)
	if at < 0 {
		return nil
	}
	st.flying = slices.Delete(st.flying, at, at+1)
	st.agent.Deliver(r.now, agent.Input{Kind: agent.InHardware, Hardware: ev})
	return r.poll(st)
}
