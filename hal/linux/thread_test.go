package linux

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/hal"
)

// threaded is a board of three lines and a latch whose wire is w, with a thread
// attached to the test's own goroutine.
func threaded(t testing.TB, w wire, relief func()) (*Board, *fakeGPIO, chan hal.Event) {
	t.Helper()
	g := newFakeGPIO()
	g.levels = 7
	board := &hal.Board{Buses: []hal.Bus{{Device: "latches"}, {Device: "others"}}, Latches: []hal.Latch{{Bus: 0, Addr: 0x20}},
		Lines: []hal.Line{{Name: "LOS_LOOP0"}, {Name: "LOS_EXT1_0"}, {Name: "LOS_EXT2_0"}}}
	events := make(chan hal.Event, 64)
	o, err := open(board, func(ev hal.Event) { events <- ev }, func(b hal.BusID) (wire, error) {
		if b == 0 {
			return w, nil
		}
		return &plainWire{}, nil
	}, g.gpio())
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	if p := o.Attach(relief); p.WakeP99 < p.WakeP50 || p.WakeMax < p.WakeP99 || p.WakeP50 <= 0 || (p.Priority == 0 || !p.Locked) != (len(p.Missing) > 0) {
		t.Errorf("%+v", p)
	}
	return o, g, events
}

// plainWire takes everything at once, and says who asked.
type plainWire struct {
	by     []int // threads
	writes int
	back   []byte
}

func (w *plainWire) transfer(m *hal.Msg) error {
	if w.writes++; len(w.by) < cap(w.by) {
		w.by = append(w.by, unix.Gettid())
	}
	return nil
}
func (w *plainWire) read() []byte { return w.back }
func (w *plainWire) close() error { return nil }

func TestEdgeAndItsAnswerAreOneThread(t *testing.T) {
	// Goal: what answers an edge is written by the thread that waited for it,
	// once, at its next call; other classes and other buses go their own way.
	w := &plainWire{by: make([]int, 0, 4)}
	o, g, events := threaded(t, w, nil)
	defer o.Close()
	g.edge(t, 4, false, o.epoch+o.Now(), 1, 0)
	out, err := o.Wait(o.Now()+time.Second, nil)
	if err != nil || len(out) != 1 || out[0].Edge == nil || out[0].Edge.Line != 1 || out[0].Edge.High || out[0].Edge.At > o.Now() {
		t.Fatalf("%+v, %v", out, err)
	}
	answer := op(hal.ClassSwitch, 0x20)
	answer.Msgs[0].R = nil
	if err := o.Submit(0, answer); err != nil || w.writes != 0 {
		t.Fatalf("%v, %d writes inside Submit", err, w.writes)
	}
	behind := op(hal.ClassSwitch, 0x20) // the bus is not idle any more
	behind.Msgs[0].R = nil
	if err := o.Submit(0, behind); err != nil {
		t.Fatal(err)
	}
	out, err = o.Wait(o.Now()+time.Second, out[:0])
	if err != nil || len(out) != 1 || out[0].Completion == nil || out[0].Completion.Op != answer || out[0].Completion.Err != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	done := (<-events).Completion // until it is there the owner may be writing who it is
	if len(w.by) == 0 || w.by[0] != unix.Gettid() {
		t.Errorf("written by %v, not by %d", w.by, unix.Gettid())
	}
	if done.Op != behind || w.by[1] == unix.Gettid() {
		t.Errorf("%+v by %v", done, w.by)
	}
	other := op(hal.ClassSwitch, 1)
	other.Msgs[0].R = nil
	if err := o.Submit(1, other); err != nil {
		t.Fatal(err)
	}
	if done := (<-events).Completion; done.Op != other {
		t.Errorf("%+v", done)
	}
	if _, err := o.Wait(hal.Never, nil); err != nil { // woken by the completions
		t.Error(err)
	}
}

func TestNothingIsAllocatedOnTheWay(t *testing.T) {
	// Goal: from the edge in the kernel to the write entered nothing is
	// allocated below the agent.
	w := &plainWire{}
	o, g, _ := threaded(t, w, nil)
	defer o.Close()
	answer := op(hal.ClassSwitch, 0x20)
	answer.Msgs[0].R = nil
	out := make([]hal.Event, 0, 8)
	seq, bad := uint32(0), ""
	now := o.Now()
	allocs := testing.AllocsPerRun(100, func() {
		seq++
		g.edge(t, 4, seq%2 == 0, now, seq, 0)
		var err error
		if out, err = o.Wait(hal.Never, out[:0]); err != nil || len(out) != 1 || out[0].Edge == nil {
			bad = "no edge"
		}
		if err = o.Submit(0, answer); err != nil {
			bad = err.Error()
		}
		if out, err = o.Wait(0, out[:0]); err != nil || len(out) != 1 {
			bad = "no completion"
		}
	})
	// The completion and the event that the test itself makes are behind the write.
	if bad != "" || w.writes != 101 || allocs > 2 {
		t.Errorf("%v allocations, %d writes, %s", allocs, w.writes, bad)
	}
}

func TestAHangingLatchDoesNotTakeTheThread(t *testing.T) {
	// Goal: a write that hangs in the kernel is given up at its deadline, and
	// another thread goes on with the board; the first one learns it when the
	// kernel lets go.
	g := &gate{entered: make(chan uint16, 4), open: make(chan error)}
	relieved := make(chan bool, 1)
	o, lines, events := threaded(t, g, func() { relieved <- true })
	hung := op(hal.ClassSwitch, 0x20)
	hung.Deadline = time.Millisecond
	if err := o.Submit(0, hung); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { _, err := o.Wait(hal.Never, nil); ended <- err }()
	<-relieved
	if done := (<-events).Completion; done.Op != hung || !errors.Is(done.Err, hal.ErrTimeout) {
		t.Errorf("%+v", done)
	}
	lines.edge(t, 3, false, o.epoch+o.Now(), 1, 0) // we are the other thread
	out, err := o.Wait(hal.Never, nil)
	for ; err == nil && len(out) == 0; out, err = o.Wait(hal.Never, nil) { // woken by the completion
	}
	if err != nil || len(out) != 1 || out[0].Edge == nil {
		t.Errorf("%+v, %v", out, err)
	}
	late := op(hal.ClassSwitch, 0x20)
	if err := o.Submit(0, late); err != nil {
		t.Fatal(err)
	}
	if done := (<-events).Completion; done.Op != late || !errors.Is(done.Err, hal.ErrBusStuck) {
		t.Errorf("behind it: %+v", done)
	}
	g.open <- nil
	if err := <-ended; !errors.Is(err, hal.ErrRelieved) {
		t.Errorf("the first thread: %v", err)
	}
	again := op(hal.ClassSwitch, 0x20)
	if err := o.Submit(0, again); err != nil {
		t.Fatal(err)
	}
	go func() { g.open <- nil }()
	out, err = o.Wait(hal.Never, nil)
	if err != nil || len(out) != 1 || out[0].Completion == nil || out[0].Completion.Err != nil {
		t.Errorf("free again: %+v, %v", out, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// Goal: while something runs together, every thread of the process that is ordinary goes before
// what is not real time, and is as it was afterwards; where that is not allowed it runs all the same.
// Method: classes and nice values of all threads before, within and after, by the kernel.
func TestThreadsGoTogether(t *testing.T) {
	classes := func() map[string]string {
		all := map[string]string{}
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			if a, err := unix.SchedGetAttr(tid, 0); err == nil {
				nice, _ := unix.Getpriority(unix.PRIO_PROCESS, tid)
				all[task.Name()] = fmt.Sprint(a.Policy, a.Priority, nice)
			}
		}
		return all
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	allowed := schedule(0, 1) == nil
	Ordinary()
	before, ran := classes(), false
	new(Board).Together(func() {
		ran = true
		for tid, class := range classes() {
			if old, known := before[tid]; known && strings.HasPrefix(old, "0 0 ") && allowed != strings.HasPrefix(class, "2 1 ") {
				t.Errorf("thread %s: was %s, is %s, allowed %v", tid, old, class, allowed)
			}
		}
	})
	for tid, class := range classes() {
		if old, known := before[tid]; known && old != class || strings.HasPrefix(class, "2 ") {
			t.Errorf("thread %s: was %s, is %s", tid, old, class)
		}
	}
	if !ran {
		t.Error("nothing was run")
	}
}
