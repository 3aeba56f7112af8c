package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/sim/study"
)

// studies lists every study.
func studies() []studyOf {
	return []studyOf{
		{"waste", "healthy GPUs in no group, all architectures ([IHBD] Fig. 9, 10, 16-18)", studyWaste, []variant{{"time", []string{"-chart", "time"}}, {"iid", []string{"-iid"}}}},
		{"jobscale", "largest job that never pauses ([IHBD] Fig. 11)", studyJobScale, nil},
		{"wait", "time that jobs wait for repairs ([IHBD] Fig. 12, 19)", studyWait, nil},
		{"disruption", "running groups that faults touch, by method", studyDisruption, nil},
		{"alignment", "traffic that leaves its ToR while rings are mended, racks of several sizes", studyAlignment, nil},
		{"crosstor", "traffic that leaves its ToR, by method ([IHBD] Fig. 13a-c)", plain("-nodes-per-domain 256,1024 -runs 5", study.DefaultCrossTor, study.CrossTor), nil},
		{"cost", "cost and power of interconnects ([IHBD] Tables 6, 8, Fig. 13d)", studyCost, nil},
		{"bounds", "bound of the waste by K ([IHBD] Table 7)", plain("-runs 1000 -json", study.DefaultBounds, study.Bounds), nil},
		{"mfu", "training MFU of an analytic model ([IHBD] Tables 2, 4, 5)", studyMFU, nil},
		{"rewire", "circuits kept while a core changes, by method ([CROSS] Fig. 5-7)", studyRewire, nil},
		{"flows", "the flow simulator: speed, memory, models of sharing", studyFlows, nil},
		{"jct", "completion of jobs on a leaf-spine core, by strategy and queue ([VCLOS] Tables 2, 5-7)", studyJCT, nil},
		{"topology", "direct links of a job: hops, tax, iterations, cost ([TOPO] sec 5)", studyTopology, nil},
		{"compare", "every system on one workload, one budget, one fault trace: what to choose", studyCompare, nil},
		{"reconfig", "one topology of a job against links that follow its traffic ([TOPO] App. E.4)", studyReconfig, nil},
		{"phases", "one topology of a job against one for each phase of its iteration", studyPhases, nil},
		{"exchange", "all-to-all of a group that switches between its steps, beside neighbours, Bruck and a switch ([IHBD] 7)", plain("-groups 4,8,16 -k 2 -switching 100us", study.DefaultExchange, study.Exchanges), nil},
		{"lumos-jct", "completion of jobs on circuits between pods and on a Clos ([LUMOS] 6)", studyLumos, nil},
	}
}

// studyOf is one study.
type studyOf struct {
	name, what string
	run        func(ctx context.Context, s *studyRun) error
	also       []variant // of study all
}

// variant is a study once more, with flags.
type variant struct {
	name string
	args []string
}

func (o studyOf) command(ctx context.Context, args []string, t cli.Terminal) error {
	return o.run(ctx, &studyRun{name: o.name, args: args, t: t})
}

// studyRun is what all studies take from and give to the command line.
type studyRun struct {
	name   string
	args   []string
	t      cli.Terminal
	fs     *flag.FlagSet
	text   string
	json   *bool
	csv    *string
	svg    *string
	seed   *uint64
	trace  string             // where -trace says nothing
	gather func(result) error // instead of printing, and without a clock: study all
}

// flags makes the flag set with what every study has, and a flag of each field of the
// study's configuration that has one; nil: none.
func (s *studyRun) flags(example string, cfg any) *flag.FlagSet {
	s.fs = cli.NewFlags("study " + s.name)
	s.text = "example: ocs-sim study " + s.name + " " + example
	s.json = s.fs.Bool("json", false, "print the result as JSON and nothing else")
	s.csv = s.fs.String("csv", "", "write the table to `FILE` as CSV")
	s.svg = s.fs.String("svg", "", "write the charts to `FILE` as SVG")
	s.seed = s.fs.Uint64("seed", 1, "seed of everything drawn; further runs take the next ones")
	s.fs.Bool("wide", false, "lines of any length")
	if cfg != nil {
		cli.Options(s.fs, cfg)
	}
	return s.fs
}

func (s *studyRun) parse() error {
	_, err := cli.ParseNone(s.fs, s.args, s.text)
	return err
}

// command is what gives the same result again.
func (s *studyRun) command() string {
	line := "ocs-sim study " + s.name + typed(s.fs, s.args, "csv", "svg", "json", "wide", "seed", "trace", "parallel")
	if f := s.fs.Lookup("trace"); f != nil && f.Value.String() != "" {
		line += " -trace " + filepath.Base(f.Value.String())
	}
	return fmt.Sprintf("%s -seed %d", line, *s.seed)
}

// traceFlag is where the faults of a study come from.
func (s *studyRun) traceFlag() *string {
	return s.fs.String("trace", cmp.Or(s.trace, os.Getenv(traceVariable)), "fault trace; none: the built-in generator (also "+traceVariable+")")
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

// compute runs a study, so that an interrupt ends the command, and hands its
// result on.
func (s *studyRun) compute(ctx context.Context, run func() (result, error)) error {
	var r result
	done := make(chan error, 1)
	go func() {
		var err error
		r, err = run()
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
		return s.emit(r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drawn is a configuration of a study that draws.
type drawn[C any] interface {
	*C
	By(seed uint64, p study.Progress)
}

// compute runs a study that draws.
func compute[C any, P drawn[C], R result](ctx context.Context, s *studyRun, cfg P, run func(C) (R, error)) error {
	cfg.By(*s.seed, s.progress())
	return s.compute(ctx, func() (result, error) { return run(*cfg) })
}

// plain is a study whose flags are all of its configuration.
func plain[C any, P drawn[C], R result](example string, def func() C, run func(C) (R, error)) func(context.Context, *studyRun) error {
	return func(ctx context.Context, s *studyRun) error {
		cfg := def()
		s.flags(example, &cfg)
		if err := s.parse(); err != nil {
			return err
		}
		return compute[C, P](ctx, s, &cfg, run)
	}
}

// emit writes the files and prints the result.
func (s *studyRun) emit(r result) error {
	remarks := r.Remarks()
	if remarks.Comparison == nil {
		remarks.Comparison = []study.Comparison{}
	}
	if s.gather != nil {
		return s.gather(r)
	}
	if err := s.files(r.Table(), remarks.Title, r.Charts()); err != nil {
		return err
	}
	if *s.json {
		return cli.PrintJSON(s.t.Out, r)
	}
	cli.Say(s.t.Out, "%s\n", remarks.Title)
	printTable(s.t.Out, r.Table())
	fmt.Fprintln(s.t.Out, "\nAssumptions:")
	for _, n := range remarks.Notes {
		cli.Say(s.t.Out, "- %s", n)
	}
	if len(remarks.Comparison) > 0 {
		fmt.Fprintln(s.t.Out, "\nBeside the paper:")
	}
	for _, c := range remarks.Comparison {
		cli.Say(s.t.Out, "- %s: ours %s, paper %s. %s", c.Figure, c.Ours, c.Paper, c.Why)
	}
	return nil
}

// files writes what -csv and -svg name.
func (s *studyRun) files(table study.Table, title string, charts []study.Chart) error {
	if *s.csv != "" {
		if err := os.WriteFile(*s.csv, []byte(table.CSV()), 0o644); err != nil {
			return fmt.Errorf("csv: %w", err)
		}
	}
	if *s.svg == "" {
		return nil
	}
	if err := os.WriteFile(*s.svg, []byte(study.SVG(title, source(s.command()), charts)), 0o644); err != nil {
		return fmt.Errorf("svg: %w", err)
	}
	return nil
}

// printTable prints figures for people: the head in words, in parts where it is
// wider than the screen.
func printTable(out io.Writer, t study.Table) {
	table := cli.Table{Screen: cli.ScreenOf(out), Keys: t.Keys()}
	head := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = strings.ReplaceAll(c, "_", " ")
	}
	table.Row(head...)
	for _, r := range t.Rows {
		table.Row(append(slices.Clone(r), make([]string, len(head)-len(r))...)...)
	}
	table.Print(out)
}

// progress draws a bar where somebody looks, and nothing elsewhere.
func (s *studyRun) progress() study.Progress {
	out := progress(s.t, *s.json)
	if out == io.Discard {
		return func(done, of int) {}
	}
	return bar(out, "study "+s.name)
}

func bar(w io.Writer, name string) study.Progress {
	const width = 30
	last := -1
	return func(done, of int) {
		percent := 100 * done / max(1, of)
		if percent <= last {
			return
		}
		last = percent
		full := width * percent / 100
		end := ""
		if percent == 100 {
			end = "\n"
		}
		fmt.Fprintf(w, "\r%s [%s%s] %3d %%%s", name, strings.Repeat("#", full), strings.Repeat(".", width-full), percent, end)
	}
}
