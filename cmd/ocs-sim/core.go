package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/boxes"
	"ringlight/sim/fleet"
	"ringlight/sim/live"
)

func core(ctx context.Context, args []string, t cli.Terminal) error {
	cfg := live.CoreConfig{Changes: 6, Seed: 1, Listen: "127.0.0.1:0"}
	var seeds live.CoreSeedsConfig
	fs := cli.NewFlags("core")
	coreOf := fabric.CoreFlags(fs, "kind", live.DemoCore(4), live.DemoLeafSpine())
	fs.IntVar(&cfg.Changes, "changes", cfg.Changes, "changes of the job list after the first one")
	fs.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of jobs and mirrors")
	fs.BoolVar(&cfg.Hold, "hold", false, "keep everything running afterwards, broker on "+holdAddress)
	mix := fs.String("collectives", proto.CollectiveRing.String(), "what jobs do, any of these: ring, halving-doubling, double-tree, all-to-all")
	fs.IntVar(&seeds.Runs, "runs", 0, "over 0: instead of in real time, so many seeds on a virtual clock, an agent killed in the middle of every stage")
	ahead := fs.Bool("look-ahead", true, "with -runs, of a direct core: provision jobs beside those whose servers they get, and flip")
	fs.IntVar(&seeds.Phases, "phases", 0, "with -runs, of a direct core: each job has so many phases, 2 to 16, and goes through them twice after each list")
	fs.IntVar(&seeds.Traffic, "traffic", 0, "with -runs, of a direct core: what each job sends is counted so many times after each list, 1 to 16, and is now and then not what it said; no job stands by")
	kill := fs.Bool("kill", true, "with -runs: an agent dies in the middle of every stage, planner or broker in some")
	fail := fs.String("fail", "", "with -runs: parts of these kinds fail after each list and come back later, in what the planner is told and a switch in its supply: any of "+strings.Join(fleet.Fails, ", ")+", or all")
	mixed := fs.String("boxes", "", "with -runs: what the switches are, in turn, any of "+strings.Join(switchKinds, ", ")+", or all; without it they have mirrors")
	grow := fs.String("grow", "", "with -runs: numbers of pods, of leaves, or of servers joined directly that the core comes to have while jobs run, as 8,6; planner and agents die meanwhile")
	trace := fs.Bool("trace", false, "with -runs: print strikes, violations and the planner's log on stderr")
	fs.Bool("wide", false, "lines of any length")
	o := outputFlags(fs)
	if _, err := cli.ParseNone(fs, args, help("core")); err != nil {
		return err
	}
	var err error
	if cfg.Core, err = coreOf(); err != nil {
		return cli.AsUsage(err)
	}
	for name := range strings.SplitSeq(*mix, ",") {
		c, wrong := proto.ParseCollective(strings.TrimSpace(name))
		if wrong != nil {
			wrong.Field = "collectives"
			return cli.AsUsage(wrong)
		}
		cfg.Mix = append(cfg.Mix, c)
	}
	cfg.Virtual = seeds.Runs > 0
	if err := cfg.Validate(); err != nil {
		return cli.AsUsage(err)
	}
	if err := checkRuns(cfg.Core, &seeds, *grow+*fail); err != nil {
		return err
	}
	if seeds.Fail, err = someOf("fail", *fail, fleet.Fails, seeds.Runs); err != nil {
		return err
	}
	if seeds.Boxes, err = someOf("boxes", *mixed, switchKinds, seeds.Runs); err != nil {
		return err
	}
	if len(seeds.Boxes) > 0 && cfg.Core.Direct != nil {
		return invalid("boxes", "of pods, or of leaves and spines", "of a direct core only mirrors lead its light")
	}
	if seeds.Grow, err = growList(*grow, seeds.Runs, seeds.Fail, cfg.Core); err != nil {
		return err
	}
	if cfg.Virtual {
		seeds.Core, seeds.Seed, seeds.Lists, seeds.Mix, seeds.Alone, seeds.Calm = cfg.Core, cfg.Seed, cfg.Changes+1, cfg.Mix, !*ahead, !*kill
		seeds.Replay = func(seed uint64) string { return replay(fs, args, "core", seed) + " -runs 1 -trace" }
		if *trace {
			seeds.TraceOut = t.Err
		} else if !o.JSON {
			seeds.Progress = progress(t, false)
		}
		return coreSeeds(ctx, t, seeds, o.JSON)
	}
	if cfg.Hold {
		cfg.Listen = holdAddress
	}
	cfg.Log = logger(t, o.Verbose)
	return story(t, o, &cfg.Screen, &cfg.Finished, func() (*live.CoreResult, error) { return live.Core(ctx, cfg) })
}

// checkRuns says what of runs, phases and traffic cannot be on a core; others: flags beside
// which no job has phases or is measured.
func checkRuns(c *fabric.Core, s *live.CoreSeedsConfig, others string) error {
	switch {
	case s.Runs < 0 || s.Runs > maxCoreRuns:
		return invalid("runs", fmt.Sprintf("0 to %d", maxCoreRuns), "%d", s.Runs)
	case c.Direct != nil && s.Runs == 0:
		return invalid("runs", "1 and up on a direct core", "%d", s.Runs)
	case s.Phases != 0 && (c.Direct == nil || s.Phases < 2 || s.Phases > 16 || others != ""):
		return invalid("phases", "2 to 16, of a direct core, without -grow and -fail", "%d", s.Phases)
	case s.Traffic != 0 && (c.Direct == nil || s.Traffic < 1 || s.Traffic > 16 || s.Phases != 0 || others != ""):
		return invalid("traffic", "1 to 16, of a direct core, without -phases, -grow and -fail", "%d", s.Traffic)
	}
	return nil
}

// maxCoreRuns is chosen: an hour.
const maxCoreRuns = 100_000

// switchKinds are what switches may be.
var switchKinds = append([]string{fleet.OfMirrors}, boxes.Protocols...)

// someOf reads words of a flag that goes with -runs.
func someOf(field, text string, words []string, runs int) (some []string, err error) {
	switch {
	case text == "":
		return nil, nil
	case runs == 0:
		return nil, invalid(field, "with -runs", "%s", text)
	case text == "all":
		return words, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		if !slices.Contains(words, word) {
			return nil, invalid(field, strings.Join(words, ", ")+" or all", "%.40q", word)
		}
		some = append(some, word)
	}
	return some, nil
}

// growList reads numbers of pods, leaves or servers.
func growList(text string, runs int, fail []string, c *fabric.Core) (sizes []int, err error) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		n, wrong := strconv.Atoi(word)
		if wrong == nil && n > 0 {
			wrong = fleet.Grown(c, n).Validate()
		}
		if unit, _, _ := fleet.Unit(c); wrong != nil || n < 2 || runs == 0 || len(fail) > 0 {
			return nil, invalid("grow", fmt.Sprintf("2 and more %s, as many as switches have ports for, with -runs, without -fail", unit), "%.40q", text)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// coreSeeds runs a core on the virtual clock, once for each seed.
func coreSeeds(ctx context.Context, t cli.Terminal, seeds live.CoreSeedsConfig, asJSON bool) error {
	r, err := live.CoreSeeds(ctx, seeds)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.Answered(errors.Join(cli.PrintJSON(t.Out, r), r.Verdict()))
	}
	cli.Say(t.Out, "%d runs of %d switches: %d generations committed, %d agents killed in the middle of one, %d strikes in all", r.Runs, r.Switches, r.Commits, r.Killed, r.Struck)
	cli.Say(t.Out, "%d looks at circuits that had to stay, %d violations; %d of %d links; longest tuning %.1f ms", r.Looks, r.Violations, r.Realised, r.Granted, float64(r.DarkMicros)/1000)
	if seeds.Phases > 0 {
		cli.Say(t.Out, "%d times a job was to go to one of its phases", r.Turns)
	}
	if seeds.Traffic > 0 {
		cli.Say(t.Out, "%d times a job was measured; %d times its links moved: its fullest circuit carried %.3g GB on average, and %.3g GB then", r.Measured, r.Followed,
			float64(r.FullestWas)/1e9/float64(max(1, r.Followed)), float64(r.FullestIs)/1e9/float64(max(1, r.Followed)))
	}
	if len(seeds.Grow) > 0 {
		cli.Say(t.Out, "%d edits of the core; %d were refused first for jobs in the way, of which %d ended, as they found no other place", r.Grown, r.Refused, r.GaveWay)
	} else if r.Failed > 0 {
		cli.Say(t.Out, "%d parts failed, %d of them noticed by their light: %d times a job at rest was short of some, each by name; %d routes followed over light", r.Failed, r.Noticed, r.Short, r.Routes)
	}
	if r.Dark != nil {
		fmt.Fprint(t.Out, r.Dark)
	}
	fmt.Fprintf(t.Out, "%.0f s of virtual time in %.1f s\n", r.VirtualS, r.WallS)
	for _, line := range r.List {
		fmt.Fprintln(t.Err, line)
	}
	return r.Verdict()
}
