package ocs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// spread are times of one thing over many switches.
type spread []time.Duration

func (s spread) at(part float64) time.Duration {
	slices.Sort(s)
	return s[min(len(s)-1, int(part*float64(len(s))))]
}

func (s spread) String() string {
	us := func(d time.Duration) int64 { return d.Microseconds() }
	return fmt.Sprintf("%5d %5d %5d", us(s.at(0.5)), us(s.at(0.99)), us(s.at(1)))
}

// account is the ledger of many switches of one bundle.
type account struct {
	fire  spread // from the first bit of the trigger to light at the receivers
	whole spread // from the call to the LOS pin's edge at the host
	read  spread // from that edge to the levels of all modules
}

// keep switches bundle 0 from loopback to external 1 and back, and takes the
// times. The light of external 1 comes to bundle 1, whose LOS pin tells.
func (r *rig) keep(sel func(now time.Duration, p proto.Path) error, rounds int) account {
	r.t.Helper()
	var a account
	for i := range 2 * rounds {
		path, line, bundle := proto.External1, hal.LOSExternal1, 1
		if i%2 == 1 {
			path, line, bundle = proto.Loopback, hal.LOSLoopback, 0
		}
		r.events[0] = nil
		asked := r.world.Now()
		if err := sel(asked, path); err != nil {
			r.t.Fatal(err)
		}
		lit := func() bool { return r.optics[bundle].Status().Lit[proto.Loopback+proto.Path(line)] }
		if lit() {
			r.t.Fatalf("%v is lit before it is asked for", path)
		}
		if !r.until(asked+100*time.Millisecond, lit) {
			r.t.Fatalf("%v: no light: %+v", path, r.events[0])
		}
		edge := r.world.Now()
		light, _ := r.world.LastChange(sim.Port{Board: r.id, Bundle: bundle, Path: line})
		verified := func() bool {
			return slices.ContainsFunc(r.events[0], func(e ocs.Event) bool { return e.Kind == ocs.Verified || e.Kind == ocs.Degraded })
		}
		if !r.until(asked+200*time.Millisecond, verified) {
			r.t.Fatalf("%v: levels were not read: %+v", path, r.events[0])
		}
		for _, e := range r.events[0] {
			if e.Kind == ocs.Switched {
				a.fire = append(a.fire, light-e.BusStart)
			}
		}
		a.whole = append(a.whole, edge-asked)
		a.read = append(a.read, r.world.Now()-edge)
		r.run(20 * time.Millisecond)
	}
	return a
}

// Goal: a whole bundle of eight switches within its budget: light 200 us p99
// after the trigger, the host knows it from the pin within 500 us, and the levels
// of all modules are read within 1 ms after that. Modules with a controller
// take what their kind of interface takes, and the timers say so.
// Method: 200 switches of each kind on the virtual clock; the table in the
// readme is this one.
func TestLedgerOfASwitch(t *testing.T) {
	const rounds = 100
	const us = time.Microsecond
	none := time.Duration(1 << 62)
	t.Logf("%-34s %-19s %-19s %-19s", "us: p50 p99 max", "trigger to light", "call to pin", "pin to levels")
	row := func(name string, a account, fire, whole, read time.Duration) {
		t.Helper()
		t.Logf("%-34s %-19v %-19v %-19v", name, a.fire, a.whole, a.read)
		if a.fire.at(0.99) >= fire || a.whole.at(0.99) >= whole || a.read.at(0.99) >= read {
			t.Errorf("%s: over %v, %v or %v", name, fire, whole, read)
		}
	}
	chips := func() *rig {
		r := newRig(t, 2, hal.MaxModules)
		join(t, r)
		r.ready()
		return r
	}
	r := chips()
	row("chips, at once", r.keep(r.optics[0].SelectAtOnce, rounds), 200*us, 500*us, 1000*us)
	r = chips()
	row("chips, break before make", r.keep(r.optics[0].Select, rounds), 200*us, 500*us, 1000*us)
	for _, kind := range mciKinds {
		r := newCMISRigOf(t, 2, hal.MaxModules, kind.mux, kind.timing)
		join(t, r)
		for b := range r.optics {
			if !r.until(r.world.Now()+10*time.Second, func() bool { return r.optics[b].Status().Ready }) {
				t.Fatalf("not ready: %+v", r.optics[b].Status())
			}
		}
		row("cmis, "+kind.name, r.keep(r.optics[0].Select, rounds), none, none, none)
	}
}

// join lays a fibre between the two bundles of a board.
func join(t *testing.T, r *rig) {
	t.Helper()
	if err := r.world.Connect(sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSExternal1}, sim.Port{Board: r.id, Bundle: 1, Path: hal.LOSExternal1}, sim.Fibre{}); err != nil {
		t.Fatal(err)
	}
}
