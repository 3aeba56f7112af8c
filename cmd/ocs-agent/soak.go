package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ringlight/agent"
	"ringlight/agent/bench"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/linux"
	"ringlight/mzi/detmath"
)

// Load of a soak. chosen: with these, periph's own I2C, whose requests lie on
// stacks that move, read wrongly within a second on emulated boards.
const (
	soakWorkers  = 12
	soakDepth    = 60              // of a recursion that makes a stack grow before every read
	soakChurn    = 50              // goroutines started and ended between two collections
	soakTooMany  = 20              // failures that are named
	soakPatience = 5 * time.Second // beyond an op's deadline
)

// soakResult is what a soak prints.
type soakResult struct {
	Chips        []soakChip `json:"chips"`
	Workers      int        `json:"workers"`
	Buses        int        `json:"buses"`
	Transactions int64      `json:"transactions"`
	Errors       int64      `json:"errors"`
	Wrong        int64      `json:"wrong_reads"`
	Collections  uint32     `json:"collections"`
	ElapsedMS    int64      `json:"elapsed_ms"`
	Machine      string     `json:"machine"`
	Failures     []string   `json:"failures,omitempty"`
}

type soakChip struct {
	Chip   string `json:"chip"`
	Found  string `json:"found"`
	TookUS int64  `json:"took_us"`
}

// soaker counts.
type soaker struct {
	hw       agent.Hardware
	tx       atomic.Int64
	failed   atomic.Int64
	wrong    atomic.Int64
	mu       sync.Mutex
	failures []string
	waiting  []chan *hal.Completion // by worker
}

// soak loads the buses of the configured board, or of these chips, from many
// goroutines while memory is collected and stacks move.
func (c *Config) soak(n int, texts []string, deadline time.Duration, write, asJSON bool) error {
	if _, err := c.askSocket(agent.Question{Verb: "status"}); !errors.Is(err, agent.ErrNoAgent) && c.Board.Kind != "sim" {
		return cli.AsUsage(errAgentRuns) // a bus has one owner
	}
	s, open, err := c.soakBoard(texts)
	if err != nil {
		return err
	}
	s.Deadline = deadline
	if len(s.Chips) == 0 {
		return usagef("bus-soak: this board has no EEPROM, sensor or mux that can be read; name chips by -chip")
	}
	res := soakResult{Workers: soakWorkers, Buses: len(s.Board.Buses), Machine: runtime.GOOS + "/" + runtime.GOARCH + " " + runtime.Version()}
	// The chips first, one after the other, on a board opened for it.
	w, err := openWaiting(open)
	if err != nil {
		return err
	}
	err = s.Learn(w)
	for i, k := range s.Chips {
		text := k.Text
		if write && err == nil && k.Chip.Kind == bench.ChipEEPROM {
			polls, werr := s.TryWrite(w, i)
			if text = fmt.Sprintf("%s; written over a page's end, %d polls, restored", text, polls); werr != nil {
				err = fmt.Errorf("%v: write: %w", k.Chip, werr)
			}
		}
		res.Chips = append(res.Chips, soakChip{k.Chip.String(), text, k.Took.Microseconds()})
		if !asJSON && text != "" {
			fmt.Printf("%-36v %s\n", k.Chip, text)
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	if s.Draw(new(detmath.Random)) == nil {
		return usagef("bus-soak: no chip that can be read")
	}
	if err := res.run(s, open, n); err != nil {
		return err
	}
	if err := answer(asJSON, res, func() {
		fmt.Printf("soak: %d transactions by %d workers on %d buses, %d collections: %d errors, %d wrong reads, %.1f s (%s)\n",
			res.Transactions, res.Workers, res.Buses, res.Collections, res.Errors, res.Wrong, float64(res.ElapsedMS)/1000, res.Machine)
	}); err != nil {
		return err
	}
	for _, f := range res.Failures {
		fmt.Fprintln(os.Stderr, f)
	}
	if res.Errors+res.Wrong > 0 {
		return cli.Answered(fmt.Errorf("bus soak: %d errors and %d wrong reads in %d transactions", res.Errors, res.Wrong, res.Transactions))
	}
	return nil
}

// soakBoard is the configured board, or one of these chips alone.
func (c *Config) soakBoard(texts []string) (*bench.Soak, func(func(hal.Event)) (agent.Hardware, error), error) {
	if len(texts) == 0 {
		board, err := c.Board.layout()
		if err != nil {
			return nil, nil, err
		}
		return bench.OnBoard(&board), c.open(&board), nil
	}
	var chips []bench.Chip
	for _, text := range texts {
		chip, err := bench.ParseChip(text)
		if err != nil {
			return nil, nil, cli.AsUsage(err)
		}
		if driver := linux.Driver(chip.Device, chip.Addr); driver != "" && chip.Kind == bench.ChipMux {
			return nil, nil, linux.Held(chip.Device, chip.Addr, driver)
		} else if driver != "" {
			fmt.Fprintf(os.Stderr, "%v: %s of the kernel reads it, too\n", chip, driver)
		}
		chips = append(chips, chip)
	}
	s := bench.NewSoak(chips)
	for i := range s.Board.Buses {
		s.Board.Buses[i].Adapter = linux.Channel(s.Board.Buses[i].Device)
	}
	return s, func(events func(hal.Event)) (agent.Hardware, error) { return linux.Open(&s.Board, events) }, nil
}

// run does n transactions.
func (r *soakResult) run(s *bench.Soak, open func(func(hal.Event)) (agent.Hardware, error), n int) error {
	k := &soaker{waiting: make([]chan *hal.Completion, soakWorkers)}
	for i := range k.waiting {
		k.waiting[i] = make(chan *hal.Completion, 1)
	}
	var err error
	if k.hw, err = open(func(ev hal.Event) {
		if ev.Completion != nil {
			k.waiting[ev.Completion.Op.Token] <- ev.Completion
		}
	}); err != nil {
		return err
	}
	started := time.Now()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var workers sync.WaitGroup
	for i := range soakWorkers {
		workers.Go(func() { k.work(s, uint64(i), int64(n)) })
	}
	over := make(chan struct{})
	go func() { workers.Wait(); close(over) }()
	for running := true; running; {
		select {
		case _, running = <-over:
		default:
			churn()
		}
	}
	runtime.ReadMemStats(&after)
	r.Transactions, r.Errors, r.Wrong, r.Failures = k.tx.Load(), k.failed.Load(), k.wrong.Load(), k.failures
	r.Collections = after.NumGC - before.NumGC
	r.ElapsedMS = time.Since(started).Milliseconds()
	return k.hw.Close()
}

// work does transactions until all together are n.
func (k *soaker) work(s *bench.Soak, worker uint64, n int64) {
	rng := detmath.Random(worker)
	for k.tx.Add(1) <= n {
		t := s.Draw(&rng)
		t.Op.Token = worker
		// A stack that has just grown and shrinks while the kernel works is
		// what a request on it does not survive.
		deep(soakDepth)
		if err := k.hw.Submit(t.Chip.Bus, t.Op); err != nil {
			k.fail(&k.failed, fmt.Sprintf("%v: %v", t.Chip.Chip, err))
			continue
		}
		select {
		case done := <-k.waiting[worker]:
			if done.Err != nil {
				k.fail(&k.failed, fmt.Sprintf("%v: %v", t.Chip.Chip, done.Err))
			} else if wrong := t.Wrong(); wrong != "" {
				k.fail(&k.wrong, wrong)
			}
		case <-time.After(t.Op.Deadline + soakPatience):
			k.fail(&k.failed, fmt.Sprintf("%v: no completion within %v", t.Chip.Chip, t.Op.Deadline+soakPatience))
			return // what comes later belongs to nobody
		}
	}
	k.tx.Add(-1)
}

func (k *soaker) fail(count *atomic.Int64, text string) {
	count.Add(1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.failures) < soakTooMany {
		k.failures = append(k.failures, text)
	}
}

// churn collects and lets many short stacks come and go.
func churn() {
	runtime.GC()
	for range soakChurn {
		c := make(chan byte)
		go func() { c <- deep(soakDepth / 3) }()
		<-c
	}
}

// deep uses some kilobytes of stack a level.
//
//go:noinline
func deep(n int) byte {
	var b [512]byte
	if n > 0 {
		b[n%len(b)] = deep(n - 1)
	}
	return b[n*7%len(b)]
}
