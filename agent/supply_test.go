package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim"
)

// outages are how long a supply is lost.
var outages = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 10 * time.Second}

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

func TestSupplyOfOpticsComesBack(t *testing.T) {
	// Goal: optics that lose their supply for a moment come back into service by
	// themselves, whether their agent lives through it or is restarted at any
	// moment; nobody deletes a journal.
	// Method: node 1 of a ring, 0.2 to 10 s without supply, agents killed and
	// booted up to three times at random moments, on the virtual clock.
	runs := 200
	if testing.Short() {
		runs = 24
	}
	for seed := range runs {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		lost := outages[seed%len(outages)]
		f := startFleet(&fleet{t: t, decide: fleetDecide, health: 20 * time.Second}, 4, 1)
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
		start := f.world.Now() + 100*time.Millisecond
		type happening struct {
			at time.Duration
			do func()
		}
		supply := func(on bool) func() { return func() { f.world.SetSupply(1, on) } }
		plan := []happening{{start, supply(false)}, {start + lost, supply(true)}}
		for range rng.IntN(4) {
			at := start - 100*time.Millisecond + time.Duration(rng.Int64N(int64(lost+8*time.Second)))
			down := time.Duration(rng.Int64N(int64(time.Second)))
			plan = append(plan, happening{at, func() { f.kill(x) }}, happening{at + down, func() {
				if x.agent == nil {
					f.boot(x)
					f.link(x, true)
					f.heard()
				}
			}})
		}
		slices.SortFunc(plan, func(a, b happening) int { return int(a.at - b.at) })
		for _, h := range plan {
			f.run(h.at-f.world.Now(), nil)
			h.do()
		}
		f.run(0, nil)
		if x.agent == nil {
			f.boot(x)
			f.link(x, true)
		}
		back := f.world.Now()
		if !f.run(3*time.Minute, func() bool { return x.well() == "" }) {
			t.Errorf("seed %d, %v without supply, %d happenings: %s", seed, lost, len(plan), x.well())
			if t.Failed() && seed < 4 {
				for _, line := range f.trace {
					t.Log(line)
				}
			}
			continue
		}
		t.Logf("seed %d, %v: back after %v", seed, lost, f.world.Now()-back)
	}
	_ = hal.LOSLoopback
}
