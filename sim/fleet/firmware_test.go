package fleet

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/proto"
	"ringlight/sim"
)

// upgrades are what a fabric of modules with controllers shows while firmware goes out.
type upgrades struct {
	*bench
	rings  []proto.NodeID      // that carry one
	light  map[sim.Port]string // of their paths
	moved  int                 // lit paths whose light changed
	both   int                 // times that two ends of a fibre, or two modules of a bundle, were at it
	most   int                 // nodes at it at once
	passed map[proto.NodeID]bool
}

func newUpgrades(t testing.TB, nodes, spares int) *upgrades {
	o, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	with := *o
	with.Control = true
	u := &upgrades{bench: newBenchOf(t, &with, nodes, spares, 2, 1, nil), light: map[sim.Port]string{}, passed: map[proto.NodeID]bool{}}
	for _, st := range u.nodes {
		if len(u.audit.reportOf(st).Rings) > 0 {
			u.rings = append(u.rings, st.id)
		}
	}
	if len(u.rings) != nodes-spares {
		t.Fatalf("rings have nodes %v", u.rings)
	}
	u.lights(func(p sim.Port, is string) { u.light[p] = is })
	return u
}

// lights tells the paths of nodes with rings, and since when their light is as it is.
func (u *upgrades) lights(tell func(sim.Port, string)) {
	for _, id := range u.rings {
		for bundle := range u.cfg.Fabric.Bundles {
			for path := range hal.NumLOS {
				p := sim.Port{Board: sim.BoardID(id), Bundle: bundle, Path: path}
				at, lit := u.world.LastChange(p)
				tell(p, fmt.Sprint(at, lit))
			}
		}
	}
}

// watch lets the fabric go on, and looks at every module every 10 ms.
func (u *upgrades) watch(d time.Duration, until func(*proto.RolloutStatus) bool) *proto.RolloutStatus {
	u.t.Helper()
	s := u.status()
	for end := u.now + d; u.now < end && !until(s); s = u.status() {
		for range 50 {
			u.run(10 * time.Millisecond)
			at := map[proto.NodeID]int{}
			for _, st := range u.nodes {
				for bundle := range u.cfg.Fabric.Bundles {
					n := 0
					for m := range u.cfg.Modules {
						if u.world.Inside(st.board, bundle, m).Upgrading {
							n++
						}
					}
					if n > 1 {
						u.both++
					}
					at[st.id] += n
				}
				if at[st.id] > 0 {
					u.passed[st.id] = true
				}
			}
			busy := 0
			for _, n := range at {
				busy += min(n, 1)
			}
			u.most = max(u.most, busy)
			for _, f := range u.cfg.Fabric.AllFibres() {
				if at[f.A.Node] > 0 && at[f.B.Node] > 0 {
					u.both++
				}
			}
		}
	}
	u.lights(func(p sim.Port, is string) {
		if is != u.light[p] {
			u.moved++
			u.light[p] = is
		}
	})
	return s
}

func (u *upgrades) status() *proto.RolloutStatus {
	u.t.Helper()
	for range 20 { // a planner that has just started has none yet
		if s := u.answer(proto.OpRequest{Noun: proto.NounRolloutStatus}).Rollout; s != nil {
			return s
		}
	}
	u.t.Fatal("no status")
	return nil
}

func (u *upgrades) begin(version string) {
	u.t.Helper()
	if r := u.answer(proto.OpRequest{Noun: proto.NounRollout, Software: version, Firmware: true}); r.Code != proto.OK {
		u.t.Fatalf("%+v", r)
	}
}

// with counts the nodes all of whose modules start with a version.
func (u *upgrades) with(v cmis.Version) (n int) {
	for _, st := range u.nodes {
		all := true
		for bundle := range u.cfg.Fabric.Bundles {
			for m := range u.cfg.Modules {
				in := u.world.Inside(st.board, bundle, m)
				all = all && in.Alive && in.Firmware.Running == in.Firmware.Committed && in.Firmware.Version[in.Firmware.Running] == v
			}
		}
		if all {
			n++
		}
	}
	return n
}

// Goal: firmware goes to the modules of 64 nodes: first to those that carry no ring; those
// that do wait, and take it when they are drained. No lit path changes, and never are both
// ends of a fibre or two modules of a bundle at it at once. What is there is not sent again.
func TestFirmwareGoesOut(t *testing.T) {
	u := newUpgrades(t, 64, 56)
	u.begin("1.1.0")
	v := cmis.Version{Major: 1, Minor: 1}
	s := u.watch(30*time.Minute, func(s *proto.RolloutStatus) bool { return s.Current == 56 && len(s.UnderWay) == 0 })
	if s.State != proto.RolloutRunning || s.Current != 56 || !strings.Contains(s.Waiting, "carries ring") || u.with(v) != 56 {
		t.Fatalf("%+v; %d have it", s, u.with(v))
	}
	t.Logf("56 nodes of 4 modules in %d waves, %v, up to %d at once; lit paths touched %d, both ends or two modules at once %d", s.Wave, u.now, u.most, u.moved, u.both)
	if u.moved > 0 || u.both > 0 || u.most < 5 {
		t.Error("as above")
	}
	for _, id := range u.rings {
		if r := u.answer(proto.OpRequest{Noun: proto.NounDrain, Node: id}); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		u.run(3 * time.Second)
	}
	s = u.watch(30*time.Minute, func(s *proto.RolloutStatus) bool {
		return s.State != proto.RolloutRunning || s.Current >= 62 && len(s.UnderWay) == 0
	})
	if u.both > 0 || s.State == proto.RolloutStopped || s.Current < 62 {
		t.Errorf("drained: %+v, both %d", s, u.both)
	}
	sent := u.now
	u.passed = map[proto.NodeID]bool{}
	if r := u.answer(proto.OpRequest{Noun: proto.NounRolloutStop}); r.Code != proto.OK && s.State == proto.RolloutRunning {
		t.Fatalf("%+v", r)
	}
	u.run(5 * time.Second)
	u.begin("1.1.0")
	u.watch(10*time.Minute, func(s *proto.RolloutStatus) bool { return s.Current >= 56 && len(s.UnderWay) == 0 })
	t.Logf("once more: %v, modules written to: %d nodes", u.now-sent, len(u.passed))
	if len(u.passed) > 0 {
		t.Errorf("nodes %v took it twice", u.passed)
	}
}

// Goal: agents that die, nodes that lose power and a planner that is killed while firmware
// goes out cost no module and no light of a ring; in the end all have it.
// Method: a strike at a node under way every two seconds, RINGLIGHT_ATTACKS of them, from a
// seed; where the roll-out has stopped an operator begins it once more.
func TestFirmwareUnderFaults(t *testing.T) {
	strikes, _ := strconv.Atoi(cmp.Or(os.Getenv("RINGLIGHT_ATTACKS"), "9"))
	u := newUpgrades(t, 24, 20)
	r := random{seed: 0xf34}
	v := cmis.Version{Major: 1}
	stops, dead, struck := 0, 0, [3]int{}
	for n := 0; n < strikes; {
		v.Minor++
		u.begin(proto.FirmwareVersion(v).String())
		for end := u.now + 10*time.Minute; u.now < end; {
			s := u.watch(2*time.Second, func(*proto.RolloutStatus) bool { return false })
			if s.State == proto.RolloutStopped {
				stops++
				t.Logf("stopped: %s", s.Reason)
				u.answer(proto.OpRequest{Noun: proto.NounRolloutStop})
				u.run(5 * time.Second)
				u.begin(proto.FirmwareVersion(v).String())
			}
			if s.Current >= 20 && len(s.UnderWay) == 0 {
				break
			}
			if n >= strikes || len(s.UnderWay) == 0 {
				continue
			}
			f := Fault{Node: s.UnderWay[r.below(len(s.UnderWay))].Node, For: time.Second}
			what := r.below(3)
			switch what {
			case 0:
				f.Verb = AgentCrash
			case 1:
				f.Verb = NodeDark
			case 2:
				f.Verb, f.Node = PlannerKill, 0
			}
			n++
			struck[what]++
			if err := u.inject.apply(&f); err != nil {
				t.Fatal(err)
			}
		}
		for _, st := range u.nodes {
			for bundle := range u.cfg.Fabric.Bundles {
				for m := range u.cfg.Modules {
					if !u.world.Inside(st.board, bundle, m).Alive {
						dead++
					}
				}
			}
		}
		if got := u.with(v); got != 20 {
			t.Fatalf("%v: %d of 20 nodes have it: %+v", v, got, u.status())
		}
		u.answer(proto.OpRequest{Noun: proto.NounRolloutStop})
	}
	t.Logf("%d versions; agents died %d, nodes lost power %d, planners killed %d; stopped %d times; modules dead %d, lit paths touched %d, both ends or two modules at once %d",
		v.Minor, struck[0], struck[1], struck[2], stops, dead, u.moved, u.both)
	if dead > 0 || u.moved > 0 || u.both > 0 {
		t.Error("as above")
	}
}

// Goal: a release that does not start on one module stops the roll-out there: the module
// runs what it ran, the nodes of its wave have theirs, nobody else is told, and operators
// read which module it was.
func TestBadFirmwareStops(t *testing.T) {
	u := newUpgrades(t, 64, 56)
	bad := u.nodes[14]
	if err := u.world.Inject(bad.board, sim.Fault{Kind: sim.FirmwareBad, Bundle: 1, Module: 1, Index: 7}); err != nil {
		t.Fatal(err)
	}
	u.begin("1.1.7")
	v := cmis.Version{Major: 1, Minor: 1, Build: 7}
	s := u.watch(30*time.Minute, func(s *proto.RolloutStatus) bool { return s.State == proto.RolloutStopped && len(s.UnderWay) == 0 })
	t.Logf("%v, wave %d, %d have it: %s", s.State, s.Wave, u.with(v), s.Reason)
	if s.State != proto.RolloutStopped || s.Node == nil || *s.Node != bad.id || !strings.Contains(s.Reason, "bundle 1: module 1: module does not run the image: it runs 1.0.0, was to run 1.1.7") {
		t.Fatalf("%+v", s)
	}
	had := u.with(v)
	u.watch(2*time.Minute, func(*proto.RolloutStatus) bool { return false })
	if u.with(v) != had || had > 1+10*(int(s.Wave)-1) || had > 40 || u.moved > 0 {
		t.Errorf("%d had it, %d have it now; lit paths touched %d", had, u.with(v), u.moved)
	}
	if in := u.world.Inside(bad.board, 1, 1); !in.Alive || in.Firmware.Version[in.Firmware.Committed].Minor != 0 {
		t.Errorf("%+v", in)
	}
	if rep := u.audit.reportOf(bad); rep.Bundles[1].State == proto.Failed {
		t.Errorf("%+v", rep.Bundles)
	}
}
