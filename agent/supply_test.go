package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/proto"
	"ringlight/sim"
)

// outages are how long a supply is lost.
var outages = [...]time.Duration{200 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 10 * time.Second}

// well: the node is in service, nothing failed, and the board's own record says
// that both bundles are in loopback with light.
func (x *fleetNode) well() string {
	if m := x.host.View().Mode(); m != proto.ModeService {
		return "mode " + m.String()
	}
	var r proto.Reported
	x.host.View().Report(&r)
	for i := range r.Bundles {
		if r.Bundles[i].State != proto.Tuned {
			return fmt.Sprintf("bundle %d is %v on %v", i, r.Bundles[i].State, r.Bundles[i].Path)
		}
		path, shining := x.f.world.Selected(sim.BoardID(x.id), i)
		if want := int(r.Bundles[i].Path - proto.Loopback); !shining || path != want {
			return fmt.Sprintf("bundle %d: the board is on %d, shining %v; reported %v", i, path, shining, r.Bundles[i].Path)
		}
		if !x.f.world.Lit(sim.Port{Board: sim.BoardID(x.id), Bundle: i, Path: path}) {
			return fmt.Sprintf("bundle %d: no light on %v", i, r.Bundles[i].Path)
		}
	}
	return ""
}

// supplied are kinds of boards, and how many runs each takes.
var supplied = []struct {
	name string
	make func(modules int) (hal.Board, error)
	runs int
}{
	{"chips", func(modules int) (hal.Board, error) { return boardfile.Default(4, 2, modules) }, 200},
	{"two-word DACs", func(modules int) (hal.Board, error) { return boardfile.DefaultOf(hal.AD5676R, 4, 2, modules) }, 20},
	{"cmis", func(modules int) (hal.Board, error) { return boardfile.DefaultCMIS(4, 2, modules, false) }, 40},
	{"cmis behind a mux", func(modules int) (hal.Board, error) { return boardfile.DefaultCMIS(4, 2, modules, true) }, 20},
}

// outage is one run: what happens when.
type outage struct {
	lost time.Duration
	plan []happening
}

type happening struct {
	at time.Duration
	do func()
}

// drawOutage: no supply for a while, and up to three kills of the agent from
// shortly before to well after, each with a boot up to a second later.
func drawOutage(seed int, start time.Duration, supply func(on bool), kill, boot func()) outage {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	o := outage{lost: outages[seed%len(outages)]}
	o.plan = []happening{{start, func() { supply(false) }}, {start + o.lost, func() { supply(true) }}}
	for range rng.IntN(4) {
		at := start - 100*time.Millisecond + time.Duration(rng.Int64N(int64(o.lost+8*time.Second)))
		o.plan = append(o.plan, happening{at, kill}, happening{at + time.Duration(rng.Int64N(int64(time.Second))), boot})
	}
	slices.SortFunc(o.plan, func(a, b happening) int { return int(a.at - b.at) })
	return o
}

// returns are how long it took, by how long the supply was lost, from the last
// happening: the supply is there and the agent runs.
type returns struct {
	took [len(outages)][]time.Duration
	now  int
}

func (r *returns) begin(o outage) { r.now = slices.Index(outages[:], o.lost) }

func (r *returns) end(took time.Duration) { r.took[r.now] = append(r.took[r.now], took) }

// log prints them. Nobody waits longer than a silence of operators may last.
func (r *returns) log(t *testing.T) {
	for i, took := range r.took {
		if n := len(took); n > 0 {
			slices.Sort(took)
			t.Logf("%5v without supply: %3d runs, back after %v in the middle, %v at most", outages[i], n,
				took[n/2].Round(time.Millisecond), took[n-1].Round(time.Millisecond))
			if took[n-1] > 5*time.Second {
				t.Errorf("%v after %v without supply", took[n-1], outages[i])
			}
		}
	}
}

func TestSupplyOfOpticsComesBack(t *testing.T) {
	// Goal: optics that lose their supply for a moment come back into service by
	// themselves, whether their agent lives through it or is restarted at any
	// moment; nobody deletes a journal.
	// Method: node 1 of a ring, or beside one, 0.2 to 10 s without supply, agents
	// killed and booted up to three times at random moments, on the virtual clock.
	for _, kind := range supplied {
		t.Run(kind.name, func(t *testing.T) {
			var returns returns
			runs := kind.runs
			if testing.Short() {
				runs = 16
			}
			for seed := range runs {
				f := startFleet(&fleet{t: t, decide: fleetDecide, health: 20 * time.Second, make: kind.make}, 4, 1)
				if seed%8 < 6 {
					f.join()
				} else {
					f.run(time.Second, nil)
					for _, x := range f.nodes {
						f.link(x, true)
					}
					f.heard()
				}
				x := f.nodes[1]
				boot := func() {
					if x.agent == nil {
						f.boot(x)
						f.link(x, true)
						f.heard()
					}
				}
				o := drawOutage(seed, f.world.Now()+200*time.Millisecond, func(on bool) { f.world.SetSupply(1, on) }, func() { f.kill(x) }, boot)
				for _, h := range o.plan {
					f.run(h.at-f.world.Now(), nil)
					h.do()
				}
				boot()
				back := f.world.Now()
				returns.begin(o)
				if !f.run(3*time.Minute, func() bool { return x.well() == "" }) {
					for _, line := range f.trace[max(0, len(f.trace)-60):] {
						t.Log(line)
					}
					t.Fatalf("seed %d, %v without supply: %s", seed, o.lost, x.well())
				}
				returns.end(f.world.Now() - back)
			}
			returns.log(t)
		})
	}
}

func TestStraySampleOutlivesNoSupply(t *testing.T) {
	// Goal: what was told of a path in service and is no reason to leave it keeps no
	// node out that had lost its supply: it is back as soon as others.
	// Method: a board that gets warmer than it was calibrated, until light on the wrong side
	// is told; then 5 s without supply.
	f := newFleet(t, 1, 1)
	x := f.nodes[0]
	f.run(time.Second, nil)
	f.link(x, true)
	f.heard()
	o := x.agent.optics.(*nodeOptics)
	o.health.period, o.health.next = time.Second, f.world.Now()+time.Second
	for i := range o.bundles {
		m := o.bundles[i].optics.Status().Calibration.Modules[0]
		m.Extinction[hal.CellMZI1] = 30_000 // noted, as by a calibration made here
	}
	told := func() bool {
		return slices.ContainsFunc(x.events, func(e proto.Event) bool {
			return e.Kind == proto.EvAlarm && strings.Contains(e.Text, "wrong side")
		})
	}
	f.run(12*time.Minute, nil) // calibrated here, and what that was for is forgotten
	x.events = nil
	for milli := int32(40_000); milli < 50_000 && !told(); milli += 250 {
		f.world.SetAmbient(0, milli)
		f.run(5*time.Second, told)
	}
	if s := x.well(); s != "" || !told() {
		t.Fatalf("told: %v; %s", told(), s)
	}
	f.world.SetSupply(0, false)
	f.must("isolated", 5*time.Second, func() bool { return x.host.View().Mode() == proto.ModeIsolated })
	f.run(5*time.Second, nil)
	f.world.SetSupply(0, true)
	back := f.world.Now()
	f.must("back in service", 3*time.Minute, func() bool { return x.well() == "" })
	if took := f.world.Now() - back; took > 5*time.Second {
		t.Errorf("back after %v", took)
	}
}

func TestSupplyOfMirrorsComesBack(t *testing.T) {
	// Goal: the same for a switch: its board answers again by itself, it claims no
	// circuit that its mirrors do not make, and the planner's repetition makes them.
	runs := 60
	if testing.Short() {
		runs = 12
	}
	var returns returns
	for seed := range runs {
		r := newSwitchRig(t, 8)
		r.start()
		d := r.roll(shift(5, 8, 3)...)
		boot := func() {
			if r.agent == nil {
				r.boot()
				r.start()
			}
		}
		o := drawOutage(seed, r.world.Now()+200*time.Millisecond, func(on bool) { r.world.SetSupply(r.id, on) }, r.kill, boot)
		for _, h := range o.plan {
			r.run(h.at-r.world.Now(), nil)
			h.do()
		}
		boot()
		back := r.world.Now()
		returns.begin(o)
		r.must("back", time.Minute, func() bool { return r.last.Mode == proto.ModeService })
		returns.end(r.world.Now() - back)
		r.run(10*time.Second, nil)
		if r.last.Mode != proto.ModeService {
			t.Fatalf("seed %d, %v: %v", seed, o.lost, r.last.Mode)
		}
		if !r.done(d) {
			r.publish(switchTopics.Desired(switchNode), d)
			r.decide(d, proto.Commit)
			r.must("lit again", 5*time.Second, func() bool { return r.done(d) })
		}
		r.checkLight(d.Circuits...)
		if t.Failed() {
			t.Fatalf("seed %d, %v", seed, o.lost)
		}
	}
	returns.log(t)
}

// alarms are what the node's machine tells of itself, as status and why print it.
func (x *fleetNode) alarms() string {
	var r proto.Reported
	x.host.View().Report(&r)
	text := ""
	for _, a := range r.Alarms {
		text += a.Text + "\n"
	}
	return text
}

func TestEveryReasonNamesItsWayOut(t *testing.T) {
	// Goal: whatever keeps a node out of service says what ends it, and that does.
	f := ringed(t, 4, 1)
	x := f.nodes[1]
	ask := func(q Ask) (answer *Answer) {
		f.t.Helper()
		x.host.Ask(f.world.Now(), q, func(a *Answer) { answer = a })
		f.poll(x)
		f.must("answer", 2*time.Minute, func() bool { return answer != nil })
		return answer
	}
	out := func(mode proto.Mode, way string) {
		t.Helper()
		f.must(mode.String(), 10*time.Second, func() bool { return x.host.View().Mode() == mode })
		if got := x.alarms(); !strings.Contains(got, way) {
			t.Errorf("%v says %q, not %q", mode, got, way)
		}
	}
	well := func() {
		t.Helper()
		f.must("in service: "+x.well(), 10*time.Second, func() bool { return x.well() == "" })
	}

	ask(Ask{Verb: AskHostFault, Text: "xid 79"})
	out(proto.ModeHostDown, "ocs-agent host ok")
	f.run(20*time.Millisecond, nil) // until the disk has it
	f.kill(x)
	f.boot(x)
	out(proto.ModeHostDown, "ocs-agent host ok")
	ask(Ask{Verb: AskHostOK})
	well()

	f.link(x, true)
	f.heard()
	command := func(verb proto.Verb, corr byte) {
		f.publish(proto.Topics{Fabric: "f1"}.Command(x.id), &proto.Command{Version: proto.Version, Node: x.id, Term: f.term, Session: x.agent.cfg.Session,
			TTLMillis: 1000, Corr: proto.Corr{corr}, Verb: verb})
	}
	command(proto.VerbDrain, 1)
	out(proto.ModeDrained, "ocsctl undrain 1")
	command(proto.VerbUndrain, 2)
	well()

	// Broken for long, and mended: nobody waits for the next try, an hour away.
	lasers := func(do func(sim.BoardID, sim.Fault) error) {
		for lane := range 8 {
			if err := do(1, sim.Fault{Kind: sim.LaserDead, Bundle: 1, Module: 0, Index: lane}); err != nil {
				t.Fatal(err)
			}
		}
	}
	lasers(f.world.Inject)
	ask(Ask{Verb: AskPath, Bundle: 1, Path: proto.Loopback}) // a look at it
	out(proto.ModeIsolated, "ocs-agent calibrate")
	f.run(30*time.Minute, nil)
	out(proto.ModeIsolated, "a person is needed; ocs-agent calibrate -b 1 tries at once")
	lasers(f.world.Repair)
	if a := ask(Ask{Verb: AskCalibrate, Bundle: 1}); a.Err != nil {
		t.Fatal(a.Err)
	}
	well()

	// Without supply the command says so; with it, it does not wait for the next
	// reading either.
	f.world.SetSupply(1, false)
	f.run(time.Minute, nil)
	out(proto.ModeIsolated, "its bus or chips do not answer: ")
	if got := x.alarms(); strings.Count(got, "that is read again every few seconds, and light is tried when it is over") != 2 {
		t.Errorf("of both bundles: %q", got)
	}
	for bundle := range proto.BundleID(2) {
		if a := ask(Ask{Verb: AskCalibrate, Bundle: bundle}); a.Err == nil || a.Err.Code != proto.HardwareFailed {
			t.Errorf("bundle %d: %v", bundle, a.Err)
		}
	}
	f.world.SetSupply(1, true)
	f.run(1100*time.Millisecond, nil) // devices in quarantine are asked each second
	for bundle := range proto.BundleID(2) {
		if a := ask(Ask{Verb: AskCalibrate, Bundle: bundle}); a.Err != nil {
			t.Errorf("bundle %d: %v", bundle, a.Err)
		}
	}
	well()
}
