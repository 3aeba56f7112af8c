package ocs_test

import (
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/cmis"
	"ringlight/ocs"
	"ringlight/ocs/mci"
	"ringlight/proto"
	"ringlight/sim"

	"periph.io/x/conn/v3/physic"
)

// newCMISRig is newRig with modules of kind cmis.
func newCMISRig(t *testing.T, modules int, mux bool, timing sim.MCITiming) *rig {
	t.Helper()
	return newCMISRigOf(t, 1, modules, mux, timing)
}

func newCMISRigOf(t *testing.T, bundles, modules int, mux bool, timing sim.MCITiming) *rig {
	t.Helper()
	hw, err := boardfile.DefaultCMIS(4, bundles, modules, mux)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: 1}), board: &hw}
	cat := sim.Catalogue(nil, 7, bundles*modules)
	per := make([][]*sim.Personality, bundles)
	cals := make([]*ocs.Calibration, bundles)
	for b := range per {
		per[b] = cat[b*modules : (b+1)*modules]
		cals[b] = truth(per[b])
	}
	r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Personalities: per, Seed: 3, Powered: true, MCI: timing})
	if err != nil {
		t.Fatal(err)
	}
	r.boot(cals)
	return r
}

// mciKinds are the ways a module's interface may hang on a board.
var mciKinds = []struct {
	name   string
	mux    bool
	timing sim.MCITiming
}{
	{"own segment", false, sim.DefaultMCITiming()},
	{"behind a mux", true, sim.DefaultMCITiming()},
	{"full hold-off", true, sim.SlowMCITiming()},
}

func (r *rig) readyCMIS() {
	r.t.Helper()
	o := r.optics[0]
	if !r.until(r.world.Now()+10*time.Second, func() bool { return o.Status().Ready }) {
		r.t.Fatalf("not ready: %+v, events %+v", o.Status(), r.events[0])
	}
}

// Goal: the same Transceiver switches CMIS modules through all paths, with
// light where it must be and nowhere else, whatever their hold-offs.
func TestCMISSwitchesEveryPath(t *testing.T) {
	for _, kind := range mciKinds {
		t.Run(kind.name, func(t *testing.T) {
			r := newCMISRig(t, 8, kind.mux, kind.timing)
			r.readyCMIS()
			t.Logf("ready after %v of board time", r.world.Now())
			o := r.optics[0]
			for _, p := range []proto.Path{proto.Loopback, proto.External1, proto.External2, proto.Loopback, proto.Dark, proto.External2} {
				r.events[0] = nil
				if err := o.Select(r.world.Now(), p); err != nil {
					t.Fatal(err)
				}
				r.run(100 * time.Millisecond)
				s := o.Status()
				path, shining := r.world.Selected(r.id, 0)
				if s.Path != p || shining != (p != proto.Dark) || shining && path != int(p-proto.Loopback) {
					t.Fatalf("asked for %v: status %v, board on %d, shining %v; %+v", p, s.Path, path, shining, r.events[0])
				}
				if want := p == proto.Loopback; s.Lit[proto.Loopback] != want || s.Lit[proto.External1] || s.Lit[proto.External2] {
					t.Errorf("%v: lit %v", p, s.Lit)
				}
				if p == proto.Loopback && s.State != proto.Tuned || p == proto.Dark && s.State != proto.Blocked || p.External() && s.State != proto.Tuning {
					t.Errorf("%v: state %v", p, s.State)
				}
				verified := false
				for _, e := range r.events[0] {
					verified = verified || e.Kind == ocs.Verified || e.Kind == ocs.Degraded
					if e.Kind == ocs.PathFailed {
						t.Errorf("%v: %+v", p, e)
					}
				}
				if p != proto.Dark && !verified {
					t.Errorf("%v: own light was not read: %+v", p, r.events[0])
				}
			}
			if s := o.Status(); s.BusErrors != 0 {
				t.Errorf("%d bus errors", s.BusErrors)
			}
		})
	}
}

// Goal: a new life of the software adopts what the modules do.
func TestCMISAdopts(t *testing.T) {
	r := newCMISRig(t, 4, true, sim.DefaultMCITiming())
	r.readyCMIS()
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	port := sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSLoopback}
	changed, _ := r.world.LastChange(port)
	r.boot([]*ocs.Calibration{r.optics[0].Status().Calibration})
	r.readyCMIS()
	r.run(20 * time.Millisecond)
	if s := r.optics[0].Status(); s.Path != proto.Loopback || s.State != proto.Tuned {
		t.Errorf("%+v", s)
	}
	if at, lit := r.world.LastChange(port); at != changed || !lit {
		t.Errorf("light changed at %v (was %v), lit %v", at, changed, lit)
	}
}

// Goal: whatever another host has left of a module's data paths is set right when
// it is brought up; what cannot be is refused with its cause.
// Method: the controls of page 10h as a switch's own software writes them, then
// another life; its light in loopback tells.
func TestCMISDataPathsOfAnotherHost(t *testing.T) {
	type bytes = []byte
	for name, writes := range map[string][]bytes{ // any order: independent
		"outputs disabled":       {{cmis.OutputDisableTx, 0x0F}},
		"all down":               {{cmis.DPDeinit, 0xFF}},
		"nothing provisioned":    {{cmis.DPDeinit, 0xFF}, {cmis.StagedSet, 0, 0, 0, 0}, {cmis.StagedSet + 4, 0, 0, 0, 0}, {cmis.ApplyDPInit, 0xFF}},
		"four of one lane alone": {{cmis.DPDeinit, 0xFF}, {cmis.StagedSet, 0x20, 0x22, 0x24, 0x26}, {cmis.ApplyDPInit, 0x0F}, {cmis.DPDeinit, 0xF0}},
	} {
		r := newCMISRig(t, 1, false, sim.DefaultMCITiming())
		r.readyCMIS()
		m := r.board.Bundles[0].Modules[0]
		for _, w := range append([]bytes{{cmis.BankSelect, 0, cmis.PageLaneControl}}, writes...) {
			if err := r.world.Submit(r.world.Now(), r.id, m.MCI, &hal.Op{Msgs: []hal.Msg{{Addr: hal.MCIAddr, W: w}}}); err != nil {
				t.Fatal(err)
			}
			r.run(20 * time.Millisecond)
		}
		r.boot([]*ocs.Calibration{r.optics[0].Status().Calibration})
		r.readyCMIS()
		if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
			t.Fatal(err)
		}
		r.run(50 * time.Millisecond)
		if s := r.optics[0].Status(); s.State != proto.Tuned {
			t.Errorf("%s: %+v, %+v", name, s, r.events[0])
		}
	}
	r := newCMISRig(t, 1, false, sim.DefaultMCITiming())
	r.board.Buses[0].Speed = 3 * physic.MegaHertz
	r.boot([]*ocs.Calibration{r.optics[0].Status().Calibration})
	r.run(2 * time.Second)
	if s := r.optics[0].Status(); s.Machine != ocs.Faulted || !errors.Is(s.Err, mci.ErrKind) || !strings.Contains(s.Err.Error(), "1MHz at most, its bus runs at 3MHz") {
		t.Errorf("too fast a bus: %+v", s)
	}
}

// Goal: a module that was away when the trigger came is given it alone.
// Method: another host's page change makes one module hold off; the others
// acknowledge, so that the wire does not tell.
func TestCMISMissedTrigger(t *testing.T) {
	timing := sim.DefaultMCITiming()
	timing.PageChange = 5 * time.Millisecond
	r := newCMISRig(t, 8, true, timing)
	r.readyCMIS()
	m := r.board.Bundles[0].Modules[5]
	strange := &hal.Op{Msgs: []hal.Msg{{Addr: m.Mux, W: []byte{1 << m.MuxChannel}}, {Addr: hal.MCIAddr, W: []byte{126, 0, 0x10}}}}
	if err := r.world.Submit(r.world.Now(), r.id, m.MCI, strange); err != nil {
		t.Fatal(err)
	}
	r.run(time.Millisecond)
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(500 * time.Microsecond)
	if r.world.Lit(sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSLoopback}) {
		t.Fatal("no module was away")
	}
	r.run(50 * time.Millisecond)
	if s := r.optics[0].Status(); s.State != proto.Tuned || !s.Lit[proto.Loopback] {
		t.Errorf("%+v, events %+v", s, r.events[0])
	}
}

// Goal: faults of the interface are named and end.
func TestCMISFaults(t *testing.T) {
	gone := sim.Fault{Kind: sim.ChipGone, Bus: 0, Addr: hal.MCIAddr}
	r := newCMISRig(t, 1, false, sim.DefaultMCITiming())
	if err := r.world.Inject(r.id, gone); err != nil {
		t.Fatal(err)
	}
	r.run(2 * time.Second)
	if s := r.optics[0].Status(); s.Machine != ocs.Faulted || !errors.Is(s.Err, hal.ErrAddressNACK) {
		t.Errorf("absent: %+v", s)
	}
	if err := r.world.Repair(r.id, gone); err != nil {
		t.Fatal(err)
	}
	r.optics[0].Start(r.world.Now())
	r.readyCMIS()

	cal := *r.optics[0].Status().Calibration.Modules[0]
	cal.Serial = "RL9999999999"
	r.boot([]*ocs.Calibration{{Modules: []*ocs.ModuleCalibration{&cal}}})
	r.run(2 * time.Second)
	if s := r.optics[0].Status(); s.Machine != ocs.Faulted || !errors.Is(s.Err, ocs.ErrCalibrationForeign) {
		t.Errorf("foreign: %+v", s)
	}

	r.boot(make([]*ocs.Calibration, 1))
	r.run(2 * time.Second)
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); !errors.Is(err, ocs.ErrNotCalibrated) {
		t.Errorf("uncalibrated: %v", err)
	}
	if err := r.optics[0].Select(r.world.Now(), proto.Dark); err != nil {
		t.Errorf("dark: %v", err)
	}
}

// Goal: a module whose laser dies is found by the reads that follow.
func TestCMISHealthFindsDeadLaser(t *testing.T) {
	r := newCMISRig(t, 2, true, sim.DefaultMCITiming())
	r.readyCMIS()
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	if err := r.world.Inject(r.id, sim.Fault{Kind: sim.LaserDead, Module: 1, Index: 2}); err != nil {
		t.Fatal(err)
	}
	r.events[0] = nil
	for range 4 {
		r.optics[0].Health.Round(r.world.Now())
		r.run(20 * time.Millisecond)
	}
	if len(r.events[0]) != 1 || r.events[0][0].Kind != ocs.PathFailed || r.events[0][0].Module != 1 {
		t.Errorf("%+v", r.events[0])
	}
	if n := len(r.optics[0].Health.Samples(r.world.Now(), 0, nil)); n < 6 {
		t.Errorf("%d samples", n)
	}
	bias := func(want int32) {
		t.Helper()
		n, serials := 0, map[int32]bool{}
		for _, s := range r.optics[0].Health.Samples(r.world.Now(), 0, nil) {
			if s.Sensor == proto.SensorSerial {
				serials[s.Value] = s.Value == int32(crc32.ChecksumIEEE([]byte(r.world.Personality(r.id, 0, int(s.Module)).Serial())))
			}
			if s.Sensor == proto.SensorUpperBias || s.Sensor == proto.SensorLowerBias {
				if n++; s.Value != want {
					t.Errorf("module %d: %v of %d uA, want %d", s.Module, s.Sensor, s.Value, want)
				}
			}
		}
		if n != 4 || len(serials) != 2 {
			t.Errorf("%d biases of two halves of two modules, serial numbers %v", n, serials)
		}
		for of, right := range serials { // any order: each by itself
			if !right {
				t.Errorf("serial number %d is another module's", of)
			}
		}
	}
	bias(40_000) // one laser of a half is dead, the others shine
	if err := r.optics[0].Select(r.world.Now(), proto.Dark); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	for range 2 * 16 { // it is read every so many rounds
		r.optics[0].Health.Round(r.world.Now())
		r.run(20 * time.Millisecond)
	}
	bias(0)
}

// Goal: the timing that follows from each kind of interface is measured, and
// holds what switching then takes.
// Method: Calibrate, of modules that leave it at that; then 40 switches dark to loopback and back, by the light
// itself.
func TestCMISTiming(t *testing.T) {
	for _, kind := range mciKinds {
		t.Run(kind.name, func(t *testing.T) {
			kind.timing.NoSearch = true
			r := newCMISRig(t, 8, kind.mux, kind.timing)
			r.readyCMIS()
			o := r.optics[0]
			if err := o.Calibrate(r.world.Now()); err != nil {
				t.Fatal(err)
			}
			began := r.world.Now()
			ended := func() bool {
				for _, e := range r.events[0] {
					if e.Kind == ocs.Calibrated || e.Kind == ocs.CalibrationFailed {
						return true
					}
				}
				return false
			}
			r.until(r.world.Now()+10*time.Second, ended)
			tm := o.Status().Timing
			if !o.Status().Ready || tm.SwitchMax == 250*time.Microsecond {
				t.Fatalf("%+v, %+v", o.Status(), r.events[0])
			}
			port := sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSLoopback}
			var light, pin []time.Duration
			for n := range 40 {
				r.run(50*time.Millisecond + time.Duration(n)*37*time.Microsecond)
				p := proto.Dark
				if n%2 == 0 {
					p = proto.Loopback
				}
				asked := r.world.Now()
				if err := o.Select(asked, p); err != nil {
					t.Fatal(err)
				}
				if !r.until(asked+time.Second, func() bool { return o.Status().Lit[proto.Loopback] == (p == proto.Loopback) }) {
					t.Fatalf("no light after a second: %+v", r.events[0])
				}
				at, _ := r.world.LastChange(port)
				light, pin = append(light, at-asked), append(pin, r.world.Now()-asked)
			}
			for i := range light {
				if light[i] > tm.SwitchMax || light[i] < tm.SwitchMin-5*time.Microsecond {
					t.Errorf("switch %d took %v, measured %v to %v", i, light[i], tm.SwitchMin, tm.SwitchMax)
				}
				if d := pin[i] - light[i]; d > tm.DetectMax || d < tm.DetectMin-20*time.Microsecond {
					t.Errorf("detection %d took %v, measured %v to %v", i, d, tm.DetectMin, tm.DetectMax)
				}
			}
			lo, hi := spreadOf(light)
			plo, phi := spreadOf(pin)
			t.Logf("timing %+v in %v; ask to light %v to %v, to the pin %v to %v", tm, r.world.Now()-began, lo, hi, plo, phi)
		})
	}
}

func spreadOf(list []time.Duration) (lo, hi time.Duration) {
	lo = time.Hour
	for _, d := range list {
		lo, hi = min(lo, d), max(hi, d)
	}
	return lo, hi
}

// Goal: a module in service is read out without a change of light, and a switch
// meanwhile still comes through.
// Method: two dumps in loopback, a switch to external 1 in the middle of the
// second; every checksum, and the same serial number as in the calibration.
func TestCMISDumpInService(t *testing.T) {
	r := newCMISRig(t, 4, true, sim.DefaultMCITiming())
	r.readyCMIS()
	o := r.optics[0]
	if err := o.Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	port := sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSLoopback}
	changed, _ := r.world.LastChange(port)
	for round := range 2 {
		if err := o.Dump(2); err != nil {
			t.Fatal(err)
		}
		if err := o.Dump(2); !errors.Is(err, ocs.ErrNotReady) {
			t.Errorf("a second dump: %v", err)
		}
		began := r.world.Now()
		if round == 1 {
			r.run(7 * time.Millisecond)
			if _, done, _ := o.DumpImage(); done {
				t.Fatal("too quick for this test")
			}
			if err := o.Select(r.world.Now(), proto.External1); err != nil {
				t.Fatal(err)
			}
		}
		over := func() bool { _, done, _ := o.DumpImage(); return done }
		if !r.until(r.world.Now()+time.Second, over) {
			t.Fatal("no end")
		}
		image, _, err := o.DumpImage()
		if err != nil {
			t.Fatal(err)
		}
		for page := range uint8(3) {
			if err := cmis.CheckPage(page, image[128*(int(page)+1):][:128]); err != nil {
				t.Error(err)
			}
		}
		if got, want := cmis.Text(image[128+38:128+54]), o.Status().Calibration.Modules[2].Serial; got != want {
			t.Errorf("serial number %q, want %q", got, want)
		}
		t.Logf("%d bytes in %v", len(image), r.world.Now()-began)
		if at, lit := r.world.LastChange(port); round == 0 && (at != changed || !lit) {
			t.Errorf("light changed at %v", at)
		}
	}
	r.run(20 * time.Millisecond)
	if path, shining := r.world.Selected(r.id, 0); path != hal.LOSExternal1 || !shining || o.Status().Path != proto.External1 {
		t.Errorf("on %d, %+v", path, o.Status())
	}
	if err := o.Dump(4); !errors.Is(err, hal.ErrOutOfRange) {
		t.Errorf("module 4 of 4: %v", err)
	}
	chips := newRig(t, 1, 1)
	if err := chips.optics[0].Dump(0); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("kind chips: %v", err)
	}
}

// Goal: codes found on a board of chips light the same modules behind their
// controllers, as expected from that calibration.
// Method: a module calibrated from nothing; its calibration on a CMIS board with
// the same module; own light of every path verified.
func TestCMISTakesCodesOfChips(t *testing.T) {
	found := calibrated(t, 1, proto.Dark)
	cal := found.optics[0].Status().Calibration
	per := [][]*sim.Personality{{found.world.Personality(found.id, 0, 0)}}
	hw, err := boardfile.DefaultCMIS(4, 1, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: 1}), board: &hw}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Personalities: per, Seed: 3, Powered: true}); err != nil {
		t.Fatal(err)
	}
	r.boot([]*ocs.Calibration{cal})
	r.readyCMIS()
	for _, p := range []proto.Path{proto.Loopback, proto.External1, proto.External2} {
		if err := r.optics[0].Select(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		r.events[0] = nil
		r.run(50 * time.Millisecond)
		s := r.optics[0].Status()
		if e := r.events[0]; len(e) != 2 || e[1].Kind != ocs.Verified || s.Measured < s.Expected-1000 || s.Measured > s.Expected+1000 {
			t.Errorf("%v: %+v, own light %v, expected %v", p, e, s.Measured, s.Expected)
		}
	}
}

// Goal: a module that cannot carry a trigger out is named, with its own reason,
// and comes back with the next start.
// Method: another host resets module 1, which leaves it in ModuleLowPwr.
func TestCMISResetModuleIsNamed(t *testing.T) {
	r := newCMISRig(t, 2, true, sim.DefaultMCITiming())
	r.readyCMIS()
	m := r.board.Bundles[0].Modules[1]
	strange := &hal.Op{Msgs: []hal.Msg{{Addr: m.Mux, W: []byte{1 << m.MuxChannel}}, {Addr: hal.MCIAddr, W: []byte{cmis.ModuleControl, cmis.SoftwareReset}}}}
	if err := r.world.Submit(r.world.Now(), r.id, m.MCI, strange); err != nil {
		t.Fatal(err)
	}
	r.run(200 * time.Millisecond)
	o := r.optics[0]
	r.events[0] = nil
	if err := o.Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(200 * time.Millisecond)
	named := false
	for _, e := range r.events[0] {
		named = named || e.Kind == ocs.PathFailed && e.Module == 1 && errors.Is(e.Err, ocs.ErrTriggerMissed)
	}
	if s := o.Status(); !named || s.State != proto.Failed || s.Lit[proto.Loopback] {
		t.Errorf("%+v, %+v", s, r.events[0])
	}
	if err := o.Select(r.world.Now(), proto.Dark); err != nil {
		t.Fatal(err)
	}
	r.run(50 * time.Millisecond)
	o.Start(r.world.Now())
	r.readyCMIS()
	if err := o.Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(50 * time.Millisecond)
	if s := o.Status(); s.State != proto.Tuned {
		t.Errorf("started again: %+v, %+v", s, r.events[0])
	}
}

// Goal: a bundle out of service does no more work, but still goes dark.
// Method: light; then a life with a calibration that is not the modules'.
func TestCMISFaultedGoesDark(t *testing.T) {
	r := newCMISRig(t, 4, true, sim.DefaultMCITiming())
	r.readyCMIS()
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	cal := *r.optics[0].Status().Calibration
	wrong := *cal.Modules[0]
	wrong.Serial = "RL9999999999"
	modules := append([]*ocs.ModuleCalibration{&wrong}, cal.Modules[1:]...)
	r.boot([]*ocs.Calibration{{Modules: modules}})
	r.run(time.Second)
	o := r.optics[0]
	port := sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSLoopback}
	if s := o.Status(); s.Machine != ocs.Faulted || !r.world.Lit(port) {
		t.Fatalf("%+v, lit %v", s, r.world.Lit(port))
	}
	if err := o.Select(r.world.Now(), proto.External1); !errors.Is(err, ocs.ErrOutOfService) {
		t.Errorf("external 1: %v", err)
	}
	if err := o.Select(r.world.Now(), proto.Dark); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	if s := o.Status(); r.world.Lit(port) || s.Path != proto.Dark {
		t.Errorf("lit %v, %+v", r.world.Lit(port), s)
	}
}

// Goal: flags that come and go between two health rounds are counted exactly, and no
// page is changed for it.
func TestCMISFlagsAreCounted(t *testing.T) {
	r := newCMISRig(t, 2, true, sim.DefaultMCITiming())
	r.readyCMIS()
	o := r.optics[0]
	round := func() uint32 {
		for range 2 {
			o.Health.Round(r.world.Now())
			r.run(20 * time.Millisecond)
		}
		for _, x := range o.Flags() {
			if x.Module == 1 && x.Flag == "TempMonHighAlarm" {
				return x.Times
			}
		}
		return 0
	}
	before := round()
	for range 5 {
		r.world.SetAmbient(r.id, 90_000)
		r.run(time.Millisecond)
		r.world.SetAmbient(r.id, 40_000)
		r.run(time.Millisecond)
	}
	if after := round(); after-before != 5 {
		t.Errorf("after five alarms: %d, before %d", after, before)
	}
}
