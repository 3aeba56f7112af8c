package sim

import (
	"fmt"
	"slices"

	"ringlight/hal"
)

type chipKind uint8

const (
	chipLatch chipKind = iota
	chipMux
	chipADC
	chipTemp
	chipEEPROM
	chipRail
	chipEnable
	chipMCI
	chipPattern
	chipMonitor    // of ports of a MEMS board; latch is which
	chipMirrorTemp // on its carrier
)

// chip is one address on an I2C bus.
type chip struct {
	kind           chipKind
	addr           uint16
	bundle, module int
	adc            converter
	latch          int
	mux            uint16 // behind which switch, 0 = none
	channel        uint8
}

// spiSelect is one chip select on an SPI bus.
type spiSelect struct {
	cs                  uint16
	bundle, module, dac int
}

// addresses of I2C have seven bits.
const addresses = 1 << 7

// at is where in chips the chips with an address on a bus are.
func (l *layout) at(bus hal.BusID, addr uint16) []uint16 {
	if addr >= addresses {
		return nil
	}
	return l.byAddr[bus][addr]
}

type lineAt struct{ bundle, path int }

// layout is where everything of a hal.Board is; boards of the same data share
// one.
type layout struct {
	of      *hal.Board
	chips   [][]chip              // by bus
	byAddr  [][addresses][]uint16 // indices of chips, by bus and address
	selects [][]spiSelect
	lines   []lineAt
	wired   [][]*wired // by bundle and module
}

// sameBoard reports whether two boards are the same data, by where it lies.
func sameBoard(a, b *hal.Board) bool {
	same := func(x, y int, eq func() bool) bool { return x == y && (x == 0 || eq()) }
	return a.Mirrors == b.Mirrors && same(len(a.Bundles), len(b.Bundles), func() bool { return &a.Bundles[0] == &b.Bundles[0] }) &&
		same(len(a.Buses), len(b.Buses), func() bool { return &a.Buses[0] == &b.Buses[0] }) &&
		same(len(a.Lines), len(b.Lines), func() bool { return &a.Lines[0] == &b.Lines[0] }) &&
		same(len(a.Latches), len(b.Latches), func() bool { return &a.Latches[0] == &b.Latches[0] })
}

func (w *World) layoutOf(hw *hal.Board) (*layout, error) {
	for _, l := range w.layouts {
		if sameBoard(l.of, hw) {
			return l, nil
		}
	}
	copied := *hw
	l := &layout{of: &copied, chips: make([][]chip, len(hw.Buses)), byAddr: make([][addresses][]uint16, len(hw.Buses)), selects: make([][]spiSelect, len(hw.Buses)), lines: make([]lineAt, len(hw.Lines))}
	for i := range l.lines {
		l.lines[i].bundle = -1
	}
	for i, la := range hw.Latches {
		if err := l.add(la.Bus, chip{kind: chipLatch, addr: la.Addr, latch: i}); err != nil {
			return nil, err
		}
	}
	for i := range hw.Bundles {
		if err := l.addBundle(i); err != nil {
			return nil, fmt.Errorf("bundle %d: %w", i, err)
		}
	}
	l.wire()
	if hw.Mirrors != nil {
		if err := l.addMirrors(hw.Mirrors); err != nil {
			return nil, err
		}
	}
	w.layouts = append(w.layouts, l)
	return l, nil
}

// wire takes in the data of the types of modules, once each.
func (l *layout) wire() {
	known := map[*hal.Optics]*wired{}
	for i := range l.of.Bundles {
		var row []*wired
		for j := range l.of.Bundles[i].Modules {
			o := l.of.Bundles[i].Modules[j].Optics()
			if known[o] == nil {
				known[o] = wire(o)
			}
			row = append(row, known[o])
		}
		l.wired = append(l.wired, row)
	}
}

func (l *layout) addBundle(i int) error {
	bu := &l.of.Bundles[i]
	if n := len(bu.Modules); n < 1 || n > hal.MaxModules {
		return fmt.Errorf("sim: %d modules: want 1 to %d", n, hal.MaxModules)
	}
	isCMIS := bu.Modules[0].Kind == hal.KindCMIS
	if !isCMIS && (bu.Latch < 0 || bu.Latch >= len(l.of.Latches) || bu.Shift > 12) {
		return fmt.Errorf("sim: latch %d shift %d: no such pins", bu.Latch, bu.Shift)
	}
	for path, line := range bu.LOS {
		if int(line) >= len(l.lines) {
			return fmt.Errorf("sim: line %d: the board has %d", line, len(l.lines))
		}
		l.lines[line] = lineAt{i, path}
	}
	for j := range bu.Modules {
		m := &bu.Modules[j]
		if isCMIS != (m.Kind == hal.KindCMIS) {
			return fmt.Errorf("sim: module %d: of another kind than module 0", j)
		}
		if isCMIS {
			if err := l.addMCI(i, j, m); err != nil {
				return fmt.Errorf("module %d: %w", j, err)
			}
			continue
		}
		for d, cs := range m.ChipSelects {
			if int(m.SPI) >= len(l.of.Buses) || l.of.Buses[m.SPI].Kind != hal.SPI {
				return fmt.Errorf("sim: module %d: bus %d is no SPI bus", j, m.SPI)
			}
			l.selects[m.SPI] = append(l.selects[m.SPI], spiSelect{cs, i, j, d})
		}
		slow := func(kind chipKind, addr uint16) error {
			return l.add(m.Slow, chip{kind: kind, addr: addr, bundle: i, module: j, mux: m.Mux, channel: m.MuxChannel})
		}
		for _, err := range []error{
			l.add(m.ADC, chip{kind: chipADC, adc: guardADC, addr: m.Guard, bundle: i, module: j}),
			l.add(m.ADC, chip{kind: chipADC, adc: laneADC, addr: m.LaneADC, bundle: i, module: j}),
			slow(chipTemp, m.Temp), slow(chipEEPROM, m.EEPROM),
			slow(chipRail, m.Rail), slow(chipEnable, m.LaneEnable),
		} {
			if err != nil {
				return fmt.Errorf("module %d: %w", j, err)
			}
		}
		if m.Pattern != 0 {
			if err := slow(chipPattern, m.Pattern); err != nil {
				return fmt.Errorf("module %d: %w", j, err)
			}
		}
		if m.Mux != 0 && !l.hasMux(m.Slow, m.Mux) {
			if err := l.add(m.Slow, chip{kind: chipMux, addr: m.Mux}); err != nil {
				return fmt.Errorf("module %d: %w", j, err)
			}
		}
	}
	return nil
}

// addMCI puts the controller of a CMIS module on its segment.
func (l *layout) addMCI(i, j int, m *hal.Module) error {
	if err := l.add(m.MCI, chip{kind: chipMCI, addr: hal.MCIAddr, bundle: i, module: j, mux: m.Mux, channel: m.MuxChannel}); err != nil {
		return err
	}
	if m.EEPROM != 0 {
		if err := l.add(m.MCI, chip{kind: chipEEPROM, addr: m.EEPROM, bundle: i, module: j, mux: m.Mux, channel: m.MuxChannel}); err != nil {
			return err
		}
	}
	if m.Mux != 0 && !l.hasMux(m.MCI, m.Mux) {
		return l.add(m.MCI, chip{kind: chipMux, addr: m.Mux})
	}
	return nil
}

func (l *layout) hasMux(bus hal.BusID, addr uint16) bool {
	return slices.ContainsFunc(l.chips[bus], func(c chip) bool { return c.kind == chipMux && c.addr == addr })
}

// add puts a chip on a bus; two may not answer to one address.
func (l *layout) add(bus hal.BusID, c chip) error {
	if int(bus) >= len(l.chips) || l.of.Buses[bus].Kind != hal.I2C {
		return fmt.Errorf("sim: bus %d is no I2C bus", bus)
	}
	if c.mux != 0 && (c.mux < firstMux || c.mux >= firstMux+muxes || c.channel >= 8) {
		return fmt.Errorf("sim: bus %d: switch %#02x channel %d: no such", bus, c.mux, c.channel)
	}
	for _, o := range l.chips[bus] {
		if o.addr == c.addr && (o.mux == 0 || c.mux == 0 || o.mux == c.mux && o.channel == c.channel) {
			return fmt.Errorf("sim: bus %d: two chips at %#02x", bus, c.addr)
		}
	}
	if c.addr >= addresses {
		return fmt.Errorf("sim: bus %d: address %#02x: seven bits at most", bus, c.addr)
	}
	l.byAddr[bus][c.addr] = append(l.byAddr[bus][c.addr], uint16(len(l.chips[bus])))
	l.chips[bus] = append(l.chips[bus], c)
	return nil
}
