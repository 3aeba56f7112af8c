package mems

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/hal/ad5535b"
	"ringlight/hal/ads7138"
	"ringlight/hal/tmp102"
	"ringlight/mzi/detmath"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// Times and distances of a move. A mirror that is sent far overshoots by up to
// 44 % (damping 0.25); beyond 80 % of its travel it would be pulled in, so it
// goes there in steps that leave room for that. chosen: the slowest mirrors of
// the default board, 500 Hz with that damping, lose e every 1.3 ms.
const (
	mirrorStep    = 2560                  // codes, about 40 mrad
	stepPause     = 4 * time.Millisecond  // between steps; the rest of one adds to the next
	mirrorSettle  = 10 * time.Millisecond // after the last step. board.md
	climbSettle   = 6 * time.Millisecond  // after a hill-climb move: under 1 % of 2.5 mrad is left
	monitorWindow = 300 * time.Microsecond
)

// MaxTuneTime bounds one tuning. board.md, MEMS board.
const MaxTuneTime = 500 * time.Millisecond

// begin starts a round if there is anything to do.
func (x *Crossbar) begin() {
	if x.anyMove() {
		x.move()
		return
	}
	if x.health {
		x.look()
		return
	}
	for _, c := range x.circuits {
		if c != nil && c.asks() {
			x.look()
			return
		}
	}
}

func (x *Crossbar) anyMove() bool {
	for side := range x.mirrors {
		for p := range x.mirrors[side] {
			if x.mirrors[side][p].wants() {
				return true
			}
		}
	}
	return false
}

// wants reports whether a mirror has to be moved. One of which nothing is
// known and of which nothing was asked stays where it is.
func (m *mirror) wants() bool {
	return m.err == nil && m.aimed && (!m.known || m.shadow != m.target)
}

// waypoint is where the next step of a mirror ends.
func (m *mirror) waypoint() [2]int16 {
	if !m.known {
		return [2]int16{} // from wherever it is, half the way at most
	}
	to := m.target
	for i := range to {
		to[i] = min(max(to[i], m.shadow[i]-mirrorStep), m.shadow[i]+mirrorStep)
	}
	return to
}

// move writes the next step of every mirror that is not where it should be,
// all of one bus in one operation.
func (x *Crossbar) move() {
	x.become(Moving)
	frames := make([][]byte, len(x.hw.DACs))
	for side := range x.mirrors {
		for p := range x.mirrors[side] {
			m := &x.mirrors[side][p]
			if !m.wants() {
				continue
			}
			to := m.waypoint()
			for i := range to {
				to[i] = x.guardDrive(to[i])
			}
			m.moved = true
			if !m.known || far(m.shadow, to) {
				x.longMove = true
			}
			m.shadow, m.known = to, true
			x.electrodes(side, p, to, func(dac int, frame []byte) { frames[dac] = append(frames[dac], frame...) })
		}
	}
	ops := make([]*hal.Op, len(x.cfg.Board.Buses))
	n := 0
	for d, f := range frames {
		if f == nil {
			continue
		}
		bus := x.hw.DACs[d].SPI
		if ops[bus] == nil {
			ops[bus] = &hal.Op{Token: x.work.Token(writeTask, n), Class: hal.ClassSwitch}
			n++
		}
		ops[bus].Msgs = append(ops[bus].Msgs, hal.Msg{Addr: x.hw.DACs[d].ChipSelect, Frame: ad5535b.FrameBytes, W: f})
	}
	x.expect(n)
	for bus, op := range ops {
		if op != nil {
			x.work.Put(hal.BusID(bus), op)
		}
	}
}

func far(a, b [2]int16) bool {
	for i := range a {
		if d := int(a[i]) - int(b[i]); d > climbLeap+climbStep || d < -climbLeap-climbStep {
			return true
		}
	}
	return false
}

// notWritten: nobody knows which frames of the operation arrived.
func (x *Crossbar) notWritten(now time.Duration, bus hal.BusID, err error) {
	for side := range x.mirrors {
		for p := range x.mirrors[side] {
			m := &x.mirrors[side][p]
			if !m.moved {
				continue
			}
			for _, at := range x.hw.Arrays[side][p].Electrodes {
				if x.hw.DACs[int(at)/hal.MirrorDACChannels].SPI == bus {
					m.known, m.err = false, err
				}
			}
		}
	}
	for _, c := range x.circuits {
		if c == nil {
			continue
		}
		a, b := x.mirrorsOf(c)
		if a.err != nil || b.err != nil {
			x.fail(now, c, err)
		}
	}
}

func (x *Crossbar) settleTime() time.Duration {
	switch {
	case x.anyMove():
		return stepPause
	case x.longMove:
		return mirrorSettle + monitorWindow
	}
	return climbSettle + monitorWindow
}

func (x *Crossbar) forgetMoves() {
	for side := range x.mirrors {
		for p := range x.mirrors[side] {
			x.mirrors[side][p].moved = false
		}
	}
}

func (x *Crossbar) settled() {
	if x.ready && x.anyMove() {
		x.move()
		return
	}
	x.longMove = false
	x.look()
}

// look reads the monitors of the circuits that ask, or all of them.
func (x *Crossbar) look() {
	for i := range x.chips {
		x.chips[i].read = x.health
	}
	x.looking = x.health
	asked := x.health
	for _, c := range x.circuits {
		if c == nil {
			continue
		}
		if c.looked = x.health || c.asks(); c.looked {
			asked = true
			x.chipOf(hal.SideA, int(c.Pair.A)).read = true
			x.chipOf(hal.SideB, int(c.Pair.B)).read = true
		}
	}
	if !asked {
		x.become(Resting)
		return
	}
	x.become(Looking)
	n := 0
	if x.health {
		x.health = false
		x.work.Put(x.hw.Temp.Bus, &hal.Op{Token: x.work.Token(tempTask, len(x.chips)), Class: hal.ClassSafety, Msgs: []hal.Msg{
			{Addr: x.hw.Temp.Addr, W: tmp102.AppendRead(nil, tmp102.RegTemperature), R: make([]byte, 2)}}})
		n++
	}
	for i := range x.chips {
		c := &x.chips[i]
		if !c.read {
			continue
		}
		x.work.Put(c.bus, &hal.Op{Token: x.work.Token(lookTask, i), Class: hal.ClassVerify, Msgs: []hal.Msg{
			{Addr: c.addr, W: ads7138.AppendReadBlock(nil, ads7138.RegRecent), R: make([]byte, ads7138.BlockBytes)}}})
		n++
	}
	x.expect(len(x.chips) + 1)
	x.waiting = n
}

func (x *Crossbar) chipOf(side, port int) *chip {
	m := x.hw.Monitors[side][port]
	for i := range x.chips {
		if c := &x.chips[i]; c.bus == m.Bus && c.addr == m.Addr {
			return c
		}
	}
	panic("ocs: crossbar: every port has a monitor chip")
}

// looked hands every circuit its sample.
func (x *Crossbar) looked(now time.Duration) {
	if x.looking && !slices.ContainsFunc(x.chips, func(c chip) bool { return c.err == nil }) {
		x.faulted(now)
		return
	}
	x.become(Resting)
	for i := range x.chips {
		c := &x.chips[i]
		if !c.read || c.err != nil {
			continue
		}
		for ch, port := range c.port {
			if port >= 0 {
				if ev, any := x.watches[c.side][port].Look(now, c.power[ch]); any {
					ev.Side, ev.Port = uint8(c.side), uint16(port)
					x.events = append(x.events, ev)
				}
			}
		}
	}
	for _, c := range x.circuits {
		if c != nil && c.looked {
			c.looked = false
			x.sample(now, c)
		}
	}
	if x.looking && !x.ready {
		x.ready = true
		if x.cfg.Startup == Keep {
			x.believeParked()
		}
		x.events = append(x.events, circuit.Event{Kind: circuit.Ready, At: now})
	}
}

// monitorFullScale is the power of a code of all ones, in milliwatts.
var monitorFullScale = detmath.FromDB(hal.MonitorFullScaleMilliDBm / 1000.0)

// monitorPower is a 16-bit result as a power; no light at all is hal.DarkMilliDBm.
func monitorPower(code uint16) proto.MilliDBm {
	if code == 0 {
		return hal.DarkMilliDBm
	}
	return proto.MilliDBm(1000 * detmath.DB(float64(code)*monitorFullScale/(16*ads7138.CodeFull)))
}
