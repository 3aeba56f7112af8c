package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto/mqtt"
	"ringlight/sim/hostile"
	"ringlight/sim/live"
)

// maxRate bounds the messages a second of an attack. chosen: more than four voices sign.
const maxRate = 1_000_000

// runHostile attacks a fabric of one's own.
func runHostile(ctx context.Context, args []string, t cli.Terminal) error {
	cfg := hostile.Config{}
	fs := cli.NewFlags("hostile")
	fs.StringVar(&cfg.Broker, "broker", defaultBroker, "MQTT broker, on this machine only")
	fs.StringVar(&cfg.Fabric, "fabric", "f1", "fabric")
	fs.IntVar(&cfg.Nodes, "nodes", 64, "nodes of the fabric")
	fs.Uint64Var(&cfg.Seed, "seed", 1, "seed of mutants and orders")
	fs.Float64Var(&cfg.Scale, "scale", 1, "part of the full counts")
	fs.DurationVar(&cfg.Flood, "flood", time.Minute, "length of the long attacks")
	fs.StringVar(&cfg.Socket, "socket", "", "unix socket of an agent of one's own; none: its attacks are not tried")
	fs.StringVar(&cfg.Core, "core", "", "fabric of circuits on the same broker, its first jobs are this command's; none: its attacks are not tried")
	var seals hostile.Seals
	fs.StringVar(&seals.NodeKey, "stolen-key", "", "a node's key, of a fabric whose messages are sealed; none: they are not")
	fs.IntVar(&seals.Node, "stolen-node", 9, "the node of -stolen-key")
	fs.StringVar(&seals.TrustFile, "trust", "", "the fabric's trust document, with -stolen-key")
	fs.StringVar(&seals.Cert, "cert", "", "certificate of an operator who may operate, with -stolen-key")
	fs.StringVar(&seals.Key, "key", "", "the operator's key, with -stolen-key")
	fs.StringVar(&seals.Token, "token", "", "a token of ocsctl pki token, with -stolen-key")
	fs.IntVar(&seals.TokenNode, "token-node", 63, "the node of -token")
	fs.StringVar(&seals.Listen, "listen", "", "be the broker, one that is not to be trusted, at this address: `HOST:PORT`; with -stolen-key, in the place of -broker")
	fs.StringVar(&seals.ListenCert, "listen-cert", "", "that broker's certificate")
	fs.StringVar(&seals.ListenKey, "listen-key", "", "that broker's key")
	fs.StringVar(&seals.Control, "control", "", "unix socket of ocs-sim agents -control, with -stolen-key")
	fs.IntVar(&seals.Bypasses, "bypasses", 200, "nodes that lose their supply quietly, and as many under the attack, with -stolen-key")
	fs.IntVar(&seals.Rate, "rate", 4000, "messages a second of the attack with -stolen-key; 0: none, bypasses are measured quietly and that is all")
	only := fs.String("only", "", "attacks, with commas between them; none: all")
	asJSON := fs.Bool("json", false, "print a JSON object for each attack and nothing else")
	if _, err := cli.ParseNone(fs, args, `Attacks a fabric of one's own on this machine, and looks after each attack how
long its planner and its rings take to be as before.

example: ocs-sim hostile -broker mqtt://127.0.0.1:18830 -only numbers,flood`); err != nil {
		return err
	}
	if cfg.Nodes < 1 || cfg.Nodes > fabric.MaxNodes {
		return cli.Usage("nodes", fmt.Sprintf("1 to %d", fabric.MaxNodes), "%d", cfg.Nodes)
	}
	if seals.Rate < 0 || seals.Rate > maxRate {
		return cli.Usage("rate", fmt.Sprintf("0 to %d", maxRate), "%d", seals.Rate)
	}
	if seals.NodeKey != "" {
		cfg.Seals = &seals
		if host, _, err := net.SplitHostPort(seals.Listen); err != nil || !mqtt.IsLoopback(host) {
			return cli.Usage("listen", "HOST:PORT on a loopback address, with -stolen-key", "%q", seals.Listen)
		}
		good, err := live.GoodBroker()
		if err != nil {
			return err
		}
		defer good.Close()
		cfg.Broker = good.URL()
	}
	if *only != "" {
		cfg.Only = strings.Split(*only, ",")
	}
	fell := 0
	cfg.Report = func(r hostile.Result) {
		if r.Fell || !r.Planning {
			fell++
		}
		if *asJSON {
			cli.PrintJSON(t.Out, r)
			return
		}
		held := "held"
		if r.Fell {
			held = "FELL"
		} else if !r.Planning {
			held = "SILENT"
		}
		fmt.Fprintf(t.Out, "%-16s %7d  %-6s answers within %5d ms, rings as before after %5d ms  %s", r.Attack, r.Count, held, r.AnswerMax, r.Back, r.What)
		if r.Note != "" {
			fmt.Fprintf(t.Out, " (%s)", r.Note)
		}
		fmt.Fprintf(t.Out, "\n%s", r.Table)
	}
	if _, err := hostile.Run(ctx, cfg); err != nil {
		return err
	}
	if fell > 0 {
		return cli.Answered(fmt.Errorf("%d attacks were not held", fell))
	}
	return nil
}
