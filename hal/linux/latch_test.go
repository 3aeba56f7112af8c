package linux

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"periph.io/x/conn/v3/gpio"

	"ringlight/hal"
	"ringlight/hal/pca953x"
)

// relay is an output that notes what was done to it.
type relay struct {
	gpio.PinIO
	name string
	out  bool
	high bool
	log  *[]string
	err  error
}

func (r *relay) Function() string {
	if r.out {
		return "OUT"
	}
	return "IN"
}
func (r *relay) Read() gpio.Level { return gpio.Level(r.high) }
func (r *relay) Halt() error      { return nil }
func (r *relay) In(gpio.Pull, gpio.Edge) error {
	*r.log = append(*r.log, r.name+" in")
	r.out = false
	return r.err
}
func (r *relay) Out(l gpio.Level) error {
	*r.log = append(*r.log, fmt.Sprintf("%s %v", r.name, l))
	r.out, r.high = true, bool(l)
	return r.err
}

func TestLinesAreALatch(t *testing.T) {
	// Goal: lines answer to an expander's registers: what stands is read and not touched,
	// a write moves what it changes and nothing else, active low is the line's own.
	var log []string
	relays := map[string]*relay{}
	var lines []hal.Line
	for i, name := range []string{"T0", "T1", "HI", "LO", "", "", "", "", "N0"} {
		if name == "" {
			name = fmt.Sprint("P", i)
		}
		relays[name] = &relay{PinIO: gpio.INVALID, name: name, log: &log}
		lines = append(lines, hal.Line{Name: name, ActiveLow: name == "HI" || name == "LO"})
	}
	relays["T0"].out, relays["T0"].high = true, true
	relays["HI"].out = true // and low, which is active
	find := func(l hal.Line) (gpio.PinIO, error) { return relays[l.Name], nil }
	g, err := openLatch(lines, find)
	if err != nil {
		t.Fatal(err)
	}
	chip := pca953x.Of(hal.GPIOLatch)
	read := func(function byte) uint32 {
		t.Helper()
		m := hal.Msg{Addr: hal.GPIOLatchAddr, W: chip.AppendRead(nil, function), R: make([]byte, chip.Ports)}
		if err := g.transfer(&m); err != nil {
			t.Fatal(err)
		}
		return chip.Value(g.read())
	}
	if o, c, in := read(pca953x.Output), read(pca953x.Config), read(pca953x.Input); o != 0b101 || c != 0xfffa || in&0xf != 0b1101 || len(log) != 0 {
		t.Errorf("as found: output %b, config %x, input %b, touched %v", o, c, in, log)
	}
	do := func(w []byte, want string) {
		t.Helper()
		log = nil
		if err := g.transfer(&hal.Msg{Addr: hal.GPIOLatchAddr, W: w}); err != nil || strings.Join(log, ", ") != want {
			t.Errorf("% x: %v, %v; want %s", w, log, err, want)
		}
	}
	do(chip.AppendWrite(nil, pca953x.Output, 0, 0b1101), "")                 // LO is no output yet
	do(chip.AppendWrite(nil, pca953x.Config, 0, 0xf0), "T1 Low, LO Low")     // active low
	do(chip.AppendWrite(nil, pca953x.Output, 0, 0b0111), "T1 High, LO High") // and nothing else
	do(chip.AppendWriteAll(nil, pca953x.Config, 0xfef0), "N0 Low")           // the other port
	do(chip.AppendWrite(nil, pca953x.Config, 0, 0xf8), "LO in")
	if err := g.transfer(&hal.Msg{Addr: 0x21, W: []byte{0}}); !errors.Is(err, hal.ErrAddressNACK) {
		t.Errorf("another address: %v", err)
	}
	if err := g.transfer(&hal.Msg{Addr: hal.GPIOLatchAddr, W: []byte{pca953x.Polarity << 1, 1}}); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("polarity: %v", err)
	}
	relays["N0"].err = errors.New("the line is gone")
	if err := g.transfer(&hal.Msg{Addr: hal.GPIOLatchAddr, W: chip.AppendWrite(nil, pca953x.Output, 1, 1)}); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("a line that fails: %v", err)
	}
	if _, err := openLatch([]hal.Line{{Name: "LOS_LOOP0"}, {Name: "NOBODY"}}, newFakeGPIO().gpio().pinIO); !errors.Is(err, hal.ErrNoDevice) || !strings.Contains(err.Error(), "lines[1]") {
		t.Errorf("a line that is not there: %v", err)
	}
}
