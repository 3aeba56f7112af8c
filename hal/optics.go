package hal

import "time"

// DarkMilliDBm is what a code of zero means: less than half a step of twelve
// bits below any full scale in use.
const DarkMilliDBm = -40_000

// Codes of heaters, in calibrations and on the pages of CMIS modules, are
// steps of this by 65536, whichever DAC makes the voltage.
const HeaterFullScaleMicrovolt = 10_000_000

// AD5676RStageGain is what the board puts behind each output of an AD5676R.
const AD5676RStageGain = 2

// Output is a channel of one of a module's DACs.
type Output struct{ Chip, Channel uint8 }

// Sense is a channel of an ADC, and the optical power, in thousandths of a dBm,
// that a code of full scale means on it.
type Sense struct {
	Channel           uint8
	FullScaleMilliDBm int32
}

// Optics is what is known of a kind of module before it is calibrated: what hangs
// on which channel, its scale, and what its maker states. A controller knows its own
// channels; of a CMIS module only the limits count.
type Optics struct {
	Name string
	// LaneCount is how many lanes there are: the lower numbers are the upper half.
	LaneCount int
	Heaters   [CellsPerMod]Output // of ChipSelects, by cell
	// Couplers of the loopback matrix, by cell from CellMatrix on: the waveguides of two
	// lanes each, in an order in which light meets them. Shared: read-only.
	Couplers [][2]uint8
	Guard    [8]Sense     // of the guard ADC, by GuardLoopUpper and following
	Lanes    [Lanes]Sense // of the lane ADC

	// The heater rail's shunt, in front of all DACs of a module; the
	// chips themselves draw a constant current besides the heaters'.
	RailShuntMilliohm int64

	// LOS comparators, per lane: a half-sum is compared with as many times this as the half has lanes.
	LOSAssertMilliDBm, LOSClearMilliDBm int32

	Heater HeaterLimits

	// Settle is what a switch is given to settle after the write that causes it.
	Settle time.Duration

	cells [maxChips][maxChannels]uint8 // one more than the cell on a channel, 0: none
}

// Most DACs of a module, and channels of one.
const (
	maxChips    = 5
	maxChannels = 16
)

// CellAt is the cell on a channel of a DAC, -1 where none is.
func (o *Optics) CellAt(chip, channel int) int { return int(o.cells[chip][channel]) - 1 }

// index fills in what CellAt looks up.
func (o *Optics) index() {
	for k := range o.All {
		out := o.Heaters[k]
		o.cells[out.Chip][out.Channel] = uint8(k + 1)
	}
}

// Cells of the module.
func (o *Optics) Cells() int { return 2*o.LaneCount + len(o.Couplers) }

// CellSpan is one more than the last cell's number. Of few lanes some below are left out.
func (o *Optics) CellSpan() int { return CellMatrix + len(o.Couplers) }

// Has says whether the module has a cell.
func (o *Optics) Has(cell int) bool {
	return cell < o.CellSpan() && (cell >= CellMatrix || cell%Lanes < o.LaneCount)
}

// All are the numbers of the module's cells.
func (o *Optics) All(yield func(int) bool) {
	for k := range o.CellSpan() {
		if o.Has(k) && !yield(k) {
			return
		}
	}
}

// Opposite is the same lane of the other half.
func (o *Optics) Opposite(lane int) int { return (lane + o.LaneCount/2) % o.LaneCount }

// LanesMilliDB and HalfMilliDB are what the lanes of the module, and of a half, are
// together above one.
func (o *Optics) LanesMilliDB() int32 { return lanesMilliDB[o.LaneCount] }
func (o *Optics) HalfMilliDB() int32  { return lanesMilliDB[o.LaneCount/2] }

var lanesMilliDB = [Lanes + 1]int32{2: 3010, 3: 4771, 4: 6021, 6: 7782, 8: 9031}

// HeaterLimits are what a heater and a module may take. The guard of the driver
// clamps here, and a correct driver is never stopped by anything else.
type HeaterLimits struct {
	MaxMillivolt, MaxMicroampere, MaxMicrowatt, ModuleMicrowatt int64
	// LeastOhm and MostOhm are between which a heater's resistance lies, as its
	// maker states: one that is not known yet is taken for the least, and none is
	// believed over the most.
	LeastOhm, MostOhm int64
	// The same of what a phase of pi takes.
	LeastPiMicrowatt, MostPiMicrowatt int64
	// MostSettle is the longest until heat stands still, the DAC's own time with it.
	MostSettle time.Duration
}

// standard is the module of the default board, and of a board whose data say
// nothing. chosen: see docs/board.md; none is a datasheet figure.
var standard = linked(Optics{
	Name: "ocstrx", LaneCount: Lanes, Couplers: Benes, Heaters: OutputsInOrder(LTC2688), RailShuntMilliohm: 500, LOSAssertMilliDBm: -16000, LOSClearMilliDBm: -14000, Settle: 70 * time.Microsecond,
	Heater: HeaterLimits{MaxMillivolt: 8500, MaxMicroampere: 10_000, MaxMicrowatt: 60_000, ModuleMicrowatt: 2_000_000, LeastOhm: 450, MostOhm: 2200,
		LeastPiMicrowatt: 10_000, MostPiMicrowatt: 60_000, MostSettle: 1200 * time.Microsecond},
	// A lane diode sees one lane; a half-sum adds four lanes' receive diodes; a tap
	// adds the eight lanes' light in the waveguide of its path, the tap's own ratio
	// allowed for.
	Guard: [8]Sense{{0, 9000}, {1, 9000}, {2, 9000}, {3, 9000}, {4, 9000}, {5, 9000}, {6, 9000}, {7, 9000}},
	Lanes: [Lanes]Sense{{0, 3000}, {1, 3000}, {2, 3000}, {3, 3000}, {4, 3000}, {5, 3000}, {6, 3000}, {7, 3000}},
})

func linked(o Optics) Optics {
	o.index()
	return o
}

// OutputsInOrder is cell after cell on the channels of one chip after the other.
func OutputsInOrder(dac Part) (out [CellsPerMod]Output) {
	n := dac.Data().Channels
	for k := range out {
		out[k] = Output{uint8(k / n), uint8(k % n)}
	}
	return out
}

// Standard is the optics of the default board's modules.
func Standard() Optics { return standard }

// Optics of a module.
func (m *Module) Optics() *Optics {
	if m.optics == nil {
		return &standard
	}
	return m.optics
}

// Link makes every module know the optics of its type. Whoever fills in a board's
// data calls it.
func (b *Board) Link() {
	for i := range b.Types {
		b.Types[i].index()
	}
	for i := range b.Bundles {
		for j := range b.Bundles[i].Modules {
			if m := &b.Bundles[i].Modules[j]; int(m.Type) < len(b.Types) {
				m.optics = &b.Types[m.Type]
			}
		}
	}
}

// HeaterCode is the code nearest to a voltage; what is outside is clamped.
func HeaterCode(microvolt int64) uint16 {
	code := (max(microvolt, 0)*65536 + HeaterFullScaleMicrovolt/2) / HeaterFullScaleMicrovolt
	return uint16(min(code, 65535))
}

// HeaterMicrovolt is the voltage that a code stands for.
func HeaterMicrovolt(code uint16) int64 {
	return (int64(code)*HeaterFullScaleMicrovolt + 32768) / 65536
}
