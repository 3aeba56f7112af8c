package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/proto/metric/promtool"
	"ringlight/proto/metric/self"
)

// Goal: what the running agent measures is read by a monitoring system, over its
// socket and from a file.
// Method: every family of the tables is on the page, what is known of this board
// has its value, promtool has nothing to say, and the file is the page.
func TestMetricsOfARunningAgent(t *testing.T) {
	runs(t, 8, "", func(c *Config, s *agent.Status) {
		file := filepath.Join(t.TempDir(), "ringlight.prom")
		if err := c.metricsOnce(file); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page := string(raw)
		for i := range agent.Measures {
			if !strings.Contains(page, "# TYPE "+agent.Measures[i].Name+" ") {
				t.Errorf("no %s", agent.Measures[i].Name)
			}
		}
		for i := range self.Measures {
			if !strings.Contains(page, "# TYPE "+self.Measures[i].Name+" ") {
				t.Errorf("no %s", self.Measures[i].Name)
			}
		}
		for _, want := range []string{`ringlight_agent_mode{mode="unplanned"} 1`, `ringlight_agent_mode{mode="service"} 0`, `ringlight_agent_calibrated{bundle="0"} 0`,
			`ringlight_agent_broker_connected 0`, `ringlight_agent_bus_errors_total{bundle="0"} 0`, `ringlight_agent_quarantined_devices 0`} {
			if !strings.Contains(page, "\n"+want+"\n") {
				t.Errorf("no %s", want)
			}
		}
		for _, grows := range []string{`ringlight_agent_bus_call_seconds_count{class="safety"} `, "ringlight_agent_journal_bytes ", "process_resident_memory_bytes ", `ringlight_agent_case_celsius{bundle="0",module="0"} `} {
			if _, after, ok := strings.Cut(page, "\n"+grows); !ok || after[0] < '1' || after[0] > '9' {
				t.Errorf("%s is absent or 0", grows)
			}
		}
		if left, _ := filepath.Glob(file + "*"); len(left) != 1 {
			t.Errorf("left: %v", left)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o444 != 0o444 {
			t.Errorf("another program cannot read it: %v, %v", info.Mode(), err)
		}
		promtool.Judge(t, page, "check", "metrics")
	})
}

// Goal: a file is not left to lie once the agent is gone.
// Method: no agent runs; an old file is there.
func TestTextfileGoesWithTheAgent(t *testing.T) {
	c := defaults()
	c.State = t.TempDir()
	file := filepath.Join(t.TempDir(), "ringlight.prom")
	if err := os.WriteFile(file, []byte("old 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.metrics(ctx, file, leastEvery); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Error("it is still there:", err)
	}
	if err := c.metricsOnce(file); err == nil || !strings.Contains(err.Error(), "no agent runs") {
		t.Error(err)
	}
}

func TestMetricsRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range []string{"-every 10ms -textfile x", "-every 15s", "extra"} {
		if err := metrics(t.Context(), strings.Fields(args)); err == nil || program().Run(t.Context(), append([]string{"metrics"}, strings.Fields(args)...), cli.Terminal{Out: io.Discard, Err: io.Discard}) != 2 {
			t.Errorf("%s: %v", args, err)
		}
	}
}
