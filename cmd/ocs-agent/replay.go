package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/hal/record"
)

// maxRecording bounds the recording that replay reads into memory. chosen:
// half a day of a node with a health round every second.
const maxRecording = 1 << 30

// errDiverged is a replay that did not do what was recorded.
var errDiverged = errors.New("the replay diverges from the recording")

// replayCommand lets this program's agent live through a recording.
func replayCommand(_ context.Context, args []string) error {
	_, common := newFlags("replay FILE", "let this program's agent live through a recording and compare the bus work that it asks for",
		"ocs-agent replay node7.rec")
	words, err := common.words(args, 1)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return usagef("replay: want a file, - is stdin")
	}
	file := words[0]
	raw, err := readLimited(file, maxRecording)
	if err != nil {
		return cli.AsUsage(err)
	}
	res, err := agent.Replay(raw)
	if err != nil {
		if res == nil && errors.Is(err, record.ErrFormat) {
			err = cli.AsUsage(fmt.Errorf("%s: %w", file, err))
		}
		return err
	}
	err = answer(common.json, res, func() { printReplay(res) })
	if err == nil && res.Diverged != nil {
		err = cli.Answered(errDiverged)
	}
	return err
}

func readLimited(file string, most int64) ([]byte, error) {
	raw, long, err := cli.ReadBounded(os.Stdin, file, most)
	if err == nil && long {
		err = fmt.Errorf("%s: more than %d bytes", file, most)
	}
	return raw, err
}

func printReplay(r *agent.Replayed) {
	fmt.Printf("node %d  %s  %v of board time: %d entries, %d polls, %d ops, %d edges, %d messages and questions\n", r.Node, r.Software,
		r.Lived.Round(time.Millisecond), r.Entries, r.Polls, r.Ops, r.Edges, r.Told)
	for _, e := range r.Errors {
		fmt.Printf("bus %d  %d x %s\n", e.Bus, e.Count, e.Cause)
	}
	switch {
	case !r.Compared:
		fmt.Printf("not compared: %s\n", r.NotCompared)
	case r.Diverged == nil:
		fmt.Printf("this program (ringlight %s) asks for the same %d ops\n", version, r.Ops)
	default:
		fmt.Printf("diverges at entry %d, %v\n  recorded  %s\n  replayed  %s\n", r.Diverged.Entry, r.Diverged.At, r.Diverged.Want, r.Diverged.Got)
	}
}
