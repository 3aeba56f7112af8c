package agent

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ringlight/ocs"
	"ringlight/proto"
)

func TestCalibrationInRealTimeUnderLoad(t *testing.T) {
	// Goal: calibrations on the real clock, beside a busy loop and each other, make bounds that a ring can be built with.
	// Method: as many as RINGLIGHT_LOADED says, RINGLIGHT_LOADED_AT_ONCE (1) of them at a time; of each one bundle after the other.
	runs, _ := strconv.Atoi(os.Getenv("RINGLIGHT_LOADED"))
	if runs == 0 {
		t.Skip("takes half a minute a run on an idle machine: RINGLIGHT_LOADED=50")
	}
	atOnce, _ := strconv.Atoi(os.Getenv("RINGLIGHT_LOADED_AT_ONCE"))
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for x := 1; !stop.Load(); x++ {
			_ = make([]byte, x%4096)
		}
	}()
	var unusable, floors atomic.Int32
	turns := make(chan struct{}, max(atOnce, 1))
	var all sync.WaitGroup
	for run := range runs {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			whole, doubt, took := calibratedInRealTime(t)
			e := whole.Envelope(laserSkew)
			if err := e.Usable(); err != nil {
				unusable.Add(1)
				t.Errorf("run %d: %v", run, err)
			}
			if e.DetectMinMicros == 1 || e.SwitchMinMicros == 1 {
				floors.Add(1)
			}
			t.Logf("run %d: %+v; %s; %v", run, whole, doubt, took.Round(time.Second))
		})
	}
	all.Wait()
	t.Logf("%d of %d unusable, %d with a bound that says nothing", unusable.Load(), runs, floors.Load())
}

// calibratedInRealTime is the timing of both bundles of a new board.
func calibratedInRealTime(t *testing.T) (whole ocs.Timing, doubt string, took time.Duration) {
	var kept [2]*ocs.Calibration
	_, _, socket, end := runOn(t, func(cfg *RunConfig) {
		cfg.Calibrated = func(b proto.BundleID, c *ocs.Calibration) error {
			kept[b] = c
			return nil
		}
	})
	began := time.Now()
	for bundle := range proto.BundleID(2) {
		if ans, err := AskSocket(socket, Question{Verb: "calibrate", Bundle: bundle}); err != nil || ans.Err != nil {
			t.Errorf("%+v, %v", ans, err)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	for _, c := range kept {
		if c == nil {
			t.Errorf("bundles %v", kept)
			return
		}
		whole, doubt = whole.Join(c.Timing), doubt+c.Doubt()+" "
	}
	return whole, doubt, time.Since(began)
}
