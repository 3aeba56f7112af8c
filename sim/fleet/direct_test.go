package fleet

import (
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

func directFabric(t testing.TB, servers, degree int) *fabric.Fabric {
	t.Helper()
	core := fabric.DefaultDirect()
	core.Direct.Servers, core.Direct.Degree = servers, degree
	f, err := fabric.New(fabric.Params{Name: "core", Core: core})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Goal: four jobs with topologies of degree 4 on 32 servers are lit as planned:
// each interface hears whom the layers' circuits say. Method: production agents
// on boards of mirrors and transceivers; light followed back to its laser.
func TestFourJobsOn32ServersByLight(t *testing.T) {
	optics, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{Fabric: directFabric(t, 32, 4), Seed: 1, Health: 10 * time.Second, Optics: optics, Modules: 1,
		Jobs: []string{"1:8s/4 2:12s/4mp 3:5s/4mp 4:7s/4"}, Replay: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Do()
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Core; res.Violations > 0 || c.Realised != c.Granted || c.Granted < 8*4+12*2+5*2+7*4 {
		t.Errorf("%+v %v", c, res.ViolationList)
	}
	heard := 0
	for s := 4; s < 36; s++ {
		heard += len(r.mirrors.Lit(r.world, s))
	}
	if heard != int(res.Core.Granted) {
		t.Errorf("%d interfaces have light, %d links were granted", heard, res.Core.Granted)
	}
}

// Goal: a fabric of servers alone, without a node in a ring, is run and judged under random
// faults.
func TestServersWithoutRings(t *testing.T) {
	optics, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	f := directFabric(t, 8, 3)
	r, err := New(Config{Fabric: f, Seed: 1, Health: 10 * time.Second, Optics: optics, Modules: 1, Span: 10 * time.Minute, Faults: Random(f, 1, 1, 10*time.Minute, 1000), Replay: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Do()
	if err != nil {
		t.Fatal(err)
	}
	if res.Violations > 0 || res.Faults < 20 || res.Core.Realised == 0 || res.GPUWaste != (Waste{}) {
		t.Errorf("%d faults, %+v, %+v, %v", res.Faults, res.GPUWaste, res.Core, res.ViolationList)
	}
}

func runDirect(t *testing.T, seed uint64, jobs []string, strikes int, m *mutant) *Result {
	t.Helper()
	res, err := tryDirect(t, seed, jobs, strikes, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func tryDirect(t *testing.T, seed uint64, jobs []string, strikes int, m *mutant, trace func(string)) (*Result, error) {
	t.Helper()
	optics, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(Config{Fabric: directFabric(t, 8, 3), Seed: seed, Health: 10 * time.Second, Optics: optics, Modules: 1,
		Jobs: jobs, Faults: Strikes(seed, strikes), Replay: t.Name(), mutant: m, TraceLine: trace})
	if err != nil {
		t.Fatal(err)
	}
	return r.Do()
}

// Goal: agents of mirrors and of transceivers, planner and broker die in the
// middle of changes, and no job that runs loses a link; in the end each
// interface hears whom the plan says, by light. Method: random lists of jobs
// that stand by and flip, a strike in every commit.
func TestDirectJobsKeepTheirLightWhoeverDies(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		f := directFabric(t, 8, 3)
		res := runDirect(t, seed, DirectLists(f.Core, seed, 4, true, 0), 1000, nil)
		for _, v := range res.ViolationList {
			t.Error(v)
		}
		if c := res.Core; c.Killed == 0 || c.Looks == 0 || c.Realised != c.Granted {
			t.Errorf("seed %d: %+v", seed, c)
		}
	}
}

// Goal: jobs go from phase to phase, in their order and out of it, while agents, planner
// and broker die, and no job is dark by another's flip, nor loses mirrors that it sends
// over; in the end each interface hears whom its phase wants.
func TestPhasesWhoeverDies(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		f := directFabric(t, 8, 3)
		res := runDirect(t, seed, DirectLists(f.Core, seed, 2, true, 3), 1000, nil)
		for _, v := range res.ViolationList {
			t.Error(v)
		}
		if c := res.Core; c.Killed == 0 || c.Turns < 12 || c.Realised != c.Granted {
			t.Errorf("seed %d: %+v", seed, c)
		}
	}
}

// Goal: with nobody dying a flip is dark for less than a millisecond of board
// time, and mirrors alone for longer. Method: one job after another on the same
// servers, provisioned and not; by the ledgers, and by light.
func TestFlipIsDarkForLessThanMirrors(t *testing.T) {
	ahead := runDirect(t, 3, []string{"1:8s/3mp", "1:8s/3mp 2:8s/3mp>1", "2:8s/3mp", "2:8s/3mp 3:8s/3mp>2", "3:8s/3mp"}, 0, nil).Core.Dark
	alone := runDirect(t, 3, []string{"1:8s/3mp", "2:8s/3mp", "3:8s/3mp"}, 0, nil).Core.Dark
	// A circuit that two topologies have in common needs no mirror.
	if n := alone.Mirrors.N; n == 0 || ahead.Mirrors.N != 0 || ahead.Flip.N != n+alone.Flip.N {
		t.Fatalf("ahead %v alone %v", ahead, alone)
	}
	if *ahead.Board.Max >= 1000 || *ahead.Flip.Max >= *alone.Mirrors.Max || *ahead.Flip.Max == 0 {
		t.Errorf("ahead %v alone %v", ahead, alone)
	}
}

// Goal: links of jobs that send what they did not say move where the fullest circuit comes
// to carry a tenth less, and for nothing else, whoever dies; what was sent before is
// followed once. Method: counts of drawn flows, circuits by light before and after.
// Reference: [LUMOS] sec 4.2, A.12
func TestMeasuredTrafficWhoeverDies(t *testing.T) {
	var sum CoreCounts
	for seed := uint64(1); seed <= 6; seed++ {
		f := directFabric(t, 8, 3)
		res := runDirect(t, seed, Measuring(DirectLists(f.Core, seed, 3, false, 0), 8), 1000, nil)
		for _, v := range res.ViolationList {
			t.Error(v)
		}
		sum.Add(&res.Core.CoreCounts)
	}
	if sum.Killed == 0 || sum.Followed < 3 || sum.Measured < 3*sum.Followed || sum.FullestIs*10 > sum.FullestWas*9 || sum.Realised != sum.Granted {
		t.Errorf("%+v", sum)
	}
}

// Goal: each way to follow a count wrongly is told. Method: one each.
func TestMisfollowedTraffic(t *testing.T) {
	for _, c := range []struct {
		moved             bool
		now, then         uint64
		toldNow, toldThen uint64
		want              string
	}{
		{true, 1000, 900, 1000, 900, ""}, {false, 1000, 1000, 1000, 901, ""},
		{true, 1000, 901, 1000, 901, "moves for less"}, {true, 1000, 1001, 1000, 900, "moves for less"},
		{false, 1000, 1000, 1000, 900, "does not move"}, {false, 1000, 1000, 999, 999, "is answered otherwise"},
		{true, 1000, 899, 1000, 900, "moves otherwise"},
	} {
		if got := misfollowed(c.moved, c.now, c.then, &proto.ChangeStatus{FullestNow: c.toldNow, FullestThen: c.toldThen}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if misfollowed(true, 1000, 950, nil) == "" || misfollowed(false, 1000, 1000, nil) != "" {
		t.Error("without an answer")
	}
}

// Goal: the checkers find what planner and agents do not. Method: defects
// planted one at a time.
func TestDirectDefectsAreFound(t *testing.T) {
	jobs := []string{"1:4s/3 3:4s/3", "1:4s/3 2:4s/3>1 3:4s/3", "2:4s/3 3:4s/3", goTraffic + "3:0"}
	if res := runDirect(t, 2, jobs, 0, nil); res.Violations > 0 {
		t.Fatalf("%v", res.ViolationList)
	}
	for name, c := range map[string]struct {
		want string
		m    *mutant
	}{
		"two fibres of a layer that change places": {"who is heard", &mutant{plug: func(layer, port int) int {
			if layer == 1 && port < 2 {
				return 1 - port
			}
			return port
		}}},
		"a job's fibre cut in another's flip": {"no other job dark", &mutant{rewrite: func(r *Run, p proto.Packet) proto.Packet {
			if topic, err := proto.ParseTopic(p.Topic); err == nil && topic.Kind == proto.TopicDecision && r.now > 8*time.Second {
				if err := r.world.Cut(sim.Port{Board: r.mirrors.ID(3 + 7), Bundle: 0, Path: hal.LOSExternal1}, sim.Out); err != nil {
					panic(err)
				}
			}
			return p
		}}},
		"a planner that knows not what links carry": {"links move for a tenth", &mutant{rewrite: func(r *Run, p proto.Packet) proto.Packet {
			var m proto.OpReply
			if topic, err := proto.ParseTopic(p.Topic); err != nil || topic.Kind != proto.TopicReply {
				return p
			} else if _, err := proto.Decode(p.Payload, &m); err == nil && m.Change != nil && m.Change.FullestNow > 0 {
				m.Change.FullestNow++
				p.Payload, _ = proto.Encode(&m)
			}
			return p
		}}},
		"an agent that takes its interfaces inside at its start": {"no other job dark", &mutant{restored: func(st *station, j *agent.Journal) {
			if st.id >= proto.FirstSwitch+3 && j.State != nil && j.State.Applied != nil {
				j.State.Moving, j.State.Applied.Desired.Circuits = true, nil
			}
		}}},
	} { // any order: each by itself
		strikes := 0
		if c.m.restored != nil {
			strikes = 1000
		}
		var found []string
		_, err := tryDirect(t, 2, jobs, strikes, c.m, func(line string) { found = append(found, line) })
		if !strings.Contains(strings.Join(found, "\n"), c.want) {
			t.Errorf("%s: not found: %v, %d lines", name, err, len(found))
		}
	}
}
