package agent

import (
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"ringlight/ocs"
	"ringlight/proto"
)

func TestCalibrationInRealTimeUnderLoad(t *testing.T) {
	// Goal: a calibration on the real clock, with a busy loop beside it, makes bounds that a ring can be built with.
	// Method: as many as RINGLIGHT_LOADED says; one bundle after the other.
	runs, _ := strconv.Atoi(os.Getenv("RINGLIGHT_LOADED"))
	if runs == 0 {
		t.Skip("takes half a minute a run on an idle machine: RINGLIGHT_LOADED=50")
	}
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for x := 1; !stop.Load(); x++ {
			_ = make([]byte, x%4096)
		}
	}()
	unusable := 0
	for run := range runs {
		var kept [2]*ocs.Calibration
		_, _, socket, end := runOn(t, func(cfg *RunConfig) {
			cfg.Calibrated = func(b proto.BundleID, c *ocs.Calibration) error {
				kept[b] = c
				return nil
			}
		})
		began := time.Now()
		for bundle := range 2 {
			if ans, err := AskSocket(socket, Question{Verb: "calibrate", Bundle: proto.BundleID(bundle)}); err != nil || ans.Err != nil {
				t.Fatalf("run %d: %+v, %v", run, ans, err)
			}
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if kept[0] == nil || kept[1] == nil {
			t.Fatalf("run %d: %v", run, kept)
		}
		var whole ocs.Timing
		for _, c := range kept {
			whole = whole.Join(c.Timing)
		}
		e := whole.Envelope(laserSkew)
		if err := e.Usable(); err != nil {
			unusable++
			t.Errorf("run %d: %v", run, err)
		}
		t.Logf("run %d: %+v; %s %s; %v", run, whole, kept[0].Doubt(), kept[1].Doubt(), time.Since(began).Round(time.Second))
	}
	t.Logf("%d of %d unusable", unusable, runs)
}
