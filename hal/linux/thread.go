package linux

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/hal"
)

// Scheduling of the thread that answers edges, and of those behind the buses.
// chosen: below the interrupt threads of a kernel that has them (50), whose work
// ours waits for.
const (
	threadPriority = 40
	ownerPriority  = 39
)

// The wake-ups that are timed when a thread is attached. chosen: a tenth of a
// second, and two beyond the p99.
const (
	wakeTrials = 200
	wakeSleep  = 500 * time.Microsecond
)

// thread is the one thread that waits for the lines and writes the latches:
// nothing is handed on between an edge and the write that answers it.
type thread struct {
	board  *Board
	wake   uintptr // an eventfd
	woken  atomic.Bool
	fds    []unix.PollFd // the wake-up, and a request each
	edges  []edge
	events []hal.Edge
	ready  []ready
	relief func()
	word   [8]byte
}

// ready is an op that was submitted for the thread.
type ready struct {
	owner *owner
	job   job
}

func newThread(o *Board) (*thread, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("linux: eventfd: %w", err)
	}
	t := &thread{board: o, wake: uintptr(fd), fds: []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}}
	for _, w := range o.lines {
		t.fds = append(t.fds, unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN})
	}
	return t, nil
}

// Attach makes the calling goroutine, which keeps its thread, the one that
// Waits. Latches are then written by Wait itself. When such a write hangs in
// the kernel past its deadline, relief is called, on a goroutine of its own:
// it starts another that attaches itself, and the old one's Wait says so when
// the kernel lets go. The first Attach asks the machine for promptness, and
// measures it.
func (o *Board) Attach(relief func()) hal.Prompt {
	t := o.thread
	t.relief = relief
	again := o.prompt != nil
	p := hal.Prompt{Priority: threadPriority}
	if err := schedule(0, threadPriority); err != nil {
		p.Priority = 0
		p.Missing = append(p.Missing, fmt.Sprintf("no real-time priority (%v): want CAP_SYS_NICE, or an RLIMIT_RTPRIO of %d", err, threadPriority))
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		p.Missing = append(p.Missing, fmt.Sprintf("no timer slack of 1 ns (%v)", err))
	}
	if again {
		return *o.prompt
	}
	// What is touched is locked, and not all that is mapped: a board's memory is
	// small.
	if p.Locked = true; unix.Mlockall(unix.MCL_CURRENT|unix.MCL_FUTURE|unix.MCL_ONFAULT) != nil {
		p.Locked = false
		p.Missing = append(p.Missing, "memory is not locked: want CAP_IPC_LOCK, or a larger RLIMIT_MEMLOCK")
	}
	for _, in := range o.foreign.pins {
		if _, ok := in.pin.(hal.StampedPin); !ok {
			p.Missing = append(p.Missing, fmt.Sprintf("%s: its driver keeps no time of an edge: when light went is when the agent was told, and no millisecond is promised", in.name))
		}
	}
	for i, own := range o.owners {
		if o.routes[i] != nil {
			continue // another's
		}
		if p.Priority > 0 {
			_ = schedule(<-own.tid, ownerPriority) // as allowed as the thread's
		}
		if slices.ContainsFunc(o.latches, func(b hal.BusID) bool { return int(b) == i }) {
			own.thread = t
		}
	}
	t.measure(&p)
	o.prompt = &p
	return p
}

// Ordinary takes the calling thread's place before others away, so that what it starts
// in its own has none. Without such a place the thread keeps its class.
func Ordinary() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
}

// Together runs f with every ordinary thread of the process before what is not real time. A
// collection stops all of them twice, and the thread that answers edges with them, until the
// last has had a processor: the machine's other work is not to be waited for.
func (o *Board) Together(f func()) {
	rank(unix.SCHED_NORMAL, unix.SCHED_RR, 1)
	f()
	rank(unix.SCHED_RR, unix.SCHED_NORMAL, 0)
}

// rank moves the threads of a class to another, where the machine allows it.
func rank(from, to, priority uint32) {
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		nice, _ := unix.Getpriority(unix.PRIO_PROCESS, tid) // 20 less its nice value
		if a, err := unix.SchedGetAttr(tid, 0); err == nil && a.Policy == from {
			_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: to, Priority: priority, Nice: int32(20 - nice)}, 0)
		}
	}
}

// schedule gives a thread of this process, 0 the calling one, a place before
// all that is not real time.
func schedule(tid, priority int) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: uint32(priority)}, 0)
}

// measure times wake-ups.
func (t *thread) measure(p *hal.Prompt) {
	late := make([]time.Duration, wakeTrials)
	for i := range late {
		due := t.board.Now() + wakeSleep
		for t.board.Now() < due {
			t.poll(due, 0)
		}
		late[i] = t.board.Now() - due
	}
	sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
	p.WakeP50, p.WakeP99, p.WakeMax = late[wakeTrials/2], late[wakeTrials*99/100], late[wakeTrials-1]
}

// poll waits for fds from first on, until a time at the latest.
func (t *thread) poll(until time.Duration, from int) int {
	ts := unix.NsecToTimespec(int64(max(until-t.board.Now(), 0)))
	n, err := unix.Ppoll(t.fds[from:], &ts, nil)
	if err != nil {
		return 0 // a signal; whoever waits asks again
	}
	return n
}

// Wake makes Wait return, from any goroutine.
func (o *Board) Wake() {
	if t := o.thread; t.woken.CompareAndSwap(false, true) {
		one := [8]byte{1} // in the machine's order, or 1<<56: either wakes
		_, _ = unix.Write(int(t.wake), one[:])
	}
}

// Wait carries out what was submitted for this thread, waits for edges until a
// time at the latest, and appends what happened to out; what it appends is
// good until it is called again. After hal.ErrRelieved another thread has taken
// over, and this one must not touch the board again; after any other error the
// board has lost its lines.
func (o *Board) Wait(until time.Duration, out []hal.Event) (_ []hal.Event, err error) {
	t := o.thread
	if out, err = t.flush(out); err != nil {
		return nil, err
	}
	if len(out) > 0 {
		until = 0
	}
	if t.poll(until, 0) == 0 {
		return out, nil
	}
	if t.fds[0].Revents != 0 {
		_, _ = syscall.Read(int(t.wake), t.word[:])
		t.woken.Store(false)
	}
	t.edges = o.foreign.take(t.edges[:0])
	for i, w := range o.lines {
		if t.fds[1+i].Revents == 0 {
			continue
		}
		if t.edges, err = w.take(o.Now, o.epoch, t.edges); err != nil {
			return out, fmt.Errorf("linux: lines: %w", err)
		}
	}
	if cap(t.events) < len(t.edges) {
		t.events = make([]hal.Edge, len(t.edges))
	}
	t.events = t.events[:len(t.edges)]
	for i, e := range t.edges {
		t.events[i] = hal.Edge{Line: e.line, High: e.high, At: e.at}
		out = append(out, hal.Event{Edge: &t.events[i]})
	}
	return out, nil
}

// flush carries out what was submitted for this thread.
func (t *thread) flush(out []hal.Event) ([]hal.Event, error) {
	for len(t.ready) > 0 {
		r := t.ready[0]
		t.ready = append(t.ready[:0], t.ready[1:]...)
		r.owner.mu.Lock()
		r.owner.begin(r.job, true)
		r.owner.mu.Unlock()
		done := r.owner.carryOut(r.job)
		if done == nil {
			return nil, hal.ErrRelieved
		}
		out = append(out, hal.Event{Completion: done})
	}
	return out, nil
}

func (t *thread) close() { _ = unix.Close(int(t.wake)) }
