package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/member"
	"ringlight/proto"
)

// coreWorld is a tiny world around a planner of circuits: switches that speak
// the protocol and whose light follows what they applied, a store, and a
// broker that retains. It shares no code with the planner but the wire.
type coreWorld struct {
	world
	switches []fakeSwitch
	away     bool // the broker

	settled map[circuitAt]proto.JobID // what was lit at the last quiet moment
	staying map[proto.JobID]bool      // jobs of the last list that were in the one before
	badMove []string
	takes   func(s int, a, b uint16) // light away
	applies int
}

type circuitAt struct {
	sw   int
	a, b uint16
}

// fakeSwitch is an agent and its mirrors.
type fakeSwitch struct {
	id       proto.NodeID
	up       bool // the agent runs; mirrors hold without it
	session  proto.Session
	seq      uint64
	seen     proto.Term
	staged   *proto.Desired
	applied  *proto.Desired
	light    map[uint16]litCircuit // by port of A
	broken   map[[2]uint16]bool
	blind    bool               // it has no power meters
	dead     map[[2]uint16]bool // lost its light; comes back when told again
	byHand   uint64
	refuse   proto.Code
	mute     bool
	dieAt    string // dies at the next prepare, commit or applied
	reportAt time.Duration
}

type litCircuit struct {
	b     uint16
	job   proto.JobID
	tuned time.Duration // when light is there
}

const (
	fakeTuning = 30 * time.Millisecond
	fakeReport = 50 * time.Millisecond
)

func newCoreWorld(t testing.TB, core *fabric.Core) *coreWorld {
	f, err := fabric.New(fabric.Params{Name: "f", Core: core})
	if err != nil {
		t.Fatal(err)
	}
	w := &coreWorld{world: newWorld(t, f), settled: map[circuitAt]proto.JobID{}, staying: map[proto.JobID]bool{}}
	for s := range core.Switches() {
		w.switches = append(w.switches, fakeSwitch{id: proto.FirstSwitch + proto.NodeID(s), light: map[uint16]litCircuit{}, broken: map[[2]uint16]bool{}, dead: map[[2]uint16]bool{}, reportAt: Never})
	}
	return w
}

// start makes a planner from the store and connects it.
func (w *coreWorld) start() {
	w.boot()
	w.step(Event{Kind: LinkUp})
	w.replay()
	w.up = slices.DeleteFunc(w.up, func(pk proto.Packet) bool {
		x, err := proto.ParseTopic(pk.Topic)
		return err != nil || x.Kind != proto.TopicPresence && x.Kind != proto.TopicReported
	})
}

func (w *coreWorld) step(ev Event) {
	w.hand(ev)
	for len(w.down) > 0 {
		switch a := w.pop(); a.Kind {
		case Send:
			if w.away {
				continue
			}
			if a.Packet.Retain {
				w.retain(a.Packet)
			}
			w.toSwitches(a.Packet)
		case Persist:
			if w.holdDisk {
				continue
			}
			w.write(a.Records)
			w.step(Event{Kind: Persisted, Persist: a.Persist})
		case Log:
			node := ""
			if a.Line.Node >= 0 {
				node = fmt.Sprintf(" switch %d:", a.Line.Node-int64(proto.FirstSwitch))
			}
			w.trace(fmt.Sprintf("log%s %s: %s", node, a.Line.Message, a.Line.Text))
		case Exit:
			w.t.Fatal("exit: " + a.Reason)
		}
	}
}

func (w *coreWorld) next() time.Duration {
	next := w.p.Next()
	for s := range w.switches {
		if v := &w.switches[s]; v.up {
			next = min(next, v.reportAt)
		}
	}
	return next
}

// run lets time pass.
func (w *coreWorld) run(d time.Duration) {
	end := w.now + d
	for steps, at := 0, w.now; ; steps++ {
		if w.now != at {
			steps, at = 0, w.now
		}
		if steps > 2000 {
			w.t.Fatalf("the planner wants ticks without end at %v: %s", w.now, w.show())
		}
		for len(w.up) > 0 {
			pk := w.up[0]
			w.up = w.up[1:]
			w.step(Event{Kind: Packet, Packet: pk})
		}
		if w.next() > end {
			break
		}
		w.now = max(w.now, w.next())
		for s := range w.switches {
			if v := &w.switches[s]; v.up && v.reportAt <= w.now {
				w.report(v)
			}
		}
		w.step(Event{Kind: Tick})
	}
	w.now = end
}

// quiet runs until nothing is under way; false: it did not end in time.
func (w *coreWorld) quiet(limit time.Duration) bool {
	for end := w.now + limit; w.now < end; {
		w.run(100 * time.Millisecond)
		if w.p.Core.Status().Quiet && !w.refused() {
			w.snapshot()
			return true
		}
	}
	return false
}

// refused: the planner waits with a switch that said no.
func (w *coreWorld) refused() bool {
	return slices.ContainsFunc(w.p.Core.Table.Devices, func(d member.Device) bool { return d.RetryAt() != Never })
}

// snapshot notes what is lit.
func (w *coreWorld) snapshot() {
	clear(w.settled)
	for s := range w.switches {
		for a, x := range w.switches[s].light { // any order: a set
			w.settled[circuitAt{s, a, x.b}] = x.job
		}
	}
}

func (w *coreWorld) publish(v *fakeSwitch, topic string, kind proto.TopicKind, msg any) {
	payload, err := proto.Encode(msg)
	if err != nil {
		w.t.Fatalf("switch %d: %v", v.id, err)
	}
	if w.away {
		return
	}
	pk := proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: kind.QoS()}
	if kind.Retain() {
		w.retain(pk)
	}
	w.up = append(w.up, pk)
}

// outage takes the broker away for some time; it forgets what it retained, and
// everybody says again what counts.
func (w *coreWorld) outage(d time.Duration) {
	w.away, w.up = true, nil
	w.step(Event{Kind: LinkDown})
	w.run(d)
	w.away = false
	w.forgotten()
	w.step(Event{Kind: LinkUp})
}

// forgotten: the broker has lost what it retained, and all that are there say again what counts.
func (w *coreWorld) forgotten() {
	clear(w.retained)
	w.order = nil
	for s := range w.switches {
		if v := &w.switches[s]; v.up {
			w.birthNote(v)
			w.report(v)
		}
	}
}

// birth starts a switch's agent; its journal and mirrors are as they were.
func (w *coreWorld) birth(s int) {
	v := &w.switches[s]
	v.up, v.seq = true, 0
	v.session += 1000 + proto.Session(s)
	w.birthNote(v)
	w.report(v)
	// What the broker retains comes with the subscription.
	group := s / w.fab.Core.GroupSwitches()
	for _, topic := range []string{w.topics.Desired(v.id), w.topics.Decision(w.fab.Core.GroupID(group))} {
		if pk, ok := w.retained[topic]; ok {
			w.toSwitches(pk)
		}
	}
}

func (w *coreWorld) birthNote(v *fakeSwitch) {
	b := &proto.Presence{Version: proto.Version, Node: v.id, Session: v.session, Online: true, Mode: proto.ModeService, SeenTerm: v.seen, Ports: uint16(w.fab.Core.SwitchSize())}
	if v.applied != nil {
		b.Term, b.Generation, b.Plan = v.applied.Term, v.applied.Generation, v.applied.Plan
	}
	w.publish(v, w.topics.Presence(v.id), proto.TopicPresence, b)
}

// die ends a switch's agent; the light stays.
func (w *coreWorld) die(s int) {
	v := &w.switches[s]
	if !v.up {
		return
	}
	v.up, v.reportAt = false, Never
	w.publish(v, w.topics.Presence(v.id), proto.TopicPresence, &proto.Presence{Version: proto.Version, Node: v.id, Session: v.session})
}

func (w *coreWorld) report(v *fakeSwitch) {
	v.reportAt = Never
	v.seq++
	m := &proto.Reported{Version: proto.Version, Node: v.id, Session: v.session, Seq: v.seq, Mode: proto.ModeService, SeenTerm: v.seen, DarkMicros: 31_000, BypassSeq: v.byHand}
	if v.applied != nil {
		m.Term, m.Generation, m.Plan = v.applied.Term, v.applied.Generation, v.applied.Plan
	}
	if v.staged != nil {
		m.StagedTerm, m.StagedGeneration, m.StagedPlan = v.staged.Term, v.staged.Generation, v.staged.Plan
	}
	for a := range uint16(w.fab.Core.SwitchSize()) {
		x, ok := v.light[a]
		if !ok {
			continue
		}
		r := proto.CircuitReport{A: a, B: x.b, Job: x.job, State: proto.Tuned, Loss: 1800}
		switch {
		case v.blind:
			r.State, r.Loss = proto.Unproven, proto.NoPower
		case v.broken[[2]uint16{a, x.b}], v.dead[[2]uint16{a, x.b}]:
			r.State, r.Loss = proto.Failed, proto.NoPower
		case x.tuned > w.now:
			r.State, r.Loss = proto.Tuning, proto.NoPower
			v.reportAt = w.now + fakeReport
		}
		m.Circuits = append(m.Circuits, r)
	}
	w.publish(v, w.topics.Reported(v.id), proto.TopicReported, m)
}

// toSwitches is the network's way down.
func (w *coreWorld) toSwitches(pk proto.Packet) {
	topic, err := proto.ParseTopic(pk.Topic)
	if err != nil {
		w.t.Fatal(err)
	}
	switch topic.Kind {
	case proto.TopicDesired:
		var d proto.Desired
		w.decode(pk, &d)
		w.prepare(&w.switches[topic.Node-proto.FirstSwitch], &d)
	case proto.TopicDecision:
		var d proto.Decision
		w.decode(pk, &d)
		for s := range w.switches {
			if w.fab.Core.GroupID(s/w.fab.Core.GroupSwitches()) == topic.Ring {
				w.decide(s, &d)
			}
		}
	case proto.TopicCommand:
		var c proto.Command
		w.decode(pk, &c)
		if v := &w.switches[topic.Node-proto.FirstSwitch]; v.up && c.Session == v.session && c.Verb == proto.VerbReannounce {
			w.birthNote(v)
			w.report(v)
		}
	case proto.TopicPlanner:
		var m proto.PlannerState
		w.decode(pk, &m)
		for s := range w.switches {
			if v := &w.switches[s]; v.up {
				v.seen = max(v.seen, m.Term)
			}
		}
	case proto.TopicReply:
		var r proto.OpReply
		w.decode(pk, &r)
		w.replies = append(w.replies, r)
	}
}

func (w *coreWorld) ack(v *fakeSwitch, phase proto.Phase, code proto.Code, d *proto.Desired) {
	if v.mute {
		return
	}
	m := &proto.Ack{Version: proto.Version, Node: v.id, Session: v.session, Phase: phase, Code: code, Term: d.Term, Generation: d.Generation, Plan: d.Plan, CurrentTerm: v.seen}
	if code == proto.Conflict {
		m.BypassSeq = v.byHand
	}
	if v.applied != nil {
		m.CurrentGeneration = v.applied.Generation
	}
	w.publish(v, w.topics.Ack(v.id), proto.TopicAck, m)
}

func (w *coreWorld) prepare(v *fakeSwitch, d *proto.Desired) {
	s := int(v.id - proto.FirstSwitch)
	if v.dieAt == "prepare" {
		v.dieAt = ""
		w.die(s)
	}
	if !v.up {
		return
	}
	code := proto.OK
	switch {
	case d.Term < v.seen || v.applied != nil && d.Generation < v.applied.Generation:
		code = proto.Stale
	case v.applied != nil && d.Generation == v.applied.Generation && d.Plan != v.applied.Plan:
		code = proto.Conflict
	case v.applied != nil && d.Generation == v.applied.Generation:
		code = proto.Duplicate
	case d.BypassSeq < v.byHand:
		code = proto.Conflict
	case v.refuse != proto.OK:
		code = v.refuse
	default:
		v.staged, v.seen = d, d.Term
	}
	w.ack(v, proto.PhasePrepare, code, d)
}

func (w *coreWorld) decide(s int, d *proto.Decision) {
	v := &w.switches[s]
	if v.staged == nil || v.staged.Term != d.Term || v.staged.Generation != d.Generation || v.staged.Plan != d.Plan {
		return
	}
	if v.dieAt == "commit" {
		v.dieAt = ""
		w.die(s)
	}
	if !v.up {
		return
	}
	v.applied, v.staged = v.staged, nil
	w.move(s)
	w.ack(v, proto.PhaseCommit, proto.OK, v.applied)
	if v.dieAt == "applied" {
		v.dieAt = ""
		w.die(s)
		return
	}
	w.report(v)
}

// move is the mirrors' part: what goes before what comes, and what stays is
// not touched. A circuit of a job that stays may go only for another that
// takes one of its ports, or where its link goes to another spine.
func (w *coreWorld) move(s int) {
	v := &w.switches[s]
	w.applies++
	want := map[uint16]proto.Circuit{}
	takenA, takenB := map[uint16]bool{}, map[uint16]bool{}
	for _, c := range v.applied.Circuits {
		want[c.A] = c
		if x, ok := v.light[c.A]; !ok || x.b != c.B {
			takenA[c.A], takenB[c.B] = true, true
		}
	}
	for a := range uint16(w.fab.Core.SwitchSize()) {
		x, ok := v.light[a]
		if c, stays := want[a]; ok && (!stays || c.B != x.b) {
			job, was := w.settled[circuitAt{s, a, x.b}]
			if was && job == x.job && w.staying[x.job] && !takenA[a] && !takenB[x.b] && !v.broken[[2]uint16{a, x.b}] && !w.wayBackBroken(s, a, x.b) && !w.leftSpine(s, a, x) {
				w.badMove = append(w.badMove, fmt.Sprintf("%v switch %d: %d to %d of job %d went for nothing", w.now, s, a, x.b, x.job))
			}
			if w.takes != nil && x.tuned <= w.now {
				w.takes(s, a, x.b)
			}
			delete(v.light, a)
		}
	}
	for _, c := range v.applied.Circuits {
		x, there := v.light[c.A]
		if v.dead[[2]uint16{c.A, c.B}] {
			delete(v.dead, [2]uint16{c.A, c.B})
			delete(v.light, c.A)
			there = false
		}
		if !there {
			for a, o := range v.light { // any order: at most one
				if o.b == c.B {
					w.t.Fatalf("switch %d: port %d is taken by %d when %d comes", s, c.B, a, c.A)
				}
			}
			x = litCircuit{b: c.B, tuned: w.now + fakeTuning}
			v.reportAt = w.now + fakeReport
		}
		x.job = c.Job
		v.light[c.A] = x
	}
}

// leftSpine: the job of a circuit wants fewer links between the two pods in
// this group than it had when all was at rest.
func (w *coreWorld) leftSpine(s int, a uint16, x litCircuit) bool {
	k := w.fab.Core
	if k.SpinePorts == 0 {
		return false
	}
	same := func(p, q int) bool { return min(p, q) == min(int(a), int(x.b)) && max(p, q) == max(int(a), int(x.b)) }
	more := 0
	for at, job := range w.settled { // any order: a count
		if job == x.job && at.sw/k.SpinePorts == s/k.SpinePorts && same(int(at.a), int(at.b)) && (k.Paired() && at.sw%2 == 0 || !k.Paired() && at.a < at.b) {
			more++
		}
	}
	for _, j := range w.read().jobs {
		for _, p := range j.Paths {
			if j.Spec.Job == x.job && p.Spine == s/k.SpinePorts && same(p.A/k.LeavesPerPod, p.B/k.LeavesPerPod) {
				more -= p.Count
			}
		}
	}
	return more > 0
}

// wayBackBroken: the other direction of a link does not come up.
func (w *coreWorld) wayBackBroken(s int, a, b uint16) bool {
	if w.fab.Core.Paired() {
		s ^= 1
	}
	return w.switches[s].broken[[2]uint16{b, a}]
}

// ask puts an operator's question and returns the answer.
func (w *coreWorld) ask(q proto.OpRequest) proto.OpReply {
	w.asked++
	q.Version, q.TTLMillis, q.Bundle = proto.Version, 5000, -1
	q.Corr = proto.Corr{byte(w.asked >> 8), byte(w.asked), 1}
	payload, err := proto.Encode(&q)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Request("op"), Payload: payload}})
	for _, r := range w.replies {
		if r.Corr == q.Corr {
			return r
		}
	}
	w.t.Fatalf("no answer to %v", q.Noun)
	return proto.OpReply{}
}

// apply hands a job list in.
func (w *coreWorld) apply(jobs ...proto.JobSpec) proto.OpReply {
	before := map[proto.JobID]bool{}
	for _, j := range w.jobs() {
		before[j.Job] = true
	}
	clear(w.staying)
	for _, j := range jobs {
		w.staying[j.Job] = before[j.Job]
	}
	return w.ask(proto.OpRequest{Noun: proto.NounApply, Jobs: jobs})
}

// tell is what the planner would answer an operator, without a step.
func (w *coreWorld) tell(q proto.OpRequest) (r proto.OpReply) {
	w.p.Core.Answer(&q, &r)
	return r
}

// jobs are those that the planner has.
func (w *coreWorld) jobs() (out []proto.JobStatus) {
	for q := (proto.OpRequest{Noun: proto.NounJobs}); ; {
		r := w.tell(q)
		out = append(out, r.Jobs...)
		if q.Page = r.Next; q.Page == 0 {
			return out
		}
	}
}

// wanted are the circuits that each switch is to have, with what it reports.
func (w *coreWorld) wanted() [][]proto.CircuitStatus {
	out := make([][]proto.CircuitStatus, len(w.switches))
	for q := (proto.OpRequest{Noun: proto.NounCircuits}); ; {
		r := w.tell(q)
		for _, c := range r.Circuits {
			out[c.Switch-proto.FirstSwitch] = append(out[c.Switch-proto.FirstSwitch], c)
		}
		if q.Page = r.Next; q.Page == 0 {
			return out
		}
	}
}

// show writes jobs and status.
func (w *coreWorld) show() string {
	var b strings.Builder
	s := w.p.Core.Status()
	fmt.Fprintf(&b, "generation %d, %d/%d switches, %d/%d circuits lit, links asked %d granted %d realised %d, %s, quiet %v\n",
		s.Generation, s.Online, s.Switches, s.Tuned, s.Circuits, s.Asked, s.Granted, s.Realised, w.p.Core.Stages.Phase(), s.Quiet)
	for _, x := range w.jobs() {
		fmt.Fprintf(&b, "job %d %s: at %d leaves, links %d of %d", x.Job, x.State, len(x.Servers), x.Realised, x.Granted)
		if x.Reason != "" {
			fmt.Fprintf(&b, " (%s)", x.Reason)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// consistent says what differs between what is wanted, reported and lit.
func (w *coreWorld) consistent() string {
	for s, want := range w.wanted() {
		if len(want) != len(w.switches[s].light) {
			return fmt.Sprintf("switch %d has %d circuits, wanted are %d", s, len(w.switches[s].light), len(want))
		}
		for _, c := range want {
			x, ok := w.switches[s].light[c.A]
			if !ok || x.b != c.B || x.job != c.Job {
				return fmt.Sprintf("switch %d port %d: %+v, wanted %+v", s, c.A, x, c)
			}
			if c.State != proto.Tuned && !w.switches[s].broken[[2]uint16{c.A, c.B}] {
				return fmt.Sprintf("switch %d port %d: reported %v", s, c.A, c.State)
			}
		}
	}
	return ""
}
