package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"time"

	"ringlight/agent/bench"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/linux"
)

// edgePatience is how long the next edge of a self test may take to come.
// chosen: a person who plugs a fibre.
const edgePatience = time.Minute

// edgesResult is what -edges prints. Entered is from the kernel's stamp of an
// edge to the write handed to the kernel, Written to its end.
type edgesResult struct {
	Edges     int        `json:"edges"`
	Lost      uint64     `json:"lost"`
	Wrong     int        `json:"wrong"` // answers that did not stand there, or not as the line
	Entered   latency    `json:"entered"`
	Written   latency    `json:"written"`
	Prompt    hal.Prompt `json:"prompt"`
	Machine   string     `json:"machine"`
	ElapsedMS int64      `json:"elapsed_ms"`
}

type latency struct {
	P50US int64 `json:"p50_us"`
	P99US int64 `json:"p99_us"`
	MaxUS int64 `json:"max_us"`
}

func latencyOf(d []time.Duration) latency {
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	at := func(share int) int64 { return d[min(len(d)*share/100, len(d)-1)].Microseconds() }
	return latency{at(50), at(99), at(100)}
}

func (l latency) String() string {
	return fmt.Sprintf("p50 %d p99 %d max %d us", l.P50US, l.P99US, l.MaxUS)
}

// edges answers n edges of a line by writes to a latch, on the thread and by the
// calls that a switch takes, reads each back, and says how long they took.
func edges(n int, line, latch string, deadline time.Duration, asJSON bool) error {
	a, err := bench.NewAnswer(line, latch, deadline)
	if err != nil {
		return cli.AsUsage(err)
	}
	done := make(chan *hal.Completion, 1)
	board, err := linux.Open(&a.Board, func(ev hal.Event) { done <- ev.Completion })
	if err != nil {
		return err
	}
	defer board.Close()
	for _, chip := range board.Shared() {
		fmt.Fprintln(os.Stderr, chip)
	}
	runtime.LockOSThread()
	res := edgesResult{Machine: runtime.GOOS + "/" + runtime.GOARCH + " " + runtime.Version()}
	res.Prompt = board.Attach(func() {
		fmt.Fprintln(os.Stderr, "a write hangs in the kernel")
		os.Exit(1)
	})
	if !asJSON {
		fmt.Printf("thread: priority %d, memory locked %v, wake-ups late by p50 %d p99 %d max %d us; answering %d edges of %s\n", res.Prompt.Priority, res.Prompt.Locked,
			res.Prompt.WakeP50.Microseconds(), res.Prompt.WakeP99.Microseconds(), res.Prompt.WakeMax.Microseconds(), n, line)
		for _, m := range res.Prompt.Missing {
			fmt.Println("thread:", m)
		}
	}
	started := time.Now()
	var entered, written []time.Duration
	if err := answerAll(board, a, done, n, func(e hal.Edge, c *hal.Completion) {
		entered, written = append(entered, c.Start-e.At), append(written, c.End-e.At)
		if a.Stands() != e.High {
			res.Wrong++
		}
	}); err != nil {
		return err
	}
	res.Edges, res.Lost, res.ElapsedMS = len(entered), board.LostEdges(), time.Since(started).Milliseconds()
	res.Entered, res.Written = latencyOf(entered), latencyOf(written)
	err = answer(asJSON, res, func() {
		fmt.Printf("edges: %d answered, %d lost, %d wrong; edge to write entered %v, to written %v, %.1f s (%s)\n", res.Edges, res.Lost, res.Wrong,
			res.Entered, res.Written, float64(res.ElapsedMS)/1000, res.Machine)
	})
	if err == nil && (res.Lost > 0 || res.Wrong > 0) {
		err = cli.Answered(fmt.Errorf("edges: %d lost and %d wrong of %d", res.Lost, res.Wrong, res.Edges))
	}
	return err
}

// answerAll writes the level of every edge to the latch, reads it back, and
// tells of it.
func answerAll(board *linux.Board, a *bench.Answer, done chan *hal.Completion, n int, told func(hal.Edge, *hal.Completion)) error {
	var waiting []hal.Edge
	var out []hal.Event
	writing := false
	for last, answered := board.Now(), 0; answered < n; {
		var err error
		if out, err = board.Wait(last+edgePatience, out[:0]); err != nil {
			return err
		}
		if len(out) == 0 && board.Now() >= last+edgePatience {
			return fmt.Errorf("edges: %d of %d came; none within %v", answered, n, edgePatience)
		}
		for _, ev := range out {
			if ev.Edge != nil {
				waiting, last = append(waiting, *ev.Edge), board.Now()
				continue
			}
			if ev.Completion.Err != nil {
				return fmt.Errorf("latch: %w", ev.Completion.Err)
			}
			if err := board.Submit(0, a.Read()); err != nil {
				return err
			}
			if c := <-done; c.Err != nil {
				return fmt.Errorf("latch, read back: %w", c.Err)
			}
			told(waiting[0], ev.Completion)
			waiting, writing = waiting[1:], false
			answered++
		}
		if len(waiting) > 0 && !writing {
			if err := board.Submit(0, a.Write(waiting[0].High)); err != nil {
				return err
			}
			writing = true
		}
	}
	return nil
}
