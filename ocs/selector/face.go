package selector

import (
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// face is one interface: its transceiver, and what is wanted of it.
type face struct {
	optics *ocs.Transceiver
	done   []*hal.Completion
	next   time.Duration
	due    bool
	read   bool          // the optics have read the hardware, well or not
	retry  time.Duration // when optics that failed are read again

	path      proto.Path // asked for, or found
	state     proto.PortState
	lit       uint8 // bit p: path p has light
	switching bool
	until     time.Duration // light is waited for until then; Never: it is not
	unlit     bool          // told as without light
	moves     circuit.Moves // of the last switch
	took      time.Duration
	err       error
	tells     []tell
}

// tell is an event of a path of the interface.
type tell struct {
	circuit.Event
	path proto.Path
}

func (f *face) start(now time.Duration) {
	f.read, f.switching, f.until, f.retry, f.due = false, false, hal.Never, hal.Never, true
	f.optics.Start(now)
	for p := range proto.NumPaths {
		f.optics.Light(now, now, proto.Path(p), f.has(proto.Path(p)))
	}
}

func (f *face) has(p proto.Path) bool { return f.lit&(1<<p) != 0 }

func (f *face) light(now time.Duration, e *hal.Edge, p proto.Path) {
	if e.High == f.has(p) {
		return // told twice
	}
	f.lit ^= 1 << p
	f.optics.Light(now, e.At, p, e.High)
	f.due = true
	if f.read && p == f.path && !f.switching {
		f.judge(now)
	}
}

// aim asks for a path, at once: what the old one carried has ended.
func (f *face) aim(now time.Duration, p proto.Path) {
	f.path, f.state, f.err, f.took = p, proto.Tuning, nil, 0
	f.switching, f.unlit, f.until, f.due = true, false, hal.Never, true
	f.moves = circuit.Moves{Asked: now}
	if err := f.optics.SelectAtOnce(now, p); err != nil {
		f.fail(now, err)
	}
}

func (f *face) fail(now time.Duration, err error) {
	f.switching, f.until = false, hal.Never
	if f.state = proto.Failed; f.path.External() {
		f.err = err
		f.tell(now, circuit.Failed)
	}
}

func (f *face) tell(now time.Duration, kind circuit.EventKind) {
	f.tells = append(f.tells, tell{circuit.Event{Kind: kind, At: now, Loss: proto.NoPower, Factory: proto.NoPower, Err: f.err, Moves: f.moves}, f.path})
}

// wants: the optics want a turn now.
func (f *face) wants(now time.Duration) bool {
	return f.due || len(f.done) > 0 || f.next <= now || f.retry <= now
}

func (f *face) turn(now time.Duration, out []hal.BusOp) []hal.BusOp {
	if f.retry <= now {
		f.retry = hal.Never
		f.optics.Start(now)
	}
	f.due = false
	out, f.next = f.optics.Poll(now, f.done, out)
	f.done = f.done[:0]
	return out
}

// heard takes what the optics found.
func (f *face) heard(now time.Duration, ev *ocs.Event) {
	switch ev.Kind {
	case ocs.Ready:
		s := f.optics.Status()
		first := !f.read
		f.read = true
		switch {
		case s.Machine == ocs.Faulted:
			f.retry = now + retryAfter
			f.fail(now, ev.Err)
		case first:
			f.path, f.state = s.Path, proto.Tuning
			f.judge(now)
		case s.Path != f.path: // it lost what it was told
			f.aim(now, f.path)
		default:
			f.judge(now)
		}
	case ocs.Switched:
		if ev.Path == f.path {
			f.moves.BusStart, f.moves.BusEnd, f.moves.Settled = ev.BusStart, ev.BusEnd, now
			f.switching = false
			f.judge(now)
		}
	case ocs.PathFailed:
		if hal.Silent(ev.Err) {
			f.retry = now + retryAfter
		}
		f.fail(now, ev.Err)
	case ocs.Verified:
		if f.state == proto.Failed && !f.switching {
			f.judge(now)
		}
	}
}

// judge lets light say how the circuit stands.
func (f *face) judge(now time.Duration) {
	switch {
	case !f.path.External():
		f.state, f.until = proto.Blocked, hal.Never
	case f.has(f.path):
		if f.state == proto.Tuned {
			return
		}
		f.state, f.err, f.unlit, f.until = proto.Tuned, nil, false, hal.Never
		f.took = now - f.moves.Asked
		f.tell(now, circuit.Tuned)
		f.moves = circuit.Moves{}
	case f.state == proto.Tuned:
		f.lose(now)
	case !f.unlit && f.until == hal.Never:
		f.state, f.until = proto.Tuning, now+lightWait
	}
}

// lose tells that the far side's light is not there.
func (f *face) lose(now time.Duration) {
	f.state, f.err, f.unlit, f.until = proto.Tuning, circuit.ErrNoInput, true, hal.Never
	f.moves = circuit.Moves{}
	f.tell(now, circuit.Unlit)
}

// waited ends a wait for light.
func (f *face) waited(now time.Duration) {
	if f.until <= now {
		f.lose(now)
	}
}
