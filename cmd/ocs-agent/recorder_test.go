package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/proto"
)

// runs runs an agent on a simulated board, with health rounds one after the
// other, and gives its status once the recorder, if there is one, has had some
// blocks of entries.
func runs(t *testing.T, kib int, recording string, look func(c *Config, s *agent.Status)) {
	t.Helper()
	state := t.TempDir()
	c, err := readConfig(write(t, "c.json", fmt.Sprintf(`{"broker":"","state":%q,"health_ms":1,"recorder_kib":%d,"log_level":"error",
		"board":{"kind":"sim","bundles":1,"modules":1,"calibrated":false}}`, state, kib)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, recording, c.logger().Logger, startedAs("")) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		ans, err := agent.AskSocket(c.socketPath(), agent.Question{Verb: "status"})
		if err == nil && ans.Status != nil && (ans.Status.Recorder == nil || ans.Status.Recorder.Entries > 500) {
			look(&c, ans.Status)
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no status with entries: %v", err)
		case <-tick.C:
		}
	}
}

// Goal: recorder_kib is the memory of the bus recorder.
// Method: more entries than fit; a recorder with room keeps all of them.
func TestRecorderHasTheMemoryOfItsKey(t *testing.T) {
	runs(t, 8, "", func(_ *Config, s *agent.Status) {
		if r := s.Recorder; r == nil || r.Bytes > 8<<10 || r.Bytes < 2<<10 || r.Limit != 8<<10 || r.Whole {
			t.Errorf("8 KiB: %+v", r)
		}
	})
	runs(t, 1024, "", func(_ *Config, s *agent.Status) {
		if r := s.Recorder; r == nil || r.Bytes <= 8<<10 || !r.Whole {
			t.Errorf("1 MiB: %+v", r)
		}
	})
}

// Goal: recorder_kib 0 switches the recorder off; a recording that a file was
// named for is whole all the same.
// Method: ask the agent without, then replay what the one with a file left.
func TestNoRecorderAtZero(t *testing.T) {
	runs(t, 0, "", func(c *Config, s *agent.Status) {
		err := agent.RecordSocket(context.Background(), c.socketPath(), io.Discard, nil)
		if e := proto.AsError(err); s.Recorder != nil || err == nil || e.Code != proto.Unsupported {
			t.Errorf("%+v, %v", s.Recorder, err)
		}
	})
	file := filepath.Join(t.TempDir(), "all.rec")
	runs(t, 0, file, func(_ *Config, s *agent.Status) {
		if s.Recorder == nil || s.Recorder.Bytes != 0 {
			t.Errorf("%+v", s.Recorder)
		}
	})
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := agent.Replay(raw); err != nil || !res.Compared || res.Diverged != nil || res.Entries < 500 || res.Lost != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}
