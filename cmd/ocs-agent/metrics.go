package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
)

// leastEvery bounds how often a text file is written. chosen: nobody scrapes
// more often.
const leastEvery = time.Second

// metrics prints the running agent's measures, or writes them where
// node_exporter's textfile collector looks.
func metrics(ctx context.Context, args []string) error {
	fs, common := newFlags("metrics", "print the running agent's measures in the text format of Prometheus",
		"ocs-agent metrics -config node7.json\n         ocs-agent metrics -textfile /var/lib/prometheus/node-exporter/ringlight.prom -every 15s")
	file := fs.String("textfile", "", "write them to this `file`, whole or not at all, for node_exporter's textfile collector; else to stdout")
	every := fs.Duration("every", 0, "write the file again and again at this `interval`, 1s or more, until interrupted; 0: once")
	cfg, err := common.alone(args)
	if err != nil {
		return err
	}
	if *every != 0 && (*every < leastEvery || *file == "") {
		return usagef("every: %v: want 0, or %v or more and a textfile", *every, leastEvery)
	}
	return cfg.metrics(ctx, *file, *every)
}

func (c *Config) metrics(ctx context.Context, file string, every time.Duration) error {
	last := ""
	for {
		err := c.metricsOnce(file)
		if every == 0 {
			return err
		}
		// A file that stays what it was would be taken for the truth.
		if err != nil {
			err = errors.Join(err, removeIfThere(file))
		}
		if now := fmt.Sprint(err); now != last {
			if last = now; err != nil {
				fmt.Fprintln(os.Stderr, "ocs-agent: metrics:", err)
			}
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return removeIfThere(file)
		}
	}
}

func removeIfThere(file string) error {
	if err := os.Remove(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (c *Config) metricsOnce(file string) error {
	ans, err := answered(c.askSocket(agent.Question{Verb: "metrics"}))
	if err != nil {
		return err
	}
	if file == "" {
		_, err = os.Stdout.WriteString(ans.Text)
		return err
	}
	// Whoever reads sees the page before or this one. It is not synced: after a
	// loss of power there is a newer one before anybody asks.
	return cli.ReplaceFile(file, []byte(ans.Text), 0o644)
}
