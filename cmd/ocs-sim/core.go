package main

import (
	"context"
	"errors"
	"flag"
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
	fs := cli.NewFlags("core")
	coreOf := fabric.CoreFlags(fs, "kind", live.DemoCore(4), live.DemoLeafSpine())
	fs.IntVar(&cfg.Changes, "changes", cfg.Changes, "changes of the job list after the first one")
	fs.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of jobs and mirrors")
	fs.BoolVar(&cfg.Hold, "hold", false, "keep everything running afterwards, broker on "+holdAddress)
	mix := fs.String("collectives", proto.CollectiveRing.String(), "what jobs do, any of these: ring, halving-doubling, double-tree, all-to-all")
	runs := fs.Int("runs", 0, "over 0: instead of in real time, so many seeds on a virtual clock, an agent killed in the middle of every stage")
	ahead := fs.Bool("look-ahead", true, "with -runs, of a direct core: provision jobs beside those whose servers they get, and flip")
	phases := fs.Int("phases", 0, "with -runs, of a direct core: each job has so many phases, 2 to 16, and goes through them twice after each list")
	traffic := fs.Int("traffic", 0, "with -runs, of a direct core: what each job sends is counted so many times after each list, 1 to 16, and is now and then not what it said; no job stands by")
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
	cfg.Virtual = *runs > 0
	if err := cfg.Validate(); err != nil {
		return cli.AsUsage(err)
	}
	if err := checkRuns(cfg.Core, *runs, *phases, *traffic, *grow+*fail); err != nil {
		return err
	}
	kinds, err := someOf("fail", *fail, fleet.Fails, *runs)
	if err != nil {
		return err
	}
	switches, err := someOf("boxes", *mixed, switchKinds, *runs)
	if err != nil {
		return err
	}
	if len(switches) > 0 && cfg.Core.Direct != nil {
		return cli.AsUsage(&proto.Error{Code: proto.Invalid, Field: "boxes", Limit: "of pods, or of leaves and spines", Reason: "of a direct core only mirrors lead its light"})
	}
	sizes, err := growList(*grow, *runs, kinds, cfg.Core)
	if err != nil {
		return err
	}
	if *runs > 0 {
		return coreSeeds(ctx, t, fs, args, &cfg, sizes, kinds, switches, *runs, *phases, *traffic, *ahead, *kill, *trace, o.JSON)
	}
	if cfg.Hold {
		cfg.Listen = holdAddress
	}
	cfg.Log = logger(t, o.Verbose)
	return story(t, o, &cfg.Screen, &cfg.Finished, func() (*live.CoreResult, error) { return live.Core(ctx, cfg) })
}

// checkRuns says what of runs, phases and traffic cannot be on a core; others: flags beside
// which no job has phases or is measured.
func checkRuns(c *fabric.Core, runs, phases, traffic int, others string) error {
	field, limit, is := "runs", fmt.Sprintf("0 to %d", maxCoreRuns), runs
	switch {
	case runs < 0 || runs > maxCoreRuns:
	case c.Direct != nil && runs == 0:
		limit = "1 and up on a direct core"
	case phases != 0 && (c.Direct == nil || phases < 2 || phases > 16 || others != ""):
		field, limit, is = "phases", "2 to 16, of a direct core, without -grow and -fail", phases
	case traffic != 0 && (c.Direct == nil || traffic < 1 || traffic > 16 || phases != 0 || others != ""):
		field, limit, is = "traffic", "1 to 16, of a direct core, without -phases, -grow and -fail", traffic
	default:
		return nil
	}
	return cli.AsUsage(&proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: strconv.Itoa(is)})
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
		return nil, cli.AsUsage(&proto.Error{Code: proto.Invalid, Field: field, Limit: "with -runs", Reason: text})
	case text == "all":
		return words, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		if !slices.Contains(words, word) {
			return nil, cli.AsUsage(&proto.Error{Code: proto.Invalid, Field: field, Limit: strings.Join(words, ", ") + " or all", Reason: fmt.Sprintf("%.40q", word)})
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
			return nil, cli.AsUsage(&proto.Error{Code: proto.Invalid, Field: "grow", Limit: fmt.Sprintf("2 and more %s, as many as switches have ports for, with -runs, without -fail", unit), Reason: fmt.Sprintf("%.40q", text)})
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// coreSeeds runs a core on the virtual clock, once for each seed.
func coreSeeds(ctx context.Context, t cli.Terminal, fs *flag.FlagSet, args []string, cfg *live.CoreConfig, grow []int, fail, switches []string, runs, phases, traffic int, ahead, kill, trace, asJSON bool) error {
	seeds := live.CoreSeedsConfig{Core: cfg.Core, Seed: cfg.Seed, Runs: runs, Lists: cfg.Changes + 1, Mix: cfg.Mix, Alone: !ahead, Phases: phases, Traffic: traffic, Calm: !kill, Fail: fail, Boxes: switches, Grow: grow,
		Replay: func(seed uint64) string { return replay(fs, args, "core", seed) + " -runs 1 -trace" }}
	if trace {
		seeds.TraceOut = t.Err
	} else if !asJSON {
		seeds.Progress = progress(t, asJSON)
	}
	r, err := live.CoreSeeds(ctx, seeds)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.Answered(errors.Join(cli.PrintJSON(t.Out, r), r.Verdict()))
	}
	cli.Say(t.Out, "%d runs of %d switches: %d generations committed, %d agents killed in the middle of one, %d strikes in all", r.Runs, r.Switches, r.Commits, r.Killed, r.Struck)
	cli.Say(t.Out, "%d looks at circuits that had to stay, %d violations; %d of %d links; longest tuning %.1f ms", r.Looks, r.Violations, r.Realised, r.Granted, float64(r.DarkMicros)/1000)
	if phases > 0 {
		cli.Say(t.Out, "%d times a job was to go to one of its phases", r.Turns)
	}
	if traffic > 0 {
		cli.Say(t.Out, "%d times a job was measured; %d times its links moved: its fullest circuit carried %.3g GB on average, and %.3g GB then", r.Measured, r.Followed,
			float64(r.FullestWas)/1e9/float64(max(1, r.Followed)), float64(r.FullestIs)/1e9/float64(max(1, r.Followed)))
	}
	if len(grow) > 0 {
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
