package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// threaded is a Hardware whose lines wait for one thread, which also makes the
// writes that answer them: hal/linux.
type threaded interface {
	// Attach makes that thread out of the caller's. relief is called when it
	// hangs in the kernel: see hal/linux.
	Attach(relief func()) hal.Prompt
	// Wait waits at most until a time, and appends what happened meanwhile to out.
	// hal.ErrRelieved: another thread has taken over.
	Wait(until time.Duration, out []hal.Event) ([]hal.Event, error)
	Wake()             // makes Wait return, from any goroutine
	LostEdges() uint64 // since the board was opened
	Shared() []string  // chips that a driver of the kernel reads, too
	Together(func())   // runs it with every thread of the process before those of others
}

// spareProcessors are those of the runtime beyond the machine's. A thread that comes
// back from the kernel finds one free while all others work: without, it waits until one
// of them has checked its seals or made its garbage, whatever its priority. The machine's
// own scheduler shares the machine among the others, as it should. chosen: more than
// there are goroutines of the link, the disk and the buses that have something to do at once.
const spareProcessors = 16

// attach makes the calling goroutine the board's thread, for good: the thread
// has a priority that no other goroutine should get.
func (r *runner) attach(ctx context.Context) {
	runtime.LockOSThread()
	p := r.thread.Attach(func() { r.relieve(ctx) })
	if r.cfg.Agent.Prompt != nil {
		return
	}
	r.cfg.Agent.Prompt = &p
	runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors)
	for _, c := range r.thread.Shared() {
		r.log.Info("a chip is shared with the kernel", "chip", c)
	}
	for _, m := range p.Missing {
		r.log.Warn("the machine lacks what prompt answers to edges need", "missing", m)
	}
	say := r.log.Info
	if p.Priority == 0 {
		say = r.log.Warn
	}
	say("the switching thread", "priority", p.Priority, "memory_locked", p.Locked, "wake_up_p50", p.WakeP50, "wake_up_p99", p.WakeP99, "wake_up_max", p.WakeMax)
}

// relieve goes on in place of a thread that hangs in the kernel.
func (r *runner) relieve(ctx context.Context) {
	r.log.Warn("a write to a latch hangs in the kernel; another thread takes over")
	r.attach(ctx)
	if err := r.loop(ctx); !errors.Is(err, hal.ErrRelieved) {
		r.ended <- err
	}
}

// listen waits on the agent's own thread until next, and takes what the board
// tells there.
func (r *runner) listen(ctx context.Context, next time.Duration) error {
	r.submitted = false
	if len(r.events)+len(r.calls)+len(r.packets) > 0 || ctx.Err() != nil {
		next = 0
	}
	heard, err := r.thread.Wait(next, r.heard[:0])
	if err != nil {
		return err // relieved, nothing here is ours any more
	}
	r.heard = heard
	now := r.hardware.Now()
	for _, ev := range r.heard {
		if ev.Edge != nil {
			r.collector.edge = now
		}
		r.boardEvent(now, ev)
	}
	if lost := r.thread.LostEdges(); lost != r.lostEdges {
		text := fmt.Sprintf("%d edges of LOS lines lost in the kernel, %d since the start; the levels were read again", lost-r.lostEdges, lost)
		r.lostEdges = lost
		r.log.Warn(text)
		r.host.Deliver(now, Input{Kind: InAlarm, Alarm: Alarm{Text: text}})
	}
	return nil
}

// When memory is collected. chosen: a switch takes a millisecond, and what
// follows it a few more; the limit keeps a calibration, whose edges do not end,
// within the agent's memory.
const (
	collectEvery = 4 << 20                // bytes allocated
	collectQuiet = 100 * time.Millisecond // since the last edge
	collectLimit = 4 * collectEvery
	collectLook  = 20 * time.Millisecond // between two looks
)

// collector begins collections while no switch is under way: the runtime's own
// come when they come, and take the machine for some milliseconds.
type collector struct {
	edge, looked time.Duration
	collected    uint64
	busy         atomic.Bool
	sample       [1]metrics.Sample
}

// collect begins a collection when one is due and no light has moved lately.
func (r *runner) collect() {
	c, now := &r.collector, r.hardware.Now()
	if now < c.looked+collectLook || c.busy.Load() {
		return
	}
	c.looked = now
	c.sample[0].Name = "/gc/heap/allocs:bytes"
	metrics.Read(c.sample[:])
	grown := c.sample[0].Value.Uint64() - c.collected
	if grown < collectEvery || now < c.edge+collectQuiet && grown < collectLimit {
		return
	}
	c.collected += grown
	c.busy.Store(true)
	go func() { r.thread.Together(runtime.GC); c.busy.Store(false) }()
}

// receive is what the link brings. The agent's own thread is woken for it.
func (r *runner) receive(ctx context.Context) <-chan proto.Packet {
	if r.thread == nil {
		return r.cfg.Link.Recv()
	}
	out := make(chan proto.Packet, 1) // whose length tells that one waits
	go func() {
		defer r.thread.Wake()
		defer close(out)
		for p := range r.cfg.Link.Recv() {
			select {
			case out <- p:
				r.thread.Wake()
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
