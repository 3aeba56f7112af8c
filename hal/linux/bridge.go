package linux

import (
	"errors"
	"fmt"
	"strconv"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"

	"ringlight/hal"
	"ringlight/hal/sc18is602"
)

// bridgeTries is how often a bridge is asked whether it is done. chosen: each ask takes two
// bytes at 400 kHz, 45 us; the longest transfer takes 28 ms at the slowest clock.
const bridgeTries = 1000

// bridge is an I2C bridge to SPI, as one SPI bus: its owner alone uses it.
type bridge struct {
	bus    i2c.BusCloser
	addr   uint16
	config int // as the chip has it; -1: not known
	w, r   []byte
}

// bridgePort is one chip select of a bridge.
type bridgePort struct {
	*bridge
	sel  uint16
	want byte
}

// openBridge opens the I2C bus of a bridge once more: the kernel keeps its transfers apart
// from those of the bus's own owner.
func openBridge(device string, b *hal.Bus, mode func(sel uint16) uint8) (*spiWire, error) {
	bus, err := i2cOf(device)
	if err != nil {
		return nil, err
	}
	return bridgeOn(bus, b, mode), nil
}

func bridgeOn(bus i2c.BusCloser, b *hal.Bus, mode func(sel uint16) uint8) *spiWire {
	x := &bridge{bus: bus, addr: b.Bridge.Addr, config: -1}
	return &spiWire{speed: b.Speed, mode: mode, ports: map[uint16]*spiChip{}, shut: bus.Close, open: func(name string) (spi.PortCloser, error) {
		sel, err := strconv.Atoi(name)
		if err != nil || sel >= sc18is602.Selects {
			return nil, fmt.Errorf("%w: chip select %s of a bridge with %d", hal.ErrNoDevice, name, sc18is602.Selects)
		}
		return &bridgePort{bridge: x, sel: uint16(sel)}, nil
	}}
}

// LimitSpeed does nothing: Connect has the clock of the board.
func (p *bridgePort) LimitSpeed(physic.Frequency) error { return nil }

// Connect says which mode and clock the chip at this select wants.
func (p *bridgePort) Connect(f physic.Frequency, mode spi.Mode, bits int) (spi.Conn, error) {
	if mode&^spi.Mode3 != 0 || bits != spiBits {
		return nil, fmt.Errorf("%s: %w: %v, words of %d bits", p, hal.ErrUnsupported, mode, bits)
	}
	p.want = sc18is602.Config(uint8(mode), int64(f/physic.Hertz))
	return p, nil
}

// Tx is one frame.
func (p *bridgePort) Tx(w, r []byte) error { return p.TxPackets([]spi.Packet{{W: w, R: r}}) }

// TxPackets sends each packet by a transfer of its own, since the select rises after one.
func (p *bridgePort) TxPackets(packets []spi.Packet) error {
	if p.config != int(p.want) {
		p.config = -1
		if err := p.bus.Tx(p.addr, sc18is602.AppendConfig(p.w[:0], p.want), nil); err != nil {
			return err
		}
		p.config = int(p.want)
	}
	for _, k := range packets {
		if len(k.W) == 0 || len(k.W) > sc18is602.BufferBytes || k.KeepCS || len(k.R) > 0 && len(k.R) != len(k.W) {
			return fmt.Errorf("%s: %w: %d bytes out, %d back: want 1 to %d", p, hal.ErrOutOfRange, len(k.W), len(k.R), sc18is602.BufferBytes)
		}
		p.w = sc18is602.AppendTransfer(p.w[:0], p.sel, k.W)
		if err := p.bus.Tx(p.addr, p.w, nil); err != nil {
			return err
		}
		if cap(p.r) < len(k.W) {
			p.r = make([]byte, sc18is602.BufferBytes)
		}
		if err := p.done(p.r[:max(1, len(k.R))]); err != nil {
			return err
		}
		copy(k.R, p.r)
	}
	return nil
}

// done waits until the bridge acknowledges again, and reads what came in.
func (p *bridgePort) done(r []byte) (err error) {
	for range bridgeTries {
		if err = p.bus.Tx(p.addr, nil, r); err == nil || !errors.Is(caused(err), hal.ErrAddressNACK) {
			return err
		}
	}
	return fmt.Errorf("%s: %w: it is still busy (%v)", p, hal.ErrTimeout, err)
}

// MaxTxSize is how many bytes one transfer may have.
func (p *bridgePort) MaxTxSize() int { return sc18is602.BufferBytes }

func (p *bridgePort) Duplex() conn.Duplex { return conn.Full }

func (p *bridgePort) String() string { return fmt.Sprintf("bridge %#02x select %d", p.addr, p.sel) }

// Close leaves the bus to the wire of the bridge.
func (p *bridgePort) Close() error { return nil }
