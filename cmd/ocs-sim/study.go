package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"ringlight/proto"
	"ringlight/sim/study"
)

var studies = []struct {
	name, what string
	run        func(ctx context.Context, s *studyRun) error
}{
	{"waste", "healthy GPUs in no group, all architectures ([IHBD] Fig. 9, 10, 16-18)", studyWaste},
	{"jobscale", "largest job that never pauses ([IHBD] Fig. 11)", studyJobScale},
	{"wait", "time that jobs wait for repairs ([IHBD] Fig. 12, 19)", studyWait},
	{"disruption", "running groups that faults touch, by method", studyDisruption},
	{"crosstor", "traffic that leaves its ToR, by method ([IHBD] Fig. 13a-c)", studyCrossTor},
	{"cost", "cost and power of interconnects ([IHBD] Tables 6, 8, Fig. 13d)", studyCost},
	{"bounds", "bound of the waste by K ([IHBD] Table 7)", studyBounds},
	{"mfu", "training MFU of an analytic model ([IHBD] Tables 2, 4, 5)", studyMFU},
	{"rewire", "circuits kept while a core changes, by method ([CROSS] Fig. 5-7)", studyRewire},
	{"flows", "the flow simulator: speed, memory, models of sharing", studyFlows},
	{"jct", "completion of jobs on a leaf-spine core, by strategy and queue ([VCLOS] Tables 2, 5-7)", studyJCT},
	{"topology", "direct links of a job: hops, tax, iterations, cost ([TOPO] sec 5)", studyTopology},
	{"compare", "every system on one workload, one budget, one fault trace: what to choose", studyCompare},
	{"reconfig", "one topology of a job against links that follow its traffic ([TOPO] App. E.4)", studyReconfig},
	{"lumos-jct", "completion of jobs on circuits between pods and on a Clos ([LUMOS] 6)", studyLumos},
}

func studyNoun(ctx context.Context, args []string) error {
	list := ""
	for _, s := range studies {
		list += fmt.Sprintf("\n  ocs-sim study %-10s %s", s.name, s.what)
	}
	if len(args) == 0 {
		return usagef("usage:%s", list)
	}
	if slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		fmt.Println("usage:" + list)
		return nil
	}
	for _, s := range studies {
		if s.name != args[0] {
			continue
		}
		err := s.run(ctx, &studyRun{name: s.name, args: args[1:]})
		var refused *proto.Error
		if errors.As(err, &refused) {
			err = usageError{err}
		}
		if err != nil && !errors.Is(err, flag.ErrHelp) && slices.ContainsFunc(args, isJSON) {
			return failJSON(err)
		}
		return err
	}
	return usagef("there is no study %q:%s", args[0], list)
}

func isJSON(arg string) bool { return arg == "-json" || arg == "--json" }

// studyRun is what all studies take from and give to the command line.
type studyRun struct {
	name string
	args []string
	fs   *flag.FlagSet
	json *bool
	csv  *string
	svg  *string
	seed *uint64
}

// flags makes the flag set with what every study has.
func (s *studyRun) flags(example string) *flag.FlagSet {
	s.fs = newFlags("study "+s.name, "ocs-sim study "+s.name+" "+example)
	s.json = s.fs.Bool("json", false, "print the result as JSON and nothing else")
	s.csv = s.fs.String("csv", "", "write the table to `FILE` as CSV")
	s.svg = s.fs.String("svg", "", "write the charts to `FILE` as SVG")
	s.seed = s.fs.Uint64("seed", 1, "seed of everything drawn; further runs take the next ones")
	return s.fs
}

// traceFlag is where the faults of a study come from.
func (s *studyRun) traceFlag() *string {
	return s.fs.String("trace", os.Getenv(traceVariable), "fault trace; none: the built-in generator (also "+traceVariable+")")
}

func (s *studyRun) clusterFlag() *string {
	return s.fs.String("cluster", "512", "512, 2048 (leaves of 32 GPUs, [VCLOS] sec 9.2) or a JSON `FILE`")
}

// given says which flags the command line has.
func (s *studyRun) given() map[string]bool {
	out := map[string]bool{}
	s.fs.Visit(func(f *flag.Flag) { out[f.Name] = true })
	return out
}

// result is what a study returns.
type result interface {
	Table() study.Table
	Charts() []study.Chart
	Remarks() *study.Report
}

// compute runs a study so that an interrupt ends the command.
func compute[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := f()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, errors.New("interrupted")
	}
}

// emit writes the files and prints the result.
func (s *studyRun) emit(title string, r result, charts []study.Chart) error {
	if *s.csv != "" {
		if err := os.WriteFile(*s.csv, []byte(r.Table().CSV()), 0o644); err != nil {
			return fmt.Errorf("csv: %w", err)
		}
	}
	if *s.svg != "" {
		if err := os.WriteFile(*s.svg, []byte(study.SVG(title, charts)), 0o644); err != nil {
			return fmt.Errorf("svg: %w", err)
		}
	}
	remarks := r.Remarks()
	if *s.json {
		if remarks.Comparison == nil {
			remarks.Comparison = []study.Comparison{}
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	var b strings.Builder
	b.WriteString(title + "\n\n" + r.Table().Text() + "\nAssumptions:\n")
	for _, n := range remarks.Notes {
		b.WriteString("- " + n + "\n")
	}
	if len(remarks.Comparison) > 0 {
		b.WriteString("\n" + remarks.Beside().Text())
	}
	_, err := io.WriteString(os.Stdout, b.String())
	return err
}

// progress draws a bar on stderr: in place on a terminal, else a line for
// every fifth.
func (s *studyRun) progress() study.Progress {
	terminal := false
	if info, err := os.Stderr.Stat(); err == nil {
		terminal = info.Mode()&os.ModeCharDevice != 0
	}
	return bar(os.Stderr, "study "+s.name, terminal)
}

func bar(w io.Writer, name string, terminal bool) study.Progress {
	const width = 30
	last := -1
	return func(done, of int) {
		percent := 100 * done / max(1, of)
		if !terminal {
			percent -= percent % 20
		}
		if percent <= last {
			return
		}
		last = percent
		full := width * percent / 100
		line := fmt.Sprintf("%s [%s%s] %3d %%", name, strings.Repeat("#", full), strings.Repeat(".", width-full), percent)
		if terminal {
			fmt.Fprint(w, "\r"+line)
			if percent < 100 {
				return
			}
			line = ""
		}
		fmt.Fprintln(w, line)
	}
}

// intList is a flag of integers separated by commas.
func intList(fs *flag.FlagSet, name string, list []int, usage string) *[]int {
	out := list
	fs.Func(name, fmt.Sprintf("%s, `LIST` (default %s)", usage, strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")), func(text string) error {
		out = nil
		for _, part := range strings.Split(text, ",") {
			v, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil {
				return fmt.Errorf("%q is no integer: want a list such as 8,16", part)
			}
			out = append(out, v)
		}
		return nil
	})
	return &out
}

// ratioList is a flag of shares of one separated by commas.
func ratioList(fs *flag.FlagSet, name string, list []float64, usage string) *[]float64 {
	out := list
	fs.Func(name, fmt.Sprintf("%s, `LIST` of shares of one, rising (default %v to %v)", usage, list[0], list[len(list)-1]), func(text string) error {
		out = nil
		for _, part := range strings.Split(text, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil {
				return fmt.Errorf("%q is no number: want a list such as 0.01,0.05", part)
			}
			out = append(out, v)
		}
		return nil
	})
	return &out
}
