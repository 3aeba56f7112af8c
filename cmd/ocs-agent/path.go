package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/proto"
)

// path puts a bundle on a path by hand; it stays there until the planner's
// next plan.
func path(ctx context.Context, args []string) error {
	_, common := newFlags("path set BUNDLE PATH", "put a bundle that carries nothing on dark, loopback, external1 or external2",
		"ocs-agent path set 0 external1")
	free, err := common.words(args, 3)
	if err != nil {
		return err
	}
	if len(free) != 3 || free[0] != "set" {
		return usagef("want: path set BUNDLE PATH")
	}
	free = free[1:]
	b, err := strconv.ParseUint(free[0], 10, 8)
	if err != nil || b >= hal.MaxBundles {
		return usagef("bundle: %q: want 0 to %d", free[0], hal.MaxBundles-1)
	}
	p, err := proto.ParsePath(free[1])
	if err != nil {
		return cli.AsUsage(err)
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	return cfg.setPath(ctx, proto.BundleID(b), p, common.json)
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
	said := struct {
		Bundle   agent.BundleStatus `json:"bundle"`
		TookUS   int64              `json:"took_us"`
		BusUS    uint32             `json:"bus_us"`
		SettleUS uint32             `json:"settle_us"`
	}{s, ans.Took.Microseconds(), ans.Ledger.BusMicros, ans.Ledger.SettleMicros}
	return answer(asJSON, said, func() {
		fmt.Printf("bundle %d is on %s after %v of board time (bus %d us, settle %d us)\n", b, s.Path, ans.Took.Round(time.Microsecond), said.BusUS, said.SettleUS)
		printBundle(&s, c.healthPeriod())
	})
}

// host passes the host's report on its GPUs to the running agent.
func host(ctx context.Context, args []string) error {
	fs, common := newFlags("host fault|ok", "tell the agent that the host's GPUs are gone, or back",
		`ocs-agent host fault -reason "xid 79"`)
	reason := fs.String("reason", "", "`text` for the event")
	words, err := common.words(args, 1)
	if err != nil {
		return err
	}
	if len(words) != 1 || words[0] != "fault" && words[0] != "ok" {
		return usagef("host %q: want fault or ok", strings.Join(words, " "))
	}
	verb := words[0]
	cfg, err := common.load()
	if err != nil {
		return err
	}
	if _, err = answered(cfg.askSocket(agent.Question{Verb: "host_" + verb, Text: *reason})); err != nil {
		return err
	}
	return answer(common.json, map[string]string{"host": verb}, func() { fmt.Println("told") })
}
