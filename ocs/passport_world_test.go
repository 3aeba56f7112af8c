package ocs_test

import (
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// adopted is the event that says that a calibration came out of EEPROMs.
func (r *rig) adopted() *ocs.Event {
	for i := range r.events[0] {
		if r.events[0][i].Kind == ocs.Adopted {
			return &r.events[0][i]
		}
	}
	return nil
}

// powerCycle is what a board without power loses, and a new life of the software.
func (r *rig) powerCycle(cal *ocs.Calibration) {
	r.world.SetPower(r.id, false)
	r.run(10 * time.Millisecond)
	r.world.SetPower(r.id, true)
	r.boot([]*ocs.Calibration{cal})
	r.run(300 * time.Millisecond)
}

// Goal: a board whose file is lost takes up service from its modules' EEPROMs,
// with the same calibration to the last bit.
// Method: calibrate, power off, start without a calibration.
func TestLostFileComesBackFromTheModules(t *testing.T) {
	r := calibrated(t, 3, proto.Dark)
	want := r.optics[0].Status().Calibration.Digest()
	r.powerCycle(nil)
	s := r.optics[0].Status()
	if !s.Ready || r.adopted() == nil || s.Calibration.Digest() != want {
		t.Fatalf("%+v, events %+v", s, r.events[0])
	}
	checkPaths(t, r)
	// One EEPROM erased: not calibrated, and nothing is guessed.
	r.world.Remember(r.id, 0, 1, nil)
	r.powerCycle(nil)
	if s := r.optics[0].Status(); s.Ready || !errors.Is(s.Err, ocs.ErrNotCalibrated) {
		t.Errorf("one of three erased: %+v", s)
	}
}

// Goal: of an exchanged module the file's calibration is refused and the one in
// its own EEPROM taken; where there is none, the bundle is out of service.
// Method: a module calibrated on another board moves into this one, with its
// EEPROM and without.
func TestExchangedModuleBringsItsCalibration(t *testing.T) {
	donor := bare(t, 1, 1, 77)
	if end, _ := donor.ends(); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	r := calibrated(t, 2, proto.Dark)
	old := r.optics[0].Status().Calibration
	per := donor.world.Personality(donor.id, 0, 0)
	if err := r.world.Exchange(r.id, 0, 1, per, donor.world.Memory(donor.id, 0, 0)); err != nil {
		t.Fatal(err)
	}
	r.boot([]*ocs.Calibration{old})
	r.ready()
	s := r.optics[0].Status()
	e := r.adopted()
	if e == nil || e.Module != 1 || s.Calibration.Modules[1].Serial != per.Serial() || s.Calibration.Modules[0] != old.Modules[0] {
		t.Fatalf("event %+v, serials %s, %s", e, s.Calibration.Modules[0].Serial, s.Calibration.Modules[1].Serial)
	}
	if old.Modules[1].Serial == per.Serial() {
		t.Error("the old calibration was written to")
	}
	// The simulator lets a module drift by its place: 50 mrad rms, twice.
	for k, db := range r.world.Extinctions(r.id, 0, 1) {
		if db < 16_000 {
			t.Errorf("cell %d has %d mdB", k, db)
		}
	}
	checkPaths(t, r)
	checkLimits(t, r)

	if err := r.world.Exchange(r.id, 0, 1, sim.Catalogue(nil, 5, 1)[0], nil); err != nil {
		t.Fatal(err)
	}
	before := r.world.Limits(r.id)
	r.boot([]*ocs.Calibration{s.Calibration})
	r.run(300 * time.Millisecond)
	if s := r.optics[0].Status(); s.Ready || s.Machine != ocs.Faulted || !errors.Is(s.Err, ocs.ErrCalibrationForeign) {
		t.Errorf("without a passport: %+v", s)
	}
	if r.world.Limits(r.id) != before {
		t.Error("heaters were driven")
	}
}

// Goal: an EEPROM that loses its power while it is written keeps a whole
// calibration.
// Method: a second calibration of a module, with the power cut amid its writing;
// then a start without a file. TestTornWriteLeavesTheOneBefore cuts everywhere.
func TestPowerLostAmidAPassport(t *testing.T) {
	r := calibrated(t, 1, proto.Dark)
	o := r.optics[0]
	if err := o.Calibrate(r.world.Now()); err != nil {
		t.Fatal(err)
	}
	if !r.until(r.world.Now()+time.Minute, func() bool { return o.Status().Progress.Step == "passports" }) {
		t.Fatal("no passports are written")
	}
	r.run(101 * time.Millisecond)
	if o.Status().Machine != ocs.Calibrating {
		t.Fatal("the writing is over already")
	}
	r.powerCycle(nil)
	if s := o.Status(); !r.optics[0].Status().Ready || r.adopted() == nil {
		t.Errorf("%+v", s)
	}
}

// Goal: a memory too small for a passport holds the identity alone: the bundle is
// calibrated without a complaint, serves of its file, and without one is not
// calibrated.
// Method: modules with a 24C02, of one address byte and pages of eight.
func TestSmallMemoryHoldsTheIdentityAlone(t *testing.T) {
	r := bare(t, 1, 2, 77)
	for i := range r.board.Bundles[0].Modules {
		r.board.Bundles[0].Modules[i].Memory = hal.AT24C02
	}
	end, _ := r.ends()
	if end.Kind != ocs.Calibrated || end.Text != "" {
		t.Fatalf("%+v", end)
	}
	cal := r.optics[0].Status().Calibration
	if cal.Modules[0].Serial == "" || cal.Modules[0].Serial == cal.Modules[1].Serial {
		t.Errorf("serial numbers %q and %q", cal.Modules[0].Serial, cal.Modules[1].Serial)
	}
	if n := len(r.world.Memory(r.id, 0, 0)); n != 0 {
		t.Errorf("%d pages written", n)
	}
	r.powerCycle(cal)
	if s := r.optics[0].Status(); !s.Ready {
		t.Errorf("with its file: %+v", s)
	}
	r.powerCycle(nil)
	if s := r.optics[0].Status(); s.Ready || !errors.Is(s.Err, ocs.ErrNotCalibrated) {
		t.Errorf("without: %+v", s)
	}
}
