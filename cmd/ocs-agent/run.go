package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/cmd/service"
	"ringlight/hal/boardfile"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/metric"
	"ringlight/proto/metric/self"
	"ringlight/proto/mqtt"
)

func (c *Config) logger() *cli.Log { return cli.NewLog(os.Stderr, c.LogLevel, c.LogForm) }

// memoryLimit keeps a baseboard controller's memory free: the collector works
// harder rather than let the agent grow. An environment that says otherwise
// wins.
const memoryLimit = 48 << 20

// garbagePercent is how much garbage there may be to what is in use, of which an agent
// has about three megabytes. chosen: it keeps an agent with a simulated board inside
// under 15 MiB. A board that has a thread collects when nothing is under way.
const garbagePercent = 40

// run runs the agent until it is told to stop. The network may come and go:
// it is needed to report, never to protect.
func run(ctx context.Context, args []string) error {
	fs, common := newFlags("run", "run the agent", "ocs-agent run -config node7.json")
	broker := fs.String("broker", "", "`URL` of the MQTT broker, or URL,URL; overrides the configuration; empty: none")
	node := fs.Int64("node", 0, "`number` of the node; overrides the configuration")
	fabric := fs.String("fabric", "", "`name` of the fabric; overrides the configuration")
	recording := fs.String("record", "", "write what happens on the buses to this `file`, from the start and without bound")
	if err := common.none(args); err != nil {
		return err
	}
	read := func() (Config, error) {
		cfg, err := common.read()
		if err != nil {
			return cfg, err
		}
		fs.Visit(func(f *flag.Flag) {
			switch f.Name {
			case "broker": // also to none
				cfg.Broker = *broker
			case "node":
				cfg.Node = *node
			}
		})
		cfg.Fabric = cmp.Or(*fabric, cfg.Fabric)
		return cfg, cfg.Validate()
	}
	cfg, err := read()
	if err != nil {
		return cli.AsUsage(err)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	log := cfg.logger()
	log.FollowHangup(ctx, cfg, func() (any, string, error) {
		cfg, err := read()
		return cfg, cfg.LogLevel, err
	})
	next := startedAs(common.config)
	if err = cfg.run(ctx, *recording, log.Logger, next); errors.Is(err, agent.ErrRestart) {
		err = next.follow()
	}
	return err
}

func (c *Config) run(ctx context.Context, recording string, log *slog.Logger, next *again) (err error) {
	if c.Board.Kind == "sim" {
		log.Warn("this board is simulated: no light of this machine moves")
	}
	if err := c.calibrateSimulated(ctx, log); ctx.Err() != nil {
		log.Info("ended while the simulated board was calibrated")
		return nil
	} else if err != nil {
		return err
	}
	a, err := c.agentConfig()
	if err != nil {
		return err
	}
	rc := c.runConfig(a, log)
	rc.Lines = c.SCPI
	var seals atomic.Pointer[guard.Guard] // at the link, once there is one
	if rc.Requests, err = c.requests(&seals); err != nil {
		return err
	}
	if next.not != nil {
		rc.Agent.NoRestart = next.not.Error()
	} else {
		rc.Restart = next.look
	}
	if m, err := service.Connect(); err != nil {
		return cli.AsUsage(err)
	} else if m != nil {
		rc.Manager = m
	}
	rc.Further = func(p *metric.Page) {
		counts := seals.Load().Counts()
		metric.AppendAll(p, guard.Measures, &counts)
	}
	if recording != "" {
		f, err := createPrivate(recording)
		if err != nil {
			return cli.AsUsage(err)
		}
		defer f.Close()
		rc.Record = func(block []byte) error { _, err := f.Write(block); return err }
	}
	if c.Broker != "" {
		will, bad := a.Will()
		if bad != nil {
			return bad
		}
		last := func() []byte {
			why := "it was told to end"
			if err != nil {
				why = err.Error()
			}
			note, _ := a.DeathNote(why) // as the will, which could be written
			return note.Payload
		}
		to := mqtt.Config{Broker: c.Broker, ClientID: proto.Topics{Fabric: c.Fabric}.NodeClient(a.Node), Will: &will, Last: last,
			CAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key, PasswordFile: c.Password, Insecure: c.Insecure, Ordered: true, Intake: mqtt.DefaultIntake, Queue: linkQueue, Uncached: c.Cache == "off"}
		link, bad := c.connect(ctx, to, a.Node, log, &seals)
		if bad != nil {
			return cli.AsUsage(bad)
		}
		defer link.Close()
		rc.Link = link
	}
	debug.FreeOSMemory() // what only the beginning took
	return agent.Run(ctx, rc)
}

// connect opens the link; with a token, when there is a certificate.
func (c *Config) connect(ctx context.Context, to mqtt.Config, node proto.NodeID, log *slog.Logger, seals *atomic.Pointer[guard.Guard]) (closer, error) {
	if c.Token == "" {
		return c.dial(to, node, nil, log, seals)
	}
	id, err := guard.OpenIdentity(c.State, c.Fabric, node, log)
	if err != nil {
		return nil, err
	}
	dial := func() (closer, error) { return c.dial(to, node, id, log, seals) }
	if id.Enrolled() {
		return dial()
	}
	return c.enrol(ctx, node, id, log, dial)
}

func (c *Config) dial(to mqtt.Config, node proto.NodeID, id *guard.Identity, log *slog.Logger, seals *atomic.Pointer[guard.Guard]) (closer, error) {
	g, err := c.guard(&to, node, id, log)
	if err != nil {
		return nil, err
	}
	seals.Store(g)
	link, err := mqtt.Dial(to)
	if err != nil {
		return nil, err
	}
	if id != nil {
		id.Attach(g, link.Send, link.Again)
	}
	return mqtt.WatchLink(link, mqtt.Watch{Log: log, Broker: c.Broker, Without: "the agent does not hear its planner"}), nil
}

// guard puts a guard at the link, where the configuration wants one.
func (c *Config) guard(to *mqtt.Config, node proto.NodeID, id *guard.Identity, log *slog.Logger) (*guard.Guard, error) {
	key := c.Key
	if c.Reports != guard.SealedReports {
		key = "" // of TLS alone, and of any kind
	}
	cfg := guard.Config{Mode: guard.Mode(c.Seal), Fabric: c.Fabric, Role: proto.RoleNode, KeyFile: key, TrustFile: c.Trust,
		Kept: filepath.Join(c.State, "trust.cose"), Reports: c.Reports == guard.SealedReports, Log: log}
	topics := proto.Topics{Fabric: c.Fabric}
	to.Subscriptions = []string{topics.Trust()}
	if id != nil {
		to.Subscriptions, cfg.Hear = append(to.Subscriptions, topics.CRT(node)), id.Hear
		to.CertFile, to.CAFile, cfg.TrustFile = guard.IdentityFiles(c.State)
		to.KeyFile, cfg.KeyFile = to.CertFile, to.CertFile
		if !guard.Encrypted(c.Broker) {
			to.CAFile, to.CertFile, to.KeyFile = "", "", ""
		}
	}
	g, err := guard.New(cfg)
	if err != nil || g == nil {
		to.Subscriptions = nil
		return nil, err
	}
	if c.CA == "" && !guard.Encrypted(c.Broker) {
		to.CertFile, to.KeyFile = "", "" // for seals alone
	}
	to.Guard = g
	return g, nil
}

// linkQueue bounds what waits for the agent. chosen: 4 MiB at most.
const linkQueue = 1024

// runConfig is how an agent of this configuration runs, alone.
func (c *Config) runConfig(a agent.Config, log *slog.Logger) agent.RunConfig {
	cert, ca := c.Cert, c.CA
	if c.Token != "" {
		cert, ca, _ = guard.IdentityFiles(c.State)
	}
	return agent.RunConfig{Agent: a, Open: c.open(a.Board), Journal: filepath.Join(c.State, "journal"), Socket: c.socketPath(),
		Calibrated: c.keepCalibration, Log: log, RecordBytes: c.recordBytes(), Firmware: cmp.Or(c.Firmware, filepath.Join(c.State, "firmware")),
		Process: self.New("ocs-agent", a.Software, self.File{Use: "cert", Path: cert}, self.File{Use: "ca", Path: ca})}
}

// calibrateSimulated gives a simulated board that is to be calibrated the
// calibrations that it lacks, by calibrating it on its virtual clock before
// its real one starts.
func (c *Config) calibrateSimulated(ctx context.Context, log *slog.Logger) error {
	if c.Board.Kind != "sim" || !c.Board.Calibrated || c.Board.isSwitch() {
		return nil
	}
	known, _, err := agent.LoadCalibrations(c.State, c.Board.Bundles)
	if err != nil {
		return err
	}
	// Codes of modules with a controller come from their maker's bench: the same
	// optics, their chips within reach.
	maker := *c
	maker.Board.Direct = false // whose agent is a switch's, and calibrates nothing
	if maker.Board.ModuleKind == boardfile.CMIS {
		layout, err := c.Board.layout()
		if err != nil {
			return err
		}
		its, err := benchOf(&layout)
		if err != nil {
			return err
		}
		maker.Board.Take(its)
	}
	maker.Board.SlowMCI = false
	var b *simBench
	for i, cal := range known {
		if cal != nil {
			continue
		}
		if b == nil {
			log.Info("calibrating the simulated board; once", "bundles", c.Board.Bundles, "modules", c.Board.Modules)
			if b, err = maker.bench(); err != nil {
				return err
			}
			b.Over = ctx.Err
		}
		ans, err := answered(b.Ask(agent.Ask{Verb: agent.AskCalibrate, Bundle: proto.BundleID(i)}, calibratePatience))
		if err != nil {
			b.close()
			return fmt.Errorf("calibrate bundle %d: %w", i, err)
		}
		log.Info("calibrated", "bundle", i, "board_time", ans.Took.Round(time.Millisecond))
	}
	if b == nil {
		return nil
	}
	return b.close()
}
