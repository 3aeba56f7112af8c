package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/live"
)

const defaultBroker = "mqtt://127.0.0.1:18830"

func agents(ctx context.Context, args []string, t cli.Terminal) error {
	p := fabric.DefaultParams()
	cfg := live.ClusterConfig{Modules: hal.MaxModules, Health: 10 * time.Second, Progress: progress(t, false)}
	fs := cli.NewFlags("agents")
	file := fs.String("fabric-file", "", "fabric description, - is stdin; none: the default wiring of the flags below")
	cli.Options(fs, &p, "nodes", "gpus", "k", "tp")
	fs.IntVar(&cfg.Modules, "modules", cfg.Modules, "modules of a bundle")
	fs.Uint64Var(&cfg.Seed, "seed", 1, "seed of the optics")
	fs.DurationVar(&cfg.Health, "health", cfg.Health, "time of one health round over a node's modules")
	lock := fs.String("lock", "drift", "off, drift or always: how often agents look whether their light is still good, as lock in their configuration")
	brokerFlags(fs, &cfg.Broker)
	cache := fs.String("cache", "on", "on, or off: nothing is left with the broker, as with -cache off of the planner")
	var seals sealFlags
	seals.register(fs)
	fs.StringVar(&cfg.State, "state", "", "folder of the optical switches' journals; none: they forget their circuits")
	control := fs.String("control", "", "where boards lose their power and get it back, unix:`PATH`; a line a connection: power off NODE, power on NODE, light, walk, bypass LEFT DEAD RIGHT")
	verbose := fs.Bool("v", false, "log state changes too")
	asJSON := fs.Bool("json", false, "print the light at the end as JSON and nothing else")
	if _, err := cli.ParseNone(fs, args, help("agents")); err != nil {
		return err
	}
	var err error
	if cfg.Fabric, err = loadFabric(*file, p); err != nil {
		return cli.AsUsage(err)
	}
	if cfg.Modules < 1 || cfg.Modules > hal.MaxModules {
		return cli.AsUsage(invalid("modules", fmt.Sprintf("1 to %d", hal.MaxModules), "%d is out of range", cfg.Modules))
	}
	if cfg.Health < time.Second {
		return cli.AsUsage(invalid("health", "at least 1s", "%v is out of range", cfg.Health))
	}
	if !cfg.LockAs(*lock) {
		return cli.Usage("lock", "off, drift or always", "%q", *lock)
	}
	if cfg.Broker.Uncached = *cache == "off"; !cfg.Broker.Uncached && *cache != "on" {
		return cli.Usage("cache", "on or off", "%q", *cache)
	}
	if cfg.Guard, err = seals.guards(cfg.Fabric.Name, cfg.Broker.Broker); err != nil {
		return cli.AsUsage(err)
	}
	check := cfg.Broker
	check.ClientID = cfg.Fabric.Name
	if err := check.Check(); err != nil {
		return cli.AsUsage(err)
	}
	if err := seals.checkKeys(check, cfg.Fabric); err != nil {
		return err
	}
	if *control != "" {
		if cfg.Control, err = serveAt("control", *control); err != nil {
			return err
		}
		defer cfg.Control.Close()
	}
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelInfo
	}
	cfg.Log = slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: level}))
	cfg.Ready = func() {
		switches := ""
		if cfg.Fabric.Core != nil {
			switches = fmt.Sprintf(" and %d switches", cfg.Fabric.Core.Mirrors())
			if d := cfg.Fabric.Core.Direct; d != nil {
				switches += fmt.Sprintf(", and the transceivers of %d servers,", d.Servers)
			}
		}
		said := t.Out
		if *asJSON {
			said = t.Err
		}
		fmt.Fprintf(said, "%d simulated nodes%s of fabric %s run against %s\n", cfg.Fabric.Nodes, switches, cfg.Fabric.Name, cfg.Broker.Broker)
	}
	var printed error
	cfg.Ended = func(r live.LightRecord) { printed = printLight(t.Out, r, *asJSON) }
	ran := live.Agents(ctx, cfg)
	return errors.Join(ran, printed)
}

// printLight tells what the boards themselves recorded of their light.
func printLight(out io.Writer, r live.LightRecord, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(out, r)
	}
	circuits := ""
	if r.CircuitsLit > 0 {
		circuits = fmt.Sprintf(", %s", proto.Count(r.CircuitsLit, "circuit"))
	}
	_, err := fmt.Fprintf(out, "stopped with light on %s of %s%s; the last change of light was %v ago\n",
		proto.Count(r.PathsLit, "path"), proto.Count(r.Nodes, "node"), circuits, r.SinceChange.Round(time.Millisecond))
	return err
}

// loadFabric reads a description, or builds the default wiring.
func loadFabric(file string, p fabric.Params) (*fabric.Fabric, error) {
	if file == "" {
		return fabric.New(p)
	}
	data, err := read(file)
	if err != nil {
		return nil, err
	}
	f, err := fabric.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return f, nil
}
