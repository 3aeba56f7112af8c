package linux

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"

	"ringlight/hal"
)

// buffers are a wire's own copy of a message: its op may be given up, and its buffers
// be its submitter's again, while a bus still sits on the transfer.
type buffers struct{ w, r []byte }

func (b *buffers) take(m *hal.Msg) {
	b.w = append(b.w[:0], m.W...)
	if cap(b.r) < len(m.R) {
		b.r = make([]byte, len(m.R))
	}
	b.r = b.r[:len(m.R)]
}

// read is what the last transfer read.
func (b *buffers) read() []byte { return b.r }

// i2cWire is any I2C bus that periph's interfaces describe.
type i2cWire struct {
	buffers
	bus i2c.BusCloser
}

func (b *i2cWire) transfer(m *hal.Msg) error {
	b.take(m)
	return caused(b.bus.Tx(m.Addr, b.w, b.r))
}

func (b *i2cWire) close() error { return b.bus.Close() }

// spiWire is the chip selects of an SPI bus, each a port of periph's that is opened
// when it is first used.
type spiWire struct {
	buffers
	prefix string // of a port's name, to which the chip select is appended
	speed  physic.Frequency
	mode   func(sel uint16) uint8
	open   func(name string) (spi.PortCloser, error)
	shut   func() error // of what all of them share; nil: nothing

	ports   map[uint16]*spiChip
	packets []spi.Packet
}

type spiChip struct {
	port spi.PortCloser
	conn spi.Conn
	most int // bytes of one TxPackets
}

func (b *spiWire) chip(sel uint16) (*spiChip, error) {
	if c := b.ports[sel]; c != nil {
		return c, nil
	}
	port, err := b.open(b.prefix + strconv.Itoa(int(sel)))
	if err != nil {
		return nil, caused(err)
	}
	c := &spiChip{port: port, most: maxSPIBytes}
	if c.conn, err = port.Connect(b.speed, spi.Mode(b.mode(sel)), spiBits); err != nil {
		return nil, errors.Join(caused(err), port.Close())
	}
	if l, ok := c.conn.(conn.Limits); ok && l.MaxTxSize() > 0 {
		c.most = min(c.most, l.MaxTxSize())
	}
	b.ports[sel] = c
	return c, nil
}

// transfer sends the frames of m, the chip select raised after each.
func (b *spiWire) transfer(m *hal.Msg) error {
	frame := int(m.Frame)
	if frame == 0 || len(m.W) == 0 || len(m.W)%frame != 0 || m.R != nil && len(m.R) != len(m.W) {
		return fmt.Errorf("%w: %d bytes out, %d back in frames of %d", hal.ErrOutOfRange, len(m.W), len(m.R), frame)
	}
	c, err := b.chip(m.Addr)
	if err != nil {
		return err
	}
	b.take(m)
	for at := 0; at < len(b.w); {
		b.packets = b.packets[:0]
		for n := 0; n < maxFrames && (n+1)*frame <= max(c.most, frame) && at < len(b.w); n++ {
			p := spi.Packet{W: b.w[at : at+frame]}
			if m.R != nil {
				p.R = b.r[at : at+frame]
			}
			b.packets = append(b.packets, p)
			at += frame
		}
		if err := caused(c.conn.TxPackets(b.packets)); err != nil {
			return err
		}
	}
	return nil
}

func (b *spiWire) close() error {
	var errs []error
	for _, c := range b.ports { // any order: independent ports
		errs = append(errs, c.port.Close())
	}
	if b.shut != nil {
		errs = append(errs, b.shut())
	}
	return errors.Join(errs...)
}

// caused makes the error of a bus, whoever wrote its driver, match a cause of package
// hal: by the errno that it wraps or, since drivers of periph's host print theirs, by
// the text of one at its end. What says neither is no device to us.
func caused(err error) error {
	var e syscall.Errno
	switch {
	case err == nil || hal.Caused(err):
		return err
	case errors.As(err, &e):
		return fmt.Errorf("%w (%w)", causeOf(e), err)
	}
	if e = errnoIn(err.Error()); e != 0 {
		return fmt.Errorf("%w (%w: %w)", causeOf(e), err, e)
	}
	return fmt.Errorf("%w (%w)", hal.ErrNoDevice, err)
}
