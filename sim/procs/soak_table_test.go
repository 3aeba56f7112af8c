package procs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// What a soak must stay within. chosen, but for the growth, which is asked for.
const (
	soakGrowth  = 0.5            // MiB an hour, resident, when a process has warmed up
	soakJournal = 2 * 1024 * 600 // the 1,024 events that an agent keeps at most, as a snapshot and as a log that is about to be folded
	soakStore   = 192 << 20      // the 100,000 events that a planner keeps, a KiB each, and pages of its file that are free
	soakWarm    = time.Hour      // until a process has warmed up; in shorter runs a third of its time
	soakSure    = 2 * time.Hour  // a shorter run tells the growth and does not judge it
	soakReads   = 6              // fewer readings of a life tell nothing of its descriptors
)

// gauges are the readings of a soak.
type gauges struct {
	lives []*usages
	store []reading
	files map[int][]reading // journals, by node
}

type reading struct {
	at    time.Duration
	value int64
}

// usages is one process from its start to its end.
type usages struct {
	name string
	pid  int
	read []usage
}

// usage is what a process has at a moment.
type usage struct {
	at     time.Duration
	kib    int // resident
	opened int // descriptors
}

// process reads what Linux says of one.
func (g *gauges) process(at time.Duration, name string, pid int) error {
	opened, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	i := slices.IndexFunc(g.lives, func(l *usages) bool { return l.name == name && l.pid == pid })
	if i < 0 {
		i = len(g.lives)
		g.lives = append(g.lives, &usages{name: name, pid: pid})
	}
	g.lives[i].read = append(g.lives[i].read, usage{at, statusKiB(pid, "VmRSS:"), len(opened)})
	return nil
}

func (g *gauges) journal(at time.Duration, node int, bytes int64) {
	if g.files == nil {
		g.files = map[int][]reading{}
	}
	g.files[node] = append(g.files[node], reading{at, bytes})
}

// warm is what a life is judged by: its readings from when it has warmed up.
func (l *usages) warm() []usage {
	from := l.read[0].at + min(soakWarm, (l.read[len(l.read)-1].at-l.read[0].at)/3)
	i := slices.IndexFunc(l.read, func(u usage) bool { return u.at >= from })
	return l.read[i:]
}

// leaks: the fewest descriptors in the second half of a life's readings are more
// than in the first. What comes and goes does not count.
func (l *usages) leaks() (first, last int, leaks bool) {
	least := func(list []usage) int {
		return slices.MinFunc(list, func(a, b usage) int { return a.opened - b.opened }).opened
	}
	list := l.read
	if len(list) < soakReads {
		return least(list), least(list), false
	}
	first, last = least(list[1:1+(len(list)-1)/2]), least(list[1+(len(list)-1)/2:]) // the first one is of its start
	return first, last, last > first
}

// slope is the growth of several lives together in a unit an hour, by least
// squares about the mean of each, and its standard error; ok: there is enough to
// tell.
func slope(lives [][]reading) (perHour, stderr float64, ok bool) {
	var sxx, sxy, syy float64
	n := 0
	for _, l := range lives {
		var mx, my float64
		for _, r := range l {
			mx += r.at.Hours() / float64(len(l))
			my += float64(r.value) / float64(len(l))
		}
		for _, r := range l {
			dx, dy := r.at.Hours()-mx, float64(r.value)-my
			sxx, sxy, syy = sxx+dx*dx, sxy+dx*dy, syy+dy*dy
		}
		n += len(l) - 1
	}
	if n < 3 || sxx == 0 {
		return 0, 0, false
	}
	perHour = sxy / sxx
	return perHour, math.Sqrt(max(0, syy-perHour*sxy) / float64(n-1) / sxx), true
}

// group is the name of a kind of process.
func group(name string) string {
	kind := strings.TrimRight(name, "0123456789")
	var n int
	_, _ = fmt.Sscanf(name[len(kind):], "%d", &n)
	switch {
	case kind == "agent" && immortal(n):
		return "agents that live on"
	case kind == "agent":
		return "agents that are killed"
	case kind == "board":
		return "simulated boards"
	}
	return kind
}

// SoakRow is one line of the table.
type SoakRow struct {
	What     string  `json:"what"`
	Lives    int     `json:"lives"`
	FirstKiB int     `json:"first_kib"` // resident when warm, mean of the lives
	LastKiB  int     `json:"last_kib"`
	PerHour  float64 `json:"mib_per_hour"` // all lives together
	Error    float64 `json:"mib_per_hour_error"`
	Least    int     `json:"descriptors"` // of the life that has the most
	Leaks    string  `json:"leaks,omitempty"`
	Judged   bool    `json:"growth_judged"`
}

// row adds up the lives of a kind of process.
func (g *gauges) row(what string, run time.Duration) SoakRow {
	r := SoakRow{What: what, Judged: run >= soakSure}
	var lives [][]reading
	for _, l := range g.lives {
		if group(l.name) != what {
			continue
		}
		if first, last, leaks := l.leaks(); leaks {
			r.Leaks = fmt.Sprintf("%s: descriptors %d, later %d", l.name, first, last)
		} else {
			r.Least = max(r.Least, last)
		}
		warm := l.warm()
		r.Lives++
		r.FirstKiB += warm[0].kib
		r.LastKiB += warm[len(warm)-1].kib
		var list []reading
		for _, u := range warm {
			list = append(list, reading{u.at, int64(u.kib)})
		}
		lives = append(lives, list)
	}
	r.FirstKiB /= max(1, r.Lives)
	r.LastKiB /= max(1, r.Lives)
	perHour, stderr, ok := slope(lives)
	r.PerHour, r.Error, r.Judged = perHour/1024, stderr/1024, r.Judged && ok
	return r
}

// SoakResult is what a soak found.
type SoakResult struct {
	Hours    float64        `json:"hours"`
	Faults   map[string]int `json:"faults"`
	Rows     []SoakRow      `json:"processes"`
	Journal  int64          `json:"journal_bytes"` // the largest of an agent
	Store    int64          `json:"store_bytes"`
	Lost     int            `json:"events_lost"`
	StoreRow string         `json:"store"`
	Failed   []string       `json:"failed"`
}

// report judges and prints.
func (s *soak) report() error {
	run := time.Since(s.began)
	r := &SoakResult{Hours: run.Hours(), Faults: s.faults, Lost: s.lost, Failed: []string{}}
	s.run.res.Soak = r
	s.gauges.judge(r, run)
	s.print(s.run.Out, r, run)
	if s.lost > 0 {
		r.Failed = append(r.Failed, fmt.Sprintf("the planner gave up %d events", s.lost))
	}
	if s.run.res.LightLost > 0 {
		r.Failed = append(r.Failed, fmt.Sprintf("%d changes of light that nobody asked for", s.run.res.LightLost))
	}
	if len(r.Failed) > 0 {
		return errors.New("soak: " + strings.Join(r.Failed, "; "))
	}
	return nil
}

func (g *gauges) judge(r *SoakResult, run time.Duration) {
	kinds := map[string]bool{}
	for _, l := range g.lives {
		kinds[group(l.name)] = true
	}
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		row := g.row(what, run)
		r.Rows = append(r.Rows, row)
		if row.Leaks != "" {
			r.Failed = append(r.Failed, row.Leaks)
		}
		if row.Judged && row.PerHour > soakGrowth {
			r.Failed = append(r.Failed, fmt.Sprintf("%s grow by %.2f MiB an hour, at most %.1f is well", what, row.PerHour, soakGrowth))
		}
	}
	for n, list := range g.files { // any order: the largest counts
		most := slices.MaxFunc(list, func(a, b reading) int { return int(a.value - b.value) })
		if r.Journal = max(r.Journal, most.value); most.value > soakJournal {
			r.Failed = append(r.Failed, fmt.Sprintf("the journal of node %d has %d bytes after %v, at most %d is well", n, most.value, most.at.Round(time.Second), soakJournal))
		}
	}
	slices.Sort(r.Failed)
	if n := len(g.store); n > 0 {
		perHour, stderr, _ := slope([][]reading{g.store[n/3:]})
		r.Store = g.store[n-1].value
		r.StoreRow = fmt.Sprintf("%d KiB, later %d, %+.0f +- %.0f KiB an hour", g.store[n/3].value>>10, r.Store>>10, perHour/1024, 2*stderr/1024)
		if r.Store > soakStore {
			r.Failed = append(r.Failed, fmt.Sprintf("the store has %d bytes, at most %d is well", r.Store, soakStore))
		}
	}
}

func (s *soak) print(out io.Writer, r *SoakResult, run time.Duration) {
	fmt.Fprintf(out, "\nsoak of %v on %s/%s, %d processors\n\n", run.Round(time.Second), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, what := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(out, "  %4d x %s\n", r.Faults[what], what)
	}
	fmt.Fprintf(out, "\n  %-24s %5s  %21s  %22s  %11s\n", "", "lives", "resident, warm, MiB", "growth, MiB an hour", "descriptors")
	judged := false
	for _, x := range r.Rows {
		growth, opened := "too short", fmt.Sprint(x.Least)
		if x.Error > 0 {
			growth = fmt.Sprintf("%+.2f +- %.2f", x.PerHour, 2*x.Error)
		}
		if x.Leaks != "" {
			opened = "LEAK"
		}
		fmt.Fprintf(out, "  %-24s %5d  %10.1f %10.1f  %22s  %11s\n", x.What, x.Lives, float64(x.FirstKiB)/1024, float64(x.LastKiB)/1024, growth, opened)
		judged = judged || x.Judged
	}
	fmt.Fprintf(out, "\n  %-24s %d KiB, at most %d\n  %-24s %s\n  %-24s %d\n  %-24s %d changes that nobody asked for\n\n",
		"largest journal", r.Journal>>10, soakJournal>>10, "store", r.StoreRow, "events lost", r.Lost, "light, boards' record", s.run.res.LightLost)
	if judged {
		fmt.Fprintf(out, "Growth is judged: at most %.1f MiB an hour.\n", soakGrowth)
	} else {
		fmt.Fprintf(out, "Growth is told and not judged: that takes %v. After +- stand two standard errors: a\nleak smaller than that does not show, and a process that is still warming up grows.\n", soakSure)
	}
}
