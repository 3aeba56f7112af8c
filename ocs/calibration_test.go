package ocs

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs/stored"
	"ringlight/proto"
)

// sample is a calibration with something in every field.
func sample() *Calibration {
	c := &Calibration{Timing: Timing{DetectMax: 150_123, DetectMin: 40_456, SwitchMax: 250_789, SwitchMin: 75_012}}
	for i := range 3 {
		m := &ModuleCalibration{Serial: "RL0000000001", CaseMillicelsius: -12_345, Matrix: 9, RailMillivolt: 12_000, Measurements: 4185, BoardMillis: 3495}
		for k := range m.Cells[:hal.BenesCells] {
			x := &m.Cells[k]
			x.OffsetMicrorad, x.PiMicrowatt, x.MilliOhm = int32(k*100_000-1_800_000), uint32(25_000+k), uint32(1_000_000-k*i)
			for j := range x.Near {
				x.Near[j] = int32(j * 1000)
			}
			m.Codes[k] = [2]uint16{uint16(k * 1000), uint16(k*1000 + 7)}
		}
		for l := range m.LaneLoop {
			m.LaneLoop[l] = proto.MilliDBm(-2300 - l)
			m.LaneTap[0][l], m.LaneTap[1][l] = proto.MilliDBm(-900-l), proto.MilliDBm(-1100-l)
		}
		c.Modules = append(c.Modules, m)
	}
	return c
}

// Goal: a calibration comes back as it was kept, under the same name.
// Method: encode, decode, compare; the digest changes with any code.
func TestCalibrationComesBack(t *testing.T) {
	c := sample()
	raw := c.Encode()
	got, err := DecodeCalibration(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, c) {
		t.Error("it came back different")
	}
	if !bytes.Equal(got.Encode(), raw) || got.Digest() != c.Digest() {
		t.Error("it encodes differently the second time")
	}
	if len(raw) > 3000*len(c.Modules) {
		t.Errorf("%d bytes for %d modules", len(raw), len(c.Modules))
	}
	got.Modules[1].Codes[35][0]++
	if got.Digest() == c.Digest() {
		t.Error("another code, the same name")
	}
}

// Goal: what is damaged, of another version or not ours is refused with its
// cause.
// Method: every truncation and every flipped byte; then forgeries whose check
// sum is right.
func TestDamagedCalibrationIsRefused(t *testing.T) {
	raw := sample().Encode()
	for n := range raw {
		if _, err := DecodeCalibration(raw[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were taken", n, len(raw))
		}
		bad := bytes.Clone(raw)
		bad[n] ^= 0x40
		if _, err := DecodeCalibration(bad); !errors.Is(err, stored.ErrDamaged) {
			t.Fatalf("byte %d flipped: %v", n, err)
		}
	}
	forge := func(change func(*document)) []byte {
		c := sample()
		s := document{Version: CalibrationVersion, Modules: c.Modules}
		change(&s)
		return stored.Encode(s)
	}
	tests := []struct {
		name string
		raw  []byte
		want error
	}{
		{"next version", forge(func(s *document) { s.Version++ }), stored.ErrVersion},
		{"version nought", forge(func(s *document) { s.Version = 0 }), stored.ErrVersion},
		{"no module", forge(func(s *document) { s.Modules = nil }), stored.ErrMismatch},
		{"nine modules", forge(func(s *document) { s.Modules = append(s.Modules, append(s.Modules, s.Modules...)...) }), stored.ErrMismatch},
		{"a missing module", forge(func(s *document) { s.Modules[1] = nil }), stored.ErrMismatch},
		{"a heater of no ohm", forge(func(s *document) { s.Modules[2].Cells[9].MilliOhm = 0 }), stored.ErrMismatch},
		{"least above largest", forge(func(s *document) { s.Timing = [4]int64{1, 2, 3, 3} }), stored.ErrMismatch},
		{"not CBOR", stored.Seal([]byte("hello")), stored.ErrMismatch},
		{"a key twice", stored.Seal([]byte{0xA2, 0x00, 0x01, 0x00, 0x01}), stored.ErrMismatch},
		{"too long", make([]byte, maxStored+1), stored.ErrDamaged},
	}
	for _, tt := range tests {
		if c, err := DecodeCalibration(tt.raw); !errors.Is(err, tt.want) || c != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// Goal: parts make a whole whose modules are shared and whose timing holds
// every part's.
// Method: two parts with crossing spreads, one without.
func TestJoinSharesModules(t *testing.T) {
	a, b := sample(), sample()
	b.Timing = Timing{DetectMax: 100 * time.Microsecond, DetectMin: 20 * time.Microsecond, SwitchMax: 400 * time.Microsecond, SwitchMin: 90 * time.Microsecond}
	c := &Calibration{Modules: a.Modules[:1]}
	whole, err := Join([]*Calibration{a, b, c})
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Modules) != 7 || whole.Modules[0] != a.Modules[0] || whole.Modules[5] != b.Modules[2] {
		t.Error("modules are not shared in order")
	}
	want := Timing{DetectMax: a.Timing.DetectMax, DetectMin: b.Timing.DetectMin, SwitchMax: b.Timing.SwitchMax, SwitchMin: a.Timing.SwitchMin}
	if whole.Timing != want {
		t.Errorf("timing %+v, want %+v", whole.Timing, want)
	}
	if _, err := Join([]*Calibration{a, b, a}); !errors.Is(err, stored.ErrMismatch) {
		t.Errorf("nine modules: %v", err)
	}
	if _, err := Join([]*Calibration{a, nil}); !errors.Is(err, ErrNotCalibrated) {
		t.Errorf("a missing part: %v", err)
	}
	if _, err := Join(nil); !errors.Is(err, stored.ErrMismatch) {
		t.Errorf("nothing: %v", err)
	}
}

// Goal: an envelope never narrows what was measured.
// Method: times between two microseconds.
func TestEnvelopeRoundsOutwards(t *testing.T) {
	e := Timing{DetectMax: 150_001, DetectMin: 40_999, SwitchMax: 250_001, SwitchMin: 75_999}.Envelope(500 * time.Microsecond)
	if e != (proto.Envelope{DetectMaxMicros: 151, DetectMinMicros: 40, SwitchMaxMicros: 251, SwitchMinMicros: 75, SkewMicros: 500}) {
		t.Errorf("%+v", e)
	}
}

// FuzzDecodeCalibration must not panic, and what it takes must come back. A few
// bytes go over a good calibration, for a fuzzer shortens long inputs for ever; and
// the bytes alone.
func FuzzDecodeCalibration(f *testing.F) {
	good := sample().Encode()
	good = good[:len(good)-4]
	f.Add(uint16(0), []byte{0xA1, 0x00, 0x01})
	f.Add(uint16(9), []byte{0xFF, 0xFF})
	f.Add(uint16(200), []byte{})
	f.Fuzz(func(t *testing.T, at uint16, over []byte) {
		damaged := bytes.Clone(good)
		copy(damaged[int(at)%len(damaged):], over)
		for _, b := range [][]byte{over, stored.Seal(over), damaged, stored.Seal(damaged), stored.Seal(damaged[:int(at)%len(damaged)])} {
			c, err := DecodeCalibration(b)
			if err != nil {
				continue
			}
			again, err := DecodeCalibration(c.Encode())
			if err != nil || !reflect.DeepEqual(again, c) {
				t.Fatalf("taken, but does not come back: %v", err)
			}
		}
	})
}

// Goal: a calibration is not used with a matrix that has as many couplers elsewhere.
func TestCalibrationOfOtherCouplersIsRefused(t *testing.T) {
	moved := slices.Clone(hal.Benes)
	moved[0], moved[1] = moved[1], [2]uint8{0, 2}
	sums := map[uint32]bool{}
	for _, couplers := range [][][2]uint8{hal.Benes, moved, moved[:12]} {
		sums[matrixSum(couplers)] = true
	}
	if len(sums) != 3 || matrixSum(hal.Benes) != 0 || !slices.Equal(mzi.Benes, hal.Benes) {
		t.Fatalf("%v, and %d of the Benes network", sums, matrixSum(hal.Benes))
	}
	of := sample().Modules[:1]
	for _, x := range []struct {
		matrix uint32
		want   error
	}{{0, nil}, {matrixSum(moved), stored.ErrMismatch}} {
		of[0].Matrix = x.matrix
		if _, err := composeCodes(make([]hal.Module, 1), of, true); !errors.Is(err, x.want) {
			t.Errorf("matrix %x: %v, want %v", x.matrix, err, x.want)
		}
	}
}
