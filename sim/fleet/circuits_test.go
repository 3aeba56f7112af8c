package fleet

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/boxes"
)

// testCores are small, of both wirings.
var testCores = []fabric.Core{
	{Pods: 4, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 6, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 6, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 8, Wiring: fabric.Interleaved, IotaMille: 500},
	{Pods: 4, LeavesPerPod: 3, SpinesPerPod: 1, SpinePorts: 7, SwitchPorts: 4, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Uniform, IotaMille: 1000},
}

// aloneCores are of leaves and spines.
var aloneCores = []fabric.Core{
	{Kind: fabric.KindLeafSpine, GPUsPerServer: 2, LeafSpine: &fabric.LeafSpine{Leaves: 4, Spines: 4, GPUsPerLeaf: 8, Switches: 8, AnyToAny: true}},
	{Kind: fabric.KindLeafSpine, GPUsPerServer: 1, LeafSpine: &fabric.LeafSpine{Leaves: 6, Spines: 3, GPUsPerLeaf: 4, Switches: 2, Queue: fabric.EASY}},
	{Kind: fabric.KindLeafSpine, GPUsPerServer: 4, LeafSpine: &fabric.LeafSpine{Leaves: 3, Spines: 4, GPUsPerLeaf: 8, Switches: 2, AnyToAny: true, Queue: fabric.Conservative}},
}

var everyCollective = []proto.Collective{proto.CollectiveRing, proto.CollectiveHalvingDoubling, proto.CollectiveDoubleTree, proto.CollectiveAllToAll}

func coreRun(t testing.TB, cores []fabric.Core, seed uint64, change func(*Config)) *Result {
	t.Helper()
	core := cores[seed%uint64(len(cores))]
	f, err := fabric.New(fabric.Params{Name: "f", Core: &core})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Fabric: f, Seed: seed, Health: 10 * time.Second, Jobs: JobLists(&core, seed, 8), Faults: Strikes(seed, 60),
		Replay: fmt.Sprintf("RINGLIGHT_CORE_SEED=%d go test ./sim/fleet -run TestSwitchAgents -v", seed)}
	if change != nil {
		change(&cfg)
	}
	if os.Getenv("RINGLIGHT_CORE_SEED") != "" {
		cfg.TraceLine = func(line string) { t.Log(line) }
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Do()
	if err != nil {
		for _, v := range r.audit.list {
			t.Log(v)
		}
		t.Fatal(err)
	}
	return res
}

// Goal: whenever the agent of a switch dies in the middle of a stage, and the
// planner or the broker with it, no circuit loses its light that no commit
// took, and in the end light passes everywhere exactly as the last commits
// say: all switches of a stage have the old circuits or all the new ones.
// Method: production agents and planner on simulated mirrors; eight job lists a
// seed, in every second seed of all collectives, an agent killed after every
// commit of them. RINGLIGHT_CORE_SEEDS sets
// the number of seeds, RINGLIGHT_CORE_SEED names one to run again.
func TestSwitchAgentsKilledInMidStage(t *testing.T) {
	first, seeds := uint64(1), uint64(10)
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CORE_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CORE_SEED"), 10, 64); err == nil {
		first, seeds = n, 1
	}
	var sum CoreResult
	steps := uint64(0)
	for seed := first; seed < first+seeds; seed++ {
		res := coreRun(t, testCores, seed, func(c *Config) {
			if seed%2 == 0 {
				c.Jobs = JobLists(c.Fabric.Core, seed, 8, everyCollective...)
			}
		})
		for _, v := range res.ViolationList {
			t.Error(v)
		}
		if res.Violations > 0 {
			t.Fatalf("%+v", res)
		}
		add(&sum, res.Core)
		steps += res.Steps
	}
	if sum.Killed < int(seeds)/2 || sum.Looks == 0 || sum.Realised == 0 {
		t.Errorf("this shows nothing: %+v", sum)
	}
	t.Logf("%d seeds: %d commits, %d agents killed after one, %d strikes in all, %d looks at circuits that had to stay, none dark; longest tuning %v; %d of %d links; %d steps",
		seeds, sum.Commits, sum.Killed, sum.Struck, sum.Looks, time.Duration(sum.DarkMicros)*time.Microsecond, sum.Realised, sum.Granted, steps)
}

// Goal: the same of leaves and spines, and a job whose circuits all had light
// keeps every one of them until a list without it.
// Method: as above, with jobs that wait for their turn.
func TestJobsStayWhereTheyAreWhileAgentsDie(t *testing.T) {
	seeds := uint64(9)
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_CORE_SEEDS"), 10, 32); err == nil {
		seeds = n
	}
	var sum CoreResult
	for seed := uint64(1); seed <= seeds; seed++ {
		res := coreRun(t, aloneCores, seed, nil)
		if res.Violations > 0 {
			t.Fatalf("seed %d: %v", seed, res.ViolationList)
		}
		add(&sum, res.Core)
	}
	if sum.Killed < int(seeds)/2 || sum.Looks == 0 || sum.Realised == 0 {
		t.Errorf("this shows nothing: %+v", sum)
	}
	t.Logf("%d seeds: %+v", seeds, sum)
}

// Goal: the checker sees a job that is moved, and one that has ended, or may
// pause, may lose its circuits.
// Method: a commit without a guarded circuit, after lists with the job, with it
// and a pause, and without.
func TestCoreCheckerSeesMovedJobs(t *testing.T) {
	for _, c := range []struct {
		list  string
		moved bool
	}{{"5:3g/1h", true}, {"5:3g/1h/1s", false}, {"6:3g", false}} {
		f, err := fabric.New(fabric.Params{Name: "f", Core: &aloneCores[0]})
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(Config{Fabric: f, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		list, err := parseJobs(c.list)
		if err != nil {
			t.Fatal(err)
		}
		check := r.audit.circuits
		check.guarded[3] = []proto.Circuit{{A: 1, B: 5, Job: 5}}
		check.alone[5] = true
		check.taken(list)
		check.desired[3][2] = nil
		check.committed(check.group(3), 2)
		if got := len(r.audit.list) > 0; got != c.moved {
			t.Errorf("%s: %v", c.list, r.audit.list)
		}
	}
}

// Goal: a run is the same each time, whatever the machine does.
func TestCoreRunsRepeat(t *testing.T) {
	a, b := coreRun(t, testCores, 2, nil), coreRun(t, testCores, 2, nil)
	if a.TraceSHA256 != b.TraceSHA256 || a.Steps != b.Steps {
		t.Errorf("%+v and then %+v", a, b)
	}
}

// Goal: a core of mirrors and of boxes in every protocol keeps what a core of mirrors does,
// whoever dies in the middle of a stage; a run is the same each time, and a box that loses
// its circuits with its agent is seen.
// Method: every core, switches of each kind in turn, agents killed after every commit, parts
// without light in every second seed.
func TestMixedSwitchesKilledInMidStage(t *testing.T) {
	kinds, failed := append([]string{OfMirrors}, boxes.Protocols...), 0
	for seed := uint64(1); seed <= 4; seed++ {
		cores := [][]fabric.Core{testCores, aloneCores}[seed%2]
		mixed := func(c *Config) {
			c.Boxes = kinds
			if seed%4 < 2 {
				c.Jobs = Failing(c.Fabric.Core, seed, c.Jobs, Fails)
			}
		}
		res := coreRun(t, cores, seed, mixed)
		clean(t, res)
		if c := res.Core; c.Killed == 0 || c.Looks == 0 || c.Realised != c.Granted {
			t.Errorf("seed %d: %+v", seed, c)
		}
		failed += res.Core.Failed
		if seed > 2 {
			continue
		}
		if again := coreRun(t, cores, seed, mixed); again.TraceSHA256 != res.TraceSHA256 || again.Steps != res.Steps {
			t.Errorf("seed %d: %+v and then %+v", seed, res, again)
		}
	}
	lost := coreRun(t, testCores, 1, func(c *Config) {
		c.Boxes = kinds
		c.mutant = &mutant{born: func(_ *Run, st *station) {
			if x := st.box(); x != nil {
				x.Restart()
			}
		}}
	})
	if lost.Violations == 0 || failed == 0 {
		t.Errorf("%d violations of boxes that lose their circuits, %d parts failed", lost.Violations, failed)
	}
}

// Goal: the checkers see what they are there for.
// Method: lives that forget where their mirrors stood drive them again; lives
// that forget their plan go back; one switch's events never leave it.
func TestCoreCheckersSeeDefects(t *testing.T) {
	for name, defect := range map[string]mutant{ // any order: independent
		"forgets where mirrors stood, and restores": {restored: func(_ *station, j *agent.Journal) {
			j.Circuits = nil
			if j.State != nil {
				s := *j.State
				s.Moving, j.State = true, &s
			}
		}},
		"forgets all": {restored: func(_ *station, j *agent.Journal) {
			*j = agent.Journal{Last: j.Last, Acked: j.Acked, Reserved: j.Reserved, Events: j.Events}
		}},
		"sends no event": {swallow: func(st *station, p proto.Packet) bool {
			topic, err := proto.ParseTopic(p.Topic)
			return err == nil && topic.Kind == proto.TopicEvent && st.id == proto.FirstSwitch
		}},
	} {
		seen := 0
		for seed := uint64(1); seed <= 3 && seen == 0; seed++ {
			core := testCores[seed%uint64(len(testCores))]
			f, err := fabric.New(fabric.Params{Name: "f", Core: &core})
			if err != nil {
				t.Fatal(err)
			}
			r, err := New(Config{Fabric: f, Seed: seed, Health: 10 * time.Second, Jobs: JobLists(&core, seed, 4), Faults: Strikes(seed, 40),
				mutant: &defect})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Do(); err != nil {
				seen++
			}
			seen += r.audit.violations
		}
		if seen == 0 {
			t.Errorf("an agent that %s passes", name)
		}
	}
}

// Goal: over a network that loses, repeats and reorders, with switches that
// lose their power, the end is the same; what lost its power is lit again.
func TestCoreOverABadNetwork(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		res := coreRun(t, testCores, seed, func(c *Config) {
			c.Rates = Rates{Loss: 20_000, Repeat: 20_000, Reorder: 20_000}
			for i := range c.Faults {
				if f := &c.Faults[i]; i%3 == 0 && f.Verb == AgentCrash {
					f.Verb = NodeDark
				}
			}
		})
		clean(t, res)
	}
}

// Goal: a mirror that is stuck when a stage moves costs the circuits that need
// it and nobody else: the planner finds other ports or goes back, and the end
// is consistent.
// Method: a mirror of a switch of every stage is stuck before it moves, and
// free again after some seconds; in half of the stages an agent dies too.
func TestCoreWithStuckMirrors(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		res := coreRun(t, testCores, seed, func(c *Config) {
			for i := range c.Faults {
				if f := &c.Faults[i]; i%2 == 0 && f.Verb == AgentCrash {
					f.Verb, f.At, f.For = MirrorStick, 0, 3*f.For
					f.Mirror = Mirror{Side: f.Stage & 1, Port: f.Stage >> 1 % c.Fabric.Core.Pods}
				}
			}
		})
		clean(t, res)
	}
}
