package sim

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/mzi/detmath"
)

// own runs a command of the first module to its end.
func (r *mciRig) own(id uint16, payload ...byte) ([]byte, error) {
	c := &cdb{Patience: 5 * time.Second}
	r.command(c, id, payload)
	return c.Result()
}

// launched is the weakest lane's light on an external path, in dBm, and the strongest one's
// on the other.
func (r *mciRig) launched(ext int) (least, stray float64) {
	m := &r.w.boards[r.id].bundles[0].modules[0]
	var lit instant
	m.refresh()
	m.emit(int64(r.w.Now()), &lit)
	least = 99
	stray = -99
	for lane := range hal.Lanes {
		least = min(least, detmath.DB(lit.ext[ext][lane]+1e-12))
		stray = max(stray, detmath.DB(lit.ext[1-ext][lane]+1e-12))
	}
	return least, stray
}

// Goal: a host that knows nothing of us has light on all lanes of one path; who writes
// byte 64 first has it dark; another default holds without power.
func TestDefaultPath(t *testing.T) {
	for seed := range uint64(20) {
		r := newMCIRig(t, 1, false, DefaultMCITiming())
		r.w.boards[r.id].bundles[0].modules[0].per = Catalogue(nil, 100+seed, 1)[0]
		r.up(0)
		r.run(100 * time.Millisecond)
		if least, stray := r.launched(0); least < -3 || stray > -20 {
			t.Errorf("module %d launches %.1f dBm a lane, %.1f on the other path", seed, least, stray)
		}
		for path := range hal.NumLOS {
			for k, x := range r.w.PathExtinctions(r.id, 0, 0, path) {
				if x < 24_000 {
					t.Errorf("module %d: path %d: cell %d has %d mdB", seed, path, k, x)
				}
			}
		}
	}
	r := newMCIRig(t, 1, false, DefaultMCITiming())
	r.write(0, 0, cmis.Trigger, cmis.TriggerValid)
	r.up(0)
	r.run(100 * time.Millisecond)
	if least, _ := r.launched(0); least > -60 {
		t.Errorf("asked for darkness before it powered up: %.1f dBm", least)
	}
	if _, err := r.own(cmis.CommandOwnDefault, 0xB2); err != nil {
		t.Error(err)
	}
	r.write(0, 0, cmis.ModuleControl, cmis.SoftwareReset)
	r.run(time.Second)
	r.ports[0].Forget()
	r.up(0)
	r.run(100 * time.Millisecond)
	if least, _ := r.launched(1); least < -3 {
		t.Errorf("external 2 by default: %.1f dBm", least)
	}
}

// Goal: a module that keeps its heaters to itself is staged, switched, measured and
// calibrated by commands, and by its byte; what would move light is refused.
func TestOwnCodes(t *testing.T) {
	timing := DefaultMCITiming()
	timing.NoPages = true
	r := newMCIRig(t, 1, false, timing)
	r.up(0)
	for _, page := range []uint8{cmis.PageCodesA, cmis.PageCodesB, cmis.PageCalibrate} {
		if err := r.request(0, cmis.Request{Page: page, Offset: 128, Data: make([]byte, 1)}); !errors.Is(err, cmis.ErrNoPage) {
			t.Errorf("page %02xh: %v", page, err)
		}
	}
	info := func(state cmis.OwnState, inForce byte) {
		t.Helper()
		b, err := r.own(cmis.CommandOwnInfo)
		if o, perr := cmis.ParseOwn(b); err != nil || perr != nil || o != (cmis.Own{State: state, Default: 0xB1, InForce: inForce, Calibration: ownCalibration}) {
			t.Errorf("%+v, %v, %v", o, err, perr)
		}
	}
	refused := func(what string, id uint16, payload ...byte) {
		t.Helper()
		if _, err := r.own(id, payload...); !errors.Is(err, errCDBFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	info(cmis.OwnReady, 0xB1)
	refused("calibration in service", cmis.CommandOwnCalibrate)
	refused("no path", cmis.CommandOwnTrigger, 0xB3)
	refused("no such measurement", cmis.CommandOwnMeasure, 4)
	refused("no such command", 0x8010)
	refused("payload", cmis.CommandOwnStage, 1)
	for path := range byte(3) {
		if b, err := r.own(cmis.CommandOwnTrigger, 0xB0|path); err != nil || binary.BigEndian.Uint16(b) == 0 {
			t.Errorf("path %d: % x, %v", path, b, err)
		}
		r.run(10 * time.Millisecond)
		info(cmis.OwnReady, 0xB0|path)
		want, err := r.own(cmis.CommandOwnMeasure, path+1)
		if err != nil || len(want) != 2*hal.Lanes {
			t.Fatalf("% x, %v", want, err)
		}
		now, err := r.own(cmis.CommandOwnMeasure, cmis.MeasureNow)
		if err != nil || len(now) != 32 {
			t.Fatalf("% x, %v", now, err)
		}
		var sum, got float64
		for lane := range hal.Lanes {
			sum += float64(binary.BigEndian.Uint16(want[2*lane:])) / 10_000
		}
		m := &r.w.boards[r.id].bundles[0].modules[0]
		in := m.laneInputs(int64(r.w.Now()))
		for _, p := range in {
			got += p
		}
		if path > 0 {
			got = m.guardInputs(int64(r.w.Now()))[hal.GuardTap1+int(path)-1]
		}
		if off := detmath.DB(got / sum); off < -0.1 || off > 0.1 {
			t.Errorf("path %d: diodes show %.2f dB more than the module says", path, off)
		}
	}
	if _, err := r.own(cmis.CommandOwnTrigger, 0x80); err != nil {
		t.Error(err)
	}
	r.run(time.Millisecond)
	if _, err := r.own(cmis.CommandOwnCalibrate); err != nil {
		t.Error(err)
	}
	info(cmis.OwnCalibrating, 0x80)
	r.write(0, 0, cmis.Trigger, 0xB1)
	if s, _ := cmis.ParseStatus(r.read(0, 0, cmis.Trigger, cmis.StatusBytes)); s.Answer != cmis.AnswerCalibrating {
		t.Errorf("a trigger meanwhile: %v", s.Answer)
	}
	r.run(ownCalibration)
	info(cmis.OwnReady, 0x80)
	if _, err := r.own(cmis.CommandOwnStage); err != nil {
		t.Error(err)
	}
	r.write(0, 0, cmis.Trigger, 0xB2)
	r.run(time.Millisecond)
	if least, _ := r.launched(1); least < -3 {
		t.Errorf("by its byte: %.1f dBm", least)
	}
}

// Goal: whatever a host does to a module that calibrates itself, wrong lengths, everything
// once more, low power, a reset, it has no light meanwhile, and ends.
func TestOwnCalibrationDisturbed(t *testing.T) {
	for _, way := range []byte{cmis.LowPwrRequest, cmis.SoftwareReset} {
		timing := DefaultMCITiming()
		timing.NoPages = true
		r := newMCIRig(t, 1, false, timing)
		dark := func(what string) {
			t.Helper()
			one, _ := r.launched(0)
			if two, _ := r.launched(1); one > -60 || two > -60 {
				t.Errorf("%02x: %s: %.1f, %.1f dBm", way, what, one, two)
			}
		}
		if _, err := r.own(cmis.CommandOwnDefault, 0x80); err != nil {
			t.Fatal(err)
		}
		r.up(0)
		if _, err := r.own(cmis.CommandOwnCalibrate); err != nil {
			t.Fatal(err)
		}
		for id := uint16(cmis.CommandOwnInfo); id <= cmis.CommandOwnDefault; id++ {
			for _, payload := range [][]byte{{1, 2}, make([]byte, 120)} {
				if _, err := r.own(id, payload...); !errors.Is(err, errCDBFailed) {
					t.Errorf("%04x with %d bytes: %v", id, len(payload), err)
				}
			}
		}
		for _, id := range []uint16{cmis.CommandOwnStage, cmis.CommandOwnStage, cmis.CommandOwnCalibrate} {
			if _, err := r.own(id); !errors.Is(err, errCDBFailed) {
				t.Errorf("%04x meanwhile: %v", id, err)
			}
		}
		if _, err := r.own(cmis.CommandOwnDefault, 0xB2); err != nil {
			t.Error(err)
		}
		dark("while it calibrates")
		r.write(0, 0, cmis.ModuleControl, way)
		r.run(100 * time.Millisecond)
		dark("without power")
		r.run(time.Second)
		r.ports[0].Forget()
		r.up(0)
		b, err := r.own(cmis.CommandOwnInfo)
		if o, perr := cmis.ParseOwn(b); err != nil || perr != nil || o.State != cmis.OwnReady || o.Default != 0xB2 {
			t.Errorf("%02x: %+v, %v, %v", way, o, err, perr)
		}
		r.run(ownCalibration)
		if least, _ := r.launched(1); least < -3 {
			t.Errorf("%02x: on its default path %.1f dBm", way, least)
		}
	}
}
