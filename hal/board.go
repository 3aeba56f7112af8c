package hal

import (
	"fmt"
	"slices"
	"time"

	"periph.io/x/conn/v3/physic"
)

// BusKind tells what a bus speaks.
type BusKind uint8

const (
	I2C BusKind = iota
	SPI
	TextLine // a box on the network or a serial line that speaks in lines
)

// Bus is one bus of a board.
type Bus struct {
	Name string // in board files and errors; may be empty
	Kind BusKind
	// Device names it on a real board: "/dev/i2c-3", "/dev/spidev1." to which the
	// chip select is appended, or Registered and a name.
	Device string
	// Timeout of one transfer on a text line: shorter than its ops' deadlines, so that a
	// far end that is silent leaves no bus that hangs.
	Timeout time.Duration
	// Dial opens a text line; nil: TCP to Device.
	Dial  func(timeout time.Duration) (LineConn, error) `json:"-"`
	Speed physic.Frequency
	// SCL and SDA are GPIO lines wired to an I2C bus beside its controller,
	// both or neither: by them the agent frees a bus that a chip holds. An
	// adapter whose driver does that itself needs none.
	SCL, SDA *Line
	// Adapter says that this bus is a channel of a mux, made by the kernel's mux driver or
	// by ours: it shares the wires and the clock of bus Root, and who uses it selects
	// nothing.
	Adapter bool
	Root    BusID
	// Via is set where the muxes between bus Root and this one are ours to switch, the
	// nearest to Root first: whoever carries out an op switches them before it.
	Via []Via
	// Bridge is the part on bus Root that makes an SPI bus without a device.
	Bridge *Via
	// Lines are set where the bus is no wires but lines of the machine, which make a latch
	// of their own.
	Lines []Line
}

// LineConn is an open text line.
type LineConn interface {
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	Close() error
	SetDeadline(t time.Time) error
}

// Via is a channel of a mux, or a bridge.
type Via struct {
	Part    Part
	Addr    uint16
	Channel uint8
}

// Registered begins the device of a bus, or the name of a line, that is looked up in
// periph's registries: "periph:FT232H", or "periph:FT232H." to which the chip select is
// appended.
const Registered = "periph:"

// Line is one input line, by its name or by chip and offset.
type Line struct {
	Name      string // as the device tree names it; "": by Chip and Offset
	Chip      string // "gpiochip0", or a chip's label
	Offset    int
	ActiveLow bool
}

// String is what an operator calls the line.
func (l Line) String() string {
	if l.Name != "" {
		return l.Name
	}
	return fmt.Sprintf("%s line %d", l.Chip, l.Offset)
}

// Latch is an output expander whose levels outlive the process that wrote
// them. It stands alone on its I2C segment.
type Latch struct {
	Bus  BusID
	Addr uint16
	Part Part
}

// The cells of one module, each with one heater. They lie on the channels of its
// DACs in order.
const (
	Lanes       = 8                                   // at most, see Optics.LaneCount
	HalfLanes   = 4                                   //
	CellMZI1    = 0                                   // + lane: internal or external
	CellMZI2    = CellMZI1 + 8                        // + lane: external 1 or external 2
	CellMatrix  = CellMZI2 + 8                        // + coupler
	MatrixCells = 28                                  // at most: a cell for every two lanes, since no two may meet twice
	BenesCells  = CellMatrix + MatrixStages*HalfLanes // of a module with the Benes network
	CellsPerMod = CellMatrix + MatrixCells
)

// Channels of the guard ADC of a module.
const (
	GuardLoopUpper = iota // half-sums of the three paths' receive diodes
	GuardLoopLower
	GuardExt1Upper
	GuardExt1Lower
	GuardExt2Upper
	GuardExt2Lower
	GuardTap1 // Tx tap of external 1, all lanes
	GuardTap2 // Tx tap of external 2
)

// ModuleKind tells how a module is driven.
type ModuleKind uint8

const (
	KindChips ModuleKind = iota // its chips hang on the board's buses
	KindCMIS                    // a controller of its own, at MCIAddr
)

// Most bundles of a board, and modules of a bundle.
const (
	MaxBundles = 8
	MaxModules = 8
)

// MCIAddr is where every CMIS module answers on its management interface.
const MCIAddr = 0x50

// Module says where the chips of one OCSTrx module are (`kind: chips`), or
// where its controller is (`kind: cmis`). All modules of a bundle are of one
// kind.
type Module struct {
	Kind ModuleKind
	// The management interface of kind cmis. Mux and MuxChannel below say
	// behind which port; without a mux the module is alone on its segment.
	MCI         BusID
	SPI         BusID
	DAC         Part
	ChipSelects []uint16 // of its DACs
	ADC         BusID
	Diodes      Part   // its two ADCs
	Guard       uint16 // six half-sums and two Tx taps
	LaneADC     uint16 // the 8 loopback lanes
	// The slow chips hang behind a mux, or on a bus that the kernel's mux driver
	// makes: then Mux is 0.
	Slow       BusID
	Mux        uint16
	MuxPart    Part
	MuxChannel uint8
	Temp       uint16 // TempPart
	EEPROM     uint16 // 24-series
	Memory     Part   // of the EEPROM
	Rail       uint16 // RailPart, on the heater rail
	LaneEnable uint16 // EnablePart: bit n high lets lane n's laser shine
	// Parts with the registers of TMP102, INA219 and TCA9534, which NoPart stands for.
	TempPart, RailPart, EnablePart Part
	Pattern                        uint16 // CMISPattern; 0: nothing makes patterns
	// Type is the index of its Optics in Board.Types; see Link.
	Type   uint8
	optics *Optics
}

// Bundle is the modules that switch together, with what they share.
type Bundle struct {
	Modules []Module
	// Four bits of a latch from Shift up: toggle net 0, toggle net 1,
	// Tx-disable of the upper half, Tx-disable of the lower half.
	Latch int
	Shift uint8
	// LOS lines, see LOSLoopback and following; high means that every module
	// has light on that path's diodes.
	LOS [NumLOS]LineID
}

// Index into Bundle.LOS.
const (
	LOSLoopback = iota
	LOSExternal1
	LOSExternal2
	NumLOS
)

// LOSNames are what files and reports call these.
var LOSNames = [NumLOS]string{"loopback", "external1", "external2"}

// Latch bits of a bundle, before the shift.
const (
	LatchToggle0   = 1 << iota // MZI1: 0 internal, 1 external
	LatchToggle1               // MZI2: 0 external 1, 1 external 2
	LatchTxOffHigh             // upper half, lanes 0-3
	LatchTxOffLow              // lower half, lanes 4-7
	LatchMask      = 15
)

// Board is what a node's optics hang on: plain data, the same for hardware
// and simulator.
type Board struct {
	GPUs    int
	Buses   []Bus
	Lines   []Line
	Latches []Latch
	Bundles []Bundle
	Types   []Optics
	// Mirrors is set on a MEMS board, which has no bundles.
	Mirrors *Mirrors
}

// CMIS reports whether a bundle has modules with controllers of their own.
func (b *Board) CMIS() bool {
	return slices.ContainsFunc(b.Bundles, func(bu Bundle) bool { return bu.Modules[0].Kind == KindCMIS })
}

// Modules is how many all bundles have.
func (b *Board) Modules() (n int) {
	for i := range b.Bundles {
		n += len(b.Bundles[i].Modules)
	}
	return n
}
