package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
	"ringlight/hal/pca9548"
)

// ChipKind is what stands at an address.
type ChipKind string

// The chips that a soak knows to read.
const (
	ChipEEPROM ChipKind = "eeprom" // 24-series, two address bytes
	ChipTemp   ChipKind = "temp"   // TMP102 and its kin
	ChipMux    ChipKind = "mux"    // PCA9548
	ChipFlash  ChipKind = "flash"  // SPI flash: its JEDEC number
	ChipAbsent ChipKind = "absent" // nothing: the address must not answer
)

var chipKinds = []ChipKind{ChipEEPROM, ChipTemp, ChipMux, ChipFlash, ChipAbsent}

// noMux says that a chip hangs directly on its bus.
const noMux = 0

// Chip is one chip by device and address.
type Chip struct {
	Kind    ChipKind
	Device  string // "/dev/i2c-0", "/dev/spidev2.0"
	Addr    uint16
	Mux     uint16 // behind this mux, noMux: none
	Channel uint8
	Part    hal.Part // of an EEPROM; none: a 24C64
}

// errChip is a chip that cannot be understood.
var errChip = errors.New("want KIND=DEVICE@ADDRESS[/MUX.CHANNEL], as in temp=/dev/i2c-1@0x48/0x70.2, or flash=/dev/spidevN.C")

// ParseChip reads a chip as a person writes it.
func ParseChip(s string) (Chip, error) {
	kind, rest, ok := strings.Cut(s, "=")
	c := Chip{Kind: ChipKind(kind)}
	if !ok || !slices.Contains(chipKinds, c.Kind) {
		return c, fmt.Errorf("chip %q: %w; KIND is one of %v", s, errChip, chipKinds)
	}
	if c.Kind == ChipFlash {
		bus, select_, ok := strings.Cut(rest, ".")
		n, err := strconv.ParseUint(select_, 10, 8)
		if !ok || err != nil || !strings.HasPrefix(bus, "/dev/spidev") {
			return c, fmt.Errorf("chip %q: %w", s, errChip)
		}
		c.Device, c.Addr = bus+".", uint16(n)
		return c, nil
	}
	device, at, ok := strings.Cut(rest, "@")
	if !ok || device == "" {
		return c, fmt.Errorf("chip %q: %w", s, errChip)
	}
	c.Device = device
	addr, mux, behind := strings.Cut(at, "/")
	var err error
	if c.Addr, err = parseAddr(addr); err != nil {
		return c, fmt.Errorf("chip %q: %w", s, err)
	}
	if !behind {
		return c, nil
	}
	muxAddr, channel, ok := strings.Cut(mux, ".")
	if c.Mux, err = parseAddr(muxAddr); err != nil || !ok {
		return c, fmt.Errorf("chip %q: %w", s, errChip)
	}
	n, err := strconv.ParseUint(channel, 10, 8)
	if err != nil || n >= pca9548.Channels {
		return c, fmt.Errorf("chip %q: channel %q: want 0 to %d", s, channel, pca9548.Channels-1)
	}
	c.Channel = uint8(n)
	return c, nil
}

// Addresses that a device may have, [I2C] 3.1.12; the rest is reserved.
const (
	firstAddr = 0x08
	lastAddr  = 0x77
)

func parseAddr(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 0, 16)
	if err != nil || n < firstAddr || n > lastAddr {
		return 0, fmt.Errorf("address %q: want %#x to %#x", s, firstAddr, lastAddr)
	}
	return uint16(n), nil
}

// String is what ParseChip reads.
func (c Chip) String() string {
	switch {
	case c.Kind == ChipFlash:
		return fmt.Sprintf("%s=%s%d", c.Kind, c.Device, c.Addr)
	case c.Mux != noMux:
		return fmt.Sprintf("%s=%s@%#x/%#x.%d", c.Kind, c.Device, c.Addr, c.Mux, c.Channel)
	}
	return fmt.Sprintf("%s=%s@%#x", c.Kind, c.Device, c.Addr)
}

// spiSpeed of flashes at the bench. chosen: slow enough for any of them.
const spiSpeed = 10 * physic.MegaHertz

// boardOf is a board with the buses of these chips and nothing else, and the
// bus of each chip.
func boardOf(chips []Chip) (hal.Board, []hal.BusID) {
	var b hal.Board
	at := make([]hal.BusID, len(chips))
	for i, c := range chips {
		n := slices.IndexFunc(b.Buses, func(x hal.Bus) bool { return x.Device == c.Device })
		if n < 0 {
			n = len(b.Buses)
			bus := hal.Bus{Kind: hal.I2C, Device: c.Device, Speed: 400 * physic.KiloHertz}
			if c.Kind == ChipFlash {
				bus = hal.Bus{Kind: hal.SPI, Device: c.Device, Speed: spiSpeed}
			}
			b.Buses = append(b.Buses, bus)
		}
		at[i] = hal.BusID(n)
	}
	return b, at
}

// chipsOf lists the chips of a board that a soak can read: what hangs behind
// the muxes of its modules.
func chipsOf(b *hal.Board) []Chip {
	var out []Chip
	add := func(c Chip) {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for i := range b.Bundles {
		for _, m := range b.Bundles[i].Modules {
			if m.Kind != hal.KindChips {
				continue
			}
			device := b.Buses[m.Slow].Device
			if m.Mux != noMux {
				add(Chip{Kind: ChipMux, Device: device, Addr: m.Mux})
			}
			add(Chip{Kind: ChipEEPROM, Device: device, Addr: m.EEPROM, Mux: m.Mux, Channel: m.MuxChannel, Part: m.Memory})
			add(Chip{Kind: ChipTemp, Device: device, Addr: m.Temp, Mux: m.Mux, Channel: m.MuxChannel})
		}
	}
	return out
}
