package ocs

import (
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs/heater"
	"ringlight/ocs/stored"
	"ringlight/proto"
)

// CalibrationVersion is the form of a stored calibration; any other is refused.
const CalibrationVersion = 1

// CellCalibration is what was found out about one cell.
type CellCalibration struct {
	_ struct{} `cbor:",toarray"`
	// OffsetMicrorad is the phase without any heat; 0 is the cross state.
	OffsetMicrorad int32
	PiMicrowatt    uint32 // heater power for a phase of pi
	MilliOhm       uint32
	// Near is the share, in millionths, of the phase of each heater within
	// Reach cells that this cell sees; its own, in the middle, is a
	// million.
	Near [2*Reach + 1]int32
}

// LeastExtinction is what every cell of a module that counts as calibrated has at
// least, in thousandths of a dB.
const LeastExtinction = mzi.LeastExtinction

// Reach is how many heaters to either side of a cell CellCalibration.Near has.
const Reach = 3

// FarCalibration is the share, in millionths, of the phase of a heater further away
// that a cell sees, where that differs from what all see of all.
type FarCalibration struct {
	_          struct{} `cbor:",toarray"`
	Cell, From uint8
	Share      int32
}

// ModuleCalibration is what was found out about one module. It is read-only
// once made, and shared by all bundles that hold it.
type ModuleCalibration struct {
	Serial string                   `cbor:"1,keyasint"` // as in the module's EEPROM
	Cells  perCell[CellCalibration] `cbor:"2,keyasint"`
	// Codes of every heater: register A and B. Matrix cells have one.
	Codes perCell[[2]uint16] `cbor:"3,keyasint"`
	// What the module's own diodes see when all is well.
	LaneLoop [hal.Lanes]proto.MilliDBm    `cbor:"4,keyasint"` // lane diodes in loopback
	LaneTap  [2][hal.Lanes]proto.MilliDBm `cbor:"5,keyasint"` // each lane's share on its path's Tx tap
	// Conditions under which it holds.
	CaseMillicelsius int32 `cbor:"6,keyasint"`
	RailMillivolt    int32 `cbor:"7,keyasint"`
	// What it took.
	Measurements uint32 `cbor:"8,keyasint"`
	BoardMillis  uint32 `cbor:"9,keyasint"`
	// Extinction of every cell with these codes, in thousandths of a dB, as the
	// diodes behind it saw it; 0 from software that did not note it.
	Extinction perCell[int32] `cbor:"10,keyasint"`
	// After which heat stands still; 0 from software that did not measure it.
	SettleMicros uint32 `cbor:"11,keyasint,omitempty"`
	// What heaters beyond Reach do: Common each of them, and Far some.
	Common int32            `cbor:"12,keyasint,omitempty"`
	Far    []FarCalibration `cbor:"13,keyasint,omitempty"`
	// Of loopback, in thousandths of a dB: light of a lane over what of it comes out
	// at any other, and what of it does not arrive, the worst of all lanes.
	Paths [2]int32 `cbor:"14,keyasint,omitzero"`
	// What the Tx taps show in the dark, in nanowatts.
	DarkTap [2]int32 `cbor:"15,keyasint,omitzero"`
	// Which matrix it is of, 0: the Benes network, or a passport does not say.
	Matrix uint32 `cbor:"16,keyasint,omitempty"`
}

// perCell is what a module has of every cell.
type perCell[T comparable] [hal.CellsPerMod]T

// MarshalCBOR is an array of hal.BenesCells, and of more only of a module that has more.
func (p perCell[T]) MarshalCBOR() ([]byte, error) {
	n := len(p)
	for n > hal.BenesCells && p[n-1] == *new(T) {
		n--
	}
	return stored.Marshal(p[:n])
}

// matrixSum tells matrices by their couplers, 0: the Benes network.
func matrixSum(couplers [][2]uint8) uint32 {
	if slices.Equal(couplers, hal.Benes) {
		return 0
	}
	sum := crc32.NewIEEE()
	for _, pair := range couplers {
		sum.Write(pair[:])
	}
	return sum.Sum32()
}

// Calibration of a bundle: its modules' and what was measured of the bundle as
// a whole. It is read-only once made.
type Calibration struct {
	Modules []*ModuleCalibration
	Timing  Timing
	// Trials of the timing, and how many of them came too late, or too early, to
	// be believed. Both 0 where none did.
	Trials, Late uint16
}

// count adds up the trials of which some were not believed.
func (c *Calibration) count(all ...*trials) {
	for _, s := range all {
		_, _, late := s.believed()
		c.Trials += uint16(len(s.took))
		c.Late += uint16(late)
	}
	if c.Late == 0 {
		c.Trials = 0
	}
}

// Doubt says how many trials of the timing were not believed, "" when all were.
func (c *Calibration) Doubt() string {
	if c.Late == 0 {
		return ""
	}
	return fmt.Sprintf("timing: %d of %d trials were late and are not believed", c.Late, c.Trials)
}

// Join makes the calibration of a bundle out of those of parts of it, one after
// the other. Module calibrations are shared, not copied; the timing is the
// envelope over the parts.
func Join(parts []*Calibration) (*Calibration, error) {
	c := new(Calibration)
	for i, p := range parts {
		if p == nil {
			return nil, fmt.Errorf("ocs: part %d: %w", i, ErrNotCalibrated)
		}
		c.Modules = append(c.Modules, p.Modules...)
		c.Timing = c.Timing.Join(p.Timing)
	}
	if len(c.Modules) == 0 || len(c.Modules) > hal.MaxModules {
		return nil, fmt.Errorf("ocs: %d modules: want 1 to %d: %w", len(c.Modules), hal.MaxModules, stored.ErrMismatch)
	}
	return c, nil
}

// document is the form on disk.
type document struct {
	Version uint8                `cbor:"0,keyasint"`
	Modules []*ModuleCalibration `cbor:"1,keyasint"`
	Timing  [4]int64             `cbor:"2,keyasint"`          // nanoseconds
	Doubt   [2]uint16            `cbor:"3,keyasint,omitzero"` // trials of the timing, and late ones
}

// maxStored bounds what Decode looks at: eight modules take about 12 kB.
const maxStored = 1 << 16

// Encode is c as it is kept.
func (c *Calibration) Encode() []byte {
	t := c.Timing
	return stored.Encode(document{Version: CalibrationVersion, Modules: c.Modules,
		Timing: [4]int64{int64(t.DetectMax), int64(t.DetectMin), int64(t.SwitchMax), int64(t.SwitchMin)},
		Doubt:  [2]uint16{c.Trials, c.Late}})
}

// DecodeCalibration reads what Encode made. The error matches
// stored.ErrDamaged, ErrVersion or ErrMismatch.
func DecodeCalibration(b []byte) (*Calibration, error) {
	var s document
	if err := stored.Decode(b, CalibrationVersion, maxStored, &s); err != nil {
		return nil, err
	}
	c := &Calibration{Modules: s.Modules, Trials: s.Doubt[0], Late: s.Doubt[1]}
	for i, d := range []*int64{(*int64)(&c.Timing.DetectMax), (*int64)(&c.Timing.DetectMin), (*int64)(&c.Timing.SwitchMax), (*int64)(&c.Timing.SwitchMin)} {
		*d = s.Timing[i]
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("ocs: %w: %w", stored.ErrMismatch, err)
	}
	return c, nil
}

// CheckMatrices says which types of modules have a matrix that no calibration finds.
func CheckMatrices(b *hal.Board) error {
	var errs []error
	for i := range b.Types {
		if err := mzi.Matrix(b.Types[i].Couplers).Check(b.Types[i].LaneCount); err != nil {
			errs = append(errs, &hal.Problem{Field: fmt.Sprintf("types[%d].couplers", i), Limit: "a setting that swaps the halves, and one in which no two lanes meet twice", Text: err.Error()})
		}
	}
	return errors.Join(errs...)
}

// found says whether the module has the cell: those that it has not are zero.
func (c *CellCalibration) found() bool { return c.MilliOhm != 0 }

// each is the numbers of the module's cells.
func (m *ModuleCalibration) each(yield func(int) bool) {
	for k := range m.Cells {
		if m.Cells[k].found() && !yield(k) {
			return
		}
	}
}

// span is one more than the number of the last cell that the module has.
func (m *ModuleCalibration) span() int {
	n := len(m.Cells)
	for n > 0 && !m.Cells[n-1].found() {
		n--
	}
	return n
}

func (m *ModuleCalibration) codes() *heater.Codes { return (*heater.Codes)(&m.Codes) }

// Extinctions are those of the cells by number, 0 of one that the module has not.
func (m *ModuleCalibration) Extinctions() []int32 { return m.Extinction[:m.span()] }

// check refuses what no calibration of ours contains.
func (c *Calibration) check() error {
	var errs []error
	if len(c.Modules) == 0 || len(c.Modules) > hal.MaxModules {
		errs = append(errs, fmt.Errorf("%d modules: want 1 to %d", len(c.Modules), hal.MaxModules))
	}
	t := c.Timing
	if t.DetectMin < 0 || t.DetectMin > t.DetectMax || t.SwitchMin < 0 || t.SwitchMin > t.SwitchMax {
		errs = append(errs, errors.New("timing: least above largest"))
	}
	for i, m := range c.Modules {
		if m == nil {
			errs = append(errs, fmt.Errorf("module %d: missing", i))
			continue
		}
		lanes, span := 0, max(m.span(), hal.CellMatrix+1)
		for lanes < hal.Lanes && m.Cells[lanes].found() {
			lanes++
		}
		for k := range m.Cells {
			x, has := &m.Cells[k], k%hal.Lanes < max(lanes, 2)
			if k >= hal.CellMatrix {
				has = k < span
			}
			if has && (x.PiMicrowatt == 0 || x.MilliOhm == 0) || !has && *x != (CellCalibration{}) {
				errs = append(errs, fmt.Errorf("module %d: cell %d: no heater", i, k))
			}
		}
		if len(m.Far) > maxFar {
			errs = append(errs, fmt.Errorf("module %d: crosstalk of %d heaters further away: want %d at most", i, len(m.Far), maxFar))
		}
		for _, f := range m.Far {
			if f.Cell >= hal.CellsPerMod || f.From >= hal.CellsPerMod {
				errs = append(errs, fmt.Errorf("module %d: crosstalk of heater %d on cell %d: want 0 to %d", i, f.From, f.Cell, hal.CellsPerMod-1))
			}
		}
	}
	return errors.Join(errs...)
}

// Digest names c.
func (c *Calibration) Digest() proto.Digest { return proto.DigestOf(c.Encode()) }
