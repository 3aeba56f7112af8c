package sim

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
)

// Goal: page B4h is refused in service, drives no heater beyond its limits,
// lights no lane whose output is disabled, and leaves with the codes applied last.
// Method: writes as a host's, answers and the board's own limits and light.
func TestMCICalibration(t *testing.T) {
	r := newMCIRig(t, 1, false, MCITiming{})
	r.up(0)
	r.write(0, cmis.PageCodesA, 128, 0x20, 0x00)
	r.write(0, cmis.PageOCS, cmis.Apply, 1)
	r.run(10 * time.Millisecond)
	read := func(offset uint8, n int) []byte { return r.read(0, cmis.PageCalibrate, offset, n) }
	m := &r.w.boards[r.id].bundles[0].modules[0]
	volts := func(cell int) float64 { return m.cellVolts(cell, m.mci.nets) }

	r.write(0, 0, cmis.Trigger, cmis.TriggerValid|cmis.TriggerUpper)
	r.write(0, cmis.PageCalibrate, cmis.CalMode, 1)
	if a := cmis.Answer(read(cmis.CalAnswer, 1)[0]); a != cmis.AnswerInService || m.mci.search {
		t.Errorf("in service: %v", a)
	}
	before := volts(0)
	if before == 0 {
		t.Fatal("cold before")
	}
	r.write(0, 0, cmis.Trigger, cmis.TriggerValid)
	r.write(0, cmis.PageCalibrate, cmis.CalMode, 1)
	if s, err := cmis.ParseCalibrating(read(cmis.CalMode, cmis.CalibratingBytes)); err != nil || !s.On || s.Answer != cmis.AnswerDone || s.Levels == 0 || s.Rail == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if volts(0) != 0 {
		t.Errorf("not cold: %v V", volts(0))
	}
	r.write(0, cmis.PageCalibrate, cmis.CalDrive, 0x40, 0x00, 0xFF, 0xFF)
	if v := volts(0); v != 2.5 {
		t.Errorf("driven with %v V", v)
	}
	if a := cmis.Answer(read(cmis.CalDriven, 1)[0]); a != cmis.AnswerBadValue || volts(1) != 0 {
		t.Errorf("10 V: %v, %v V", a, volts(1))
	}
	if l := r.w.Limits(r.id); int64(l.Volt) > hal.Standard().Heater.MaxMillivolt*1_000_000 {
		t.Errorf("limits: %+v", l)
	}
	r.write(0, cmis.PageLaneControl, cmis.OutputDisableTx, 0x02)
	r.write(0, cmis.PageCalibrate, cmis.CalLasers, 0x13)
	r.run(time.Millisecond)
	if lit := m.lit(int64(r.w.Now())); lit != 0x11 {
		t.Errorf("shining: %08b", lit)
	}
	r.write(0, 0, cmis.Trigger, cmis.TriggerValid|cmis.TriggerLower)
	if a := cmis.Answer(r.read(0, 0, cmis.TriggerAnswer, 1)[0]); a != cmis.AnswerCalibrating {
		t.Errorf("a trigger with lasers: %v", a)
	}
	r.write(0, 0, cmis.Trigger, cmis.TriggerValid)
	r.run(time.Millisecond)
	if lit := m.lit(int64(r.w.Now())); m.mci.search || lit != 0 || volts(0) != before {
		t.Errorf("after a trigger without: %v, %08b, %v V of %v", m.mci.search, lit, volts(0), before)
	}
}
