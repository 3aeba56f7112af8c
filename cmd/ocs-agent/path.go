package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/proto"
)

// path puts a bundle on a path by hand; it stays there until the planner's
// next plan.
func path(ctx context.Context, args []string) error {
	fs, common := newFlags("path set BUNDLE PATH", "put a bundle that carries nothing on dark, loopback, external1 or external2",
		"ocs-agent path set 0 external1")
	words := args
	if len(args) > 0 && args[0] == "set" {
		words = args[1:]
	}
	// Flags may stand before or after the words.
	var free []string
	for len(words) > 0 && (len(words[0]) == 0 || words[0][0] != '-') {
		free, words = append(free, words[0]), words[1:]
	}
	if err := fs.Parse(words); err == nil {
		free = append(free, fs.Args()...)
		words = words[:len(words)-fs.NArg()]
	}
	if err := parse(fs, words, 0); err != nil {
		return err
	}
	if len(args) == 0 || args[0] != "set" || len(free) != 2 {
		return common.fail(usagef("want: path set BUNDLE PATH"))
	}
	b, err := strconv.ParseUint(free[0], 10, 8)
	if err != nil || b >= hal.MaxBundles {
		return common.fail(usagef("bundle: %q: want 0 to %d", free[0], hal.MaxBundles-1))
	}
	p, err := proto.ParsePath(free[1])
	if err != nil {
		return common.fail(usageError{err})
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	return common.fail(cfg.setPath(ctx, proto.BundleID(b), p, common.json))
}

func (c *Config) setPath(ctx context.Context, b proto.BundleID, p proto.Path, asJSON bool) error {
	a, err := c.asker(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	if a.bench != nil { // what an agent does at start comes first
		if err := a.bench.Run(a.bench.board.Now()+pathPatience, nil); err != nil {
			return err
		}
	}
	ans, err := answered(a.ask(agent.Question{Verb: "path", Bundle: b, Path: p.String()}))
	if err != nil {
		return err
	}
	s := ans.Status.Bundles[b]
	if asJSON {
		return printJSON(struct {
			Bundle   agent.BundleStatus `json:"bundle"`
			TookUS   int64              `json:"took_us"`
			BusUS    uint32             `json:"bus_us"`
			SettleUS uint32             `json:"settle_us"`
		}{s, ans.Took.Microseconds(), ans.Ledger.BusMicros, ans.Ledger.SettleMicros})
	}
	fmt.Printf("bundle %d is on %s after %v of board time (bus %d us, settle %d us)\n", b, s.Path, ans.Took.Round(time.Microsecond),
		ans.Ledger.BusMicros, ans.Ledger.SettleMicros)
	printBundle(&s)
	return nil
}

// host passes the word of the host on its GPUs to the running agent.
func host(ctx context.Context, args []string) error {
	fs, common := newFlags("host fault|ok", "tell the agent that the host's GPUs are gone, or back",
		`ocs-agent host fault -reason "xid 79"`)
	reason := fs.String("reason", "", "`text` for the event")
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	if verb == "-h" || verb == "-help" {
		args = []string{"-h"}
	}
	if err := parse(fs, args, 0); err != nil {
		return err
	}
	if verb != "fault" && verb != "ok" {
		return common.fail(usagef("host %q: want fault or ok", verb))
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	_, err = answered(agent.AskSocket(cfg.socketPath(), agent.Question{Verb: "host_" + verb, Text: *reason}))
	if err == nil && common.json {
		return printJSON(map[string]string{"host": verb})
	}
	if err == nil {
		fmt.Println("told")
	}
	return common.fail(err)
}
