package sim

import (
	"fmt"
	"strconv"
	"strings"

	"ringlight/hal"
	"ringlight/hal/ads7138"
)

// FaultKind names what is broken.
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
	DiodeNoise                   // a module's converters see noise of so many codes, rms
	numFaultKinds
)

var faultNames = [numFaultKinds]string{"stuck", "short", "laser", "diode", "drift", "nack", "bus", "walk", "hot", "stretch", "flip", "byte", "noise"}

func (k FaultKind) String() string {
	if int(k) < len(faultNames) {
		return faultNames[k]
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

// The forms that ParseFault reads.
const faultForms = "stuck:bundle/module/cell, short:bundle/module/cell, laser:bundle/module/lane, " +
	"diode:bundle/module/path/lane, drift:bundle/module, nack:bus/address, bus:bus, walk:bundle/module/cell, hot:bundle/module, " +
	"stretch:bus/address/microseconds, flip:bus/address/bytes, byte:bus/address, noise:bundle/module/codes"

func (f Fault) String() string {
	switch f.Kind {
	case HeaterStuck, HeaterShort, LaserDead, CellWalk, DiodeNoise:
		return fmt.Sprintf("%v:%d/%d/%d", f.Kind, f.Bundle, f.Module, f.Index)
	case DiodeDead:
		return fmt.Sprintf("%v:%d/%d/%s/%d", f.Kind, f.Bundle, f.Module, pathName(f.Path), f.Index)
	case DriftWalk, ModuleHot:
		return fmt.Sprintf("%v:%d/%d", f.Kind, f.Bundle, f.Module)
	case ChipGone, ByteNACK:
		return fmt.Sprintf("%v:%d/%#02x", f.Kind, f.Bus, f.Addr)
	case WireStretch, WireFlip:
		return fmt.Sprintf("%v:%d/%#02x/%d", f.Kind, f.Bus, f.Addr, f.Index)
	}
	return fmt.Sprintf("%v:%d", f.Kind, f.Bus)
}

// ParseFault reads the form that Fault.String writes, such as "stuck:0/3/17".
func ParseFault(s string) (Fault, error) {
	name, rest, ok := strings.Cut(s, ":")
	bad := func(why string) (Fault, error) {
		return Fault{}, fmt.Errorf("sim: fault %q: %s; want one of %s", s, why, faultForms)
	}
	f := Fault{Kind: numFaultKinds}
	for k, n := range faultNames {
		if n == name {
			f.Kind = FaultKind(k)
		}
	}
	if !ok || f.Kind == numFaultKinds {
		return bad("unknown kind")
	}
	parts := strings.Split(rest, "/")
	if want := [numFaultKinds]int{3, 3, 3, 4, 2, 2, 1, 3, 2, 3, 3, 2, 3}[f.Kind]; len(parts) != want {
		return bad(fmt.Sprintf("%d numbers, want %d", len(parts), want))
	}
	num := make([]int, len(parts))
	for i, p := range parts {
		if f.Kind == DiodeDead && i == 2 {
			for path, n := range pathNames {
				if n == p {
					f.Path, p = path, "0"
				}
			}
		}
		n, err := strconv.ParseUint(p, 0, 15)
		if err != nil {
			return bad(fmt.Sprintf("%q is no number", p))
		}
		num[i] = int(n)
	}
	switch f.Kind {
	case DiodeDead:
		f.Bundle, f.Module, f.Index = num[0], num[1], num[3]
		if num[2] != 0 {
			return bad("path has a name, not a number")
		}
	case ChipGone, ByteNACK, WireStretch, WireFlip:
		f.Bus, f.Addr = hal.BusID(num[0]), uint16(num[1])
		if len(num) == 3 {
			f.Index = num[2]
		}
	case BusStuck:
		f.Bus = hal.BusID(num[0])
	default:
		f.Bundle, f.Module = num[0], num[1]
		if len(num) == 3 {
			f.Index = num[2]
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
	hot         bool
	noise       int // codes, rms; 0: as it is
}

// chipFault is an address that does not answer.
type chipFault struct {
	bus  hal.BusID
	addr uint16
}

// check finds a fault that is not on this board.
func (b *board) check(f Fault) error {
	bad := func(what string, n, limit int) error {
		return fmt.Errorf("sim: fault %v: %s %d: the board has %d", f, what, n, limit)
	}
	switch f.Kind {
	case ChipGone, BusStuck, WireStretch, WireFlip, ByteNACK:
		if int(f.Bus) >= len(b.hw.Buses) {
			return bad("bus", int(f.Bus), len(b.hw.Buses))
		}
		if b.hw.Buses[f.Bus].Kind != hal.I2C {
			return fmt.Errorf("sim: fault %v: not an I2C bus", f)
		}
		return nil
	}
	if f.Kind >= numFaultKinds {
		return fmt.Errorf("sim: fault kind %d unknown", f.Kind)
	}
	if f.Bundle < 0 || f.Bundle >= len(b.bundles) {
		return bad("bundle", f.Bundle, len(b.bundles))
	}
	if n := len(b.bundles[f.Bundle].modules); f.Module < 0 || f.Module >= n {
		return bad("module", f.Module, n)
	}
	limit := hal.CellsPerMod
	if f.Kind == DiodeNoise {
		limit = ads7138.CodeFull
	}
	if f.Kind == LaserDead || f.Kind == DiodeDead {
		limit = hal.Lanes
	}
	if f.Index < 0 || f.Index >= limit {
		return bad("index", f.Index, limit)
	}
	if f.Path < 0 || f.Path >= hal.NumLOS {
		return bad("path", f.Path, hal.NumLOS)
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
	if err := b.check(f); err != nil {
		return err
	}
	switch f.Kind {
	case ChipGone:
		b.gone = without(b.gone, chipFault{f.Bus, f.Addr})
		if broken {
			b.gone = append(b.gone, chipFault{f.Bus, f.Addr})
		}
		return nil
	case BusStuck:
		b.buses[f.Bus].stuck = broken
		return nil
	case WireStretch, WireFlip, ByteNACK:
		b.buses[f.Bus].setWire(f, broken)
		return nil
	}
	m := &b.bundles[f.Bundle].modules[f.Module]
	// Faults have no past: what was seen until now was seen without.
	w.compareBoth(b, f.Bundle, f.Module)
	if m.planted == nil {
		m.planted = new(planted)
	}
	if m.planted.walk == 0 {
		m.planted.walkSince = int64(w.now / walkEpoch)
	}
	switch f.Kind {
	case HeaterStuck:
		setBit(&m.planted.open, f.Index, broken)
		w.drive(b, m, f.Index/m.dac[0].channels(), allChannels, b.netsOf(m))
	case HeaterShort:
		setBit(&m.planted.short, f.Index, broken)
		w.drive(b, m, f.Index/m.dac[0].channels(), allChannels, b.netsOf(m))
	case LaserDead:
		setBit(&m.planted.lasers, f.Index, broken)
	case DiodeDead:
		setBit(&m.planted.diodes[f.Path], f.Index, broken)
		m.gramOK = false
	case DriftWalk:
		m.planted.walk = 0
		if broken {
			m.planted.walk = 1<<hal.CellsPerMod - 1
		}
		m.epoch = 0
	case CellWalk:
		setBit(&m.planted.walk, f.Index, broken)
		m.epoch = 0
	case DiodeNoise:
		m.planted.noise = 0
		if broken {
			m.planted.noise = f.Index
		}
	case ModuleHot:
		m.planted.hot, m.epoch = broken, 0
		if m.mci != nil && b.powered {
			b.mciWarm(m)
		}
	}
	w.moduleChanged(b, f.Bundle, 1<<f.Module)
	if f.Kind == DiodeDead && f.Path != hal.LOSLoopback {
		w.follow(b, f.Bundle, f.Path)
	}
	return nil
}

func setBit[T uint8 | uint64](mask *T, i int, on bool) {
	*mask &^= 1 << i
	if on {
		*mask |= 1 << i
	}
}

func without(list []chipFault, x chipFault) []chipFault {
	out := list[:0]
	for _, f := range list {
		if f != x {
			out = append(out, f)
		}
	}
	return out
}
