package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
)

// recordCommand writes what happens between the agent and its board to a file:
// of the running agent, or of one that it runs itself for the purpose.
func recordCommand(ctx context.Context, args []string) error {
	fs, common := newFlags("record -o FILE", "write what happens on the buses to a file, of the running agent or, without one, of the board opened for it",
		"ocs-agent record -o node7.rec -for 1m -config node7.json\n         ocs-agent record -o - | ocs-agent replay -")
	out := fs.String("o", "", "`file` to write, - is stdout")
	length := fs.Duration("for", 0, "end after this `time`; 0: when interrupted, or after 10 s of a simulated board's own time")
	cfg, err := common.alone(args)
	switch {
	case err != nil:
		return err
	case *out == "":
		return usagef("o: want a file to write")
	case *length < 0:
		return usagef("for: %v: want 0 or more", *length)
	}
	w := os.Stdout
	if *out != "-" {
		if w, err = createPrivate(*out); err != nil {
			return cli.AsUsage(err)
		}
		defer w.Close()
	}
	n, err := cfg.record(ctx, w, *length)
	if err == nil && *out != "-" {
		err = w.Sync()
	}
	if err != nil {
		return err
	}
	if *out == "-" {
		return nil
	}
	return answer(common.json, map[string]any{"file": *out, "bytes": n}, func() { fmt.Printf("%s: %d bytes\n", *out, n) })
}

// simulatedRecording is how long an agent on a simulated board is recorded
// when nobody says.
const simulatedRecording = 10 * time.Second

// counting counts what is written.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func (c *Config) record(ctx context.Context, w io.Writer, length time.Duration) (int64, error) {
	out := &counting{w: w}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if length > 0 {
		limited, cancel = context.WithTimeout(ctx, length)
	}
	defer cancel()
	told := time.Now()
	err := agent.RecordSocket(limited, c.socketPath(), out, func(n int64) {
		if time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d bytes\n", n)
		}
	})
	if !errors.Is(err, agent.ErrNoAgent) {
		return out.n, err
	}
	if c.Board.Kind == "sim" {
		return out.n, c.recordSimulated(out, cmp.Or(length, simulatedRecording))
	}
	a, err := c.agentConfig()
	if err != nil {
		return 0, err
	}
	rc := c.runConfig(a, nil)
	rc.Record = func(block []byte) error { _, err := out.Write(block); return err }
	return out.n, agent.Run(limited, rc)
}

// recordSimulated records an agent on a simulated board's virtual clock.
func (c *Config) recordSimulated(out io.Writer, length time.Duration) error {
	var failed error
	b, err := c.recordedBench(c.healthPeriod(), func(block []byte) {
		if _, err := out.Write(block); err != nil {
			failed = err
		}
	})
	if err != nil {
		return err
	}
	if err := b.Run(b.board.Now()+length, nil); err != nil {
		return errors.Join(err, b.close())
	}
	b.EndRecording()
	return errors.Join(failed, b.close())
}

// release lets devices out of quarantine.
func release(_ context.Context, args []string) error {
	fs, common := newFlags("release", "let devices out of quarantine, as status names them", "ocs-agent release -device 3/0x70.2/0x48")
	device := fs.String("device", "", "`device` as status names it; none: all")
	cfg, err := common.alone(args)
	if err != nil {
		return err
	}
	ans, err := answered(cfg.askSocket(agent.Question{Verb: "release", Text: *device}))
	if err != nil {
		return err
	}
	return answer(common.json, map[string]int{"released": ans.Released}, func() { fmt.Printf("%d released\n", ans.Released) })
}
