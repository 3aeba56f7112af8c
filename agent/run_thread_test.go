package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/solo"
)

// handThread makes a board a threaded one by hand: edges wait for Wait.
type handThread struct {
	Hardware
	mu      sync.Mutex
	edges   []hal.Event
	wake    chan struct{}
	relief  func()
	hang    chan struct{} // the next Wait hangs until it is closed; nil: it does not
	entered chan struct{} // closed when it does
	lost    uint64
}

func (h *handThread) Attach(relief func()) hal.Prompt {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.relief = relief
	return hal.Prompt{WakeP50: 40 * time.Microsecond, WakeP99: 147 * time.Microsecond, WakeMax: time.Millisecond, Missing: []string{"no real-time priority"}}
}

func (h *handThread) Wait(until time.Duration, out []hal.Event) ([]hal.Event, error) {
	h.mu.Lock()
	hang := h.hang
	h.hang = nil
	h.mu.Unlock()
	if hang != nil {
		close(h.entered)
		go h.relief()
		<-hang
		return nil, hal.ErrRelieved
	}
	timer := time.NewTimer(min(until-h.Now(), time.Hour))
	defer timer.Stop()
	select {
	case <-h.wake:
	case <-timer.C:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	out, h.edges = append(out, h.edges...), nil
	return out, nil
}

func (h *handThread) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *handThread) LostEdges() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

func (h *handThread) Together(f func()) { f() }

func (h *handThread) Shared() []string { return []string{"/dev/i2c-3 0x50: at24 reads it, too"} }

func TestRunOnTheBoardsThread(t *testing.T) {
	// Goal: on a board that has its lines wait for one thread the agent works as on
	// any other; what the machine does not give is logged, told and widens the
	// envelope; edges that were lost are told; where the thread hangs another goes
	// on, and the first one ends without a word.
	// Method: a simulated board on the real clock whose edges are held for Wait.
	board, err := boardfile.Default(4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	k := newKept(t, &board, 21)
	cals := make([]*ocs.Calibration, 2)
	k.live.With(func(b *solo.Board) {
		for i := range cals {
			cals[i] = known([]*sim.Personality{b.World().Personality(b.ID(), i, 0)})
		}
	})
	h := &handThread{wake: make(chan struct{}, 1)}
	r := startRunOn(t, dir, func(events func(hal.Event)) (Hardware, error) {
		var err error
		h.Hardware, err = k.open(func(ev hal.Event) {
			if ev.Edge != nil {
				h.mu.Lock()
				h.edges = append(h.edges, ev)
				h.mu.Unlock()
			} else {
				events(ev)
			}
			h.Wake()
		})
		return h, err
	}, &board, cals, 100)
	r.link.wait(t, "birth", isPresence)
	state, err := proto.Encode(&proto.PlannerState{Version: 1, Planner: 1, Online: true, Term: 4, PeriodMillis: 1000})
	if err != nil {
		t.Fatal(err)
	}
	r.link.in <- proto.Packet{Topic: "ocs/v1/f1/planner/state", Payload: state}
	var rep proto.Reported
	tuned := func(p proto.Packet) bool {
		if !strings.HasSuffix(p.Topic, "/reported") {
			return false
		}
		_, err := proto.Decode(p.Payload, &rep)
		for _, b := range rep.Bundles {
			if b.Path != proto.Loopback || b.State != proto.Tuned {
				return false
			}
		}
		return err == nil && rep.Mode == proto.ModeService
	}
	r.link.wait(t, "both bundles tuned", tuned)
	// 147 us is more than twice the least, and less than four times.
	if want := cals[0].Timing.Envelope(0).DetectMaxMicros + 200; rep.Measured.DetectMaxMicros != want {
		t.Errorf("finds light within %d us, want %d", rep.Measured.DetectMaxMicros, want)
	}
	h.mu.Lock()
	hang := make(chan struct{})
	h.lost, h.hang, h.entered = 3, hang, make(chan struct{})
	h.mu.Unlock()
	h.Wake()
	<-h.entered
	r.link.wait(t, "lost edges told", func(p proto.Packet) bool {
		var e proto.Event
		_, err := proto.Decode(p.Payload, &e)
		return strings.HasSuffix(p.Topic, "/event") && err == nil && e.Kind == proto.EvAlarm && strings.Contains(e.Text, "3 edges of LOS lines lost")
	})
	ans, err := AskSocket(r.socket, Question{Verb: "status"})
	if err != nil || ans.Status.Prompt == nil || ans.Status.Prompt.WakeP99Micros != 147 || ans.Status.Prompt.LostEdges != 3 || len(ans.Status.Prompt.Missing) != 1 {
		t.Errorf("status %+v, %v", ans.Status.Prompt, err)
	}
	close(hang)
	r.stop(t)
	for _, want := range []string{"level=WARN", "no real-time priority", "wake_up_p99=147", "a chip is shared", "another thread takes over"} {
		if log := r.log.String(); !strings.Contains(log, want) {
			t.Errorf("log has no %q:\n%s", want, log)
		}
	}
}

// Goal: a question wakes the thread that sleeps on the board's lines: a quiet board,
// as a commercial switch is, would answer only at its next deadline.
func TestQuestionWakesTheThread(t *testing.T) {
	h := &handThread{wake: make(chan struct{}, 1)}
	r := &runner{calls: make(chan func(), 1), thread: h}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = r.put(ctx, Question{Verb: "status"})
	}()
	<-h.wake
	cancel()
	<-ended
}
