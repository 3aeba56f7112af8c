package procs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"ringlight/mzi/detmath"
)

// soaked is what a process shows that is read every minute: memory that wanders
// and grows by so much an hour, and descriptors.
func soaked(name string, pid int, from, to time.Duration, growth float64, opened func(n int) int) *usages {
	u := &usages{name: name, pid: pid}
	for at := from; at < to; at += time.Minute {
		n := len(u.read)
		warming := 2000 * (1 - detmath.FromDB(-(at-from).Minutes()/2)) // done after an hour
		noise := float64(detmath.Hash(uint64(pid), uint64(n))%800) - 400
		u.read = append(u.read, usage{at, 12_000 + int(warming+noise+1024*growth*(at-from).Hours()), opened(n)})
	}
	return u
}

func steady(int) int { return 12 }

// Goal: memory that grows too fast, descriptors that are not given back and files
// that grow are found and named; what wanders, warms up or comes and goes is not.
// Method: readings of processes made up minute by minute.
func TestSoakJudges(t *testing.T) {
	const day = 24 * time.Hour
	busy := func(n int) int { return 12 + n%3 } // of operators that ask
	lives := func(growth float64) (out []*usages) {
		for h := range 24 { // killed every hour
			out = append(out, soaked("planner", 100+h, time.Duration(h)*time.Hour, time.Duration(h+1)*time.Hour, growth, busy))
		}
		return out
	}
	files := map[int][]reading{3: {{0, 1000}, {time.Hour, soakJournal}, {2 * time.Hour, 20_000}}}
	for _, c := range []struct {
		name string
		g    gauges
		run  time.Duration
		want string // "": all is well
	}{
		{"all is well", gauges{lives: append(lives(0), soaked("agent0", 1, 0, day, 0.3, busy)), files: files, store: []reading{{0, 1 << 20}, {day / 2, 8 << 20}, {day, 8 << 20}}}, day, ""},
		{"memory grows", gauges{lives: []*usages{soaked("agent0", 1, 0, day, 0.7, steady)}}, day, "agents that live on grow by 0.7"},
		{"in a short run it is told alone", gauges{lives: []*usages{soaked("agent0", 1, 0, time.Hour, 50, steady)}}, time.Hour, ""},
		{"memory grows within an hour each", gauges{lives: lives(3)}, day, "planner grow by 3."},
		{"descriptors", gauges{lives: []*usages{soaked("agent4", 1, 0, time.Hour, 0, func(n int) int { return 12 + n/20 })}}, time.Hour, "agent4: descriptors 12, later 13"},
		{"descriptors that come and go", gauges{lives: []*usages{soaked("broker", 1, 0, time.Hour, 0, func(n int) int { return 12 + n/40 - n%2*(n/40) })}}, time.Hour, ""},
		{"too few readings", gauges{lives: []*usages{soaked("agent4", 1, 0, 5*time.Minute, 0, func(n int) int { return n })}}, time.Hour, ""},
		{"journal", gauges{files: map[int][]reading{7: {{0, 1000}, {time.Hour, soakJournal + 1}}}}, day, "the journal of node 7 has"},
		{"store", gauges{store: []reading{{0, 1000}, {time.Hour, soakStore + 1}}}, day, "the store has"},
	} {
		r := &SoakResult{}
		c.g.judge(r, c.run)
		if got := strings.Join(r.Failed, "; "); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Goal: the table has a line for every kind of process and says whether growth is
// judged.
func TestSoakPrintsATable(t *testing.T) {
	var out bytes.Buffer
	s := &soak{run: &procs{ProcsConfig: ProcsConfig{Out: &out}}, faults: map[string]int{"agent killed with -9": 3}, began: time.Now().Add(-time.Hour)}
	s.gauges = gauges{lives: []*usages{soaked("agent0", 1, 0, time.Hour, 0, steady), soaked("agent1", 2, 0, time.Hour, 0, func(n int) int { return 12 + n })}, store: []reading{{0, 1 << 20}}}
	if err := s.report(); err == nil || !strings.Contains(err.Error(), "agent1: descriptors") {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"3 x agent killed", "agents that live on", "agents that are killed", "LEAK", "not judged", "events lost"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
