package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ringlight/cmd/cli"
	"ringlight/cmd/service"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/gnmi"
	"ringlight/planner/server"
	"ringlight/proto"
)

// maxFabricFile bounds what is read; 10,000 nodes take some 3 MB.
const maxFabricFile = 64 << 20

type runFlags struct {
	json     bool
	http     string // where it is served
	gnmi     string // the same
	config   Config
	reread   func() (Config, error)
	takeover bool
	above    uint64
}

func parseRun(args []string, stdin io.Reader) (*runFlags, error) {
	f := &runFlags{}
	fs := cli.NewFlags("ocs-planner run")
	file := fs.String("config", "", "configuration `file`, JSON, - = stdin; flags override it: see ocs-planner config")
	typed := defaults()
	cli.Options(fs, &typed)
	fs.BoolVar(&f.takeover, "takeover", false, "replace a planner that is in service, or rings planned from another description")
	fs.Uint64Var(&f.above, "term-above", 0, "begin above this term: for agents that know one beyond what a planner believes (see ocsctl why)")
	fs.BoolVar(&f.json, "json", false, "log and report errors as JSON, one object per line")
	_, err := cli.ParseNone(fs, args, `Plans a fabric until it is told to stop. Its description, which ocsctl fabric new
writes, is stored at the first start: later ones need no -fabric-file. A store or a planner in service that
plans otherwise is never run over: see -takeover. At SIGHUP the level of the log is
read again from the file of -config.

example: ocs-planner run -fabric-file fabric.json -broker mqtt://127.0.0.1:1883 -state planner.db
example: ocs-planner run -fabric-file fabric.json -broker mqtt://127.0.0.1:1883 -store etcd:http://127.0.0.1:2379
example: ocs-planner run -config /etc/ringlight/planner.json`)
	if err != nil {
		return nil, err
	}
	f.reread = func() (Config, error) {
		c, err := effective(fs, *file, stdin)
		if f.json {
			c.LogFormat = "json"
		}
		if err == nil {
			err = c.Validate()
		}
		return c, err
	}
	if f.config, err = f.reread(); err != nil {
		return nil, err
	}
	return f, nil
}

func runPlanner(ctx context.Context, args []string, t cli.Terminal) error {
	f, err := parseRun(args, t.In)
	if err != nil {
		return err
	}
	return f.run(ctx, t)
}

func (f *runFlags) run(ctx context.Context, t cli.Terminal) error {
	c := f.config.server()
	c.Takeover, c.TermAbove = f.takeover, proto.Term(f.above)
	if f.config.FabricFile != "" {
		var err error
		if c.Fabric, err = readFabric(f.config.FabricFile, t.In); err != nil {
			return err
		}
	}
	log := cli.NewLog(t.Err, f.config.LogLevel, f.config.LogFormat)
	log.FollowHangup(ctx, f.config, func() (any, string, error) {
		c, err := f.reread()
		return c, c.LogLevel, err
	})
	c.Log = log.Logger
	c.Open = f.config.place().opener(log.Logger)
	if f.config.GNMI != "" {
		c.Serve = func(d server.Door) (func() error, error) {
			g := f.config.gnmi()
			g.Source, g.May, g.Log = d, d.May, log.Logger
			s, err := gnmi.Start(g)
			if err != nil {
				return nil, err
			}
			f.gnmi = s.Addr()
			log.Info("gNMI server started", "addr", f.gnmi)
			return s.Close, nil
		}
	}
	c.HTTPReady = func(url string) { f.http = url }
	if m, err := service.Connect(); err != nil {
		return cli.AsUsage(err)
	} else if m != nil {
		c.Manager = m
	}
	c.Ready = func(broker string, start planner.Config) { f.announce(t.Out, broker, start) }
	return server.Run(ctx, c)
}

// announce tells the effective configuration.
func (f *runFlags) announce(out io.Writer, broker string, start planner.Config) {
	fab := start.Fabric
	if f.json {
		_ = json.NewEncoder(out).Encode(map[string]any{"version": version, "core": fab.Core, "fabric": fab.Name, "nodes": fab.Nodes,
			"gpus_per_node": fab.GPUsPerNode, "k": fab.K, "tp": fab.TP, "spares": fab.Spares, "topology": fab.Topology,
			"planner": start.PlannerID, "term": start.Term, "broker": broker, "state": f.config.place().name(), "http": f.http, "gnmi": f.gnmi})
		return
	}
	if fab.Nodes > 0 {
		fmt.Fprintf(out, "fabric   %s: %s x %s, K=%d, TP-%d, %s, %s\n", fab.Name, proto.Count(fab.Nodes, "node"), proto.Count(fab.GPUsPerNode, "GPU"), fab.K, fab.TP, proto.Count(fab.Spares, "spare"), fab.Topology)
	}
	if k := fab.Core; k != nil {
		fmt.Fprintf(out, "core     %s: %s\n", fab.Name, k)
	}
	host, _ := os.Hostname() // none: the number alone
	fmt.Fprintf(out, "planner  %s, last term %d, state %s\nbroker   %s\n", proto.PlannerCopy{Planner: start.PlannerID, Life: start.Life, Host: host}, start.Term, f.config.place().name(), broker)
	if f.http != "" {
		fmt.Fprintf(out, "view     %s\n", f.http)
	}
	if f.gnmi != "" {
		fmt.Fprintf(out, "gnmi     %s\n", f.gnmi)
	}
}

func readFabric(name string, stdin io.Reader) (*fabric.Fabric, error) {
	text, err := readBounded("fabric-file", name, stdin, maxFabricFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.Usage("fabric-file", "a description of the fabric: 'ocsctl fabric new -name f1 -nodes 64 > "+name+"' writes one", "there is no %s", name)
	}
	if err != nil {
		return nil, err
	}
	f, err := fabric.Parse(text)
	if err != nil {
		return nil, cli.Usage("fabric-file", "", "%w", err)
	}
	return f, nil
}
