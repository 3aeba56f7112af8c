package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/mzi/detmath"
)

// FaultKind names what is broken: a row of faults.
type FaultKind uint8

const (
	HeaterStuck FaultKind = iota // open: no current, no heat
	HeaterShort                  // the DAC's current limit, no heat
	LaserDead                    // one lane
	DiodeDead                    // one lane of one path
	DriftWalk                    // every cell of a module drifts without bound
	ChipGone                     // an address on an I2C bus does not answer
	BusStuck                     // an I2C bus is held low
	CellWalk                     // one cell drifts without bound
	ModuleHot                    // a module's case is far too warm: its air is blocked
	WireStretch                  // a chip holds the clock low in every message
	WireFlip                     // of so many bytes that a chip sends one has a bit flipped
	ByteNACK                     // a chip acknowledges its address and no byte
	BrownOut                     // a dip of a module's supply has reset its chips; its lasers go on
	DiodeNoise                   // a module's converters see noise of so many codes, rms
	Dirt                         // the connector of a module's path takes so many thousandths of a dB
	LaserAged                    // all lasers of a module have lost so many
	Deaf                         // so have its receivers of their sensitivity: noise
	FirmwareBad                  // firmware of a build does not start on a module
	FrameFlip                    // of so many frames to the DACs of a bus one has a bit flipped
	Swapped                      // a photodiode and the next are wired each as the other: 0 to 7 the lanes', 8 to 15 the guard's
	numFaultKinds
)

// faultRow is all that there is to know of a kind of fault.
type faultRow struct {
	name string
	// form is the fields behind the name. A word that is not one of Fault's
	// own fields is what Index means here.
	form  string
	limit int // of Index; 0: none
	// set breaks it or makes it whole; n is Index, or 0 of what is made whole.
	set func(b *board, f Fault, broken bool, n int)
}

var faults = [numFaultKinds]faultRow{
	HeaterStuck: {"stuck", "bundle/module/cell", 0, onModule(func(m *module, f Fault, broken bool, _ int) {
		setBit(&m.planted.open, f.Index, broken)
		m.driveAll()
	})},
	HeaterShort: {"short", "bundle/module/cell", 0, onModule(func(m *module, f Fault, broken bool, _ int) {
		setBit(&m.planted.short, f.Index, broken)
		m.driveAll()
	})},
	LaserDead: {"laser", "bundle/module/lane", hal.Lanes, onModule(func(m *module, f Fault, broken bool, _ int) {
		setBit(&m.planted.lasers, f.Index, broken)
	})},
	DiodeDead: {"diode", "bundle/module/path/lane", hal.Lanes, func(b *board, f Fault, broken bool, n int) {
		onModule(func(m *module, f Fault, broken bool, _ int) {
			setBit(&m.planted.diodes[f.Path], f.Index, broken)
			m.rerouted()
		})(b, f, broken, n)
		if f.Path != hal.LOSLoopback {
			b.bundles[f.Bundle].los[f.Path].follow()
		}
	}},
	DriftWalk: {"drift", "bundle/module", 0, onModule(func(m *module, _ Fault, broken bool, _ int) {
		m.planted.walk = 0
		if broken {
			m.planted.walk = 1<<hal.CellsPerMod - 1
		}
		m.epoch = 0
	})},
	ChipGone: {"nack", "bus/address", 0, func(b *board, f Fault, broken bool, _ int) {
		chip := chipFault{f.Bus, f.Addr}
		b.gone = slices.DeleteFunc(b.gone, func(x chipFault) bool { return x == chip })
		if broken {
			b.gone = append(b.gone, chip)
		}
	}},
	BusStuck: {"bus", "bus", 0, func(b *board, f Fault, broken bool, _ int) { b.buses[f.Bus].stuck = broken }},
	CellWalk: {"walk", "bundle/module/cell", 0, onModule(func(m *module, f Fault, broken bool, _ int) {
		setBit(&m.planted.walk, f.Index, broken)
		m.epoch = 0
	})},
	ModuleHot: {"hot", "bundle/module", 0, onModule(func(m *module, _ Fault, broken bool, _ int) {
		m.planted.hot = broken
		m.warmed()
	})},
	WireStretch: {"stretch", "bus/address/microseconds", 0, onWire(func(w *wireFault, _ bool, n int) {
		w.stretch = time.Duration(n) * time.Microsecond
	})},
	WireFlip: {"flip", "bus/address/bytes", 0, onWire(func(w *wireFault, _ bool, n int) { w.every, w.read = n, 0 })},
	ByteNACK: {"byte", "bus/address", 0, onWire(func(w *wireFault, broken bool, _ int) { w.deaf = broken })},
	BrownOut: {"brown", "bundle/module", 0, onModule(func(m *module, _ Fault, broken bool, _ int) {
		if broken && m.mci != nil { // it has its lasers in its hands
			m.mci.do(mciWork{what: mciReset})
		} else if broken {
			m.powerOn()
		}
	})},
	DiodeNoise: {"noise", "bundle/module/codes", ads7138.CodeFull, onModule(func(m *module, _ Fault, _ bool, n int) {
		m.planted.noise = n
	})},
	Dirt: {"dirt", "bundle/module/path/mdb", mostLoss, func(b *board, f Fault, broken bool, n int) {
		onModule(func(m *module, f Fault, _ bool, n int) {
			m.planted.dirt[max(f.Path-hal.LOSExternal1, 0)] = lossOf(n)
		})(b, f, broken, n)
		b.bundles[f.Bundle].los[f.Path].follow()
	}},
	LaserAged:   {"aged", "bundle/module/mdb", mostLoss, onModule(func(m *module, _ Fault, _ bool, n int) { m.planted.aged = lossOf(n) })},
	Deaf:        {"deaf", "bundle/module/mdb", mostLoss, onModule(func(m *module, _ Fault, _ bool, n int) { m.planted.deaf = lossOf(n) })},
	FirmwareBad: {"firmware", "bundle/module/build", 1 << 15, onModule(func(m *module, _ Fault, _ bool, n int) { m.planted.firmware = n })},
	FrameFlip:   {"frames", "spi/frames", 0, func(b *board, f Fault, _ bool, n int) { b.buses[f.Bus].frames = frameFault{every: n} }},
	Swapped: {"swapped", "bundle/module/diode", int(numADCs) * ads7138.Channels, onModule(func(m *module, f Fault, broken bool, _ int) {
		m.wired = m.board.lay.wired[f.Bundle][f.Module]
		if broken {
			m.wired = m.wired.swapped(f.Index)
		}
		m.rerouted()
	})},
}

// mostLoss bounds what a fault takes of light, thousandths of a dB.
const mostLoss = 30_001

// lossOf is what a loss of thousandths of a dB leaves.
func lossOf(mdb int) float64 { return detmath.FromDB(-float64(mdb) / 1000) }

// onModule is a fault of one module.
func onModule(set func(m *module, f Fault, broken bool, n int)) func(*board, Fault, bool, int) {
	return func(b *board, f Fault, broken bool, n int) {
		m := &b.bundles[f.Bundle].modules[f.Module]
		// Faults have no past: what was seen until now was seen without.
		m.compareBoth()
		if m.planted == nil {
			m.planted = new(planted)
		}
		if m.planted.walk == 0 {
			m.planted.walkSince = int64(b.now / walkEpoch)
		}
		set(m, f, broken, n)
		m.changed()
	}
}

// onWire is a fault of a chip's share of a bus.
func onWire(set func(w *wireFault, broken bool, n int)) func(*board, Fault, bool, int) {
	return func(b *board, f Fault, broken bool, n int) {
		b.buses[f.Bus].setWire(f.Addr, func(w *wireFault) { set(w, broken, n) })
	}
}

func (k FaultKind) String() string {
	if k < numFaultKinds {
		return faults[k].name
	}
	return fmt.Sprintf("fault(%d)", uint8(k))
}

// Fault is one broken thing on a board.
type Fault struct {
	Kind           FaultKind
	Bundle, Module int
	Path           int       // of a diode: hal.LOSLoopback and following
	Index          int       // cell, lane of a laser or diode, microseconds, bytes, codes
	Bus            hal.BusID // of a chip or bus
	Addr           uint16    // of a chip
}

// field is what a word of a form means.
func (f Fault) field(word string) int {
	switch word {
	case "bundle":
		return f.Bundle
	case "module":
		return f.Module
	case "path":
		return f.Path
	case "bus", "spi":
		return int(f.Bus)
	case "address":
		return int(f.Addr)
	}
	return f.Index
}

func (f Fault) String() string {
	if f.Kind >= numFaultKinds {
		return f.Kind.String()
	}
	words := strings.Split(faults[f.Kind].form, "/")
	for i, word := range words {
		switch n := f.field(word); word {
		case "path":
			words[i] = pathName(n)
		case "address":
			words[i] = fmt.Sprintf("%#02x", n)
		default:
			words[i] = strconv.Itoa(n)
		}
	}
	return faults[f.Kind].name + ":" + strings.Join(words, "/")
}

// ParseFault reads the form that Fault.String writes, such as "stuck:0/3/17".
func ParseFault(s string) (Fault, error) {
	name, rest, ok := strings.Cut(s, ":")
	bad := func(why string) (Fault, error) {
		forms := make([]string, len(faults))
		for k, row := range faults {
			forms[k] = row.name + ":" + row.form
		}
		return Fault{}, fmt.Errorf("sim: fault %q: %s; want one of %s", s, why, strings.Join(forms, ", "))
	}
	kind := slices.IndexFunc(faults[:], func(row faultRow) bool { return row.name == name })
	if !ok || kind < 0 {
		return bad("unknown kind")
	}
	f := Fault{Kind: FaultKind(kind)}
	words, parts := strings.Split(faults[kind].form, "/"), strings.Split(rest, "/")
	if len(parts) != len(words) {
		return bad(fmt.Sprintf("%d numbers, want %d", len(parts), len(words)))
	}
	for i, word := range words {
		v, err := strconv.ParseUint(parts[i], 0, 15)
		path := slices.Index(hal.LOSNames[:], parts[i])
		switch {
		case word == "path" && path >= 0:
			f.Path = path
			continue
		case err != nil:
			return bad(fmt.Sprintf("%q is no number", parts[i]))
		case word == "path":
			return bad("path has a name, not a number")
		}
		switch word {
		case "bundle":
			f.Bundle = int(v)
		case "module":
			f.Module = int(v)
		case "bus", "spi":
			f.Bus = hal.BusID(v)
		case "address":
			f.Addr = uint16(v)
		default:
			f.Index = int(v)
		}
	}
	return f, nil
}

// planted are the faults of one module.
type planted struct {
	open, short uint64 // bit per cell
	lasers      uint8  // bit per lane
	diodes      [hal.NumLOS]uint8
	walk        uint64 // cells that drift without bound
	walkSince   int64  // seconds: from where they stood then
	walked      [hal.CellsPerMod]float64
	hot         bool
	noise       int // codes, rms; 0: as it is
	// What is left of the light on the connectors of both external paths and of all
	// lasers, and of the receivers' sensitivity; 0: all.
	dirt       [2]float64
	aged, deaf float64
	firmware   int // build that does not start; 0: none
}

// chipFault is an address that does not answer.
type chipFault struct {
	bus  hal.BusID
	addr uint16
}

// check finds a fault that is not on this board.
func (b *board) check(f Fault) error {
	if f.Kind >= numFaultKinds {
		return fmt.Errorf("sim: fault kind %d unknown", f.Kind)
	}
	row := &faults[f.Kind]
	if f.Kind == Dirt && f.Path == hal.LOSLoopback {
		return fmt.Errorf("sim: fault %v: want external1 or external2: loopback has no connector", f)
	}
	for word := range strings.SplitSeq(row.form, "/") {
		n, limit := f.field(word), row.limit
		switch word {
		case "bundle":
			limit = len(b.bundles)
		case "module":
			limit = len(b.bundles[f.Bundle].modules)
		case "cell":
			o := b.hw.Bundles[f.Bundle].Modules[f.Module].Optics()
			if limit = o.CellSpan(); n >= 0 && n < limit && !o.Has(n) {
				return fmt.Errorf("sim: fault %v: cell %d: of a lane that the module has not: it has %d", f, n, o.LaneCount)
			}
		case "path":
			limit = hal.NumLOS
		case "bus":
			if limit = len(b.buses); n < limit && b.hw.Buses[n].Kind != hal.I2C {
				return fmt.Errorf("sim: fault %v: not an I2C bus", f)
			} else if n < limit && len(b.lay.chips[n]) == 0 {
				return fmt.Errorf("sim: fault %v: bus %d: no chip is on it", f, n)
			}
		case "spi":
			if limit = len(b.buses); n < limit && b.hw.Buses[n].Kind != hal.SPI {
				return fmt.Errorf("sim: fault %v: not an SPI bus", f)
			}
		case "address":
			if len(b.lay.at(f.Bus, f.Addr)) == 0 {
				var there []string
				for addr, chips := range b.lay.byAddr[f.Bus] {
					if len(chips) > 0 {
						there = append(there, fmt.Sprintf("%#02x", addr))
					}
				}
				return fmt.Errorf("sim: fault %v: address %#02x: bus %d has chips at %s", f, n, f.Bus, strings.Join(there, ", "))
			}
		}
		if n < 0 || limit > 0 && n >= limit {
			return fmt.Errorf("sim: fault %v: %s %d: the board has %d", f, word, n, limit)
		}
	}
	return nil
}

// Inject breaks something now.
func (w *World) Inject(id BoardID, f Fault) error { return w.setFault(id, f, true) }

// Repair makes it whole again.
func (w *World) Repair(id BoardID, f Fault) error { return w.setFault(id, f, false) }

func (w *World) setFault(id BoardID, f Fault, broken bool) error {
	b, err := w.board(id)
	if err != nil {
		return err
	}
	return b.setFault(f, broken)
}

func (b *board) setFault(f Fault, broken bool) error {
	if err := b.check(f); err != nil {
		return err
	}
	n := 0
	if broken {
		n = f.Index
	}
	faults[f.Kind].set(b, f, broken, n)
	return nil
}

func setBit[T uint8 | uint64](mask *T, i int, on bool) {
	*mask &^= 1 << i
	if on {
		*mask |= 1 << i
	}
}
