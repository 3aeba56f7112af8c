package main

import (
	"context"
	"errors"
	"flag"

	"ringlight/cmd/cli"
	"ringlight/proto"
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
