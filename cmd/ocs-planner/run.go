package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"ringlight/cmd/cli"
	"ringlight/cmd/service"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
)

// maxFabricFile bounds what is read; 10,000 nodes take some 3 MB.
const maxFabricFile = 64 << 20

type runFlags struct {
	fabricFile string
	json       bool
	http       string // where it is served
	server     server.Config
}

func parseRun(args []string) (*runFlags, error) {
	f := &runFlags{}
	fs := cli.NewFlags("ocs-planner run")
	fs.StringVar(&f.fabricFile, "fabric-file", "", "fabric description, JSON, - = stdin (default: the stored one, else f1: 64 nodes, 4 GPUs each, k 2, tp 32)")
	fs.StringVar(&f.server.Listen, "listen", "", "address of the embedded broker (default 127.0.0.1:18830)")
	fs.StringVar(&f.server.Broker, "broker", "", "use this broker, mqtt://host:port or mqtts://host:port, instead of the embedded one")
	fs.StringVar(&f.server.HTTP, "http", "", "serve the live view on `ADDR`, host:port or unix:PATH; beyond loopback only with -ca, -cert and -key, to those with a certificate (default: not served)")
	fs.StringVar(&f.server.State, "state", "./ocs-planner.db", "file of the store")
	fs.StringVar(&f.server.CAFile, "ca", "", "PEM file of the certificate authority, for mqtts")
	fs.StringVar(&f.server.CertFile, "cert", "", "PEM file of the own certificate, for mqtts")
	fs.StringVar(&f.server.KeyFile, "key", "", "PEM file of its key, for mqtts")
	fs.BoolVar(&f.server.Insecure, "insecure", false, "allow mqtt, in the clear, beyond loopback")
	fs.BoolVar(&f.server.Takeover, "takeover", false, "replace a planner that is in service, or rings planned from another description")
	fs.Uint64Var((*uint64)(&f.server.TermAbove), "term-above", 0, "begin above this term: for agents that know one beyond what a planner believes (see ocsctl why)")
	fs.BoolVar(&f.json, "json", false, "log and report errors as JSON, one object per line")
	_, err := cli.ParseNone(fs, args, `Plans a fabric until it is told to stop. A store or a planner in service that
plans otherwise is never run over: see -takeover.

example: ocs-planner run -broker mqtt://127.0.0.1:1883 -state planner.db`)
	if err != nil {
		return nil, err
	}
	if f.server.Listen == "" && f.server.Broker == "" {
		f.server.Listen = "127.0.0.1:18830"
	}
	return f, nil
}

func runPlanner(ctx context.Context, args []string, t cli.Terminal) error {
	f, err := parseRun(args)
	if err != nil {
		return err
	}
	return f.run(ctx, t)
}

func (f *runFlags) run(ctx context.Context, t cli.Terminal) error {
	if f.fabricFile != "" {
		var err error
		if f.server.Fabric, err = readFabric(f.fabricFile, t.In); err != nil {
			return err
		}
	}
	f.server.Log = slog.New(slog.NewTextHandler(t.Err, nil))
	if f.json {
		f.server.Log = slog.New(slog.NewJSONHandler(t.Err, nil))
	}
	f.server.Version = version
	f.server.HTTPReady = func(url string) { f.http = url }
	if m, err := service.Connect(); err != nil {
		return cli.AsUsage(err)
	} else if m != nil {
		f.server.Manager = m
	}
	f.server.Ready = func(broker string, start planner.Config) { f.announce(t.Out, broker, start) }
	return server.Run(ctx, f.server)
}

// announce tells the effective configuration.
func (f *runFlags) announce(out io.Writer, broker string, start planner.Config) {
	fab := start.Fabric
	if f.json {
		_ = json.NewEncoder(out).Encode(map[string]any{"version": version, "core": fab.Core, "fabric": fab.Name, "nodes": fab.Nodes,
			"gpus_per_node": fab.GPUsPerNode, "k": fab.K, "tp": fab.TP, "spares": fab.Spares, "topology": fab.Topology,
			"planner": start.PlannerID, "term": start.Term, "broker": broker, "state": f.server.State, "http": f.http})
		return
	}
	if fab.Nodes > 0 {
		fmt.Fprintf(out, "fabric   %s: %d nodes x %d GPUs, K=%d, TP-%d, %d spares, %s\n", fab.Name, fab.Nodes, fab.GPUsPerNode, fab.K, fab.TP, fab.Spares, fab.Topology)
	}
	if k := fab.Core; k != nil {
		fmt.Fprintf(out, "core     %s: %s\n", fab.Name, k)
	}
	fmt.Fprintf(out, "planner  %d, last term %d, state %s\nbroker   %s\n", start.PlannerID, start.Term, f.server.State, broker)
	if f.http != "" {
		fmt.Fprintf(out, "view     %s\n", f.http)
	}
}

func readFabric(name string, stdin io.Reader) (*fabric.Fabric, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, cli.Usage("fabric-file", "", "%w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFabricFile+1))
	if err != nil {
		return nil, cli.Usage("fabric-file", "", "%w", err)
	}
	if len(text) > maxFabricFile {
		return nil, cli.Usage("fabric-file", fmt.Sprintf("at most %d bytes", maxFabricFile), "larger")
	}
	f, err := fabric.Parse(text)
	if err != nil {
		return nil, cli.Usage("fabric-file", "", "%w", err)
	}
	return f, nil
}
