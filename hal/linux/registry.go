package linux

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"periph.io/x/conn/v3/driver/driverreg"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/gpio/gpioreg"
	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/i2c/i2creg"
	"periph.io/x/conn/v3/spi"
	"periph.io/x/conn/v3/spi/spireg"

	"ringlight/hal"
)

// Register loads periph's host drivers, where they are built in, and puts this
// machine's I2C and SPI buses and GPIO lines into periph's registries under periph's
// own names ("/dev/i2c-3", "I2C3"; "/dev/spidev1.0", "SPI1.0"; the line's name in the
// device tree), opened by the drivers of this package: where a host driver of periph's
// has a bus already, ours takes its place. A line keeps a pin that a host driver knows
// better.
var Register = sync.OnceValue(func() error {
	state, err := driverreg.Init()
	if err != nil {
		return fmt.Errorf("linux: host drivers: %w", err)
	}
	for _, f := range state.Failed {
		failed = append(failed, f.String())
	}
	return errors.Join(registerI2C("/dev"), registerSPI("/dev"), registerPins(realGPIO()))
})

// failed is why host drivers did not load; on a machine that is not theirs that is
// nothing.
var failed []string

func registerI2C(dev string) error {
	paths, _ := filepath.Glob(filepath.Join(dev, "i2c-*")) // the pattern is good
	var errs []error
	for _, path := range paths {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "i2c-"))
		if err != nil {
			continue
		}
		_ = i2creg.Unregister(path)
		errs = append(errs, i2creg.Register(path, []string{fmt.Sprintf("I2C%d", n)}, n, func() (i2c.BusCloser, error) { return openI2C(path) }))
	}
	return errors.Join(errs...)
}

func registerSPI(dev string) error {
	paths, _ := filepath.Glob(filepath.Join(dev, "spidev*.*"))
	var errs []error
	for _, path := range paths {
		number, sel, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "spidev"), ".")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		if sel != "0" {
			n = -1 // a bus has its number by its first select
		}
		_ = spireg.Unregister(path)
		errs = append(errs, spireg.Register(path, []string{fmt.Sprintf("SPI%s.%s", number, sel)}, n, func() (spi.PortCloser, error) { return openSPI(path) }))
	}
	return errors.Join(errs...)
}

// registerPins registers every line that has a name of its own.
func registerPins(g *gpioChips) error {
	var errs []error
	for _, path := range g.paths() {
		info, fd, closer, err := g.chip(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		names, err := g.names(path, fd, int(info.Lines))
		errs = append(errs, err, closer())
		for offset, name := range names {
			if name != "" && gpioreg.ByName(name) == nil {
				errs = append(errs, gpioreg.Register(&pin{gpio: g, at: place{path, uint32(offset), name}}))
			}
		}
	}
	return errors.Join(errs...)
}

// i2cOf opens an I2C bus by its path or its name in the registry.
func i2cOf(device string) (i2c.BusCloser, error) {
	name, ok := strings.CutPrefix(device, hal.Registered)
	if !ok {
		return openI2C(device)
	}
	if err := Register(); err != nil {
		return nil, err
	}
	var known []string
	for _, ref := range i2creg.All() {
		for _, n := range append([]string{ref.Name}, ref.Aliases...) {
			if n == name && strings.HasPrefix(ref.Name, "/dev/i2c-") {
				return nil, fmt.Errorf("%w: it is %s: name it so, that its clock and its other users are looked at", hal.ErrOutOfRange, ref.Name)
			}
		}
		known = append(known, ref.Name)
	}
	bus, err := i2creg.Open(name)
	return bus, unregistered(err, known)
}

// unregistered explains why a name could not be opened.
func unregistered(err error, known []string) error {
	if err == nil || hal.Caused(err) {
		return err
	}
	return fmt.Errorf("%w: %w; registered: %q; host drivers%s: failed: %q", hal.ErrNoDevice, err, known, hostDrivers, failed)
}

// spiOf is the chip selects of an SPI bus whose device is "/dev/spidev1.", or a name in
// the registry with its dot.
func spiOf(b hal.Bus, mode func(sel uint16) uint8) (*spiWire, error) {
	w := &spiWire{prefix: b.Device, speed: b.Speed, mode: mode, open: openSPI, ports: map[uint16]*spiChip{}}
	name, registered := strings.CutPrefix(b.Device, hal.Registered)
	number, dot := strings.CutSuffix(strings.TrimPrefix(name, "/dev/spidev"), ".")
	if _, err := strconv.Atoi(number); !dot || !registered && (err != nil || !strings.HasPrefix(name, "/dev/spidev")) {
		return nil, fmt.Errorf("%w: SPI device %q, want \"/dev/spidevN.\" or \"periph:NAME.\"", hal.ErrNoDevice, b.Device)
	}
	if !registered {
		return w, nil
	}
	if err := Register(); err != nil {
		return nil, err
	}
	w.prefix = name
	w.open = func(name string) (spi.PortCloser, error) {
		var known []string
		for _, ref := range spireg.All() {
			known = append(known, ref.Name)
		}
		p, err := spireg.Open(name)
		return p, unregistered(err, known)
	}
	return w, nil
}

// registeredPin finds a pin in the registry.
func registeredPin(name string) (gpio.PinIO, error) {
	if err := Register(); err != nil {
		return nil, err
	}
	if p := gpioreg.ByName(name); p != nil {
		return p, nil
	}
	return nil, unregistered(fmt.Errorf("no pin is called %q", name), nil)
}
