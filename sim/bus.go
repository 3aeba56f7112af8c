package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"

	"periph.io/x/conn/v3/physic"
)

// The PCA9548's addresses.
const (
	firstMux = 0x70
	muxes    = 8
)

// maxQueue bounds what waits for one bus. chosen: the staging of a whole
// bundle is 24 operations.
const maxQueue = 256

// bus is one bus of a board: what waits, what is on the wire.
type bus struct {
	board   *board
	id      hal.BusID
	on      hal.BusID // of the work on the wire: q.id, or a bus that the kernel makes of a mux here
	channel hal.BusID // of those, the one last chosen
	waiting []*work   // in order of class, then of arrival
	current *work
	stuck   bool
	wire    []wireFault
	frames  frameFault
	mux     [muxes]uint8 // control registers of the switches on it
}

// work is one operation on its way.
type work struct {
	op    *hal.Op
	bus   hal.BusID
	start time.Duration
	limit time.Duration
	msg   int // next message
	ended time.Duration
	done  bool // all messages carried out; waits for its last bit
	err   error
}

// newWork gives one that came to its end before, where there is one.
func (s *scratch) newWork() (wk *work) {
	if n := len(s.works) - 1; n >= 0 {
		wk, s.works = s.works[n], s.works[:n]
		*wk = work{}
		return wk
	}
	return new(work)
}

// Submit puts an operation before a bus at a time not in the past. It is
// carried out in virtual time; its completion comes out of Step.
func (w *World) Submit(at time.Duration, id BoardID, busID hal.BusID, op *hal.Op) error {
	b, err := w.board(id)
	if err != nil {
		return err
	}
	if int(busID) >= len(b.buses) {
		return fmt.Errorf("%w: bus %d of %d", hal.ErrNoDevice, busID, len(b.buses))
	}
	q := &b.buses[busID]
	if hw := q.hw(); hw.Adapter { // the wires are one
		q = &b.buses[hw.Root]
	}
	if len(q.waiting) >= maxQueue {
		return fmt.Errorf("%w: bus %d", hal.ErrQueueFull, busID)
	}
	if at < w.now {
		panic(fmt.Sprintf("sim: submit at %v, now %v", at, w.now))
	}
	wk := b.newWork()
	wk.op, wk.bus = op, busID
	if at == w.now {
		q.enqueue(wk)
		return nil
	}
	b.events.Push(at, event{kind: evSubmit, board: int32(id), place: uint16(q.id), gen: b.life, op: wk})
	return nil
}

// hw is what the board's data say of it.
func (q *bus) hw() *hal.Bus { return &q.board.hw.Buses[q.id] }

func (q *bus) enqueue(wk *work) {
	i := len(q.waiting)
	for i > 0 && q.waiting[i-1].op.Class > wk.op.Class {
		i--
	}
	q.waiting = slices.Insert(q.waiting, i, wk)
	if q.current == nil {
		q.startNext()
	}
}

func (q *bus) startNext() {
	if len(q.waiting) == 0 {
		return
	}
	wk := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.current, q.on = wk, wk.bus
	b, kind := q.board, q.hw().Kind
	call := &b.costs.I2CCall
	if kind == hal.SPI {
		call = &b.costs.SPICall
	}
	wk.start = b.now + b.drawCall(call)
	wk.limit = wk.start + cmp.Or(wk.op.Deadline, hal.DefaultDeadline)
	if (q.stuck || b.buses[q.on].stuck) && kind == hal.I2C {
		wk.done, wk.err = true, hal.ErrBusStuck
		q.wake(wk.limit)
		return
	}
	from := wk.start
	if q.on != q.id && q.on != q.channel { // the kernel chooses the channel: a message of one byte
		q.channel = q.on
		from += clocks(muxClocks, q.hw().Speed)
	}
	q.arrange(wk, from)
}

// muxClocks are those of a write of one byte.
const muxClocks = 2 + 9*2

// arrange carries an operation on from when the bus is free: it runs ahead
// over what may be, and puts the next message on the heap. A read samples at
// its start, a write acts at its end.
func (q *bus) arrange(wk *work, from time.Duration) {
	hw := q.hw()
	for wk.msg < len(wk.op.Msgs) {
		msg := &wk.op.Msgs[wk.msg]
		length, err := q.length(msg)
		stretched := q.stretched(msg)
		wk.ended = from + length + stretched
		switch {
		case err != nil:
			wk.done, wk.err = true, err
			q.wake(from)
			return
		case wk.ended > wk.limit:
			wk.done, wk.err = true, hal.ErrTimeout
			if stretched > 0 {
				wk.err = hal.ErrClockStretch
			}
			q.wake(wk.limit)
			return
		}
		at := wk.ended
		if len(msg.R) > 0 && hw.Kind == hal.I2C {
			at = from
		}
		ok, err := q.ahead(msg, at)
		if !ok {
			q.wake(at)
			return
		}
		if err != nil {
			wk.done, wk.err = true, err
			q.wake(at)
			return
		}
		wk.msg++
		from = wk.ended
	}
	wk.done = true
	q.wake(from)
}

func (q *bus) wake(at time.Duration) {
	b := q.board
	b.events.Push(at, event{kind: evBus, board: int32(b.id), place: uint16(q.id), gen: b.life})
}

// length is the time of a message on the wire: nine clocks a byte with start
// and stop on I2C; the bits and a pause of the chip select on SPI.
func (q *bus) length(m *hal.Msg) (time.Duration, error) {
	hw := q.hw()
	if len(m.W) == 0 && len(m.R) == 0 {
		return 0, fmt.Errorf("%w: empty message", hal.ErrOutOfRange)
	}
	if hw.Kind == hal.SPI {
		frame := int(m.Frame)
		if frame == 0 || len(m.W)%frame != 0 {
			return 0, fmt.Errorf("%w: %d bytes in frames of %d", hal.ErrOutOfRange, len(m.W), frame)
		}
		if m.R != nil && len(m.R) != len(m.W) {
			return 0, fmt.Errorf("%w: reply of %d bytes for %d", hal.ErrOutOfRange, len(m.R), len(m.W))
		}
		return clocks(8*len(m.W), hw.Speed) + time.Duration(len(m.W)/frame)*q.board.costs.SPIFrame, nil
	}
	n := 2
	if len(m.W) > 0 {
		n += 9 * (1 + len(m.W))
	}
	if len(m.R) > 0 {
		n += 9 * (1 + len(m.R))
	}
	if len(m.W) > 0 && len(m.R) > 0 {
		n++
	}
	return clocks(n, hw.Speed), nil
}

func clocks(n int, speed physic.Frequency) time.Duration {
	return time.Duration(int64(n) * int64(time.Second) / int64(speed/physic.Hertz))
}

// step carries out what the bus was waiting for, and returns the completion
// when the operation is over.
func (q *bus) step() *hal.Completion {
	wk := q.current
	if !wk.done {
		msg := &wk.op.Msgs[wk.msg]
		var err error
		isWrite := true
		if q.hw().Kind == hal.SPI {
			q.spi(msg)
		} else {
			isWrite = len(msg.R) == 0
			err = q.i2c(msg)
		}
		if err == nil {
			wk.msg++
			if !isWrite || wk.msg < len(wk.op.Msgs) {
				q.arrange(wk, wk.ended)
				return nil
			}
		}
		wk.err = err
	}
	q.current = nil
	done := &hal.Completion{Bus: wk.bus, Op: wk.op, Start: wk.start, End: q.board.now, Msg: wk.msg, Err: wk.err}
	q.board.works = append(q.board.works, wk)
	q.startNext()
	return done
}

// spi carries out one message: every frame with the chip select low.
func (q *bus) spi(msg *hal.Msg) {
	for i := range msg.R {
		msg.R[i] = 0xFF // nobody drives the line
	}
	b := q.board
	if !b.powered {
		return
	}
	if b.mems != nil {
		b.mems.spi(int64(b.now), q.id, msg)
		b.mems.moved(b)
	}
	for _, s := range b.lay.selects[q.id] {
		if s.cs != msg.Addr {
			continue
		}
		m := &b.bundles[s.bundle].modules[s.module]
		var changed uint16
		dac := m.dac[s.dac].(spiChip)
		for at, n := 0, int(msg.Frame); at < len(msg.W); at += n {
			var back []byte
			if msg.R != nil {
				back = msg.R[at : at+n]
			}
			changed |= dac.frame(int64(b.now), q.frames.flip(msg.W[at:at+n]), back)
		}
		if changed != 0 && m.drive(s.dac, changed) {
			m.changed()
		}
	}
}

// i2c carries out one message.
func (q *bus) i2c(msg *hal.Msg) error {
	b, found := q.board, false
	if b.powered {
		for _, f := range b.gone {
			if f.bus == q.on && f.addr == msg.Addr {
				return hal.ErrAddressNACK
			}
		}
		for _, i := range b.lay.at(q.on, msg.Addr) {
			c := &b.lay.chips[q.on][i]
			if !q.reaches(c) || b.away(c) {
				continue
			}
			if !found {
				for j := range msg.R {
					msg.R[j] = 0xFF
				}
			}
			found = true
			if err := q.talk(c, msg); err != nil {
				return err
			}
		}
	}
	if !found {
		return hal.ErrAddressNACK
	}
	return nil
}

// talk is one message with one chip. Bytes that chips send at once, behind
// two open channels of a switch, meet as a wired and.
func (q *bus) talk(c *chip, msg *hal.Msg) error {
	wire := q.board.buses[q.on].wireOf(msg.Addr)
	if wire != nil && wire.deaf && len(msg.W) > 0 {
		return hal.ErrByteNACK
	}
	if len(msg.W) > 0 {
		if n := q.listen(c, msg.W); n < len(msg.W) {
			return hal.ErrByteNACK
		}
	}
	if len(msg.R) == 0 {
		return nil
	}
	r := append(q.board.said[:0], make([]byte, len(msg.R))...)
	q.board.said = r
	q.say(c, r, len(msg.W) > 0)
	if wire != nil {
		wire.flip(r)
	}
	for i := range r {
		msg.R[i] &= r[i]
	}
	return nil
}
