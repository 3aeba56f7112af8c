package sim

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ringlight/hal/cmis"
)

// Goal: somebody who knows only CMIS reads the simulated module's image right.
// Method: testdata/cmis_view.py, which shares nothing with this program, on the
// image of a module with four lanes shining; skipped without Python.
func TestMCIDumpInOtherHands(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here: the image is not read by another program")
	}
	r := newMCIRig(t, 1, false, MCITiming{})
	r.up(0)
	r.run(10 * time.Millisecond)
	r.write(0, cmis.PageOCS, cmis.Apply, 1)
	r.run(time.Millisecond)
	r.write(0, 0, cmis.Trigger, cmis.TriggerValid|cmis.TriggerUpper)
	r.run(10 * time.Millisecond)
	r.w.SetAmbient(r.id, 43_000)
	file := filepath.Join(t.TempDir(), "module.bin")
	if err := os.WriteFile(file, r.dump(0), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, filepath.Join("testdata", "cmis_view.py"), file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Bytes, Identifier, CdbInstances int
		Revision, State                 string
		Vendor, Part, Serial            string
		Temperature, Supply, MaxPower   float64
		Checksums, TxOutput             []bool
		Thresholds                      map[string]float64
		Lanes                           []string
		TxPowerMilliwatt                []float64
		Flat                            bool
		ClockKilohertz                  int
		Optional, FlagsOnPages          []int
		Interrupt                       bool
		Applications                    [][]int
	}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	per := r.w.Personality(r.id, 0, 0)
	if v.Bytes != (cmis.PageCalibrate+2)*128 || v.Identifier != 0x18 || v.Revision != "5.3" || v.Flat || v.State != "ModuleReady" ||
		v.Vendor != "RINGLIGHT" || v.Part != "OCSTRX-8" || v.Serial != per.Serial() || v.MaxPower != 8 || v.CdbInstances != 1 {
		t.Errorf("identity: %+v", v)
	}
	if warm := 43 + per.caseAdd; math.Abs(v.Temperature-warm) > 0.01 || math.Abs(v.Supply-3.3) > 1e-6 {
		t.Errorf("%v degrees (are %v), %v V", v.Temperature, warm, v.Supply)
	}
	if !slices.Equal(v.Checksums, []bool{true, true, true}) {
		t.Errorf("checksums %v", v.Checksums)
	}
	for _, page := range v.Optional {
		if r.w.boards[r.id].bundles[0].modules[0].mci.pages[uint8(page)] == nil {
			t.Errorf("page %02xh is advertised and not there", page)
		}
	}
	if v.ClockKilohertz != 1000 || !slices.Equal(v.FlagsOnPages, []int{cmis.PageLaneStatus}) || !v.Interrupt ||
		!slices.EqualFunc(v.Applications, [][]int{{0x52, 0x56, 8, 8, 0x01}, {0x4C, 0x14, 1, 1, 0xFF}}, slices.Equal) {
		t.Errorf("clock %d kHz, flags on %x, interrupt %v, applications %v", v.ClockKilohertz, v.FlagsOnPages, v.Interrupt, v.Applications)
	}
	for name, want := range map[string]float64{"temperatureHighAlarm": 75, "temperatureLowAlarm": -5, "temperatureHighWarning": 70, "supplyHighAlarm": 3.465,
		"supplyLowWarning": 3.17, "txPowerHighAlarm": 2, "txPowerLowAlarm": 0.1, "rxPowerHighAlarm": 0.5} { // any order: independent
		if got, ok := v.Thresholds[name]; !ok || math.Abs(got-want) > 0.005 {
			t.Errorf("threshold %s: %v, want %v", name, got, want)
		}
	}
	for lane := range v.Lanes {
		on := lane < 4
		if v.Lanes[lane] != "DPActivated" || v.TxOutput[lane] != on {
			t.Errorf("lane %d: %s, output %v", lane, v.Lanes[lane], v.TxOutput[lane])
		}
		if v.TxPowerMilliwatt[lane] > 0 && !on || v.TxPowerMilliwatt[lane] > 2 {
			t.Errorf("lane %d: %v mW", lane, v.TxPowerMilliwatt[lane])
		}
	}
}
