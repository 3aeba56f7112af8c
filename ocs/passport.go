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
//	5  0
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
	passportVersion = 2
	passportHead    = 12
	passportSerial  = 24
	passportLevels  = 3 * hal.Lanes
	passportCell    = 4 + 2 + 3 + 2 + 2*2 + 2*2*Reach
	passportBody    = 1 + passportSerial + 4*4 + 4 + 2 + 4 + 4 + 2*passportLevels + hal.CellsPerMod*passportCell
	passportMore    = 4 + 2*4 + 2*4 + 4
	passportFar     = 1 + 1 + 2
	passportMost    = passportHead + passportBody + passportMore + maxFar*passportFar + 4

	// The slots. chosen: behind the first KiB, which identity and users may
	// have; whole pages.
	passportSlot  = 2048
	passportFirst = 1024
	passportSlots = 2
)

var passportMagic = [4]byte{'R', 'L', 'C', 'P'}

// A passport lies within its slot.
var _ [passportSlot - passportMost]struct{}

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

// appendPassport appends the bytes of a slot. It fails where a value does not fit
// its width.
func appendPassport(dst []byte, p *passport) ([]byte, error) {
	m := p.module
	if n := len(m.Serial); n == 0 || n > passportSerial {
		return dst, fmt.Errorf("ocs: passport: %w: serial number of %d bytes: want 1 to %d", hal.ErrOutOfRange, n, passportSerial)
	}
	w := passportWriter{b: dst, from: len(dst)}
	w.b = append(w.b, passportMagic[:]...)
	w.put("version", passportVersion, 1)
	w.put("reserved", 0, 1)
	w.put("length", int64(passportBody+passportMore+len(m.Far)*passportFar), 2)
	w.put("number", int64(p.number), 4)
	w.put("serial", int64(len(m.Serial)), 1)
	w.b = append(w.b, m.Serial...)
	w.b = append(w.b, make([]byte, passportSerial-len(m.Serial))...)
	for _, d := range []time.Duration{p.timing.DetectMax, p.timing.DetectMin, p.timing.SwitchMax, p.timing.SwitchMin} {
		w.put("timing", int64(d), 4)
	}
	w.putSigned("case", int64(m.CaseMillicelsius), 4)
	w.put("rail", int64(m.RailMillivolt), 2)
	w.put("measurements", int64(m.Measurements), 4)
	w.put("board time", int64(m.BoardMillis), 4)
	for _, levels := range [3]*[hal.Lanes]proto.MilliDBm{&m.LaneLoop, &m.LaneTap[0], &m.LaneTap[1]} {
		for _, l := range levels {
			w.putSigned("level", max(int64(l), math.MinInt16), 2) // less is dark all the same
		}
	}
	for k := range m.Cells {
		c := &m.Cells[k]
		w.putSigned("offset", int64(c.OffsetMicrorad), 4)
		w.put("power", int64(c.PiMicrowatt), 2)
		w.put("resistance", int64(c.MilliOhm), 3)
		w.put("extinction", int64(m.Extinction[k]), 2)
		for _, code := range m.Codes[k] {
			w.put("code", int64(code), 2)
		}
		for i, x := range c.Near {
			if i != Reach {
				w.putSigned("crosstalk", int64(x/shareStep), 2)
			}
		}
	}
	w.put("settling", int64(m.SettleMicros), 4)
	for _, x := range m.Paths {
		w.putSigned("path", int64(x), 4)
	}
	for _, x := range m.DarkTap {
		w.putSigned("dark", int64(x), 4)
	}
	w.putSigned("crosstalk", int64(m.Common), 4)
	if len(m.Far) > maxFar {
		w.refuse("crosstalk of", int64(len(m.Far)), maxFar*passportFar)
	}
	for _, f := range m.Far {
		w.put("cell", int64(f.Cell), 1)
		w.put("cell", int64(f.From), 1)
		w.putSigned("crosstalk", int64(f.Share/shareStep), 2)
	}
	if w.err != nil {
		return dst, w.err
	}
	return binary.BigEndian.AppendUint32(w.b, crc32.ChecksumIEEE(w.b[w.from:])), nil
}

// passportWriter appends fields and keeps the first that does not fit.
type passportWriter struct {
	b    []byte
	from int
	err  error
}

func (w *passportWriter) put(field string, v int64, bytes int) {
	if v < 0 || v >= 1<<(8*bytes) {
		w.refuse(field, v, bytes)
	}
	w.raw(v, bytes)
}

func (w *passportWriter) putSigned(field string, v int64, bytes int) {
	if limit := int64(1) << (8*bytes - 1); v < -limit || v >= limit {
		w.refuse(field, v, bytes)
	}
	w.raw(v, bytes)
}

func (w *passportWriter) raw(v int64, bytes int) {
	for i := bytes - 1; i >= 0; i-- {
		w.b = append(w.b, byte(v>>(8*i)))
	}
}

func (w *passportWriter) refuse(field string, v int64, bytes int) {
	if w.err == nil {
		w.err = fmt.Errorf("ocs: passport: %w: %s %d does not fit %d bytes", hal.ErrOutOfRange, field, v, bytes)
	}
}

// passportNumber is the number in the head of a slot; ok says whether it is a
// head of ours at all.
func passportNumber(head []byte) (number uint32, ok bool) {
	if len(head) < passportHead || [4]byte(head[:4]) != passportMagic {
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
	length := int(binary.BigEndian.Uint16(b[6:]))
	far, end := length-passportBody-passportMore, passportHead+length+4
	switch {
	case far < 0 || far%passportFar != 0 || far > maxFar*passportFar || len(b) < end:
		return nil, fmt.Errorf("passport: %d bytes: %w", len(b), stored.ErrMismatch)
	case crc32.ChecksumIEEE(b[:end-4]) != binary.BigEndian.Uint32(b[end-4:]):
		return nil, fmt.Errorf("passport: %w", stored.ErrDamaged)
	}
	r := passportReader{b: b[passportHead : end-4]}
	p := &passport{number: number, module: new(ModuleCalibration)}
	m := p.module
	n := min(int(r.take(1)), passportSerial)
	m.Serial = string(r.b[:n])
	r.b = r.b[passportSerial:]
	for _, d := range []*time.Duration{&p.timing.DetectMax, &p.timing.DetectMin, &p.timing.SwitchMax, &p.timing.SwitchMin} {
		*d = time.Duration(r.take(4))
	}
	m.CaseMillicelsius = int32(r.takeSigned(4))
	m.RailMillivolt = int32(r.take(2))
	m.Measurements, m.BoardMillis = uint32(r.take(4)), uint32(r.take(4))
	for _, levels := range [3]*[hal.Lanes]proto.MilliDBm{&m.LaneLoop, &m.LaneTap[0], &m.LaneTap[1]} {
		for l := range levels {
			levels[l] = proto.MilliDBm(r.takeSigned(2))
			if levels[l] == math.MinInt16 {
				levels[l] = hal.DarkMilliDBm
			}
		}
	}
	for k := range m.Cells {
		c := &m.Cells[k]
		c.OffsetMicrorad = int32(r.takeSigned(4))
		c.PiMicrowatt, c.MilliOhm = uint32(r.take(2)), uint32(r.take(3))
		m.Extinction[k] = int32(r.take(2))
		for i := range m.Codes[k] {
			m.Codes[k][i] = uint16(r.take(2))
		}
		for i := range c.Near {
			if i != Reach {
				c.Near[i] = int32(r.takeSigned(2)) * shareStep
			}
		}
		if c.MilliOhm > 0 {
			c.Near[Reach] = 1_000_000
		}
	}
	m.SettleMicros = uint32(r.take(4))
	for i := range m.Paths {
		m.Paths[i] = int32(r.takeSigned(4))
	}
	for i := range m.DarkTap {
		m.DarkTap[i] = int32(r.takeSigned(4))
	}
	m.Common = int32(r.takeSigned(4))
	for len(r.b) > 0 {
		m.Far = append(m.Far, FarCalibration{Cell: uint8(r.take(1)), From: uint8(r.take(1)), Share: int32(r.takeSigned(2)) * shareStep})
	}
	if m.Serial == "" {
		return nil, fmt.Errorf("passport: %w: no serial number", stored.ErrMismatch)
	}
	if err := (&Calibration{Modules: []*ModuleCalibration{m}, Timing: p.timing}).check(); err != nil {
		return nil, fmt.Errorf("passport: %w: %w", stored.ErrMismatch, err)
	}
	return p, nil
}

// passportReader takes fields off a body whose length was checked.
type passportReader struct{ b []byte }

func (r *passportReader) take(bytes int) (v uint64) {
	for _, x := range r.b[:bytes] {
		v = v<<8 | uint64(x)
	}
	r.b = r.b[bytes:]
	return v
}

func (r *passportReader) takeSigned(bytes int) int64 {
	shift := 64 - 8*bytes
	return int64(r.take(bytes)<<shift) >> shift
}
