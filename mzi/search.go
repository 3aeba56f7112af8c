package mzi

import (
	"fmt"
	"math"
	"time"

	"periph.io/x/conn/v3/physic"
)

// Reading is what a Drive wants measured once it has settled.
type Reading uint8

const (
	ReadRail  Reading = iota // current of the heater rail
	ReadLane                 // one loopback lane diode
	ReadLanes                // all of them
	ReadTaps                 // the two Tx taps
)

// Heater is one heater's new voltage.
type Heater struct {
	Cell    int
	Voltage physic.ElectricPotential
}

// Drive asks the caller to set heaters and lasers and to measure.
type Drive struct {
	Set    []Heater // what changes; valid until the next call
	Lasers uint8    // bit n: lane n shines
	Read   Reading
	Lane   int // of ReadLane
}

// Sample is what was measured: the fields that Drive.Read names.
type Sample struct {
	Current physic.ElectricCurrent
	Lane    [Lanes]physic.Power
	Tap     [2]physic.Power
}

// Config of a search.
type Config struct {
	Seed uint64
	Step physic.ElectricPotential // of the DAC
	// Limits of one heater; the search stays a margin below.
	MaxVoltage physic.ElectricPotential
	MaxCurrent physic.ElectricCurrent
	MaxPower   physic.Power
	Loopback   Permutation
}

// Fault says what is wrong with a cell.
type Fault uint8

const (
	Open       Fault = iota + 1 // the heater takes no current
	Short                       // far too much
	NoResponse                  // current, but no light moves
	NoLight                     // no light to see it by
	NoRoute                     // no start brought the light through it
	Drifting                    // it does not stand still
)

var faultNames = [...]string{"none", "heater open", "heater short", "light does not follow the heater", "no light", "no way found through it", "phase does not stand still"}

func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// CellError names the cell that ends a search.
type CellError struct {
	Cell  int
	Fault Fault
}

func (e *CellError) Error() string {
	return fmt.Sprintf("cell %d (%s): %v", e.Cell, CellName(e.Cell), e.Fault)
}

// CellName says what a cell does.
func CellName(k int) string {
	switch {
	case k >= CellMatrix:
		k -= CellMatrix
		return fmt.Sprintf("matrix stage %d row %d", k/Rows, k%Rows)
	case k >= CellMZI2:
		return fmt.Sprintf("MZI2 of lane %d", k-CellMZI2)
	default:
		return fmt.Sprintf("MZI1 of lane %d", k-CellMZI1)
	}
}

// Lit is one of the three settings of a module that carry light.
type Lit uint8

const (
	Loop Lit = iota
	Ext1
	Ext2
	numLits
)

// Result of a search.
type Result struct {
	Module  Module
	Setting Setting // of the matrix
	// Heat of every cell: [0] register A, [1] register B. MZI1 is internal by A
	// and external by B, MZI2 external 1 by A and 2 by B; matrix cells stand
	// still.
	Volts [Cells][2]physic.ElectricPotential
	// Extinction of every cell in thousandths of a dB, as its last sweep saw it.
	Extinction [Cells]int32
	// What the module's own diodes saw with these: each lane alone.
	LaneLoop     [Lanes]physic.Power
	LaneTap      [2][Lanes]physic.Power
	Measurements int
}

type stage uint8

const (
	stageRail   stage = iota // resistance of every heater
	stageMZI1                // on the summed loopback diodes
	stageMZI2                // on the Tx taps
	stageRoute               // the matrix, four cell-disjoint paths of five cells
	stageClean               // the matrix again, with every cell near its state
	stageNear                // crosstalk
	stageStill               // whether every cell stands still
	stageTouch               // every cell once more, under working conditions
	stageLevels              // what the module's diodes see with the result
	stageDone
)

var stageNames = [...]string{"resistance", "mzi1", "mzi2", "matrix routes", "matrix", "crosstalk", "drift", "last touch", "levels", "done"}

func (s stage) String() string { return stageNames[s] }

// The heaters settle in a time constant of up to 20 us behind a DAC that takes
// up to 10 us. chosen: ten time constants leave a 20,000th of a step.
const settle = 210 * time.Microsecond

// Search finds every cell of a module from nothing.
type Search struct {
	cfg    Config
	result Result
	m      *Module // of result
	err    error

	stage stage
	step  int
	rng   uint64

	u     [Cells]float64 // heat now
	max   [Cells]float64 // most heat
	swing [Cells]float64 // watt, of each cell's last fringe
	drive Drive
	set   [Cells]Heater
	moved [Cells]bool
	where [Cells]physic.ElectricPotential

	sweep sweep
	rail  rail
	route routing
	near  nearness
	still stillness
	touch touching
	pause time.Duration // before the next measurement, besides settling
}

// NewSearch starts a search. All heaters are taken to be at 0 V and all lasers
// dark.
func NewSearch(cfg Config) (*Search, error) {
	setting, err := Route(cfg.Loopback)
	if err != nil {
		return nil, err
	}
	if cfg.Step <= 0 || cfg.MaxVoltage <= 0 || cfg.MaxCurrent <= 0 || cfg.MaxPower <= 0 {
		return nil, fmt.Errorf("mzi: search needs a DAC step and limits, has %v, %v, %v, %v", cfg.Step, cfg.MaxVoltage, cfg.MaxCurrent, cfg.MaxPower)
	}
	s := &Search{cfg: cfg, rng: cfg.Seed}
	s.m = &s.result.Module
	s.result.Setting = setting
	for k := range s.m.Near {
		s.m.Near[k][Reach] = 1
	}
	return s, nil
}

// Next takes the sample that the last drive asked for (none for the first
// call) and returns the next drive and how long it takes to settle, or that the
// search is done. The drive is valid until the next call.
func (s *Search) Next(sample *Sample) (drive *Drive, settling time.Duration, done bool) {
	if s.stage == stageDone || s.err != nil {
		return nil, 0, true
	}
	if s.result.Measurements > 0 {
		s.take(sample)
	}
	s.drive.Set = s.set[:0]
	for !s.measuring() {
		if s.err != nil || s.stage == stageDone {
			return nil, 0, true
		}
		if !s.advance() {
			s.stage++
			s.step = 0
		}
	}
	for k, moved := range s.moved {
		if moved {
			s.drive.Set = append(s.drive.Set, Heater{k, s.where[k]})
			s.moved[k] = false
		}
	}
	s.result.Measurements++
	settling = settle + s.pause
	s.pause = 0
	return &s.drive, settling, false
}

// Result is what was found; an error names the cell in the way.
func (s *Search) Result() (*Result, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case s.stage != stageDone:
		return nil, fmt.Errorf("mzi: search is not done, at %v", s.stage)
	}
	return &s.result, nil
}

// Progress says where the search is and what it has measured.
func (s *Search) Progress() (step string, measurements int) {
	return s.stage.String(), s.result.Measurements
}

// Ohm is the resistance of a heater as far as it is known, 0 before that; a
// guard wants it while the search goes on.
func (s *Search) Ohm(cell int) float64 { return s.m.Cells[cell].Ohm }

// advance begins the next measurement of the stage, or says that it has none.
func (s *Search) advance() bool {
	switch s.stage {
	case stageRail:
		return s.stepRail()
	case stageMZI1:
		return s.stepMZI1()
	case stageMZI2:
		return s.stepMZI2()
	case stageRoute:
		return s.stepRoute()
	case stageClean:
		return s.stepClean()
	case stageNear:
		return s.stepNear()
	case stageStill:
		return s.stepStill()
	case stageTouch:
		return s.stepTouch()
	case stageLevels:
		return s.stepLevels()
	}
	panic("mzi: no stage " + s.stage.String())
}

// heat sets a heater.
func (s *Search) heat(k int, u float64) {
	v := Volts(min(u, s.max[k]), s.cfg.Step)
	if v == s.where[k] {
		return
	}
	s.where[k] = v
	s.u[k] = Square(v)
	s.moved[k] = true
}

// fail ends the search.
func (s *Search) fail(cell int, f Fault) {
	s.err = &CellError{Cell: cell, Fault: f}
}

// random is uniform in [0, 1): a fixed sequence of the seed. It is not
// detmath.Random, since every calibration ever made from a seed would be another.
func (s *Search) random() float64 {
	s.rng = s.rng*6364136223846793005 + 1442695040888963407
	x := s.rng
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// see is what a sweep looks at.
type see uint8

const (
	seeNone  see = iota
	seeRail      // no sweep: one reading of the rail
	seeLoop      // sum of the loopback lanes
	seeLane      // one loopback lane
	seeTaps      // difference of the Tx taps over their sum, as a power
	seeStill     // no sweep: one reading at the steepest of a fringe
	seeLevel     // no sweep: one reading for the result
)

// sweep is the measurement under way: one cell's heat over several points.
type sweep struct {
	see    see
	cell   int
	lane   int // of seeLane
	at     int // point being measured
	pts    points
	sample Sample // the last
	fringe Fringe
}

// measuring says whether a measurement is begun and not taken.
func (s *Search) measuring() bool { return s.sweep.see != seeNone }

// once asks for a single reading.
func (s *Search) once(what see, read Reading, lasers uint8) bool {
	s.sweep.see = what
	s.sweep.pts.n, s.sweep.at = 1, 0
	s.drive.Read, s.drive.Lasers = read, lasers
	return true
}

// scan begins a sweep of a cell over its whole heat, seen with one lane's laser
// alone.
func (s *Search) scan(cell, n int, what see, laser, lane int) bool {
	w := &s.sweep
	w.see, w.cell, w.lane, w.at = what, cell, lane, 0
	w.pts.n = n
	s.drive.Lasers, s.drive.Lane = 1<<laser, lane
	switch what {
	case seeLoop:
		s.drive.Read = ReadLanes
	case seeLane:
		s.drive.Read = ReadLane
	case seeTaps:
		s.drive.Read = ReadTaps
	}
	s.point()
	return true
}

func (s *Search) point() {
	w := &s.sweep
	s.heat(w.cell, float64(s.max[w.cell]*float64(w.at)/float64(w.pts.n-1)))
}

// take notes a sample and, at the end of a sweep, fits it.
func (s *Search) take(sample *Sample) {
	w := &s.sweep
	w.sample = *sample
	if w.see == seeRail || w.see == seeLevel || w.see == seeStill {
		w.see = seeNone
		return
	}
	w.pts.u[w.at] = s.u[w.cell]
	w.pts.y[w.at] = w.sample.watts(w.see, w.lane)
	if w.at++; w.at < w.pts.n {
		s.point()
		return
	}
	lo, hi := s.slopes(w.cell)
	w.fringe = w.pts.fit(lo, hi)
	if s.m.Cells[w.cell].Slope != 0 && w.fringe.against(lo, hi) {
		// What is known of the slope is wrong: a route's last sweep can be
		// bent by the cells that its heat reaches. Begin again.
		lo, hi = s.anySlope(w.cell)
		w.fringe = w.pts.fit(lo, hi)
	}
	w.see = seeNone
}

// watts is what a sweep looks at in a sample, in watts.
func (x *Sample) watts(what see, lane int) float64 {
	p := physic.Power(0)
	switch what {
	case seeLoop:
		for _, lane := range x.Lane {
			p += lane
		}
	case seeLane:
		p = x.Lane[lane]
	case seeTaps:
		p = x.Tap[0] - x.Tap[1]
	}
	return float64(p) / float64(physic.Watt)
}

// slopes bounds the slope of a cell: widely before it is known.
func (s *Search) slopes(k int) (lo, hi float64) {
	c := &s.m.Cells[k]
	if c.Slope != 0 {
		return c.Slope * (1 - slopeKnown), c.Slope * (1 + slopeKnown)
	}
	return s.anySlope(k)
}

// anySlope bounds the slope of a cell of which only the resistance is known.
func (s *Search) anySlope(k int) (lo, hi float64) {
	mid := slopePerOhm / s.m.Cells[k].Ohm
	return mid * (1 - slopeSpread), mid * (1 + slopeSpread)
}

const (
	// A phase of pi takes 25 mW within ten per cent (board page); the search
	// allows for twice that.
	slopePerOhm = math.Pi / 25e-3
	slopeSpread = 0.2
	// chosen: five times what a first sweep leaves open, so that a later one
	// may still correct it.
	slopeKnown = 0.03
)

// learn takes a fringe of cell k, whose maximum is at phase top, into the
// model.
func (s *Search) learn(k int, f *Fringe, top float64) {
	c := &s.m.Cells[k]
	s.swing[k] = f.Swing
	light := f.Mean
	if k >= CellMZI2 && k < CellMatrix {
		// The taps' difference swings about nought; their sum is the light.
		light = float64(s.sweep.sample.Tap[0]+s.sweep.sample.Tap[1]) / float64(physic.Watt)
	}
	s.result.Extinction[k] = extinction(light, f.Swing)
	c.Slope = f.Slope
	c.Offset = Wrap(f.Phase + top - s.m.Background(k, &s.u))
}

// aim sets a cell to a phase, as far as the model knows, with the least heat.
func (s *Search) aim(k int, phase float64) {
	s.heat(k, s.m.heat(k, phase, &s.u, 0, s.max[k]))
}
