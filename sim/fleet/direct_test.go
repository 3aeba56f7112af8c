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
		res := runDirect(t, seed, DirectLists(f.Core, seed, 4, true), 1000, nil)
		for _, v := range res.ViolationList {
			t.Error(v)
		}
		if c := res.Core; c.Killed == 0 || c.Looks == 0 || c.Realised != c.Granted {
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

// Goal: the checkers find what planner and agents do not. Method: defects
// planted one at a time.
func TestDirectDefectsAreFound(t *testing.T) {
	jobs := []string{"1:4s/3 3:4s/3", "1:4s/3 2:4s/3>1 3:4s/3", "2:4s/3 3:4s/3"}
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
