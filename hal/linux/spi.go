package linux

import (
	"fmt"
	"strconv"
	"strings"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/host/v3/sysfs"

	"ringlight/hal"
)

// maxPackets per call: with more, periph keeps the kernel's array only as a
// number and not as a pointer, and the collector may take it away.
const maxPackets = 4

// spiPort opens one chip select.
type spiPort func(chipSelect int) (spi.Conn, func() error, error)

// spiBus is one SPI controller with its chip selects, opened at first use.
type spiBus struct {
	open    spiPort
	conns   map[uint16]spi.Conn
	closers []func() error
	packets [maxPackets]spi.Packet
	w, r    []byte
}

// openSPI takes "/dev/spidev1.", to which chip selects are appended.
func openSPI(device string, speed physic.Frequency) (*spiBus, error) {
	number, ok := strings.CutPrefix(device, "/dev/spidev")
	number, dot := strings.CutSuffix(number, ".")
	bus, err := strconv.Atoi(number)
	if !ok || !dot || err != nil {
		return nil, fmt.Errorf("%w: SPI device %q, want /dev/spidevN.", hal.ErrNoDevice, device)
	}
	return &spiBus{conns: map[uint16]spi.Conn{}, open: func(cs int) (spi.Conn, func() error, error) {
		port, err := sysfs.NewSPI(bus, cs)
		if err != nil {
			return nil, nil, fmt.Errorf("%w (%v)", hal.ErrNoDevice, err)
		}
		conn, err := port.Connect(speed, spi.Mode0, 8)
		if err != nil {
			port.Close()
			return nil, nil, errorFromText(err)
		}
		return conn, port.Close, nil
	}}, nil
}

func (b *spiBus) conn(cs uint16) (spi.Conn, error) {
	if c, ok := b.conns[cs]; ok {
		return c, nil
	}
	c, closer, err := b.open(int(cs))
	if err != nil {
		return nil, err
	}
	b.conns[cs] = c
	b.closers = append(b.closers, closer)
	return c, nil
}

// transfer sends the frames of m, the chip select raised after each.
func (b *spiBus) transfer(m *hal.Msg) error {
	frame := int(m.Frame)
	if frame == 0 || len(m.W) == 0 || len(m.W)%frame != 0 || m.R != nil && len(m.R) != len(m.W) {
		return fmt.Errorf("%w: %d bytes out, %d back in frames of %d", hal.ErrOutOfRange, len(m.W), len(m.R), frame)
	}
	conn, err := b.conn(m.Addr)
	if err != nil {
		return err
	}
	b.w = append(b.w[:0], m.W...)
	if cap(b.r) < len(m.R) {
		b.r = make([]byte, len(m.R))
	}
	b.r = b.r[:len(m.R)]
	for at := 0; at < len(b.w); {
		n := 0
		for ; n < maxPackets && at < len(b.w); n++ {
			p := spi.Packet{W: b.w[at : at+frame]}
			if m.R != nil {
				p.R = b.r[at : at+frame]
			}
			b.packets[n] = p
			at += frame
		}
		if err := conn.TxPackets(b.packets[:n]); err != nil {
			return errorFromText(err)
		}
	}
	return nil
}

func (b *spiBus) read() []byte { return b.r }

func (b *spiBus) close() error {
	var first error
	for _, c := range b.closers {
		if err := c(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
