package periph

import (
	"errors"
	"fmt"
	"sync"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/i2c/i2creg"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spireg"

	"ringlight/hal"
)

// Do carries out an op and waits for its end.
type Do func(bus hal.BusID, op *hal.Op) error

// Bus is an I2C bus, or what lies behind one channel of a mux on it.
type Bus struct {
	Do   Do
	ID   hal.BusID
	Name string
	// Mux is the address of the mux in front, 0: none, and Channel its channel.
	Mux     uint16
	Channel uint8
}

// Tx writes w and then, after a repeated start, reads r.
func (b *Bus) Tx(addr uint16, w, r []byte) error {
	msgs := []hal.Msg{{Addr: addr, W: w, R: r}}
	if b.Mux != 0 {
		msgs = []hal.Msg{{Addr: b.Mux, W: []byte{1 << b.Channel}}, msgs[0]}
	}
	return b.Do(b.ID, &hal.Op{Class: hal.ClassHousekeeping, Msgs: msgs})
}

// SetSpeed is refused: a bus has the clock that its board names.
func (b *Bus) SetSpeed(physic.Frequency) error {
	return fmt.Errorf("%s: %w: the clock is the board's", b.Name, hal.ErrUnsupported)
}

func (b *Bus) String() string { return b.Name }

// Close does nothing: the bus is its board's.
func (b *Bus) Close() error { return nil }

// Port is one chip select of an SPI bus, and the connection to it.
type Port struct {
	Do     Do
	ID     hal.BusID
	Name   string
	Select uint16
	Speed  physic.Frequency // of the bus
	Mode   spi.Mode         // of the part
}

// LimitSpeed is refused below the clock of the bus.
func (p *Port) LimitSpeed(f physic.Frequency) error {
	if f < p.Speed {
		return fmt.Errorf("%s: %w: the clock is the board's, %v", p.Name, hal.ErrUnsupported, p.Speed)
	}
	return nil
}

// Connect takes the mode that the board's part has, and words of eight bits.
func (p *Port) Connect(f physic.Frequency, mode spi.Mode, bits int) (spi.Conn, error) {
	if mode != p.Mode || bits != 8 || f != 0 && f < p.Speed {
		return nil, fmt.Errorf("%s: %w: %v at %v in words of %d bits: want %v at %v or more, 8 bits", p.Name, hal.ErrUnsupported, mode, f, bits, p.Mode, p.Speed)
	}
	return p, nil
}

// Tx is one frame.
func (p *Port) Tx(w, r []byte) error { return p.TxPackets([]spi.Packet{{W: w, R: r}}) }

// maxFrame is the longest that a message of package hal has.
const maxFrame = 255

// TxPackets sends packets as frames of one op, the select raised after each.
func (p *Port) TxPackets(packets []spi.Packet) error {
	op := &hal.Op{Class: hal.ClassHousekeeping}
	for i, k := range packets {
		n := max(len(k.W), len(k.R))
		if n == 0 || n > maxFrame || k.KeepCS || len(k.W) > 0 && len(k.R) > 0 && len(k.W) != len(k.R) {
			return fmt.Errorf("%s: packet %d: %w: %d bytes out, %d back, select kept %v: want a frame of 1 to %d", p.Name, i, hal.ErrOutOfRange, len(k.W), len(k.R), k.KeepCS, maxFrame)
		}
		w := k.W
		if len(w) == 0 {
			w = make([]byte, n)
		}
		op.Msgs = append(op.Msgs, hal.Msg{Addr: p.Select, Frame: uint8(n), W: w, R: k.R})
	}
	return p.Do(p.ID, op)
}

func (p *Port) Duplex() conn.Duplex { return conn.Full }

func (p *Port) String() string { return p.Name }

// Close does nothing: the bus is its board's.
func (p *Port) Close() error { return nil }

// Register puts the buses of a board into i2creg and spireg, by the names of the
// board's file or bus0, bus1 and so on, behind prefix: each I2C bus and each mux channel
// with a chip behind it, "b0.slow/0x70.3", and each chip select of a part, "b0.dac.2".
// done takes them out again; a name that is taken is an error, and nothing is registered.
func Register(prefix string, board *hal.Board, do Do) (done func(), err error) {
	var undo []func() error
	done = func() {
		for _, u := range undo {
			_ = u()
		}
	}
	name := func(id hal.BusID) string {
		if n := board.Buses[id].Name; n != "" {
			return prefix + n
		}
		return fmt.Sprintf("%sbus%d", prefix, id)
	}
	seen := map[string]bool{}
	var errs []error
	bus := func(b Bus) {
		if !seen[b.Name] {
			seen[b.Name] = true
			errs = append(errs, i2creg.Register(b.Name, nil, -1, func() (i2c.BusCloser, error) { return &b, nil }))
			undo = append(undo, func() error { return i2creg.Unregister(b.Name) })
		}
	}
	for i := range board.Buses {
		if board.Buses[i].Kind == hal.I2C {
			bus(Bus{Do: do, ID: hal.BusID(i), Name: name(hal.BusID(i))})
		}
	}
	for c := range board.Chips() {
		switch data := c.Part.Data(); {
		case data.Bus == hal.SPI:
			p := Port{Do: do, ID: c.Bus, Name: fmt.Sprintf("%s.%d", name(c.Bus), c.Addr), Select: c.Addr, Speed: board.Buses[c.Bus].Speed, Mode: spi.Mode(data.SPIMode)}
			errs = append(errs, spireg.Register(p.Name, nil, -1, func() (spi.PortCloser, error) { return &p, nil }))
			undo = append(undo, func() error { return spireg.Unregister(p.Name) })
		case c.Mux != 0:
			bus(Bus{Do: do, ID: c.Bus, Name: fmt.Sprintf("%s/%#02x.%d", name(c.Bus), c.Mux, c.Channel), Mux: c.Mux, Channel: c.Channel})
		}
	}
	if err = errors.Join(errs...); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// Waiter makes a Do of a board that tells completions as events: whoever hears them
// gives each to Told.
type Waiter struct {
	Submit func(bus hal.BusID, op *hal.Op) error

	mu      sync.Mutex
	waiting map[*hal.Op]chan error
}

// Do submits op and waits until Told has its completion.
func (w *Waiter) Do(bus hal.BusID, op *hal.Op) error {
	end := make(chan error, 1)
	w.mu.Lock()
	if w.waiting == nil {
		w.waiting = map[*hal.Op]chan error{}
	}
	w.waiting[op] = end
	w.mu.Unlock()
	if err := w.Submit(bus, op); err != nil {
		w.mu.Lock()
		delete(w.waiting, op)
		w.mu.Unlock()
		return err
	}
	return <-end
}

// Told takes an event of the board and reports whether it was the end of an op of Do.
func (w *Waiter) Told(ev hal.Event) bool {
	if ev.Completion == nil {
		return false
	}
	w.mu.Lock()
	end, ours := w.waiting[ev.Completion.Op]
	delete(w.waiting, ev.Completion.Op)
	w.mu.Unlock()
	if ours {
		end <- ev.Completion.Err
	}
	return ours
}
