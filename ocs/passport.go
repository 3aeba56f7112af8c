package ocs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/ocs/stored"
	"ringlight/proto"
)

// A module's passport is its calibration in its own EEPROM: whoever finds the
// module knows it, whatever became of the files. There are two slots, written
// in turn, so that a write that is torn leaves the one before.
//
// A slot begins with a head of passportHead bytes:
//
//	0  "RLCP"
//	4  version, 2
//	5  cells beyond 36
//	6  length of the body, two bytes, high byte first as everywhere
//	8  number, four bytes: the valid slot of the higher number counts
//
// then the body, and then a CRC-32 (IEEE) over head and body. The body has every
// field in a fixed width: serial number (length, 24 bytes), timing of the bundle
// in nanoseconds (4 of four), case in thousandths of a degree (four), rail in
// millivolts (two), measurements (four), board time in milliseconds (four), lane
// levels in thousandths of a dBm (24 of two), and of each cell offset (four), power
// for pi in microwatts (two), milliohms (three), extinction in thousandths of a dB
// (two), codes A and B (two each), and of each neighbour within Reach its share
// in hundred-thousandths (two). Behind the cells come the time in which heat settles in
// microseconds (four), the light of loopback's paths in thousandths of a dB (two of
// four), what the Tx taps show in the dark in nanowatts (two of four), what heaters
// beyond Reach have in common in millionths (four), and then of
// some of them the cell that feels it, the heater's own (one each) and its share as
// above, to the end of the body.
const (
	passportMagic   = "RLCP"
	passportVersion = 2
	passportHead    = 12
	passportSerial  = 24
	passportCell    = 4 + 2 + 3 + 2 + 2*2 + 2*2*Reach
	passportLeast   = 1 + passportSerial + 4*4 + 4 + 2 + 4 + 4 + 2*3*hal.Lanes + hal.BenesCells*passportCell + 4 + 2*4 + 2*4 + 4 // of a body
	passportFar     = 1 + 1 + 2
	passportMost    = passportHead + passportLeast + maxFar*passportFar + 4 // of a Benes network

	// The slots. chosen: behind the first KiB, which identity and users may
	// have; whole pages.
	passportSlot  = 2048
	passportFirst = 1024
	passportSlots = 2
)

// A passport lies within its slot.
var _ [passportSlot - passportMost - (hal.CellsPerMod-hal.BenesCells)*passportCell]struct{}

// hasRoom reports whether a memory holds both slots; one that does not holds an
// identity alone.
func hasRoom(c at24.Chip) bool { return c.Size >= passportFirst+passportSlots*passportSlot }

// errNoPassport is an EEPROM without a calibration.
var errNoPassport = errors.New("no passport in the EEPROM")

// passport is what a slot holds.
type passport struct {
	number uint32
	module *ModuleCalibration
	timing Timing
}

// slotAddr is where a slot begins.
func slotAddr(slot int) uint16 { return uint16(passportFirst + slot*passportSlot) }

// passportBody is a body that is written or read, by the same list of its fields.
type passportBody struct {
	b    []byte
	read bool
	err  error // the first that does not fit its width
}

func field[T ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32](w *passportBody, name string, v *T, bytes int, signed bool) {
	if w.read {
		x := uint64(0)
		for _, y := range w.b[:bytes] {
			x = x<<8 | uint64(y)
		}
		if shift := 64 - 8*bytes; signed {
			x = uint64(int64(x<<shift) >> shift)
		}
		w.b, *v = w.b[bytes:], T(x)
		return
	}
	x, least, most := int64(*v), int64(0), int64(1)<<(8*bytes)
	if signed {
		least, most = -most/2, most/2
	}
	if w.err == nil && (x < least || x >= most) {
		w.err = fmt.Errorf("ocs: passport: %w: %s %d does not fit %d bytes", hal.ErrOutOfRange, name, x, bytes)
	}
	for i := bytes - 1; i >= 0; i-- {
		w.b = append(w.b, byte(x>>(8*i)))
	}
}

func (w *passportBody) share(v *int32) {
	x := *v / shareStep
	if field(w, "crosstalk", &x, 2, true); w.read {
		*v = x * shareStep
	}
}

func (w *passportBody) level(v *proto.MilliDBm) {
	x := max(*v, math.MinInt16) // less is dark all the same
	if field(w, "level", &x, 2, true); w.read && x == math.MinInt16 {
		*v = hal.DarkMilliDBm
	} else if w.read {
		*v = x
	}
}

// fields are all of a module of so many cells.
func (w *passportBody) fields(p *passport, cells int) {
	m := p.module
	n := uint8(len(m.Serial))
	serial := make([]byte, passportSerial)
	copy(serial, m.Serial)
	field(w, "serial", &n, 1, false)
	for i := range serial {
		field(w, "serial", &serial[i], 1, false)
	}
	if w.read {
		m.Serial = string(serial[:min(n, passportSerial)])
	}
	for _, d := range []*time.Duration{&p.timing.DetectMax, &p.timing.DetectMin, &p.timing.SwitchMax, &p.timing.SwitchMin} {
		field(w, "timing", d, 4, false)
	}
	field(w, "case", &m.CaseMillicelsius, 4, true)
	field(w, "rail", &m.RailMillivolt, 2, false)
	field(w, "measurements", &m.Measurements, 4, false)
	field(w, "board time", &m.BoardMillis, 4, false)
	for _, levels := range [3]*[hal.Lanes]proto.MilliDBm{&m.LaneLoop, &m.LaneTap[0], &m.LaneTap[1]} {
		for l := range levels {
			w.level(&levels[l])
		}
	}
	for k := range cells {
		c := &m.Cells[k]
		field(w, "offset", &c.OffsetMicrorad, 4, true)
		field(w, "power", &c.PiMicrowatt, 2, false)
		field(w, "resistance", &c.MilliOhm, 3, false)
		field(w, "extinction", &m.Extinction[k], 2, false)
		for register := range m.Codes[k] {
			field(w, "code", &m.Codes[k][register], 2, false)
		}
		for i := range c.Near {
			if i != Reach {
				w.share(&c.Near[i])
			} else if w.read && c.MilliOhm > 0 {
				c.Near[i] = 1_000_000
			}
		}
	}
	field(w, "settling", &m.SettleMicros, 4, false)
	for i := range m.Paths {
		field(w, "path", &m.Paths[i], 4, true)
	}
	for i := range m.DarkTap {
		field(w, "dark", &m.DarkTap[i], 4, true)
	}
	field(w, "crosstalk", &m.Common, 4, true)
	for i := range m.Far {
		field(w, "cell", &m.Far[i].Cell, 1, false)
		field(w, "cell", &m.Far[i].From, 1, false)
		w.share(&m.Far[i].Share)
	}
}

// appendPassport appends the bytes of a slot. It fails where a value does not fit
// its width.
func appendPassport(dst []byte, p *passport) ([]byte, error) {
	m := p.module
	switch n := len(m.Serial); {
	case n == 0 || n > passportSerial:
		return dst, fmt.Errorf("ocs: passport: %w: serial number of %d bytes: want 1 to %d", hal.ErrOutOfRange, n, passportSerial)
	case len(m.Far) > maxFar:
		return dst, fmt.Errorf("ocs: passport: %w: crosstalk of %d heaters further away: want at most %d", hal.ErrOutOfRange, len(m.Far), maxFar)
	}
	cells := max(m.span(), hal.BenesCells)
	beyond := cells - hal.BenesCells
	from := len(dst)
	dst = append(append(dst, passportMagic...), passportVersion, byte(beyond))
	dst = binary.BigEndian.AppendUint16(dst, uint16(passportLeast+beyond*passportCell+len(m.Far)*passportFar))
	w := passportBody{b: binary.BigEndian.AppendUint32(dst, p.number)}
	if w.fields(p, cells); w.err != nil {
		return dst[:from], w.err
	}
	return binary.BigEndian.AppendUint32(w.b, crc32.ChecksumIEEE(w.b[from:])), nil
}

// passportNumber is the number in the head of a slot; ok says whether it is a
// head of ours at all.
func passportNumber(head []byte) (number uint32, ok bool) {
	if len(head) < passportHead || string(head[:4]) != passportMagic {
		return 0, false
	}
	return binary.BigEndian.Uint32(head[8:]), true
}

// parsePassport reads a slot. The error matches errNoPassport,
// stored.ErrDamaged, stored.ErrVersion or stored.ErrMismatch.
func parsePassport(b []byte) (*passport, error) {
	number, ok := passportNumber(b)
	if !ok {
		return nil, errNoPassport
	}
	if b[4] != passportVersion {
		return nil, fmt.Errorf("passport: version %d, want %d: %w", b[4], passportVersion, stored.ErrVersion)
	}
	cells, end := hal.BenesCells+int(b[5]), passportHead+int(binary.BigEndian.Uint16(b[6:]))
	far := end - passportHead - passportLeast - int(b[5])*passportCell
	switch {
	case cells > hal.CellsPerMod || far < 0 || far%passportFar != 0 || far > maxFar*passportFar || len(b) < end+4:
		return nil, fmt.Errorf("passport: %d bytes: %w", len(b), stored.ErrMismatch)
	case crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]):
		return nil, fmt.Errorf("passport: %w", stored.ErrDamaged)
	}
	p := &passport{number: number, module: &ModuleCalibration{Far: make([]FarCalibration, far/passportFar)}}
	(&passportBody{b: b[passportHead:end], read: true}).fields(p, cells)
	if p.module.Serial == "" {
		return nil, fmt.Errorf("passport: %w: no serial number", stored.ErrMismatch)
	}
	if err := (&Calibration{Modules: []*ModuleCalibration{p.module}, Timing: p.timing}).check(); err != nil {
		return nil, fmt.Errorf("passport: %w: %w", stored.ErrMismatch, err)
	}
	return p, nil
}
