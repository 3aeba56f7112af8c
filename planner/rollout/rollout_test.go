package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// cell is a fabric whose agents the test plays: one that is told starts anew at once.
type cell struct {
	t      *testing.T
	shape  Shape
	looks  []Look
	at     time.Duration
	r      *Rollout
	j      *journal.Journal
	store  map[string][]byte
	told   [][]proto.NodeID // by step
	comes  func(id proto.NodeID, l *Look, software string)
	refuse map[proto.NodeID]proto.Code
	asked  []time.Duration // for firmware
}

func newCell(t *testing.T, n, k int) *cell {
	c := &cell{t: t, shape: Shape{Nodes: n, Reach: 2 * k}, looks: make([]Look, n), at: time.Second, store: map[string][]byte{}, refuse: map[proto.NodeID]proto.Code{}}
	for i := range c.looks {
		c.looks[i] = Look{Present: true, Can: true, Software: "ringlight v1", Hold: Hold{Session: proto.Session(1000 + i), Wanted: 7, Generation: 7, Mode: proto.ModeService,
			Bundles: []Bundle{{Path: proto.External1, State: proto.Tuned, Calibration: proto.Digest{1}}, {Path: proto.Loopback, State: proto.Tuned, Calibration: proto.Digest{2}}},
			Beside:  []Beside{{Node: proto.NodeID(i + 1), Session: 1, Losses: 3}}}}
	}
	c.comes = func(proto.NodeID, *Look, string) {}
	c.live()
	return c
}

func (c *cell) Shape() Shape { return c.shape }
func (c *cell) Look(id proto.NodeID) (l Look) {
	l = c.looks[id]
	l.Hold.Bundles, l.Hold.Beside = slices.Clone(l.Hold.Bundles), slices.Clone(l.Hold.Beside)
	return l
}

// live starts a planner's life from the store.
func (c *cell) live() {
	c.j = journal.New()
	c.j.Topics, c.j.LinkUp, c.j.Term = proto.Topics{Fabric: "f1"}, true, 1
	c.r = New(c, c.j)
	var st journal.State
	for k, v := range c.store { // any order: sorted below
		st = append(st, journal.Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b journal.Record) int { return strings.Compare(a.Key, b.Key) })
	if err := c.r.RestoreHead(st); err != nil {
		c.t.Fatal(err)
	}
	for _, rec := range st {
		if rest, ok := strings.CutPrefix(rec.Key, Prefix); ok {
			if err := c.r.Restore(rest, rec.Value); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// do lets the machine do something and carries out what it asks. Nobody is told
// before what it must hold afterwards is in the store.
func (c *cell) do(f func()) {
	c.t.Helper()
	c.j.Begin(c.at, 1_700_000_000_000+uint64(c.at.Milliseconds()), nil)
	f()
	var told []proto.NodeID
	for _, a := range c.j.End() {
		for _, r := range a.Records {
			if r.Value == nil {
				delete(c.store, r.Key)
			} else {
				c.store[r.Key] = r.Value
			}
		}
		if a.Kind != journal.Send {
			continue
		}
		var m proto.Command
		if _, err := proto.Decode(a.Packet.Payload, &m); err != nil {
			c.t.Fatal(err)
		}
		if m.Verb == proto.VerbFirmware {
			c.asked = append(c.asked, c.at)
			c.r.Answer(m.Node, &proto.Ack{Code: c.refuse[m.Node], Corr: m.Corr, Reason: "says the test"})
			continue
		}
		if m.Verb != proto.VerbRestart {
			c.t.Errorf("node %d is told %+v", m.Node, m)
		}
		if c.store[key(m.Node)] == nil {
			c.t.Errorf("node %d is told what is not in the store", m.Node)
		}
		if m.Session != c.looks[m.Node].Hold.Session { // it was told before
			c.r.Answer(m.Node, &proto.Ack{Code: proto.WrongSession, Corr: m.Corr})
			continue
		}
		if code := c.refuse[m.Node]; code != proto.OK {
			c.r.Answer(m.Node, &proto.Ack{Code: code, Corr: m.Corr, Reason: "says the test"})
			continue
		}
		told = append(told, m.Node)
		c.restarted(m.Node, m.Software)
	}
	if len(told) > 0 {
		c.told = append(c.told, told)
	}
}

// restarted is a new life of an agent, with what is installed there.
func (c *cell) restarted(id proto.NodeID, software string) {
	l := &c.looks[id]
	if software != "" {
		l.Software = "ringlight " + software
	}
	l.Hold.Session += 1_000_000
	l.Asks = false
	c.comes(id, l, software)
}

// run lets time pass.
func (c *cell) run(d time.Duration) {
	for end := c.at + d; c.at < end; c.at += lookEvery {
		c.do(c.r.Run)
	}
}

func (c *cell) begin() {
	c.t.Helper()
	c.do(func() {
		if err := c.r.Begin("v2", "alice", false); err != nil {
			c.t.Fatal(err)
		}
	})
}

// Goal: waves of 1, 10, 1 % and 10 %; those of one wave are more than 2K apart; all are
// restarted once; nobody is told while one before is not back and stands.
// Method: 2,000 nodes of K 2 in a line and in a ring.
func TestWavesGrowAndKeepApart(t *testing.T) {
	for _, wraps := range []bool{false, true} {
		c := newCell(t, 2000, 2)
		c.shape.Wraps = wraps
		c.begin()
		c.run(5 * time.Minute)
		seen, last := map[proto.NodeID]bool{}, 0
		for wave, nodes := range c.told {
			want := []int{1, 10, 20}
			if most := 200; wave < len(want) && len(nodes) != want[wave] || len(nodes) > most {
				t.Errorf("wave %d has %d nodes", wave+1, len(nodes))
			}
			for i, id := range nodes {
				if seen[id] {
					t.Errorf("node %d is told twice", id)
				}
				seen[id] = true
				if i > 0 && id-nodes[i-1] <= 4 {
					t.Errorf("%d and %d start together", nodes[i-1], id)
				}
			}
			if first, end := nodes[0], nodes[len(nodes)-1]; wraps && len(nodes) > 1 && first+2000-end <= 4 {
				t.Errorf("%d and %d start together over the seam", end, first)
			}
			last += len(nodes)
		}
		if s := c.r.Status(); s.State != proto.RolloutDone || len(seen) != 2000 || s.Current != 2000 || s.Back != 2000 || len(c.store) != 1 {
			t.Errorf("%s, %d told, %d of %d, %d records left", s.State, len(seen), s.Back, s.Current, len(c.store))
		}
	}
}

// Goal: whatever differs stops it, by name, after the one node; nobody else is told.
// Method: the first node of the second wave comes back in each of the wrong ways.
func TestWhatComesBackOtherwiseStopsIt(t *testing.T) {
	const bad = 6 // with 1, 11, 16 and so on in the second wave
	for _, x := range []struct {
		name  string
		comes func(l *Look)
		want  string
	}{
		{"software", func(l *Look) { l.Software = "ringlight v1" }, "runs v1, was to run v2"},
		{"generation", func(l *Look) { l.Hold.Generation = 6 }, "holds generation 6"},
		{"plan", func(l *Look) { l.Hold.Plan = proto.Digest{9} }, "plan 09"},
		{"path", func(l *Look) { l.Hold.Bundles[0].Path = proto.External2 }, "bundle 0 is on external2, tuned; was on external1, tuned"},
		{"light", func(l *Look) { l.Hold.Bundles[0].State = proto.Failed }, "bundle 0 is on external1, failed"},
		{"calibration", func(l *Look) { l.Hold.Bundles[1].Calibration = proto.Digest{} }, "bundle 1 has another calibration"},
		{"a bundle", func(l *Look) { l.Hold.Bundles = l.Hold.Bundles[:1] }, "1 bundle, had 2"},
		{"mode", func(l *Look) { l.Hold.Mode = proto.ModeIsolated }, "it is isolated, was service"},
		{"a neighbour's light", func(l *Look) { l.Hold.Beside[0].Losses++ }, "node 7 lost its light meanwhile, once"},
		{"what it found", func(l *Look) { l.Hold.Moves++ }, "found other light than it left"},
		{"gone", func(l *Look) { l.Present = false }, "went, and is not back within"},
		{"never", func(l *Look) { l.Hold.Session -= 1_000_000 }, "did not start anew within"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCell(t, 64, 2)
			c.comes = func(id proto.NodeID, l *Look, _ string) {
				if id == bad {
					x.comes(l)
				}
			}
			c.begin()
			c.run(3 * time.Minute)
			s := c.r.Status()
			if s.State != proto.RolloutStopped || s.Node == nil || *s.Node != bad || !strings.Contains(s.Reason, x.want) || !strings.HasPrefix(s.Reason, "node 6: ") {
				t.Errorf("%s: %s", s.State, s.Reason)
			}
			var more []proto.NodeID
			for _, w := range c.told[2:] {
				more = append(more, w...)
			}
			if x.name == "never" { // it is told again
				more = slices.DeleteFunc(more, func(id proto.NodeID) bool { return id == bad })
			}
			if len(more) > 0 || len(s.UnderWay) > 0 {
				t.Errorf("told after it: %v; under way %v", more, s.UnderWay)
			}
			if why, _, _ := c.r.Halted(); why == "" {
				t.Error("nobody is told of it")
			}
			c.do(func() { c.r.Stop("bob") })
			if why, _, _ := c.r.Halted(); why != "" || c.r.State != proto.RolloutIdle {
				t.Errorf("seen by a person it is %s: %s", c.r.State, why)
			}
		})
	}
}

// Goal: one that dies of its release a moment later stops it too; one that is still
// looking for its light for a moment does not; a refusal does.
func TestAMomentLaterItMustStillBeSo(t *testing.T) {
	c := newCell(t, 64, 2)
	c.begin()
	c.run(2 * lookEvery)
	c.looks[0].Hold.Session += 5
	c.run(time.Second)
	if s := c.r.Status(); s.State != proto.RolloutStopped || !strings.Contains(s.Reason, "once more by itself") {
		t.Errorf("%s: %s", s.State, s.Reason)
	}

	c = newCell(t, 64, 2)
	c.comes = func(_ proto.NodeID, l *Look, _ string) { l.Hold.Bundles[0].State = proto.Tuning }
	c.begin()
	c.run(2 * time.Second)
	c.comes = func(proto.NodeID, *Look, string) {}
	c.looks[0].Hold.Bundles[0].State = proto.Tuned
	c.run(5 * time.Second)
	if s := c.r.Status(); s.State != proto.RolloutRunning || s.Back != 1 {
		t.Errorf("%s: %s, %d back", s.State, s.Reason, s.Back)
	}

	c = newCell(t, 64, 2)
	c.refuse[0] = proto.HardwareFailed
	c.begin()
	c.run(time.Second)
	if s := c.r.Status(); s.State != proto.RolloutStopped || !strings.Contains(s.Reason, "refused to start: hardware_failed") {
		t.Errorf("%s: %s", s.State, s.Reason)
	}

	c = newCell(t, 64, 2)
	c.refuse[0] = proto.Busy
	c.begin()
	c.run(5 * time.Second)
	delete(c.refuse, 0)
	c.run(10 * time.Second)
	if s := c.r.Status(); s.State != proto.RolloutRunning || s.Back < 1 {
		t.Errorf("one that was busy: %s: %s, %d back", s.State, s.Reason, s.Back)
	}
}

// Goal: rings with a fault are waited for, by name, and a plan that the planner changed
// meanwhile is no difference.
func TestFaultsAreWaitedFor(t *testing.T) {
	c := newCell(t, 12, 1)
	for i := 4; i < 8; i++ {
		c.looks[i].Why = "ring 2 has a fault"
	}
	c.looks[9].Present = false
	c.looks[9].Why = "agent offline"
	c.comes = func(id proto.NodeID, l *Look, _ string) {
		if id == 2 {
			l.Hold.Wanted, l.Hold.Generation, l.Hold.Bundles[0].Path = 9, 9, proto.External2
		}
	}
	c.begin()
	c.run(2 * time.Minute)
	s := c.r.Status()
	if d, why := c.r.Stuck(); s.State != proto.RolloutRunning || s.Current != 7 || d < time.Minute || !strings.Contains(why, "node 4: ring 2") || s.LeftTotal != 5 {
		t.Errorf("%s, %d run it, waits %v for %q, left %+v", s.State, s.Current, d, why, s.Left)
	}
	for i := range c.looks {
		c.looks[i].Why = ""
	}
	c.run(time.Minute)
	if s := c.r.Status(); s.State != proto.RolloutDone || s.Current != 11 {
		t.Errorf("%s, %d run it", s.State, s.Current)
	}
}

// Goal: a planner that is killed at any moment is followed by one that goes on: each node
// is restarted once, and one that came back otherwise meanwhile is found.
func TestTheNextPlannerGoesOn(t *testing.T) {
	for kill := range 120 {
		c := newCell(t, 20, 1)
		c.begin()
		c.run(time.Duration(kill) * lookEvery)
		c.at += 7 * time.Second // it listens
		c.live()
		c.do(c.r.Resume)
		c.run(2 * time.Minute)
		n := 0
		for _, w := range c.told {
			n += len(w)
		}
		if s := c.r.Status(); s.State != proto.RolloutDone || n != 20 || s.Back != 20 {
			t.Fatalf("killed after %d looks: %s, %d told, %d back: %s", kill, s.State, n, s.Back, s.Reason)
		}
	}
	c := newCell(t, 20, 1)
	c.comes = func(_ proto.NodeID, l *Look, _ string) { l.Hold.Bundles[0].Calibration = proto.Digest{} }
	c.begin()
	c.do(c.r.Run)
	c.live()
	c.do(c.r.Resume)
	c.run(10 * time.Second)
	if s := c.r.Status(); s.State != proto.RolloutStopped || !strings.Contains(s.Reason, "another calibration") {
		t.Errorf("%s: %s", s.State, s.Reason)
	}
}

// Goal: the first one has neighbours that see whether its light stays, if there is one.
func TestTheFirstOneIsWatched(t *testing.T) {
	c := newCell(t, 20, 2)
	for i := range 6 {
		c.looks[i].Hold.Beside = nil
	}
	s, _ := c.r.Plan("v2", false, 0)
	c.begin()
	c.run(2 * time.Minute)
	if fmt.Sprint(c.told[0]) != "[6]" || fmt.Sprint(s.Waves[0].Nodes) != "[6]" || c.r.State != proto.RolloutDone {
		t.Errorf("told %v, planned %v, %s", c.told, s.Waves, c.r.State)
	}
}

// Goal: stop ends with the wave under way.
func TestStopEndsWithTheWaveUnderWay(t *testing.T) {
	c := newCell(t, 64, 2)
	c.begin()
	c.run(4 * time.Second)
	before := len(c.told)
	c.do(func() {
		if err := c.r.Begin("v3", "", false); err == nil || err.Code != proto.Busy {
			t.Errorf("another one: %v", err)
		}
		if err := c.r.Begin("ringlight v2", "", false); err == nil || err.Code != proto.Duplicate {
			t.Errorf("the same one: %v", err)
		}
		if err := c.r.Stop("alice"); err != nil {
			t.Fatal(err)
		}
	})
	c.run(time.Minute)
	if s := c.r.Status(); s.State != proto.RolloutStopped || len(c.told) != before || int(s.Back) != 11 || s.Reason != "stopped by alice" {
		t.Errorf("%s: %s, %d waves, %d back", s.State, s.Reason, len(c.told), s.Back)
	}
	c.do(func() {
		if err := c.r.Stop(""); err != nil {
			t.Error(err)
		}
		if err := c.r.Stop(""); err == nil || err.Code != proto.Duplicate {
			t.Errorf("none there: %v", err)
		}
	})
}

// Goal: hosts that ask get leave one beside the others, never near each other nor in a
// ring with a fault; after one that came back otherwise nobody does.
func TestHostsGetLeave(t *testing.T) {
	c := newCell(t, 40, 2)
	ask := func(ids ...proto.NodeID) {
		for _, id := range ids {
			c.looks[id].Asks = true
			c.do(func() { c.r.Asked(id) })
		}
	}
	c.looks[30].Why = "ring 3 has a fault"
	ask(3, 7, 20, 30)
	c.run(lookEvery)
	if fmt.Sprint(c.told) != "[[3 20]]" {
		t.Errorf("told %v", c.told)
	}
	c.run(10 * time.Second)
	if fmt.Sprint(c.told) != "[[3 20] [7]]" || c.looks[7].Software != "ringlight v1" {
		t.Errorf("told %v", c.told)
	}
	c.looks[30].Asks, c.looks[30].Why = false, "" // its patience is over
	c.comes = func(_ proto.NodeID, l *Look, _ string) { l.Hold.Generation-- }
	ask(10)
	c.run(10 * time.Second)
	ask(11)
	c.run(10 * time.Second)
	if s := c.r.Status(); fmt.Sprint(c.told) != "[[3 20] [7] [10]]" || s.State != proto.RolloutStopped || !strings.HasPrefix(s.Reason, "node 10: ") {
		t.Errorf("told %v, %s: %s", c.told, s.State, s.Reason)
	}
}

// Goal: a node that asks for leave to start anew and does not stops nobody's roll-out: who
// lies could. Method: one that asks and stays as it is beyond its time, then one that does.
func TestWhoAsksAndDoesNotStopsNothing(t *testing.T) {
	c := newCell(t, 40, 2)
	c.comes = func(id proto.NodeID, l *Look, _ string) {
		if id == 3 {
			l.Hold.Session -= 1_000_000 // as before
		}
	}
	for _, id := range []proto.NodeID{3, 20} {
		c.looks[id].Asks = true
		c.do(func() { c.r.Asked(id) })
		c.run(startPatience + time.Minute)
		c.looks[id].Asks = false
	}
	told := slices.CompactFunc(c.told, func(a, b []proto.NodeID) bool { return slices.Equal(a, b) }) // 3 is told again and again
	if s := c.r.Status(); fmt.Sprint(told) != "[[3] [20]]" || s.State == proto.RolloutStopped {
		t.Errorf("told %v, %s: %s", c.told, s.State, s.Reason)
	}
}

// Goal: an answer to no command is none of a node that nothing was commanded.
func TestAnswerToNothingStopsNothing(t *testing.T) {
	c := newCell(t, 8, 2)
	for i := range c.looks {
		c.looks[i].Can = false
	}
	c.begin()
	c.run(time.Minute)
	under := c.r.Status().UnderWay
	if len(under) == 0 {
		t.Fatal("nothing is under way")
	}
	if c.r.Answer(under[0].Node, &proto.Ack{Phase: proto.PhaseCommand, Code: proto.HardwareFailed}) || c.r.Status().State != proto.RolloutRunning {
		t.Error(c.r.Status())
	}
}

// Goal: agents of a release that cannot start anew are left to people, and judged alike.
func TestOlderAgentsAreStartedByHand(t *testing.T) {
	c := newCell(t, 8, 2)
	for i := range c.looks {
		c.looks[i].Can = false
	}
	c.begin()
	for range 8 {
		c.run(time.Minute)
		for _, x := range c.r.Status().UnderWay {
			if !x.ByHand || !strings.Contains(x.Why, "restart it there") {
				t.Errorf("%+v", x)
			}
			c.restarted(x.Node, "v2")
		}
	}
	c.run(time.Minute)
	if s := c.r.Status(); s.State != proto.RolloutDone || len(c.told) != 0 {
		t.Errorf("%s: %s; told %v", s.State, s.Reason, c.told)
	}
}

// Goal: the plan's waves are those that go out, page by page, and what is left has its
// reason.
func TestPlanIsWhatGoesOut(t *testing.T) {
	c := newCell(t, 300, 2)
	c.looks[7].Why, c.looks[8].Present = "ring 1 has a fault", false
	var planned [][]proto.NodeID
	for next := uint64(0); ; {
		s, more := c.r.Plan("v2", false, next)
		for _, w := range s.Waves {
			planned = append(planned, w.Nodes)
		}
		if next = more; more == 0 {
			if s.LeftTotal != 2 || s.Left[0].Why != "ring 1 has a fault" {
				t.Errorf("left %+v", s.Left)
			}
			break
		}
	}
	c.begin()
	c.run(5 * time.Minute)
	if fmt.Sprint(planned) != fmt.Sprint(c.told) {
		t.Errorf("planned %v\ntold %v", planned, c.told)
	}
	if err := c.r.Begin("ringlight ", "", false); err == nil || err.Field != "software" {
		t.Errorf("no software: %v", err)
	}
}

// Goal: a node that is busy is asked for firmware every 10 minutes, for each time its idle
// bundles go dark; software of the same name is another roll-out; and a planner that took
// over does not count what nobody told it.
func TestFirmwareIsAskedSeldom(t *testing.T) {
	c := newCell(t, 3, 1)
	c.refuse[0] = proto.Busy
	begin := func(firmware bool) *proto.Error { return c.r.Begin("1.2.0", "alice", firmware) }
	c.do(func() {
		if err := begin(true); err != nil {
			t.Fatal(err)
		}
	})
	c.run(25 * time.Minute)
	if len(c.asked) != 3 || c.asked[2]-c.asked[0] != 20*time.Minute {
		t.Errorf("asked at %v", c.asked)
	}
	c.do(func() {
		if err := begin(true); err == nil || err.Code != proto.Duplicate {
			t.Errorf("the same: %v", err)
		}
		if err := begin(false); err == nil || err.Code != proto.Busy {
			t.Errorf("software of that name: %v", err)
		}
	})
	if s := c.r.Status(); s.Nodes != 3 || s.Current != 0 {
		t.Errorf("%+v", s)
	}
	delete(c.refuse, 0)
	c.run(20 * time.Minute)
	if s := c.r.Status(); s.State != proto.RolloutDone || s.Current != 3 || s.Nodes != 3 {
		t.Errorf("%+v", s)
	}
	c.live()
	if s := c.r.Status(); s.State != proto.RolloutDone || s.Nodes != 0 || s.LeftTotal != 0 || s.Back != 3 {
		t.Errorf("after a takeover %+v", s)
	}
}
