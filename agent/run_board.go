package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
)

// What stands between the agent and its board: devices that fail again and
// again are kept off their bus, and people read and write single registers.

// boardEvent takes an event of the board.
func (r *runner) boardEvent(now time.Duration, ev hal.Event) {
	if c := ev.Completion; c != nil {
		r.made.take(c)
		latched, freed := r.quarantine.Done(now, c)
		if latched != nil {
			r.log.Error("device in quarantine", "device", latched.String(), "error", c.Err)
			r.alarm(now, *latched, "device "+latched.String()+" in quarantine: "+c.Err.Error(), false)
		}
		if freed != nil {
			r.log.Info("device out of quarantine: it had gone and is back", "device", freed.String())
			r.alarm(now, *freed, "device "+freed.String()+" had gone and is back", true)
		}
		if x, ok := r.accesses[c.Op]; ok {
			delete(r.accesses, c.Op)
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
	return d.Bus == m.SPI && slices.Contains(m.ChipSelects, d.Addr)
}

// register is being read or written by hand.
type register struct {
	*ocs.Register
	work   *ocs.Access
	answer func(*Answer)
}

// reach begins to read or write a register by hand. What carries light is not
// written, and a DAC that is being calibrated not even read: reading moves its
// choice of registers.
func (r *runner) reach(q Ask, answer func(*Answer)) *proto.Error {
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
	r.proceed(register{reg, work, answer}, nil)
	return nil
}

// proceed goes on with a register.
func (r *runner) proceed(x register, done *hal.Completion) {
	for {
		bus, op := x.work.Next(done)
		if op == nil {
			break
		}
		err := r.hardware.Submit(bus, op)
		if err == nil {
			r.accesses[op] = x
			return
		}
		done = &hal.Completion{Bus: bus, Op: op, Err: err}
	}
	ans := &Answer{Bits: x.Bits}
	var err error
	if ans.Value, err = x.work.Value(); err != nil {
		ans.Err = &proto.Error{Code: proto.HardwareFailed, Field: "register", Reason: proto.Clip(err.Error())}
		if errors.Is(err, hal.ErrOutOfRange) {
			ans.Err.Code, ans.Err.Field = proto.Invalid, "value"
		}
	}
	x.answer(ans)
}

// release lets devices out of quarantine.
func (r *runner) release(ask Ask) *Answer {
	ans := new(Answer)
	var only *hal.Device
	for _, h := range r.quarantine.Held() {
		if ask.Text != "" && h.Device.String() == ask.Text {
			only = &h.Device
		}
	}
	if ask.Text != "" && only == nil {
		ans.Err = &proto.Error{Code: proto.NotFound, Field: "device", Reason: fmt.Sprintf("%s is not in quarantine", ask.Text)}
	} else {
		held := r.quarantine.Held()
		ans.Released = r.quarantine.Clear(only)
		for _, h := range held {
			if only == nil || h.Device == *only {
				r.alarm(r.hardware.Now(), h.Device, "device "+h.Device.String()+" released from quarantine by hand", true)
			}
		}
		r.log.Info("released from quarantine", "devices", ans.Released, "by", "command")
	}
	return ans
}
