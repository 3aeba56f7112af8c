package mzi

import (
	"fmt"
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
	ReadAll                  // all of them and the taps
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
	Lanes      int // of the module, even
	Matrix     Matrix
	// What the maker states of any heater.
	LeastOhm, MostOhm float64
	LeastPi, MostPi   physic.Power  // for a phase of pi
	MostSettle        time.Duration // until heat stands still, the DAC's own time with it
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
	OddHeater                   // its resistance is none that the maker states
	OutOfReach                  // no heat that its heater may have brings its phase
	TooSlow                     // its heat settles later than the maker states
	Leaks                       // too little extinction with the codes found
	Strays                      // its lane's light comes out elsewhere
	Noisy                       // its light is too noisy to tell whether it leaks
)

var faultNames = [...]string{"none", "heater open", "heater short", "light does not follow the heater", "no light", "no way found through it", "phase does not stand still",
	"heater's resistance is none that is stated", "its phase is beyond its heater's limits", "its heat does not settle in time", "too little extinction", "light comes out elsewhere", "too noisy"}

func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// CellError names the cell that ends a search.
type CellError struct {
	Cell   int
	Fault  Fault
	Figure string // what was found and what was wanted; "": nothing to measure
}

func (e *CellError) Error() string {
	s := fmt.Sprintf("cell %d (%s): %v", e.Cell, CellName(e.Cell), e.Fault)
	if e.Figure != "" {
		s += ": " + e.Figure
	}
	return s
}

// CellName says what a cell does.
func CellName(k int) string {
	switch {
	case k >= CellMatrix:
		return fmt.Sprintf("matrix cell %d", k-CellMatrix)
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
	// Extinction of every cell in thousandths of a dB, the worst over the settings
	// in which light passes it, as the diodes behind it saw it with these.
	Extinction [Cells]int32
	Settle     time.Duration // after which heat stands still
	Own        Own
	Dark       Sample // what the diodes show with no laser on; negative where their zero is below the converter's range
	// What the module's own diodes saw with these: each lane alone.
	LaneLoop     [Lanes]physic.Power
	LaneTap      [2][Lanes]physic.Power
	Measurements int
}

type stage uint8

const (
	stageRail   stage = iota // resistance of every heater
	stageDark                // what the diodes show without light
	stageMZI1                // on the summed loopback diodes
	stageMZI2                // on the Tx taps
	stagePace                // how fast heat settles
	stageAgain               // what they show without light, where that is noisy
	stageRoute               // the matrix, by paths that have all its cells
	stageClean               // the matrix again, with every cell near its state
	stageNear                // crosstalk
	stageStill               // whether every cell stands still
	stageTouch               // every cell once more, under working conditions
	stageLevels              // what the module's diodes see with the result
	stageDone
)

var stageNames = [...]string{"resistance", "darkness", "mzi1", "mzi2", "settling", "darkness again", "matrix routes", "matrix", "crosstalk", "drift", "last touch", "levels", "done"}

func (s stage) String() string { return stageNames[s] }

// Search finds every cell of a module from nothing.
type Search struct {
	cfg    Config
	cells  int         // numbers of cells are below this
	loop   Permutation // of the loopback
	clean  Setting     // see Matrix.clean: in which most stages work
	result Result
	m      *Module // of result
	err    error

	stage stage
	step  int
	rng   uint64

	u     [Cells]float64             // heat now
	max   [Cells]float64             // most heat
	swing [Cells]float64             // of each cell's last fringe, as its sweep counts
	taps  [Lanes]float64             // light of each lane's laser on the taps, watt
	stray [Lanes][Lanes]physic.Power // light of a lane on each loopback diode, at the end
	quiet float64                    // rms that a sweep of one cell alone was off its fringe, of its swing
	drive Drive
	set   [Cells]Heater
	moved [Cells]bool
	where [Cells]physic.ElectricPotential

	sweep    sweep
	rail     rail
	below    below
	straying straying
	route    routing
	who      who
	recheck  recheck
	pace     pacing
	near     nearness
	still    stillness
	touch    touching
	pause    time.Duration // before the next measurement, besides settling
}

// NewSearch starts a search. All heaters are taken to be at 0 V and all lasers
// dark.
func NewSearch(cfg Config) (*Search, error) {
	if cfg.Lanes < 2 || cfg.Lanes > Lanes || cfg.Lanes%2 != 0 {
		return nil, fmt.Errorf("mzi: search of %d lanes: want an even number to %d", cfg.Lanes, Lanes)
	}
	loop := Halves(cfg.Lanes)
	setting, err := cfg.Matrix.Route(loop)
	if err != nil {
		return nil, err
	}
	clean, err := cfg.Matrix.clean()
	if err != nil {
		return nil, err
	}
	if cfg.LeastOhm <= 0 || cfg.MostOhm < cfg.LeastOhm || cfg.LeastPi <= 0 || cfg.MostPi < cfg.LeastPi || cfg.MostSettle <= 0 {
		return nil, fmt.Errorf("mzi: search needs to know of heaters %v to %v ohm, %v to %v for pi, %v to settle", cfg.LeastOhm, cfg.MostOhm, cfg.LeastPi, cfg.MostPi, cfg.MostSettle)
	}
	if cfg.Step <= 0 || cfg.MaxVoltage <= 0 || cfg.MaxCurrent <= 0 || cfg.MaxPower <= 0 {
		return nil, fmt.Errorf("mzi: search needs a DAC step and limits, has %v, %v, %v, %v", cfg.Step, cfg.MaxVoltage, cfg.MaxCurrent, cfg.MaxPower)
	}
	s := &Search{cfg: cfg, rng: cfg.Seed, cells: CellMatrix + len(cfg.Matrix), loop: loop, clean: clean}
	s.route.setting, s.route.lines = cfg.Matrix.routes(clean)
	s.m = &s.result.Module
	s.result.Setting = setting
	s.result.Settle = cfg.MostSettle
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
		if !s.advance() && s.recheck.err == nil {
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
	settling = s.result.Settle + s.pause
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
	switch {
	case s.recheck.err != nil:
		return s.recheck.next(s)
	case s.who.on:
		return s.who.next(s)
	}
	switch s.stage {
	case stageRail:
		return s.stepRail()
	case stageDark:
		return s.below.look(s)
	case stageMZI1:
		return s.stepMZI1()
	case stageMZI2:
		return s.stepMZI2()
	case stagePace:
		return s.stepPace()
	case stageAgain:
		return s.below.again(s)
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

// has says whether the module has a cell of this number: those of lanes that it has not
// are left out.
func (s *Search) has(k int) bool {
	return k < s.cells && (k >= CellMatrix || k%Lanes < s.cfg.Lanes)
}

// after is the next cell that the module has, s.cells behind the last.
func (s *Search) after(k int) int {
	for k++; k < s.cells && !s.has(k); k++ {
	}
	return k
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

// fail ends the search; where only light says so, after a second look at the light itself.
func (s *Search) fail(cell int, f Fault, figure string) {
	err := &CellError{Cell: cell, Fault: f, Figure: figure}
	switch f {
	case NoResponse, NoLight, NoRoute, Drifting, TooSlow, Leaks, Strays, Noisy:
		s.recheck = recheck{err: err, at: -1}
	default:
		s.err = err
	}
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
