package procs

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/sim/step"
)

// A soak is the cluster of processes under a fault after the other for as long as
// one likes, with planner and broker killed now and then. After each fault
// everything must be in service again and no light have changed but the fault's
// own; then memory, descriptors and files are read. Half of the agents are never
// killed: what leaks slowly shows in them.

// SoakConfig is how long, and how often what.
type SoakConfig struct {
	Time  time.Duration // 0: no soak
	Fault time.Duration // between two faults
	Kill  time.Duration // between two kills of the planner, and of the broker
}

// soak is one under way.
type soak struct {
	run    *procs
	rnd    *rand.Rand
	began  time.Time
	gauges gauges
	faults map[string]int
	flaps  int  // node whose host did last
	lost   int  // events, the most that a life of the planner had given up
	debug  bool // the level that logs were told last
	holds  bool // the hold-off that the fabric was told last
}

// immortal: an agent that a soak never kills.
func immortal(n int) bool { return n%2 == 0 }

func (p *procs) soak(ctx context.Context) {
	s := &soak{run: p, rnd: rand.New(rand.NewPCG(p.Seed, 7)), began: time.Now(), faults: map[string]int{}}
	s.run.spared = immortal
	end := s.began.Add(p.Soak.Time)
	kills := [2]time.Time{s.began.Add(p.Soak.Kill / 2), s.began.Add(p.Soak.Kill)} // of the planner and of the broker
	var order []int
	for next := s.began; time.Now().Before(end); {
		pause(ctx, time.Until(next))
		if next = next.Add(p.Soak.Fault); next.Before(time.Now()) {
			next = time.Now()
		}
		var fault soakFault
		switch now := time.Now(); {
		case now.After(kills[0]):
			kills[0] = kills[0].Add(p.Soak.Kill)
			fault = quietly("planner killed with -9", func(s *soak, _ context.Context) { s.revive("planner", s.run.startPlanner) })
		case now.After(kills[1]):
			kills[1] = kills[1].Add(p.Soak.Kill)
			fault = quietly("broker killed with -9", func(s *soak, _ context.Context) { s.revive("broker", s.run.startBroker) })
		default:
			if len(order) == 0 {
				order = s.rnd.Perm(len(soakFaults))
			}
			fault, order = soakFaults[order[0]], order[1:]
		}
		if err := step.Attempt(func() { s.happen(ctx, fault) }); err != nil {
			step.Must(errors.Join(err, s.report()))
		}
	}
	step.Must(s.report())
}

// happen lets a fault happen, judges the light and reads the gauges.
func (s *soak) happen(ctx context.Context, f soakFault) {
	s.run.tried(ctx)
	before := s.run.records()
	err := step.Attempt(func() {
		may := f.do(s, ctx)
		s.run.serving(ctx)
		s.run.unchanged(before, f.what, may)
	})
	if err != nil {
		step.Fail("%s, after %v: %w", f.what, time.Since(s.began).Round(time.Second), err)
	}
	s.faults[f.what]++
	s.read()
}

// read reads memory and descriptors of every process, and the files that grow.
func (s *soak) read() {
	at := time.Since(s.began)
	for _, name := range slices.Sorted(maps.Keys(s.run.runs)) {
		step.Must(s.gauges.process(at, name, s.run.runs[name].Process.Pid))
	}
	for n := range s.run.f.Nodes {
		s.gauges.journal(at, n, step.Got(sizeOf(filepath.Join(s.run.folder(n), "journal"))))
	}
	s.gauges.store = append(s.gauges.store, reading{at, step.Got(sizeOf(s.run.path("planner.db")))})
	s.lost = max(s.lost, s.measured("ringlight_events_lost_total"))
}

// measured is one of the planner's metrics.
func (s *soak) measured(name string) int {
	at := &http.Client{Timeout: procsBypass, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.run.path("planner.http"))
	}}}
	answer := step.Got(at.Get("http://planner/metrics"))
	defer answer.Body.Close()
	page := step.Got(io.ReadAll(answer.Body))
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, name) {
			_, value, _ := strings.Cut(line, " ")
			return int(step.Got(strconv.ParseFloat(strings.TrimSpace(value), 64)))
		}
	}
	step.Fail("the planner's metrics have no %s", name)
	return 0
}

// sizeOf is the bytes in a file, or in a folder.
func sizeOf(path string) (bytes int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		err = nil // a log was folded meanwhile
	}
	return bytes, err
}
