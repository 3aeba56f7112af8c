package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
	"ringlight/sim/live"
)

// brokerFlags are which broker, and how one comes to it.
func brokerFlags(fs *flag.FlagSet, cfg *mqtt.Config) {
	fs.StringVar(&cfg.Broker, "broker", defaultBroker, "MQTT broker, or several of one cluster with commas between")
	fs.BoolVar(&cfg.Insecure, "insecure", false, "allow mqtt:// beyond loopback")
	fs.StringVar(&cfg.CAFile, "ca", "", "file with the broker's certificate authority, PEM")
	fs.StringVar(&cfg.CertFile, "cert", "", "file with a client certificate, PEM")
	fs.StringVar(&cfg.KeyFile, "key", "", "file with the certificate's key, PEM")
}

// runBrokerCheck names what a broker lacks.
func runBrokerCheck(ctx context.Context, args []string, t cli.Terminal) error {
	cfg := mqtt.Config{}
	fs := cli.NewFlags("broker-check")
	brokerFlags(fs, &cfg)
	fs.StringVar(&cfg.PasswordFile, "password-file", "", "`FILE` with user:password, or with the password where the URL names the user")
	fabric := fs.String("fabric", "check", "`NAME` of a fabric that is not in service: the topics that are used")
	asJSON := fs.Bool("json", false, "print JSON")
	if _, err := cli.ParseNone(fs, args, help("broker-check")); err != nil {
		return err
	}
	check := cfg
	check.ClientID = "check"
	if err := check.Check(); err != nil {
		return cli.AsUsage(err)
	}
	if err := proto.CheckName("fabric", *fabric); err != nil {
		return cli.AsUsage(err)
	}
	found := live.CheckBroker(ctx, cfg, *fabric)
	var err error
	table := cli.Table{Screen: cli.ScreenOf(t.Out)}
	for _, f := range found {
		word := "has"
		if !f.Has {
			if word = "lacks"; f.Needed {
				err = errors.New("the broker lacks what nothing works without: " + f.Ask)
			}
		}
		table.Row(word, f.Ask, f.Saw)
		if !f.Has {
			table.Row("", "  without it", f.Lack)
		}
	}
	if *asJSON {
		return errors.Join(cli.PrintJSON(t.Out, map[string]any{"broker": cfg.Broker, "asks": found}), err)
	}
	return errors.Join(table.Print(t.Out), err)
}

// sealFlags say how simulated agents seal, and whom they believe.
type sealFlags struct{ mode, trust, reports, keys string }

func (f *sealFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.mode, "seal", string(guard.Off), "off, warn or enforce: a planner's message that no trusted key has sealed is read, read and logged, or not read")
	fs.StringVar(&f.trust, "trust", "", "trust document of ocsctl pki, with -seal")
	fs.StringVar(&f.reports, "reports", "plain", "plain or sealed: whether agents seal what they report, with the keys in -keys")
	fs.StringVar(&f.keys, "keys", "", "`FOLDER` with a pair for each node, FABRIC-n-NODE.pem and .key, as ocsctl pki node writes them: each agent comes to an mqtts:// broker with its own certificate, and seals with its own key")
}

// own are certificate and key of a node.
func (f *sealFlags) own(fabric string, n proto.NodeID) (certFile, keyFile string) {
	name := filepath.Join(f.keys, fmt.Sprintf("%s-n-%d", fabric, n))
	return name + ".pem", name + ".key"
}

// checkKeys refuses a folder in which a node, or a switch, has not its pair: before the first
// agent begins, not at the one that would miss it.
func (f *sealFlags) checkKeys(to mqtt.Config, of *fabric.Fabric) error {
	tls := guard.Encrypted(to.Broker)
	switch {
	case f.keys == "":
		return nil
	case to.CertFile != "" || to.KeyFile != "":
		return cli.Usage("keys", "-keys, or -cert and -key for all", "both are given")
	case !tls && f.reports != guard.SealedReports:
		return cli.Usage("keys", "an mqtts:// broker, or -reports sealed", "nothing would use them")
	}
	var all []proto.NodeID
	for n := range of.Nodes {
		all = append(all, proto.NodeID(n))
	}
	if core := of.Core; core != nil {
		switches := core.Mirrors()
		if core.Direct != nil {
			switches += core.Direct.Servers
		}
		for i := range switches {
			all = append(all, proto.FirstSwitch+proto.NodeID(i))
		}
	}
	for _, n := range all {
		to.CertFile, to.KeyFile = f.own(of.Name, n)
		files := []string{to.CertFile, to.KeyFile}
		if !tls {
			files = files[1:] // a key is enough for seals
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil {
				return cli.Usage("keys", fmt.Sprintf("a pair for each of %d agents: ocsctl pki node", len(all)), "%v", err)
			}
		}
		if tls {
			if err := to.Check(); err != nil {
				return cli.Usage("keys", "certificates with their keys", "%s: %v", to.CertFile, err)
			}
		}
	}
	return nil
}

// guards makes a guard for each agent, where there are to be some, and says with which pair
// it comes to the broker. An agent without a guard takes seals off all the same, and says so.
func (f *sealFlags) guards(fabric, broker string) (func(proto.NodeID) (live.Guard, error), error) {
	cfg := guard.Config{Mode: guard.Mode(f.mode), Fabric: fabric, Role: proto.RoleNode, TrustFile: f.trust, Reports: f.reports == guard.SealedReports,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if err := guard.CheckKeys(cfg.Mode, f.trust, f.reports, f.keys != "" || !cfg.Reports); err != nil {
		return nil, err
	}
	return func(n proto.NodeID) (at live.Guard, err error) {
		at.Features = guard.Features(cfg.Mode, cfg.Reports)
		certFile, keyFile := f.own(fabric, n)
		if f.keys != "" && guard.Encrypted(broker) {
			at.CertFile, at.KeyFile = certFile, keyFile
		}
		c := cfg
		if c.Reports {
			c.KeyFile = keyFile
		}
		if c.Mode.On() {
			at.Guard, err = guard.New(c)
		}
		return at, err
	}, nil
}
