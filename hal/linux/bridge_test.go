package linux

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
	"ringlight/hal/sc18is602"
)

// nxp is a bridge on an I2C bus: it is busy for so many asks after each transfer, and what
// comes in is the complement of what went out.
type nxp struct {
	printed
	busy, left int
	log        string
	in         []byte
	closed     int
}

func (x *nxp) Tx(addr uint16, w, r []byte) error {
	if addr != 0x2a {
		return hal.ErrAddressNACK
	}
	if x.left > 0 {
		x.left--
		return hal.ErrAddressNACK
	}
	if len(w) > 0 {
		selects, data, config, ok := takenApart(w)
		if !ok {
			return hal.ErrByteNACK
		}
		if data == nil {
			x.log += fmt.Sprintf("config %#02x, ", config)
			return nil
		}
		x.log += fmt.Sprintf("%d: % x, ", selects, data)
		x.in, x.left = nil, x.busy
		for _, b := range data {
			x.in = append(x.in, ^b)
		}
	}
	copy(r, x.in)
	return nil
}
func (x *nxp) Close() error { x.closed++; return nil }

func TestSPIBehindABridge(t *testing.T) {
	// Goal: frames of an SPI bus go one by one through a bridge, each to its select in its
	// chip's mode, and come back when the bridge is no longer busy; one that stays busy is a
	// timeout and no missing chip.
	x := &nxp{busy: 3}
	w := bridgeOn(x, &hal.Bus{Speed: 500 * physic.KiloHertz, Bridge: &hal.Via{Addr: 0x2a}}, func(sel uint16) uint8 { return uint8(sel) })
	m := &hal.Msg{Addr: 0, Frame: 3, W: []byte{1, 2, 3, 4, 5, 6}, R: make([]byte, 6)}
	if err := w.transfer(m); err != nil || !bytes.Equal(w.read(), []byte{0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9}) {
		t.Errorf("% x, %v", w.read(), err)
	}
	if err := w.transfer(&hal.Msg{Addr: 1, Frame: 2, W: []byte{7, 8}}); err != nil {
		t.Error(err)
	}
	if want := "config 0x01, 1: 01 02 03, 1: 04 05 06, config 0x05, 2: 07 08, "; x.log != want {
		t.Errorf("%s, want %s", x.log, want)
	}
	if err := w.transfer(&hal.Msg{Addr: 4, Frame: 1, W: []byte{1}}); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("a fifth select: %v", err)
	}
	if err := w.transfer(&hal.Msg{Addr: 1, Frame: 201, W: make([]byte, 201)}); !errors.Is(err, hal.ErrOutOfRange) {
		t.Errorf("a frame beyond its buffer: %v", err)
	}
	x.busy = bridgeTries + 1
	if err := w.transfer(&hal.Msg{Addr: 1, Frame: 2, W: []byte{7, 8}}); !errors.Is(err, hal.ErrTimeout) || errors.Is(err, hal.ErrAddressNACK) {
		t.Errorf("busy all the time: %v", err)
	}
	if err := w.close(); err != nil || x.closed != 1 {
		t.Errorf("closed %d times, %v", x.closed, err)
	}
}

// takenApart is what a message to the bridge asks for: the selects and the data of a transfer,
// or the configuration.
func takenApart(w []byte) (selects byte, data []byte, config byte, ok bool) {
	switch {
	case len(w) == 2 && w[0] == 0xF0:
		return 0, nil, w[1], true
	case len(w) > 1 && w[0] > 0 && w[0] < 1<<sc18is602.Selects && len(w)-1 <= sc18is602.BufferBytes:
		return w[0], w[1:], 0, true
	}
	return 0, nil, 0, false
}
