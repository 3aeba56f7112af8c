package periph_test

import (
	"errors"
	"testing"
	"time"

	"periph.io/x/conn/v3/i2c/i2creg"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spireg"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/periph"
	"ringlight/sim/solo"
)

func TestEveryBusIsRegistered(t *testing.T) {
	// Goal: each I2C bus, each mux channel with a chip and each chip select of a
	// board is in periph's registries, and none once done is called; a name that is
	// taken registers nothing.
	b, err := boardfile.Default(4, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	count := func() int { return len(i2creg.All()) + len(spireg.All()) }
	before := count()
	nothing := func(hal.BusID, *hal.Op) error { return nil }
	done, err := periph.Register("a/", &b, nothing)
	if err != nil {
		t.Fatal(err)
	}
	// A latch bus; of each bundle two ADC buses, a slow bus and two channels of its mux,
	// and six chip selects.
	if n := count() - before; n != 1+2*(2+1+2+6) {
		t.Errorf("%d registered", n)
	}
	if _, err := periph.Register("a/", &b, nothing); err == nil {
		t.Error("every name was taken twice")
	}
	done()
	if n := count() - before; n != 0 {
		t.Errorf("%d left", n)
	}
}

func TestFramesThatNoBoardCarries(t *testing.T) {
	// Goal: a packet that a message cannot be is refused by its number, not carried
	// out as another.
	p := &periph.Port{Do: func(hal.BusID, *hal.Op) error { t.Error("carried out"); return nil }, Name: "p"}
	for name, k := range map[string]spi.Packet{ // any order: independent rows
		"empty": {}, "long": {W: make([]byte, 256)}, "kept": {W: []byte{1}, KeepCS: true}, "uneven": {W: []byte{1, 2}, R: []byte{1}},
	} {
		if err := p.TxPackets([]spi.Packet{k}); !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADriverOnALivingBoard(t *testing.T) {
	// Goal: on a board that tells events, from its own goroutine, a transfer returns
	// with its own completion, and others' events are left to others.
	b, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var w periph.Waiter
	others := make(chan hal.Event, 16)
	board, err := solo.Open(solo.Config{Board: &b, Seed: 3}, func(ev hal.Event) {
		if !w.Told(ev) {
			others <- ev
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer board.Close()
	w.Submit = board.Submit
	slow := b.Bundles[0].Modules[0]
	mine := &hal.Op{Deadline: time.Second, Msgs: []hal.Msg{{Addr: slow.Mux, W: []byte{1}}}}
	if err := board.Submit(slow.Slow, mine); err != nil {
		t.Fatal(err)
	}
	bus := periph.Bus{Do: w.Do, ID: slow.Slow, Mux: slow.Mux, Channel: slow.MuxChannel}
	milli := make([]byte, 2)
	if err := bus.Tx(slow.Temp, []byte{0}, milli); err != nil || milli[0] == 0 {
		t.Errorf("% x, %v", milli, err)
	}
	if err := bus.Tx(0x1d, []byte{0}, nil); !errors.Is(err, hal.ErrAddressNACK) {
		t.Errorf("nobody's address: %v", err)
	}
	for ev := range others {
		if ev.Completion != nil && ev.Completion.Op == mine {
			break
		}
	}
}
