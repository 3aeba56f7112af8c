package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	busrec "ringlight/hal/record"
	"ringlight/ocs"
	"ringlight/proto"
)

// side is what the runner does beside the agent, between it and the board: it
// keeps failing devices off their bus, and records.
type side struct {
	r          *runner
	quarantine *hal.Quarantine
	rec        *Recorder // nil: off
	flushed    time.Duration
	taps       map[*tap]bool
	tapped     chan *tap          // to come and to go
	accesses   map[*hal.Op]access // registers being read or written by hand
}

// access is a question about a register under way.
type access struct {
	q    question
	reg  *ocs.Register
	work *ocs.Access
}

// tap is somebody who listens to the recording.
type tap struct {
	blocks chan []byte // closed by the runner when the listener is too slow
	gone   chan struct{}
}

const (
	// maxTapBlocks is how far a listener may lag behind. chosen: a megabyte.
	maxTapBlocks = 256
	// flushEvery is how long a listener waits for a block that does not fill.
	flushEvery = time.Second
)

func newSide(r *runner, journal *Journal) (*side, error) {
	s := &side{r: r, quarantine: hal.NewQuarantine(r.cfg.Agent.Board), taps: map[*tap]bool{}, accesses: map[*hal.Op]access{}, tapped: make(chan *tap, maxAsks)}
	bytes := r.cfg.RecordBytes
	switch {
	case bytes < 0 && r.cfg.Record == nil:
		return s, nil
	case bytes < 0:
		bytes = 0 // all of it goes to Record, nothing is kept
	case bytes == 0:
		bytes = busrec.DefaultRing
	}
	var err error
	if s.rec, err = NewRecorder(&r.cfg.Agent, journal, bytes); err != nil {
		return nil, err
	}
	s.rec.out = s.pour
	if r.cfg.Record != nil {
		return s, r.cfg.Record(s.rec.head)
	}
	return s, nil
}

// pour hands a block to all who listen.
func (s *side) pour(block []byte) {
	if s.r.cfg.Record != nil {
		if err := s.r.cfg.Record(block); err != nil {
			s.r.log.Error("recording ends", "error", err)
			s.r.cfg.Record = nil
		}
	}
	for t := range s.taps { // any order: each has its own channel
		select {
		case t.blocks <- block:
		default:
			s.r.log.Warn("a listener to the recording is too slow and is let go")
			close(t.blocks)
			delete(s.taps, t)
		}
	}
}

// listen takes a listener in, or lets it go.
func (s *side) listen(t *tap) {
	select {
	case <-t.gone:
		delete(s.taps, t)
		return
	default:
	}
	var all []byte
	for _, b := range s.rec.So() {
		all = append(all, b...)
	}
	s.taps[t] = true
	t.blocks <- all
}

// polled gives listeners what has been recorded, now and then.
func (s *side) polled(now time.Duration) {
	if s.rec != nil && now-s.flushed >= flushEvery && (len(s.taps) > 0 || s.r.cfg.Record != nil) {
		s.flushed = now
		s.rec.Flush()
	}
}

// hears takes an event of the board.
func (r *runner) hears(now time.Duration, ev hal.Event) {
	if c := ev.Completion; c != nil {
		latched, freed := r.side.quarantine.Done(now, c)
		if latched != nil {
			r.log.Error("device in quarantine", "device", latched.String(), "error", c.Err)
			r.alarm(now, *latched, "device "+latched.String()+" in quarantine: "+c.Err.Error(), false)
		}
		if freed != nil {
			r.log.Info("device out of quarantine: it had gone and is back", "device", freed.String())
			r.alarm(now, *freed, "device "+freed.String()+" had gone and is back", true)
		}
		if x, ok := r.side.accesses[c.Op]; ok {
			delete(r.side.accesses, c.Op)
			r.proceed(x, c)
			return
		}
	}
	r.host.Deliver(now, Input{Kind: InHardware, Hardware: ev})
}

// alarm tells the planner, so that why can tell an operator.
func (r *runner) alarm(now time.Duration, d hal.Device, text string, resolved bool) {
	a := Alarm{Text: text, Resolved: resolved}
	for i, b := range r.cfg.Agent.Board.Bundles {
		for m := range b.Modules {
			if uses(&b.Modules[m], d) {
				a.Bundle, a.Module = proto.BundleID(i), uint8(m)
			}
		}
	}
	r.host.Deliver(now, Input{Kind: InAlarm, Alarm: a})
}

// uses reports whether a device is a module's, or its mux.
func uses(m *hal.Module, d hal.Device) bool {
	slow := m.Slow
	if m.Kind == hal.KindCMIS {
		slow = m.MCI
	}
	switch {
	case d.Bus == slow:
		return d.Mux == m.Mux && d.Channel == m.MuxChannel || d.Mux == 0 && (d.Addr == m.Mux || m.Mux == 0)
	case m.Kind == hal.KindCMIS:
		return false
	case d.Bus == m.ADC:
		return d.Addr == m.Guard || d.Addr == m.LaneADC
	}
	return d.Bus == m.SPI && slices.Contains(m.ChipSelects[:], d.Addr)
}

// asked passes a question on, or answers it where it is not for the agent.
func (r *runner) asked(q question) {
	switch q.Verb {
	case AskRelease:
		q.answer <- r.release(q.Ask)
	case AskPeek, AskPoke:
		if err := r.reach(q); err != nil {
			q.answer <- &Answer{Err: err}
		}
	default:
		r.host.Ask(r.hardware.Now(), q.Ask, func(a *Answer) {
			if a.Status != nil {
				r.side.addsTo(a.Status)
			}
			q.answer <- a
		})
	}
}

// reach begins to read or write a register by hand. What carries light is not
// written, and a DAC that is being calibrated not even read: reading moves its
// choice of registers.
func (r *runner) reach(q question) *proto.Error {
	reg, err := ocs.FindRegister(r.cfg.Agent.Board, q.Text)
	if err != nil {
		return &proto.Error{Code: proto.Invalid, Field: "register", Reason: proto.Clip(err.Error())}
	}
	b := r.host.Status(r.hardware.Now()).Bundles[reg.Bundle]
	if b.Step != "" {
		return &proto.Error{Code: proto.Busy, Field: "register", Reason: fmt.Sprintf("bundle %d is being calibrated", reg.Bundle)}
	}
	work := reg.Peek()
	if q.Verb == AskPoke {
		if b.Path != proto.Dark.String() || b.Target != b.Path {
			return &proto.Error{Code: proto.Busy, Field: "register", Limit: "a bundle that is dark", Reason: fmt.Sprintf("bundle %d is on %s", reg.Bundle, b.Path)}
		}
		if work, err = reg.Poke(q.Value); err != nil {
			return &proto.Error{Code: proto.Invalid, Field: "value", Reason: proto.Clip(err.Error())}
		}
		r.log.Warn("a register is written by hand", "register", reg.Name, "value", q.Value)
	}
	r.proceed(access{q, reg, work}, nil)
	return nil
}

// proceed goes on with a register.
func (r *runner) proceed(x access, done *hal.Completion) {
	for {
		bus, op := x.work.Next(done)
		if op == nil {
			break
		}
		err := r.hardware.Submit(bus, op)
		if err == nil {
			r.side.accesses[op] = x
			return
		}
		done = &hal.Completion{Bus: bus, Op: op, Err: err}
	}
	ans := &Answer{Bits: x.reg.Bits}
	var err error
	if ans.Value, err = x.work.Value(); err != nil {
		ans.Err = &proto.Error{Code: proto.HardwareFailed, Field: "register", Reason: proto.Clip(err.Error())}
		if errors.Is(err, hal.ErrOutOfRange) {
			ans.Err.Code, ans.Err.Field = proto.Invalid, "value"
		}
	}
	x.q.answer <- ans
}

// release lets devices out of quarantine.
func (r *runner) release(ask Ask) *Answer {
	ans := new(Answer)
	var only *hal.Device
	for _, h := range r.side.quarantine.Held() {
		if ask.Text != "" && h.Device.String() == ask.Text {
			only = &h.Device
		}
	}
	if ask.Text != "" && only == nil {
		ans.Err = &proto.Error{Code: proto.NotFound, Field: "device", Reason: fmt.Sprintf("%s is not in quarantine", ask.Text)}
	} else {
		held := r.side.quarantine.Held()
		ans.Released = r.side.quarantine.Clear(only)
		for _, h := range held {
			if only == nil || h.Device == *only {
				r.alarm(r.hardware.Now(), h.Device, "device "+h.Device.String()+" released from quarantine by hand", true)
			}
		}
		r.log.Info("released from quarantine", "devices", ans.Released, "by", "command")
	}
	return ans
}

// addsTo adds to a status what the agent does not know.
func (s *side) addsTo(st *Status) {
	for _, h := range s.quarantine.Held() {
		st.Quarantine = append(st.Quarantine, QuarantineStatus{Device: h.Device.String(), SinceUS: h.Since.Microseconds(),
			Absent: h.Absent, Cause: h.Cause.Error()})
	}
	if s.rec != nil {
		st.Recorder = &RecorderStatus{Bytes: s.rec.ring.Bytes(), Entries: s.rec.w.Entries(), Whole: s.rec.ring.Lost() == 0, Listeners: len(s.taps)}
	}
}
