package mems

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/work"
)

// Times and distances of a move. A mirror that is sent far overshoots by up to
// 44 % (damping 0.25); beyond 80 % of its travel it would be pulled in, so it
// goes there in steps that leave room for that. chosen: the slowest mirrors of
// the default board, 500 Hz with that damping, lose e every 1.3 ms.
const (
	mirrorStep   = 2560                  // codes, about 40 mrad
	stepPause    = 4 * time.Millisecond  // between steps; the rest of one adds to the next
	mirrorSettle = 10 * time.Millisecond // after the last step. docs/board.md
	climbSettle  = 6 * time.Millisecond  // after a hill-climb move: under 1 % of 2.5 mrad is left
)

// mirrors are those of both sides: where each stands, where it should, and the
// frames that bring it there.
type mirrors struct {
	hw      *hal.Mirrors
	dac     DAC
	factory *Factory
	buses   int
	at      [hal.NumSides][]mirror
	long    bool   // one of this round goes far
	limited uint32 // drives that the guard cut down
}

// mirror is where one stands and should stand, from hal.MirrorBias.
type mirror struct {
	shadow, target [2]int16
	aimed          bool // the target was asked for
	known          bool // shadow is what the electrodes have
	moved          bool // in this round
	err            error
}

func newMirrors(board *hal.Board, factory *Factory) mirrors {
	m := mirrors{hw: board.Mirrors, dac: dacs[board.Mirrors.DAC.Like()], factory: factory, buses: len(board.Buses)}
	for side := range m.at {
		m.at[side] = make([]mirror, m.hw.Ports)
	}
	return m
}

// forget leaves every mirror where it is: without an earlier record, it may
// stand anywhere.
func (m *mirrors) forget() {
	for side := range m.at {
		clear(m.at[side])
	}
}

// of are the mirrors of a circuit.
func (m *mirrors) of(p circuit.Pair) [hal.NumSides]*mirror {
	return [hal.NumSides]*mirror{&m.at[hal.SideA][p.A], &m.at[hal.SideB][p.B]}
}

// guard is below every command: whoever asks, no electrode goes where the
// mirror would be pulled in. What it cut is counted.
func (m *mirrors) guard(d int16) int16 {
	if d > hal.MirrorMaxDrive || d < -hal.MirrorMaxDrive {
		m.limited++
		return max(-hal.MirrorMaxDrive, min(d, hal.MirrorMaxDrive))
	}
	return d
}

// aim sends both mirrors of a circuit to a drive, which it returns as guarded.
func (m *mirrors) aim(p circuit.Pair, drive [4]int16) [4]int16 {
	for i := range drive {
		drive[i] = m.guard(drive[i])
	}
	for side, x := range m.of(p) {
		x.target, x.aimed, x.err = [2]int16(drive[2*side:2*side+2]), true, nil
	}
	return drive
}

// believe takes both mirrors of a circuit to stand at a drive.
func (m *mirrors) believe(p circuit.Pair, drive [4]int16) {
	for side, x := range m.of(p) {
		x.shadow, x.known = [2]int16(drive[2*side:2*side+2]), true
	}
}

// doubt: nobody knows where the mirrors of a circuit stand. They stay there
// until they are sent somewhere, from rest.
func (m *mirrors) doubt(p circuit.Pair) {
	for _, x := range m.of(p) {
		x.known, x.aimed = false, false
	}
}

// arrived tells whether both mirrors of a circuit are where they were sent.
func (m *mirrors) arrived(p circuit.Pair) bool {
	for _, x := range m.of(p) {
		if x.err != nil || x.shadow != x.target {
			return false
		}
	}
	return true
}

// lost is why a mirror of a circuit could not be written.
func (m *mirrors) lost(p circuit.Pair) error {
	for _, x := range m.of(p) {
		if x.err != nil {
			return x.err
		}
	}
	return nil
}

func (m *mirrors) parking(side, port int) (to [2]int16) {
	for i, d := range m.factory.Park[side][port] {
		to[i] = m.guard(d)
	}
	return to
}

// park sends a mirror to where it points at nothing.
func (m *mirrors) park(side, port int) {
	x := &m.at[side][port]
	x.target, x.aimed, x.err = m.parking(side, port), true, nil
}

// parkLost parks a mirror of which nothing is known and nothing was asked.
func (m *mirrors) parkLost(side, port int) {
	if x := &m.at[side][port]; !x.known && !x.aimed {
		m.park(side, port)
	}
}

// believeParked takes a mirror to be parked.
func (m *mirrors) believeParked(side, port int) {
	x := &m.at[side][port]
	x.shadow = m.parking(side, port)
	x.target, x.known = x.shadow, true
}

// wants reports whether a mirror has to be moved. One of which nothing is
// known and of which nothing was asked stays where it is.
func (x *mirror) wants() bool {
	return x.err == nil && x.aimed && (!x.known || x.shadow != x.target)
}

// any reports whether one has to be moved.
func (m *mirrors) any() bool {
	for side := range m.at {
		for p := range m.at[side] {
			if m.at[side][p].wants() {
				return true
			}
		}
	}
	return false
}

// waypoint is where the next step of a mirror ends.
func (x *mirror) waypoint() [2]int16 {
	if !x.known {
		return [2]int16{} // from wherever it is, half the way at most
	}
	to := x.target
	for i := range to {
		to[i] = min(max(to[i], x.shadow[i]-mirrorStep), x.shadow[i]+mirrorStep)
	}
	return to
}

// step writes the next step of every mirror that is not where it should be, all
// of one bus in one operation. It returns how many operations.
func (m *mirrors) step(q *work.Queue) int {
	frames := make([][]byte, len(m.hw.DACs))
	for side := range m.at {
		for p := range m.at[side] {
			x := &m.at[side][p]
			if !x.wants() {
				continue
			}
			to := x.waypoint()
			for i := range to {
				to[i] = m.guard(to[i])
			}
			m.long = m.long || !x.known || far(x.shadow, to)
			x.shadow, x.known, x.moved = to, true, true
			m.electrodes(side, p, to, frames)
		}
	}
	ops := make([]*hal.Op, m.buses)
	n := 0
	for d, f := range frames {
		if f == nil {
			continue
		}
		bus := m.hw.DACs[d].SPI
		if ops[bus] == nil {
			ops[bus] = &hal.Op{Token: q.Token(writeTask, n), Class: hal.ClassSwitch}
			n++
		}
		ops[bus].Msgs = append(ops[bus].Msgs, hal.Msg{Addr: m.hw.DACs[d].ChipSelect, Frame: m.dac.Frame, W: f})
	}
	for bus, op := range ops {
		if op != nil {
			q.Put(hal.BusID(bus), op)
		}
	}
	return n
}

func far(a, b [2]int16) bool {
	for i := range a {
		if d := int(a[i]) - int(b[i]); d > climbLeap+climbStep || d < -climbLeap-climbStep {
			return true
		}
	}
	return false
}

// electrodes appends the frames of a mirror's drive to those of their DACs.
func (m *mirrors) electrodes(side, port int, drive [2]int16, frames [][]byte) {
	for i, d := range drive {
		for pole, code := range [2]int16{hal.MirrorBias + d, hal.MirrorBias - d} {
			at := int(m.hw.Arrays[side][port].Electrodes[2*i+pole])
			f := &frames[at/hal.MirrorDACChannels]
			*f = m.dac.Write(*f, at%hal.MirrorDACChannels, uint16(code))
		}
	}
}

// unwritten: nobody knows which frames of an operation arrived.
func (m *mirrors) unwritten(bus hal.BusID, err error) {
	on := func(at uint16) bool { return m.hw.DACs[int(at)/hal.MirrorDACChannels].SPI == bus }
	for side := range m.at {
		for p := range m.at[side] {
			x := &m.at[side][p]
			if x.moved && slices.ContainsFunc(m.hw.Arrays[side][p].Electrodes[:], on) {
				x.known, x.err = false, err
			}
		}
	}
}

// written ends a step and returns how long the mirrors take to settle from it.
func (m *mirrors) written() time.Duration {
	for side := range m.at {
		for p := range m.at[side] {
			m.at[side][p].moved = false
		}
	}
	switch {
	case m.any():
		return stepPause
	case m.long:
		return mirrorSettle + monitorWindow
	}
	return climbSettle + monitorWindow
}
