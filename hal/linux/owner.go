package linux

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/hal"
)

// maxQueue bounds the work that waits for one bus. chosen: four times what
// the agent ever has under way on one.
const maxQueue = 256

// wire carries out one message at a time.
type wire interface {
	transfer(*hal.Msg) error
	read() []byte
	close() error
}

// deadlineOf is how long an op may take.
func deadlineOf(op *hal.Op) time.Duration {
	if op.Deadline <= 0 {
		return hal.DefaultDeadline
	}
	return op.Deadline
}

// job is an op and the way to its bus.
type job struct {
	op    *hal.Op
	route *route
}

// route is how a bus is reached: the owner's own wires, or through muxes on them that we
// switch, the first hop being the nearest.
type route struct {
	id   hal.BusID
	hops []hop
}

type hop struct {
	mux      uint16
	on, none hal.Msg
}

// routeOf is the way to a bus that hangs on an owner's wires.
func routeOf(id hal.BusID, via []hal.Via) *route {
	r := &route{id: id}
	for _, v := range via {
		r.hops = append(r.hops, hop{v.Addr, hal.Msg{Addr: v.Addr, W: []byte{1 << v.Channel}}, hal.Msg{Addr: v.Addr, W: []byte{0}}})
	}
	return r
}

// through reports whether r leads through a mux, the n-th of another way.
func (r *route) through(other *route, n int) bool {
	if n >= len(r.hops) {
		return false
	}
	for i := range n + 1 {
		if r.hops[i].mux != other.hops[i].mux || i < n && r.hops[i].on.W[0] != other.hops[i].on.W[0] {
			return false
		}
	}
	return true
}

// owner is who uses a bus: one goroutine, or the board's own thread when it
// writes what answers an edge.
type owner struct {
	own  *route
	last *route // of the op before
	name string
	wire wire
	// recovery frees the bus by hand; nil: its driver must.
	recovery *recovery
	clock    func() time.Duration
	post     func(hal.Event)
	// thread takes a switch on an idle bus at once; nil: there is none, or the
	// bus is not one of latches.
	thread *thread

	mu      sync.Mutex
	work    *sync.Cond
	queue   [hal.NumClasses][]job
	waiting int
	closed  bool
	// Set while the kernel sits on a transfer whose op has been given up.
	stuck   bool
	current *hal.Op
	route   *route // of current
	direct  bool   // current is the thread's
	started time.Duration
	message int
	allowed time.Duration // for current; the owner's own

	watchdog *time.Timer
	tid      chan int // of the goroutine's thread, once
	ended    chan struct{}
}

func newOwner(id hal.BusID, name string, w wire, clock func() time.Duration, post func(hal.Event)) *owner {
	own := &route{id: id}
	o := &owner{own: own, last: own, name: name, wire: w, clock: clock, post: post, tid: make(chan int, 1), ended: make(chan struct{})}
	o.work = sync.NewCond(&o.mu)
	o.watchdog = time.AfterFunc(time.Hour, o.overdue)
	o.watchdog.Stop()
	go o.run()
	return o
}

// submit takes an op of a bus on the owner's wires; nil: of those themselves.
func (o *owner) submit(op *hal.Op, way *route) error {
	if way == nil {
		way = o.own
	}
	if op.Class >= hal.NumClasses || len(op.Msgs) == 0 {
		return fmt.Errorf("%s: class %d, %d messages: %w", o.name, op.Class, len(op.Msgs), hal.ErrOutOfRange)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return hal.ErrClosed
	case o.waiting >= maxQueue:
		return fmt.Errorf("%s: %w", o.name, hal.ErrQueueFull)
	}
	if o.thread != nil && op.Class == hal.ClassSwitch && o.current == nil && o.waiting == 0 && !o.stuck {
		o.current, o.route, o.direct = op, way, true
		o.thread.ready = append(o.thread.ready, ready{o, job{op, way}})
		return nil
	}
	o.queue[op.Class] = append(o.queue[op.Class], job{op, way})
	o.waiting++
	o.work.Signal()
	if o.stuck {
		// The owner is inside the kernel; someone else must say so, and not
		// from inside Submit.
		go o.flush(hal.ErrBusStuck)
	}
	return nil
}

// begin makes an op the one under way.
func (o *owner) begin(j job, direct bool) {
	o.current, o.route, o.started, o.message, o.direct = j.op, j.route, o.clock(), 0, direct
	o.allowed = deadlineOf(j.op)
	o.watchdog.Reset(o.allowed)
}

// take returns the next op by class, none when the bus is closed.
func (o *owner) take() job {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for c := range o.queue {
			if o.current != nil || o.stuck {
				break // the thread is at it
			}
			if q := o.queue[c]; len(q) > 0 {
				j := q[0]
				copy(q, q[1:])
				q[len(q)-1] = job{}
				o.queue[c] = q[:len(q)-1]
				o.waiting--
				o.begin(j, false)
				return j
			}
		}
		if o.closed {
			return job{}
		}
		o.work.Wait()
	}
}

func (o *owner) run() {
	defer close(o.ended)
	// Switching waits behind this goroutine: it keeps its thread, so that a
	// transfer starts without the scheduler's help.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o.tid <- unix.Gettid()
	for j := o.take(); j.op != nil; j = o.take() {
		if done := o.carryOut(j); done != nil {
			o.post(hal.Event{Completion: done})
		}
	}
}

// carryOut does an op on the calling thread. nil: the watchdog gave it up.
func (o *owner) carryOut(j job) *hal.Completion {
	op := j.op
	if len(j.route.hops)+len(o.last.hops) > 0 {
		if ours, err := o.reach(j); !ours {
			return nil
		} else if err != nil {
			return o.finish(op, 0, err)
		}
	}
	for i := range op.Msgs {
		ours, err := o.transfer(op, &op.Msgs[i], i+1)
		if !ours {
			return nil
		}
		if err != nil {
			return o.finish(op, i, err)
		}
	}
	return o.finish(op, 0, nil)
}

// reach switches the muxes on the way of an op. Those of the way before that are not on it
// are switched off, the furthest first: what is behind them might have the same addresses.
func (o *owner) reach(j job) (ours bool, err error) {
	last := o.last
	o.last = j.route
	for n := len(last.hops) - 1; n >= 0; n-- {
		if !j.route.through(last, n) {
			if ours, err := o.transfer(j.op, &last.hops[n].none, 0); err != nil || !ours {
				return ours, err
			}
		}
	}
	for n := range j.route.hops {
		if ours, err := o.transfer(j.op, &j.route.hops[n].on, 0); err != nil || !ours {
			return ours, err
		}
	}
	return true, nil
}

// transfer carries out one message of an op, after which so many of its own are done. ours
// is false once the watchdog has given the op up.
func (o *owner) transfer(op *hal.Op, m *hal.Msg, done int) (ours bool, err error) {
	addr := m.Addr
	err = o.wire.transfer(m)
	o.mu.Lock()
	if o.current != op { // op is no longer ours
		o.release()
		o.mu.Unlock()
		return false, nil
	}
	if err == nil {
		copy(m.R, o.wire.read())
		o.message = done
	}
	o.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("%s: %#x: %w", o.name, addr, o.heal(err))
	}
	return true, err
}

// release is called when the kernel has let go of what was given up.
func (o *owner) release() {
	o.stuck = false
	o.work.Broadcast() // where the thread was in the kernel, work waits for the owner
}

// heal frees a bus that an op has left hanging and says what held it.
func (o *owner) heal(err error) error {
	if o.recovery == nil || !errors.Is(err, hal.ErrTimeout) && !errors.Is(err, hal.ErrBusStuck) && !errors.Is(err, hal.ErrArbitrationLost) {
		return err
	}
	held := o.recovery.cause()
	if held == nil {
		return err
	}
	clocks, failed := o.recovery.free()
	if failed != nil {
		return fmt.Errorf("%w; not freed (%v)", held, err)
	}
	return fmt.Errorf("%w; freed by %d clocks (%v)", held, clocks, err)
}

// finish is the completion of the current op, unless the watchdog gave it up.
func (o *owner) finish(op *hal.Op, message int, err error) *hal.Completion {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current != op {
		o.release()
		return nil
	}
	start, end := o.started, o.clock()
	o.current = nil
	o.watchdog.Stop()
	if o.waiting > 0 {
		o.work.Signal()
	}
	return &hal.Completion{Bus: o.route.id, Op: op, Start: start, End: end, Msg: message, Err: err}
}

// overdue is called when an op has not ended by its deadline: the op and
// everything behind it fail now, whatever the kernel does.
func (o *owner) overdue() {
	o.mu.Lock()
	op, way, start, message := o.current, o.route, o.started, o.message
	if op == nil {
		o.mu.Unlock()
		return
	}
	now := o.clock()
	if left := deadlineOf(op) - (now - start); left > 0 { // late call for an earlier op
		o.watchdog.Reset(left)
		o.mu.Unlock()
		return
	}
	o.current, o.stuck = nil, true
	direct := o.direct
	message = min(message, len(op.Msgs)-1)
	addr := op.Msgs[message].Addr
	o.mu.Unlock()
	cause := hal.ErrTimeout
	if o.recovery != nil {
		if held := o.recovery.cause(); held != nil {
			cause = held
		}
	}
	err := fmt.Errorf("%s: %#x: after %v: %w", o.name, addr, now-start, cause)
	if direct {
		go o.thread.relief()
	}
	o.post(hal.Event{Completion: &hal.Completion{Bus: way.id, Op: op, Start: start, End: now, Msg: message, Err: err}})
	o.flush(hal.ErrBusStuck)
	if o.recovery != nil { // then the kernel may let go, too
		_, _ = o.recovery.free()
	}
}

// flush fails all that waits while the bus is stuck or closed.
func (o *owner) flush(cause error) {
	o.mu.Lock()
	if !o.stuck && !o.closed {
		o.mu.Unlock()
		return
	}
	var ops []job
	for c := range o.queue {
		ops = append(ops, o.queue[c]...)
		o.queue[c] = nil
	}
	o.waiting = 0
	o.mu.Unlock()
	now := o.clock()
	for _, j := range ops {
		o.post(hal.Event{Completion: &hal.Completion{Bus: j.route.id, Op: j.op, Start: now, End: now, Err: fmt.Errorf("%s: %w", o.name, cause)}})
	}
}

// shut ends the owner; what waits fails. It does not wait for a stuck bus.
func (o *owner) shut() error {
	o.mu.Lock()
	o.closed = true
	stuck := o.stuck
	o.work.Broadcast()
	o.mu.Unlock()
	o.flush(hal.ErrClosed)
	if stuck {
		return fmt.Errorf("%s: %w", o.name, hal.ErrBusStuck)
	}
	<-o.ended
	if o.recovery != nil {
		o.recovery.close()
	}
	return o.wire.close()
}
