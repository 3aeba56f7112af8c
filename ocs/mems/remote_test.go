package mems_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/scpi"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim"
)

// remote is a commercial box, as far as it can see: a simulated board of
// mirrors with its crossbar behind a server, as lab scripts talk to.
type remote struct {
	rig    *rig
	served circuit.Served
	server *scpi.Server
	x      *box.Box
}

func newRemote(far *rig, ports int) *remote {
	r := &remote{rig: far, x: box.New(box.Config{Client: scpi.NewClient(), End: '\n'})}
	r.served = circuit.Served{Switch: far.x, Ports: ports, Identity: "Ringlight,N-OST-mirrors,0,1", Power: far.x.Power}
	r.server = scpi.NewServer(&r.served)
	r.x.Start(0)
	r.settle()
	return r
}

// settle goes on until the box has nothing more to do.
func (r *remote) settle() {
	r.rig.t.Helper()
	var done []*hal.Completion
	for range 100 {
		ops, _ := r.x.Poll(r.rig.world.Now(), done, nil)
		if len(ops) == 0 {
			return
		}
		done = nil
		for _, op := range ops {
			r.server.Take(op.Op.Msgs[0].W)
			var reply []byte
			for tries := 0; len(reply) == 0 && tries < 10_000; tries++ {
				r.served.Now = r.rig.world.Now()
				reply = r.server.Poll(nil)
				r.rig.until(time.Millisecond, func() bool { return false })
			}
			copy(op.Op.Msgs[0].R, reply)
			done = append(done, &hal.Completion{Bus: op.Bus, Op: op.Op})
		}
	}
	r.rig.t.Fatal("the box never comes to rest")
}

func (r *remote) apply(ch circuit.Change) {
	r.rig.t.Helper()
	if err := r.x.Apply(r.rig.world.Now(), ch); err != nil {
		r.rig.t.Fatal(err)
	}
	r.settle()
}

func (r *remote) circuits() (s string) {
	for _, c := range r.x.Circuits(nil) {
		s += fmt.Sprintf("%v %v;", c.Pair, c.State)
	}
	return s
}

// A script's words turn real mirrors: client, server, crossbar, mirrors, and
// the light back through the meters.
func TestBoxOverSCPIToMirrors(t *testing.T) {
	far := newRig(t, 8, 20)
	r := newRemote(far, 8)
	r.apply(circuit.Change{Create: pairs(3, func(a int) int { return a + 4 })})
	if got, want := r.circuits(), "1A-5B tuned;2A-6B tuned;3A-7B tuned;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	far.check(3)
	r.apply(circuit.Change{Mode: circuit.Update, Remove: []circuit.Pair{{A: 0, B: 4}}, Create: []circuit.Pair{{A: 4, B: 6}}})
	if got, want := r.circuits(), "2A-6B tuned;5A-7B tuned;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	far.check(2)
	r.apply(circuit.Change{Mode: circuit.Overwrite, Create: []circuit.Pair{{A: 7, B: 0}}})
	far.check(1)
	if err := r.x.Apply(far.world.Now(), circuit.Change{Create: []circuit.Pair{{A: 1, B: 0}}}); !errors.Is(err, circuit.ErrPortInUse) {
		t.Errorf("safe: %v", err)
	}
	// A fibre without light, found by the box's own meters.
	far.world.SetMirrorInput(far.id, 3, sim.InputLight{})
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 3, B: 3}}})
	if c := r.x.Circuits(nil)[0]; c.State != proto.Tuning || !errors.Is(c.Err, circuit.ErrNoInput) {
		t.Errorf("no light: %+v", c)
	}
	// Another hand on the box.
	if err := far.x.Apply(far.world.Now(), circuit.Change{Mode: circuit.Overwrite, Create: []circuit.Pair{{A: 2, B: 2}}}); err != nil {
		t.Fatal(err)
	}
	far.until(time.Second, far.idle)
	r.x.HealthRound(far.world.Now())
	r.settle()
	if got, want := r.circuits(), "3A-3B tuned;4A-4B failed;8A-1B failed;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
