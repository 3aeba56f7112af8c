package ocs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs"
	"ringlight/ocs/mci"
	"ringlight/proto"
	"ringlight/sim"
)

// upgrade asks for a version on a module and waits for the end.
func (r *rig) upgrade(b, module int, v cmis.Version, image []byte) error {
	r.t.Helper()
	r.events[b] = nil
	if err := r.optics[b].Firmware.Upgrade(module, proto.FirmwareVersion(v), image); err != nil {
		return err
	}
	var end *ocs.Event
	if !r.until(r.world.Now()+3*time.Minute, func() bool {
		for i := range r.events[b] {
			if r.events[b][i].Kind == ocs.Upgraded {
				end = &r.events[b][i]
			}
		}
		return end != nil
	}) {
		r.t.Fatalf("no end: %+v", r.optics[b].Status())
	}
	return end.Err
}

// renew brings a bundle back into service.
func (r *rig) renew(b int) {
	r.t.Helper()
	r.optics[b].Renew(r.world.Now())
	if !r.until(r.world.Now()+10*time.Second, func() bool { return r.optics[b].Status().Ready }) {
		r.t.Fatalf("bundle %d: %+v", b, r.optics[b].Status())
	}
}

// readyAll waits for both bundles; one whose module was still away is read again, as an
// agent does after a second.
func (r *rig) readyAll() {
	r.t.Helper()
	if r.run(time.Second); r.optics[0].Status().Machine == ocs.Faulted {
		r.optics[0].Renew(r.world.Now())
	}
	if !r.until(r.world.Now()+10*time.Second, func() bool { return r.optics[0].Status().Ready && r.optics[1].Status().Ready }) {
		r.t.Fatalf("not ready: %+v, %+v", r.optics[0].Status(), r.optics[1].Status())
	}
}

// lightOf is since when the own loopback of a bundle is as it is.
func (r *rig) lightOf(b int) string {
	at, lit := r.world.LastChange(sim.Port{Board: r.id, Bundle: b, Path: hal.LOSLoopback})
	return fmt.Sprint(at, lit)
}

// Goal: a dark bundle's modules take firmware, by either payload and behind every
// interface, run it and start with it, while the light of the bundle beside stays; what is
// there already moves nothing.
func TestFirmware(t *testing.T) {
	v := cmis.Version{Major: 1, Minor: 2, Build: 3}
	image := sim.FirmwareImage(v, 9000)
	for _, kind := range mciKinds {
		for _, local := range []bool{false, true} {
			timing := kind.timing
			timing.NoEPL = local
			r := newCMISRigOf(t, 2, 2, kind.mux, timing)
			r.readyAll()
			if err := r.optics[1].Select(r.world.Now(), proto.Loopback); err != nil {
				t.Fatal(err)
			}
			r.run(100 * time.Millisecond)
			light := r.lightOf(1)
			if err := r.optics[1].Firmware.Upgrade(0, proto.FirmwareVersion(v), image); !errors.Is(err, ocs.ErrCarriesLight) {
				t.Errorf("lit: %v", err)
			}
			began := r.world.Now()
			for m := range 2 {
				if err := r.upgrade(0, m, v, image); err != nil {
					t.Fatalf("%s: module %d: %v", kind.name, m, err)
				}
				if in := r.world.Inside(r.id, 0, m); in.Firmware.Running != 1 || in.Firmware.Committed != 1 || in.Firmware.Version[1] != v {
					t.Errorf("%+v", in)
				}
			}
			t.Logf("%s, local payload %v: %v a module of 9,016 bytes", kind.name, local, (r.world.Now()-began)/2)
			if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err == nil {
				t.Error("a path was set meanwhile")
			}
			r.renew(0)
			if err := r.upgrade(0, 0, v, nil); err != nil {
				t.Errorf("it is there: %v", err)
			}
			r.renew(0)
			if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
				t.Fatal(err)
			}
			r.run(100 * time.Millisecond)
			if s := r.optics[0].Status(); s.State != proto.Tuned {
				t.Errorf("afterwards %+v", s)
			}
			if now := r.lightOf(1); now != light {
				t.Errorf("light of the other bundle: %s, was %s", now, light)
			}
		}
	}
}

// Goal: what a module does not come back with is told, and it runs what it ran; a broken
// image, one for others, and a module that takes none have their own errors.
func TestFirmwareRefused(t *testing.T) {
	v := cmis.Version{Major: 1, Minor: 1, Build: 9}
	image := sim.FirmwareImage(v, 3000)
	broken := append([]byte(nil), image...)
	broken[2000] ^= 4
	foreign := append([]byte("XXXX"), image[4:]...)
	for _, x := range []struct {
		what  string
		image []byte
		none  bool
		loose bool // commits nothing
		fault *sim.Fault
		want  error
		text  string
	}{
		{"does not start", image, false, false, &sim.Fault{Kind: sim.FirmwareBad, Index: 9}, mci.ErrImage, "it runs 1.0.0, was to run 1.1.9"},
		{"broken", broken, false, false, nil, mci.ErrRefused, "0107h: status 60h"},
		{"for others", foreign, false, false, nil, mci.ErrRefused, "0101h: status 42h"},
		{"empty", nil, false, false, nil, mci.ErrRefused, "0101h"},
		{"another version than is said", sim.FirmwareImage(cmis.Version{Major: 3}, 3000), false, false, nil, mci.ErrImage, "it runs 3.0.0, was to run 1.1.9"},
		{"commits none", image, false, true, nil, mci.ErrImage, "it runs 1.1.9, was to run 1.1.9; bank 0 is committed"},
		{"takes none", image, true, false, nil, hal.ErrUnsupported, "0041h: status 41h"},
	} {
		timing := sim.DefaultMCITiming()
		timing.NoFirmware, timing.NoCommit = x.none, x.loose
		r := newCMISRig(t, 2, true, timing)
		r.readyCMIS()
		if x.fault != nil {
			if err := r.world.Inject(r.id, *x.fault); err != nil {
				t.Fatal(err)
			}
		}
		err := r.upgrade(0, 0, v, x.image)
		if !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", x.what, err)
		}
		if in := r.world.Inside(r.id, 0, 0); !in.Alive || in.Firmware.Committed != 0 || in.Firmware.Running != 0 {
			t.Errorf("%s: %+v", x.what, in)
		}
		r.renew(0)
		if err := r.upgrade(0, 1, v, image); (err == nil) == (x.none || x.loose) {
			t.Errorf("%s: the module beside: %v", x.what, err)
		}
	}
	r := newRig(t, 1, 1)
	if err := r.optics[0].Firmware.Upgrade(0, proto.FirmwareVersion(v), image); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("chips: %v", err)
	}
}

// Goal: power lost at any step leaves a module that starts, with the old firmware or the
// new, and the next try gets it there. While it is one module's power, no light of the
// bundle beside changes.
// Method: upgrades to ever new versions; at a random moment the module, or the whole board
// with its host, loses power. RINGLIGHT_CUTS is how often.
func TestFirmwareSurvivesPowerCuts(t *testing.T) {
	cuts, _ := strconv.Atoi(os.Getenv("RINGLIGHT_CUTS"))
	cuts = max(cuts, 20)
	rng := rand.New(rand.NewPCG(1, 34))
	r := newCMISRigOf(t, 2, 2, true, sim.DefaultMCITiming())
	cals := []*ocs.Calibration{r.optics[0].Status().Calibration, r.optics[1].Status().Calibration}
	shine := func() string {
		r.readyAll()
		if err := r.optics[1].Select(r.world.Now(), proto.Loopback); err != nil {
			t.Fatal(err)
		}
		r.run(100 * time.Millisecond)
		return r.lightOf(1)
	}
	dead, touched, stages := 0, 0, map[string]int{}
	light := shine()
	// disturb begins an upgrade and takes something away at a random moment.
	disturb := func(n int, v cmis.Version, image []byte, what int) (stage string) {
		t.Helper()
		if err := r.optics[0].Firmware.Upgrade(0, proto.FirmwareVersion(v), image); err != nil {
			t.Fatalf("cut %d: %v", n, err)
		}
		r.events[0] = nil
		r.run(time.Duration(rng.Int64N(int64(1300 * time.Millisecond))))
		in := r.world.Inside(r.id, 0, 0).Firmware
		stage = fmt.Sprintf("running %v, committed %v, other bank whole %v", in.Version[in.Running] == v, in.Version[in.Committed] == v, in.Valid[in.Running^1])
		stages[stage]++
		switch what {
		case hostDies:
			r.boot(cals)
			r.readyAll()
			return stage
		case boardCut:
			r.world.SetPower(r.id, false)
			r.run(10 * time.Millisecond)
			r.world.SetPower(r.id, true)
			r.boot(cals)
			light = shine()
		case moduleCut:
			if err := r.world.Inject(r.id, sim.Fault{Kind: sim.BrownOut}); err != nil {
				t.Fatal(err)
			}
		}
		if !r.world.Inside(r.id, 0, 0).Alive {
			t.Errorf("cut %d at %s: the module is dead", n, stage)
			dead++
		}
		if !r.until(r.world.Now()+3*time.Minute, func() bool { return r.optics[0].Status().Machine != ocs.Upgrading || ended(r.events[0]) }) {
			t.Fatalf("cut %d at %s: it never ends", n, stage)
		}
		r.renew(0)
		return stage
	}
	for n := 1; n <= cuts; n++ {
		v := cmis.Version{Major: 2, Build: uint16(n)}
		image := sim.FirmwareImage(v, 3000+rng.IntN(1500))
		if rng.IntN(3) == 0 { // another version was on its way when the host died
			was := cmis.Version{Major: 3, Build: uint16(n)}
			disturb(n, was, sim.FirmwareImage(was, 2500), hostDies)
		}
		stage := disturb(n, v, image, boardCut+rng.IntN(2))
		if err := r.upgrade(0, 0, v, image); err != nil {
			t.Fatalf("cut %d at %s: once more: %v", n, stage, err)
		}
		if in := r.world.Inside(r.id, 0, 0).Firmware; in.Version[in.Committed] != v || in.Running != in.Committed {
			t.Errorf("cut %d at %s: %+v", n, stage, in)
		}
		r.renew(0)
		if now := r.lightOf(1); now != light {
			touched++
			light = now
		}
	}
	t.Logf("%d power cuts: %d modules dead, %d lit paths touched; %v", cuts, dead, touched, stages)
	if dead > 0 || touched > 0 || len(stages) < 4 {
		t.Error("as above")
	}
}

// What is taken away.
const (
	hostDies = iota
	boardCut
	moduleCut
)

func ended(events []ocs.Event) bool {
	for i := range events {
		if events[i].Kind == ocs.Upgraded {
			return true
		}
	}
	return false
}
