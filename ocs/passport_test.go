package ocs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"reflect"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs/stored"
	"ringlight/ocs/work"
	"ringlight/proto"
)

func somePassport() *passport {
	m := &ModuleCalibration{Serial: "RL0000012345", CaseMillicelsius: -1500, RailMillivolt: 11_988, Measurements: 4713, BoardMillis: 15_900}
	for k := range hal.BenesCells {
		m.Cells[k] = CellCalibration{OffsetMicrorad: int32(k*170_000 - 3_000_000), PiMicrowatt: uint32(23_000 + k), MilliOhm: uint32(951_000 + k)}
		for i := range m.Cells[k].Near {
			m.Cells[k].Near[i] = int32(i*40_000 - 2000 + 10*k)
		}
		m.Cells[k].Near[Reach] = 1_000_000
		m.Codes[k] = [2]uint16{uint16(1000 * k), uint16(60_000 - k)}
		m.Extinction[k] = int32(27_000 + k)
	}
	m.SettleMicros, m.Paths, m.Common = 212, [2]int32{21_400, 130}, -140
	m.DarkTap = [2]int32{15_600, 3}
	for i := range maxFar {
		m.Far = append(m.Far, FarCalibration{Cell: uint8(i % hal.BenesCells), From: uint8((i + 7) % hal.BenesCells), Share: int32(300*i - 15_000)})
	}
	for l := range hal.Lanes {
		m.LaneLoop[l], m.LaneTap[0][l], m.LaneTap[1][l] = proto.MilliDBm(-2300-l), proto.MilliDBm(-1000+l), hal.DarkMilliDBm
	}
	return &passport{number: 7, module: m, timing: Timing{DetectMax: 150_321 * time.Nanosecond, DetectMin: 40 * time.Microsecond, SwitchMax: time.Millisecond, SwitchMin: 1}}
}

// Goal: what is written into a module is what is read, to the last digit, and it
// fits its slot.
// Method: a passport with values at the ends of their ranges, there and back; of a module
// of as many cells as there can be, and of fewer; one with a gap.
func TestPassportKeepsEverything(t *testing.T) {
	for _, cells := range []int{hal.BenesCells, hal.CellsPerMod, 24} {
		want := somePassport()
		m := want.module
		for k := hal.BenesCells; k < cells; k++ {
			m.Cells[k], m.Codes[k], m.Extinction[k] = m.Cells[k-8], [2]uint16{uint16(1000 * k), uint16(60_000 - k)}, int32(27_000+k)
		}
		clear(m.Cells[cells:])
		raw, err := appendPassport(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d of %d bytes", len(raw), passportSlot)
		got, err := parsePassport(raw)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) || got.module.span() != cells {
			t.Errorf("got  %+v\nwant %+v", got.module, want.module)
		}
	}
	gap := somePassport()
	gap.module.Cells[24] = CellCalibration{}
	if raw, err := appendPassport(nil, gap); err != nil {
		t.Fatal(err)
	} else if _, err := parsePassport(raw); !errors.Is(err, stored.ErrMismatch) {
		t.Errorf("a cell is missing in the middle: %v", err)
	}
}

// Goal: a passport that is not whole, or not ours, is refused with its cause.
// Method: every byte of a good one flipped, every shorter length, other
// versions with a right check sum; values that do not fit their width.
func TestDamagedPassportsAreRefused(t *testing.T) {
	raw, err := appendPassport(nil, somePassport())
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		bad := bytes.Clone(raw)
		bad[i] ^= 0x10
		if p, err := parsePassport(bad); err == nil {
			t.Errorf("byte %d flipped: %+v", i, p)
		}
	}
	for n := range raw {
		if _, err := parsePassport(raw[:n]); err == nil {
			t.Errorf("%d bytes are enough", n)
		}
	}
	blank := bytes.Repeat([]byte{0xFF}, passportSlot)
	if _, err := parsePassport(blank); !errors.Is(err, errNoPassport) {
		t.Errorf("blank: %v", err)
	}
	for _, version := range []byte{1, 3} {
		other := bytes.Clone(raw)
		other[4] = version
		if _, err := parsePassport(other); !errors.Is(err, stored.ErrVersion) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	for name, spoil := range map[string]func(*ModuleCalibration){ // any order: independent cases
		"power":      func(m *ModuleCalibration) { m.Cells[3].PiMicrowatt = 1 << 16 },
		"resistance": func(m *ModuleCalibration) { m.Cells[3].MilliOhm = 1 << 24 },
		"crosstalk":  func(m *ModuleCalibration) { m.Cells[3].Near[0] = 10 << 15 },
		"serial":     func(m *ModuleCalibration) { m.Serial = "0123456789012345678901234" },
	} {
		p := somePassport()
		spoil(p.module)
		if _, err := appendPassport(nil, p); !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzPassport must not panic, and what it reads must be written as it was.
// Bytes are put over a good passport somewhere, with the check sum as it was and
// put right.
func FuzzPassport(f *testing.F) {
	raw, _ := appendPassport(nil, somePassport())
	f.Add(uint16(0), []byte("RLCP\x03"))
	f.Add(uint16(12), []byte{0})
	f.Add(uint16(200), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, at uint16, over []byte) {
		damaged := bytes.Clone(raw)
		copy(damaged[int(at)%len(damaged):], over)
		right := bytes.Clone(damaged)
		if end := passportHead + int(binary.BigEndian.Uint16(right[6:])) + 4; end <= len(right) {
			binary.BigEndian.PutUint32(right[end-4:], crc32.ChecksumIEEE(right[:end-4]))
		}
		for _, image := range [][]byte{damaged, right, right[:int(at)%len(right)]} {
			p, err := parsePassport(image)
			if err != nil {
				continue
			}
			again, err := appendPassport(nil, p)
			if err != nil {
				t.Fatal(err)
			}
			if q, err := parsePassport(again); err != nil || !reflect.DeepEqual(q.module, p.module) || q.timing != p.timing || q.number != p.number {
				t.Errorf("%+v comes back as %+v, %v", p, q, err)
			}
		}
	})
}

// memory is a 24-series EEPROM that loses its power amid the write of its
// cut-th page, and is asked for nothing afterwards.
type memory struct {
	cell   [8192]byte
	writes int
	cut    int // -1: never
	dead   bool
}

func (m *memory) do(op *hal.Op) error {
	for i := range op.Msgs {
		msg := &op.Msgs[i]
		if msg.Addr != 0x50 {
			continue
		}
		at := int(msg.W[0])<<8 | int(msg.W[1])
		copy(msg.R, m.cell[at:])
		if page := msg.W[2:]; len(page) > 0 {
			if at/32 != (at+len(page)-1)/32 {
				return errors.New("a write over the end of a page")
			}
			if m.writes++; m.writes == m.cut {
				m.dead = true
				page = page[:len(page)/2]
			}
			copy(m.cell[at:], page)
		}
	}
	return nil
}

// drive runs one access to its end, or to the end of the power.
func (m *memory) drive(t *testing.T, write *passport) *passportIO {
	hw := &hal.Module{Mux: 0x70, EEPROM: 0x50}
	p := &passportIO{hw: hw, write: write}
	var q work.Queue
	p.begin(&q)
	for !m.dead && p.step != ioDone {
		for _, op := range q.Take(nil) {
			p.completed(&q, 0, &hal.Completion{Op: op.Op, Err: m.do(op.Op)})
		}
	}
	return p
}

// Goal: a write that is torn at any page leaves a whole passport: the old one,
// or the new one; and the next write does not take the only whole one.
// Method: a chip that loses its power amid each page in turn, twice in a row.
func TestTornWriteLeavesTheOneBefore(t *testing.T) {
	pages := (passportMost + 31) / 32
	for cut := 1; cut <= pages; cut++ {
		for again := 1; again <= pages; again += 7 {
			m := &memory{cut: -1}
			for i := range m.cell {
				m.cell[i] = 0xFF
			}
			for n := range uint32(3) { // both slots hold something
				p := somePassport()
				p.module.Measurements = n
				if io := m.drive(t, p); io.err != nil {
					t.Fatal(io.err)
				}
			}
			for _, at := range []int{cut, again} {
				m.writes, m.cut = 0, at
				p := somePassport()
				p.module.Measurements = 99
				m.drive(t, p)
				m.dead, m.cut = false, -1
				got := m.drive(t, nil)
				if got.found == nil || got.found.module.Measurements != 2 && got.found.module.Measurements != 99 {
					t.Fatalf("cut in page %d, then %d: %+v, %v", cut, again, got.found, got.err)
				}
			}
			if io := m.drive(t, somePassport()); io.err != nil || m.drive(t, nil).found.module.Measurements != somePassport().module.Measurements {
				t.Fatalf("cut in page %d, then %d: not to be written again: %v", cut, again, io.err)
			}
		}
	}
}
