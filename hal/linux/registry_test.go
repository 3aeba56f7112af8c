//lint:file-ignore SA1019 Function is a part of every pin until periph v4, and ours are judged by it

package linux

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"periph.io/x/conn/v3/conntest"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpioreg"
	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/i2c/i2creg"
	"periph.io/x/conn/v3/i2c/i2ctest"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spireg"
	"periph.io/x/conn/v3/spi/spitest"

	"ringlight/hal"
	"ringlight/hal/tmp102"
)

// foreignBoard has one I2C bus and one SPI bus by their names in the registries, and
// lines.
func foreignBoard(t *testing.T, lines ...hal.Line) (*Board, chan hal.Event) {
	t.Helper()
	board := &hal.Board{Buses: []hal.Bus{{Kind: hal.I2C, Device: "periph:playback", Speed: physic.MegaHertz}, {Kind: hal.SPI, Device: "periph:dacs.", Speed: physic.MegaHertz}}, Lines: lines}
	events := make(chan hal.Event, 16)
	o, err := open(board, func(ev hal.Event) { events <- ev }, func(i hal.BusID) (wire, error) { return openWire(board, i) }, newFakeGPIO().gpio())
	if err != nil {
		t.Fatal(err)
	}
	return o, events
}

// packets is a playback of SPI that takes several frames in one call, which spitest's
// does not.
type packets struct{ *spitest.Playback }

func (p packets) Connect(f physic.Frequency, mode spi.Mode, bits int) (spi.Conn, error) {
	c, err := p.Playback.Connect(f, mode, bits)
	return packetConn{c}, err
}

type packetConn struct{ spi.Conn }

func (c packetConn) MaxTxSize() int { return 3 }

func (c packetConn) TxPackets(p []spi.Packet) error {
	for i := range p {
		if err := c.Tx(p[i].W, p[i].R); err != nil {
			return err
		}
	}
	return nil
}

func register(t *testing.T, bus *i2ctest.Playback, port *spitest.Playback) {
	t.Helper()
	if err := errors.Join(i2creg.Register("playback", nil, -1, func() (i2c.BusCloser, error) { return bus, nil }),
		spireg.Register("dacs.2", nil, -1, func() (spi.PortCloser, error) { return packets{port}, nil })); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = i2creg.Unregister("playback"), spireg.Unregister("dacs.2") })
}

func TestPlaybackDrivesABoard(t *testing.T) {
	// Goal: buses that somebody registered with periph are buses of a board, behind
	// its owners: messages reach them in their order, answers come back, an SPI frame
	// is a frame however little the port takes at once, and what it does not expect
	// is an error of that op.
	bus := &i2ctest.Playback{DontPanic: true, Ops: []i2ctest.IO{{Addr: 0x48, W: []byte{tmp102.RegTemperature}, R: []byte{0x19, 0x80}}, {Addr: 0x50, W: []byte{1, 2}}}}
	port := &spitest.Playback{Playback: conntest.Playback{DontPanic: true, Ops: []conntest.IO{{W: []byte{1, 2, 3}, R: []byte{7, 8, 9}}, {W: []byte{4, 5, 6}, R: []byte{10, 11, 12}}}}}
	register(t, bus, port)
	o, events := foreignBoard(t)
	op := &hal.Op{Deadline: time.Minute, Msgs: []hal.Msg{{Addr: 0x48, W: []byte{tmp102.RegTemperature}, R: make([]byte, 2)}, {Addr: 0x50, W: []byte{1, 2}}}}
	if err := o.Submit(0, op); err != nil {
		t.Fatal(err)
	}
	if done := (<-events).Completion; done.Err != nil || !bytes.Equal(op.Msgs[0].R, []byte{0x19, 0x80}) {
		t.Errorf("%v, % x", done.Err, op.Msgs[0].R)
	}
	frames := &hal.Op{Deadline: time.Minute, Msgs: []hal.Msg{{Addr: 2, Frame: 3, W: []byte{1, 2, 3, 4, 5, 6}, R: make([]byte, 6)}}}
	if err := o.Submit(1, frames); err != nil {
		t.Fatal(err)
	}
	if done := (<-events).Completion; done.Err != nil || !bytes.Equal(frames.Msgs[0].R, []byte{7, 8, 9, 10, 11, 12}) {
		t.Errorf("%v, % x", done.Err, frames.Msgs[0].R)
	}
	if err := o.Submit(0, &hal.Op{Deadline: time.Minute, Msgs: []hal.Msg{{Addr: 0x48, W: []byte{9}}}}); err != nil {
		t.Fatal(err)
	}
	if done := (<-events).Completion; done.Err == nil || !strings.Contains(done.Err.Error(), "unexpected Tx") || !hal.Caused(done.Err) {
		t.Errorf("what nobody expected: %v", done.Err)
	}
	if err := o.Close(); err != nil { // a playback says here what it still waits for
		t.Error(err)
	}
}

func TestWhatIsNotRegisteredIsNamed(t *testing.T) {
	// Goal: an unknown name is an error with those that are known; ours under another
	// name is refused, since nobody would look at its clock and its other users.
	if err := i2creg.Register("/dev/i2c-77", []string{"I2C77"}, 77, func() (i2c.BusCloser, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i2creg.Unregister("/dev/i2c-77") }()
	for device, want := range map[string]string{"periph:nobody": "/dev/i2c-77", "periph:I2C77": "name it so", "periph:/dev/i2c-77": "name it so"} { // any order: independent rows
		if _, err := i2cOf(device); err == nil || !hal.Caused(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", device, err, want)
		}
	}
	w, err := spiOf(hal.Bus{Device: "periph:nobody."}, func(uint16) uint8 { return 0 })
	if err == nil {
		err = w.transfer(&hal.Msg{Addr: 1, Frame: 1, W: []byte{1}})
	}
	if !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("SPI: %v", err)
	}
	if _, err := registeredPin("nobody"); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("pin: %v", err)
	}
}

func TestOursAreRegistered(t *testing.T) {
	// Goal: this machine's buses and lines are in periph's registries under periph's
	// names, opened by our drivers; a bus that a host driver has registered becomes
	// ours.
	dev := t.TempDir()
	for _, name := range []string{"i2c-3", "i2c-11", "spidev1.0", "spidev1.2"} {
		if err := os.WriteFile(filepath.Join(dev, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := i2creg.Register(dev+"/i2c-3", []string{"I2C3"}, 3, func() (i2c.BusCloser, error) { return printed{}, nil }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(registerI2C(dev), registerSPI(dev), registerPins(newFakeGPIO().gpio())); err != nil { // of two lines of one name the first
		t.Fatal(err)
	}
	defer func() {
		for _, n := range []string{"/i2c-3", "/i2c-11"} {
			_ = i2creg.Unregister(dev + n)
		}
		for _, n := range []string{"/spidev1.0", "/spidev1.2"} {
			_ = spireg.Unregister(dev + n)
		}
	}()
	for _, name := range []string{"I2C3", "3", dev + "/i2c-11"} {
		if b, err := i2creg.Open(name); err != nil {
			t.Error(err)
		} else if _, ours := b.(*i2cBus); !ours {
			t.Errorf("%s is %T", name, b)
		}
	}
	if p, err := spireg.Open("SPI1.2"); err != nil || p.String() != dev+"/spidev1.2" {
		t.Errorf("%v, %v", p, err)
	}
	if p, ok := gpioreg.ByName("LOS_LOOP0").(hal.StampedPin); !ok {
		t.Errorf("LOS_LOOP0 is %T", p)
	}
}

func TestAPinKeepsTheKernelsStamp(t *testing.T) {
	// Goal: a line is a pin of periph's, and beside that says when an edge came and
	// which it was.
	g := newFakeGPIO()
	p, err := g.gpio().pinIO(hal.Line{Name: "LOS_LOOP0"})
	if err != nil {
		t.Fatal(err)
	}
	if p.WaitForEdge(0) {
		t.Error("an edge of a line that nobody asked for")
	}
	if err := p.In(gpio.PullNoChange, gpio.BothEdges); err != nil || g.config != lineInput|lineRising|lineFalling {
		t.Fatalf("flags %#x, %v", g.config, err)
	}
	g.edge(t, 3, true, 41*time.Millisecond, 1, 0)
	g.edge(t, 3, false, 42*time.Millisecond, 4, 2)
	for i, want := range []time.Duration{41 * time.Millisecond, 42 * time.Millisecond} {
		if !p.WaitForEdge(-1) {
			t.Fatal("no edge")
		}
		if high, at, n := p.(hal.StampedPin).LastEdge(); high != (i == 0) || at != want || n != uint32(1+3*i) {
			t.Errorf("edge %d: high %v at %v, number %d", i, high, at, n)
		}
	}
	if p.WaitForEdge(0) {
		t.Error("a third edge")
	}
	if err := p.Out(gpio.High); err != nil || g.config != lineOutput || p.Function() != "OUT" {
		t.Errorf("flags %#x, %s, %v", g.config, p.Function(), err)
	}
	if err := p.In(gpio.PullUp, gpio.NoEdge); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("a resistor of the board's: %v", err)
	}
	if err := p.Halt(); err != nil || p.Function() != "" {
		t.Errorf("%s, %v", p.Function(), err)
	}
}

// somebodys is a pin of another's driver: levels come through a channel.
type somebodys struct {
	gpio.PinIO
	name  string
	level gpio.Level
	edges chan gpio.Level
	asked gpio.Edge
}

func (p *somebodys) Name() string     { return p.name }
func (p *somebodys) Read() gpio.Level { return p.level }
func (p *somebodys) In(_ gpio.Pull, e gpio.Edge) error {
	p.asked = e
	return nil
}
func (p *somebodys) WaitForEdge(time.Duration) (came bool) {
	p.level, came = <-p.edges
	return came
}
func (p *somebodys) Halt() error { close(p.edges); return nil }

// timed is one that says when.
type timed struct{ somebodys }

func (p *timed) LastEdge() (bool, time.Duration, uint32) { return bool(p.level), 90 * time.Second, 7 }

func TestForeignPinsAreLines(t *testing.T) {
	// Goal: pins of others' drivers are lines of a board: their edges come to its
	// thread, with a stamp where the driver has one, and where it has none the agent
	// is told which.
	plain := &somebodys{PinIO: gpio.INVALID, name: "THEIRS", edges: make(chan gpio.Level)}
	stamped := &timed{somebodys{PinIO: gpio.INVALID, name: "TIMED", edges: make(chan gpio.Level)}}
	if err := errors.Join(gpioreg.Register(plain), gpioreg.Register(stamped)); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = gpioreg.Unregister("THEIRS"), gpioreg.Unregister("TIMED") }()
	register(t, &i2ctest.Playback{}, &spitest.Playback{})
	o, _ := foreignBoard(t, hal.Line{Name: "periph:THEIRS", ActiveLow: true}, hal.Line{Name: "periph:TIMED"})
	if p := o.Attach(nil); !strings.Contains(strings.Join(p.Missing, "\n"), "periph:THEIRS") || strings.Contains(strings.Join(p.Missing, "\n"), "TIMED") {
		t.Errorf("told %q", p.Missing)
	}
	if high, err := o.Level(0); !high || err != nil || plain.asked != gpio.BothEdges {
		t.Errorf("active low at start: %v, %v", high, err)
	}
	wait := func() hal.Edge {
		t.Helper()
		for {
			if out, err := o.Wait(o.Now()+time.Second, nil); err != nil {
				t.Fatal(err)
			} else if len(out) > 0 {
				return *out[0].Edge
			}
		}
	}
	before := o.Now()
	plain.edges <- gpio.High
	if e := wait(); e.Line != 0 || e.High || e.At < before {
		t.Errorf("%+v", e)
	}
	stamped.edges <- gpio.High
	if e := wait(); e.Line != 1 || !e.High || e.At != 90*time.Second-o.epoch {
		t.Errorf("%+v, want its own stamp", e)
	}
	if high, _ := o.Level(0); high {
		t.Error("the level did not follow")
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
