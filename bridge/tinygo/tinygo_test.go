package tinygo

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"periph.io/x/conn/v3/i2c/i2creg"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spireg"
	"tinygo.org/x/drivers/at24cx"
	"tinygo.org/x/drivers/ina219"
	"tinygo.org/x/drivers/tmp102"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/periph"
	"ringlight/sim/solo"
)

// open registers a board of one bundle of two modules, and is the slow bus of module 1,
// behind its mux.
func open(t *testing.T) (*solo.Board, interface {
	Tx(addr uint16, w, r []byte) error
}) {
	t.Helper()
	layout, err := boardfile.Default(4, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	board, err := solo.New(solo.Config{Board: &layout, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	done, err := periph.Register("sim/", &layout, board.Do)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	bus, err := i2creg.Open("sim/b0.slow/0x70.1")
	if err != nil {
		t.Fatal(err)
	}
	return board, bus
}

func TestTMP102(t *testing.T) {
	// Goal: TinyGo's driver takes the simulated chip for a TMP102 as it comes out of
	// reset, and reads the temperature of the board's data.
	_, bus := open(t)
	d := tmp102.New(bus)
	d.Configure(tmp102.Config{Address: 0x48})
	if !d.Connected() {
		t.Error("not taken for a TMP102 after reset")
	}
	milli, err := d.ReadTemperature()
	if err != nil || milli < 15_000 || milli > 60_000 {
		t.Errorf("%d millidegrees, %v", milli, err)
	}
	t.Logf("%.3f degrees", float64(milli)/1000)
}

func TestINA219(t *testing.T) {
	// Goal: TinyGo's driver writes its configuration and calibration, reads them back,
	// and what it makes of current and power is what follows from shunt and bus voltage.
	// Its Config32V2A comes with the calibration of another range.
	_, bus := open(t)
	d := ina219.New(bus)
	config := ina219.Config32V2A
	config.Calibration = ina219.Calibration32V2A
	d.SetConfig(config)
	if err := d.Configure(); err != nil {
		t.Fatal(err)
	}
	volt, shunt, milliampere, milliwatt, err := d.Measurements()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d mV, shunt %d x 10 uV, %.2f mA, %.2f mW", volt, shunt, milliampere, milliwatt)
	// The shunt of the default board's data is 500 mOhm; the driver's calibration is
	// for 100 mOhm, so it sees five times the current.
	if want := float64(shunt) * 10 / 100; volt < 4000 || shunt <= 0 || abs(float64(milliampere)-want) > 0.1+want/100 {
		t.Errorf("%.3f mA, want %.3f", milliampere, want)
	}
	if want := float64(volt) / 1000 * float64(milliampere); abs(float64(milliwatt)-want) > 4 {
		t.Errorf("%.3f mW, want %.3f", milliwatt, want)
	}
}

func abs(x float64) float64 { return max(x, -x) }

func TestAT24(t *testing.T) {
	// Goal: TinyGo's driver writes over the end of a page and reads back what it wrote,
	// and the identity of the module is where it was.
	board, bus := open(t)
	identity, err := hal.Identity("TINYGO1")
	if err != nil {
		t.Fatal(err)
	}
	d := at24cx.New(bus)
	d.Address = 0x50
	d.Configure(at24cx.Config{PageSize: 32, EndRAMAddress: 8192})
	text := []byte("written by a driver that knows nothing of this board, over the end of a page")
	write := func(data []byte, at int64) {
		t.Helper()
		for n := 0; n < len(data); n++ { // byte by byte, each when the one before is programmed
			for tries := 0; ; tries++ {
				err := d.WriteByte(uint16(at)+uint16(n), data[n])
				if err == nil {
					break
				}
				if !errors.Is(err, hal.ErrAddressNACK) || tries > 1000 {
					t.Fatalf("byte %d, try %d at %v: %v", n, tries, board.Now(), err)
				}
			}
		}
		for tries := 0; tries < 1000; tries++ {
			if _, err := d.ReadByte(0); err == nil {
				return
			}
		}
		t.Fatal("it programs for ever")
	}
	write(identity[:], 0)
	write(text, 32*9-20)
	got := make([]byte, len(text))
	if _, err := d.ReadAt(got, 32*9-20); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%q, %v", got, err)
	}
	head := make([]byte, hal.IdentityBytes)
	if _, err := d.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	if serial, err := hal.ParseIdentity(head); err != nil || serial != "TINYGO1" {
		t.Errorf("%q, %v", serial, err)
	}
}

func TestErrorsKeepTheirCause(t *testing.T) {
	// Goal: an address that nobody has is a cause of package hal, through periph's
	// interface; nothing else is.
	_, bus := open(t)
	if err := bus.Tx(0x1d, []byte{0}, nil); !errors.Is(err, hal.ErrAddressNACK) || errors.Is(err, syscall.ENODEV) {
		t.Errorf("%v", err)
	}
}

func TestSPI(t *testing.T) {
	// Goal: a chip select is a port of periph's with the part's mode and clock, and
	// the DAC behind it keeps a code.
	_, _ = open(t)
	p, err := spireg.Open("sim/b0.dac.4")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Connect(physic.MegaHertz*20, spi.Mode3, 8); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("mode 3: %v", err)
	}
	c, err := p.Connect(physic.MegaHertz*20, spi.Mode0, 8)
	if err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 3)
	// LTC2688: the code of channel 2, then a readback of it, which comes one frame later.
	if err := c.TxPackets([]spi.Packet{{W: []byte{0x02, 0x12, 0x30}}, {W: []byte{0x82, 0, 0}}, {W: []byte{0xff, 0, 0}, R: reply}}); err != nil || !bytes.Equal(reply[1:], []byte{0x12, 0x30}) {
		t.Errorf("% x, %v", reply, err)
	}
}
