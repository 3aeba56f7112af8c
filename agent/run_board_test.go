package agent

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/solo"
)

// counted is a board that counts the housekeeping that reaches a bus.
type counted struct {
	*solo.Live
	bus hal.BusID
	mu  sync.Mutex
	n   int
}

func (c *counted) Submit(bus hal.BusID, op *hal.Op) error {
	if bus == c.bus && op.Class > hal.ClassVerify {
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
	}
	return c.Live.Submit(bus, op)
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// runOn starts an agent on a board of its own, with short health rounds.
func runOn(t *testing.T, change func(*RunConfig)) (c *counted, board *hal.Board, socket string, stop func() error) {
	t.Helper()
	hw, err := boardfile.Default(4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	c = &counted{bus: hw.Bundles[1].Modules[0].Slow}
	ctx, cancel := context.WithCancel(context.Background())
	socket = filepath.Join(t.TempDir(), "agent.sock")
	cfg := RunConfig{Agent: Config{Fabric: "f1", Node: 1, Board: &hw, Session: 5, HealthPeriod: 60 * time.Millisecond}, Socket: socket,
		Open: func(events func(hal.Event)) (Hardware, error) {
			c.Live, err = solo.Open(solo.Config{Board: &hw, Seed: 3}, events)
			return c, err
		}}
	if change != nil {
		change(&cfg)
	}
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	once := sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			return errors.New("the agent does not end")
		}
	})
	t.Cleanup(func() { once() })
	until(t, "the socket", func() bool { _, err := AskSocket(socket, Question{Verb: "status"}); return err == nil })
	return c, &hw, socket, once
}

// until asks again until done is true.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("never: %s", what)
		}
	}
}

func TestQuarantineReachesThePlanner(t *testing.T) {
	// Goal: the planner is told which device is in quarantine and of which
	// module, and when it is out; so why can say it. The recording with it is
	// lived again.
	var mu sync.Mutex
	var own bytes.Buffer
	link := newWireLink()
	link.in <- proto.Packet{Kind: proto.LinkUp}
	c, board, socket, stop := runOn(t, func(cfg *RunConfig) {
		cfg.Link = link
		cfg.Record = func(block []byte) error {
			mu.Lock()
			defer mu.Unlock()
			own.Write(block)
			return nil
		}
	})
	m := board.Bundles[1].Modules[0]
	c.With(func(b *solo.Board) {
		if err := b.World().Inject(b.ID(), sim.Fault{Kind: sim.ChipGone, Bus: m.Slow, Addr: m.Temp}); err != nil {
			t.Error(err)
		}
	})
	alarm := func(resolved bool, text string) func(p proto.Packet) bool {
		return func(p proto.Packet) bool {
			var e proto.Event
			if p.Kind != proto.Publish || !strings.HasSuffix(p.Topic, "/event") {
				return false
			}
			_, err := proto.Decode(p.Payload, &e)
			return err == nil && e.Kind == proto.EvAlarm && e.Bundle == 1 && e.Resolved == resolved && strings.Contains(e.Text, text)
		}
	}
	link.wait(t, "the alarm", alarm(false, "in quarantine"))
	if _, err := AskSocket(socket, Question{Verb: "release"}); err != nil {
		t.Fatal(err)
	}
	link.wait(t, "its end", alarm(true, "released"))
	if err := stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if res, err := Replay(own.Bytes()); err != nil || !res.Compared || res.Diverged != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestFailingDeviceIsLeftAlone(t *testing.T) {
	// Goal: a chip that does not answer goes into quarantine and costs its bus
	// nothing more; status names it with its cause; a command lets it out, an
	// unknown device is refused, and the rounds go on.
	// Method: an agent on the real clock with a health round every 60 ms, the
	// temperature sensor of one module taken away and put back.
	c, board, socket, stop := runOn(t, nil)
	m := board.Bundles[1].Modules[0]
	gone := sim.Fault{Kind: sim.ChipGone, Bus: m.Slow, Addr: m.Temp}
	c.With(func(b *solo.Board) {
		if err := b.World().Inject(b.ID(), gone); err != nil {
			t.Error(err)
		}
	})
	status := func() *Status {
		ans, err := AskSocket(socket, Question{Verb: "status"})
		if err != nil || ans.Status == nil {
			t.Fatalf("status: %+v, %v", ans, err)
		}
		return ans.Status
	}
	until(t, "quarantine", func() bool { return len(status().Quarantine) > 0 })
	q := status().Quarantine
	if want := "/0x48"; len(q) != 1 || !strings.HasSuffix(q[0].Device, want) || !q[0].Absent || !strings.Contains(q[0].Cause, hal.ErrAddressNACK.Error()) {
		t.Fatalf("quarantine %+v, want a device %s", q, want)
	}
	before, entries := c.count(), status().Recorder.Entries
	until(t, "five more rounds", func() bool { return status().Recorder.Entries > entries+50 })
	if more := c.count() - before; more > 1 { // one trial may fall into it
		t.Errorf("%d ops reached the bus of a device in quarantine", more)
	}
	if ans, err := AskSocket(socket, Question{Verb: "release", Text: "9/0x9"}); err != nil || ans.Err == nil || ans.Err.Code != proto.NotFound {
		t.Errorf("release of a stranger: %+v, %v", ans, err)
	}
	c.With(func(b *solo.Board) {
		if err := b.World().Repair(b.ID(), gone); err != nil {
			t.Error(err)
		}
	})
	if ans, err := AskSocket(socket, Question{Verb: "release", Text: q[0].Device}); err != nil || ans.Err != nil || ans.Released > 1 {
		t.Errorf("release: %+v, %v", ans, err)
	}
	until(t, "rounds on the bus again", func() bool { return c.count() > before+3 && len(status().Quarantine) == 0 })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestRunningAgentIsRecorded(t *testing.T) {
	// Goal: who listens on the socket gets the agent's life from its start, and
	// the production code lives through it again to the last op; so does the
	// recording that Run writes itself.
	var mu sync.Mutex
	var own bytes.Buffer
	c, board, socket, stop := runOn(t, func(cfg *RunConfig) {
		cfg.Record = func(block []byte) error {
			mu.Lock()
			defer mu.Unlock()
			own.Write(block)
			return nil
		}
	})
	m := board.Bundles[0].Modules[0]
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var heard bytes.Buffer
	grown := make(chan int64, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- RecordSocket(ctx, socket, &heard, func(n int64) {
			select {
			case grown <- n:
			default:
			}
		})
	}()
	<-grown
	c.With(func(b *solo.Board) {
		if err := b.World().Inject(b.ID(), sim.Fault{Kind: sim.ChipGone, Bus: m.Slow, Addr: m.Mux}); err != nil {
			t.Error(err)
		}
	})
	for range 2 { // blocks come once a second when little happens
		<-grown
	}
	if err := stop(); err != nil { // then the stream ends
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for name, raw := range map[string][]byte{"socket": heard.Bytes(), "own": own.Bytes()} { // any order: independent
		res, err := Replay(raw)
		if err != nil || !res.Compared || res.Diverged != nil || res.Ops == 0 || len(res.Errors) == 0 {
			t.Errorf("%s: %+v, %+v, %v", name, res, res.Diverged, err)
		}
	}
	if err := RecordSocket(ctx, socket, &heard, nil); !errors.Is(err, ErrNoAgent) {
		t.Errorf("without an agent: %v", err)
	}
}

func TestRecorderCanBeOff(t *testing.T) {
	// Goal: an agent without a recorder says so to who wants to listen.
	_, _, socket, _ := runOn(t, func(cfg *RunConfig) { cfg.RecordBytes = -1 })
	var pe *proto.Error
	if err := RecordSocket(context.Background(), socket, &bytes.Buffer{}, nil); !errors.As(err, &pe) || pe.Code != proto.Unsupported {
		t.Errorf("%v", err)
	}
}

func TestRegistersThroughTheRunningAgent(t *testing.T) {
	// Goal: registers of a dark bundle are read and written beside the agent's
	// own work, within their limits; what does not exist, is not for hands or
	// is out of range is refused with the field; the recording knows nothing of
	// it and is lived again all the same.
	var mu sync.Mutex
	var own bytes.Buffer
	_, _, socket, stop := runOn(t, func(cfg *RunConfig) {
		cfg.Record = func(block []byte) error {
			mu.Lock()
			defer mu.Unlock()
			own.Write(block)
			return nil
		}
	})
	ask := func(q Question) *Answer {
		t.Helper()
		ans, err := AskSocket(socket, q)
		if err != nil {
			t.Fatal(err)
		}
		return ans
	}
	if a := ask(Question{Verb: "poke", Text: "1/0/temp/low", Value: 0x1550}); a.Err != nil || a.Value != 0x1550 {
		t.Errorf("poke: %+v %+v", a, a.Err)
	}
	if a := ask(Question{Verb: "peek", Text: "1/0/temp/low"}); a.Err != nil || a.Value != 0x1550 || a.Bits != 16 {
		t.Errorf("peek: %+v %+v", a, a.Err)
	}
	for _, tc := range []struct {
		q     Question
		code  proto.Code
		field string
	}{
		{Question{Verb: "peek", Text: "9/0/temp/low"}, proto.Invalid, "register"},
		{Question{Verb: "poke", Text: "0/0/temp/config", Value: 1}, proto.Invalid, "value"},
		{Question{Verb: "poke", Text: "0/0/temp/low", Value: 0x10000}, proto.Invalid, "value"},
		{Question{Verb: "dump", Bundle: 0}, proto.Unsupported, "module"},
		{Question{Verb: "dump", Bundle: 7}, proto.NotFound, "bundle"},
	} {
		if a := ask(tc.q); a.Err == nil || a.Err.Code != tc.code || a.Err.Field != tc.field {
			t.Errorf("%+v: %+v", tc.q, a.Err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if res, err := Replay(own.Bytes()); err != nil || !res.Compared || res.Diverged != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestModuleMemoryThroughTheAgent(t *testing.T) {
	// Goal: the agent reads the memory of a CMIS module beside its other work,
	// and refuses a module that is not there.
	_, _, socket, _ := runOn(t, func(cfg *RunConfig) {
		hw, err := boardfile.DefaultCMIS(4, 2, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Agent.Board = &hw
		cfg.Open = func(events func(hal.Event)) (Hardware, error) {
			return solo.Open(solo.Config{Board: &hw, Seed: 3}, events)
		}
	})
	var ans *Answer
	until(t, "the memory", func() bool { // modules come up for a while
		var err error
		ans, err = AskSocket(socket, Question{Verb: "dump", Bundle: 1, Module: 1})
		return err == nil && ans.Err == nil
	})
	if len(ans.Image) < 256*128 && len(ans.Image)%128 != 0 || len(ans.Image) == 0 || ans.Image[0] != 0x18 || string(ans.Image[129:138]) != "RINGLIGHT" {
		t.Errorf("%d bytes, % x", len(ans.Image), ans.Image[:min(16, len(ans.Image))])
	}
	if a, err := AskSocket(socket, Question{Verb: "dump", Bundle: 1, Module: 2}); err != nil || a.Err == nil || a.Err.Code != proto.Invalid {
		t.Errorf("module 2 of 2: %+v, %v", a, err)
	}
}
