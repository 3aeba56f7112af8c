package boardfile

// Format is the number of the form that this program reads.
const Format = 1

// File is a board as its file has it. What stands beside each field is its reference.
type File struct {
	Format  int      `json:"format"`            // 1
	Name    string   `json:"name"`              // what people call the board
	GPUs    int      `json:"gpus,omitempty"`    // GPUs of the node, 2 to 8; not of a circuit switch
	Buses   []Bus    `json:"buses"`             // every bus, also each that the kernel makes of a mux
	Muxes   []Mux    `json:"muxes,omitempty"`   // I2C switches
	Latches []Latch  `json:"latches,omitempty"` // output expanders of the toggle nets and Tx-disables; not with control cmis
	Types   []Type   `json:"types,omitempty"`   // kinds of modules
	Bundles []Bundle `json:"bundles,omitempty"` // modules that switch together, 1 to 8 bundles
	Mirrors *Mirrors `json:"mirrors,omitempty"` // of a circuit switch, in place of latches, types and bundles
}

// Bus is one bus.
type Bus struct {
	Name     string    `json:"name"`                   // by which the rest of the file calls it
	Kind     string    `json:"kind"`                   // i2c or spi
	Device   string    `json:"device,omitempty"`       // /dev/i2c-N, or /dev/spidevN. to which the chip select is appended; or periph:NAME
	Hz       int64     `json:"hz,omitempty" unit:"Hz"` // clock; not of a channel of a mux
	Mux      string    `json:"mux,omitempty"`          // the mux whose channel this bus is: with a device where the kernel drives it. Up to three muxes one behind the other
	Channel  int       `json:"channel,omitempty"`      // of that mux
	Bridge   *Bridge   `json:"bridge,omitempty"`       // of kind spi, in place of a device: the bridge that makes it
	Recovery *Recovery `json:"recovery,omitempty"`     // lines that free the bus when a chip holds it and its adapter's driver cannot; not on a channel of a mux
}

// Bridge is a part that makes an SPI bus of an I2C bus.
type Bridge struct {
	Part string `json:"part"` // role bridge
	Bus  string `json:"bus"`  // I2C bus with a device
	Addr Addr   `json:"addr"` // such as "0x28"
}

// Recovery is a pair of lines wired to a bus beside its controller.
type Recovery struct {
	SCL Line `json:"scl"` // on the clock
	SDA Line `json:"sda"` // on the data
}

// Line is one GPIO line.
type Line struct {
	Line      string `json:"line,omitempty"`       // its name in the device tree, or periph:NAME; or
	Chip      string `json:"chip,omitempty"`       // its chip, such as gpiochip0, and
	Offset    int    `json:"offset,omitempty"`     // its number there
	ActiveLow bool   `json:"active_low,omitempty"` // low means light
}

// Mux is one I2C switch.
type Mux struct {
	Name   string `json:"name"`             // by which buses and modules call it
	Part   string `json:"part"`             // role mux of the table of parts
	Bus    string `json:"bus"`              // whose wires it switches
	Addr   Addr   `json:"addr"`             // such as "0x70"
	Kernel bool   `json:"kernel,omitempty"` // the kernel's driver is bound to it: its channels are buses with devices. Else the agent alone selects channels
}

// Latch is one output expander.
type Latch struct {
	Name  string `json:"name"`            // by which bundles call it
	Part  string `json:"part"`            // role latch
	Bus   string `json:"bus,omitempty"`   // best a bus of its own: every switch of a path is a write
	Addr  Addr   `json:"addr,omitempty"`  // such as "0x20"
	Lines []Line `json:"lines,omitempty"` // of part gpio, in place of bus and addr: by pin, 4 to 16, four a bundle
}

// Type is a kind of module.
type Type struct {
	Name    string `json:"name"`    // by which modules call it
	Control string `json:"control"` // chips: heaters, diodes and memory hang on the board's buses; cmis: a controller at 0x50
	Matrix  string `json:"matrix"`  // loopback matrix: benes-8x8, of 20 cells; chips: couplers, as listed
	Cells   int    `json:"cells"`   // heated cells in all: two a lane and the matrix's; benes-8x8: 36

	LaneCount int `json:"lane_count,omitempty"` // matrix couplers: 2, 4 or 6 lanes; 0: 8. The first half of them is the upper half

	Couplers [][]int `json:"couplers,omitempty"` // matrix couplers: per cell the two lanes whose waveguides it joins, in an order in which light meets them, at most 28, one for every two lanes. Light ends at the diode of the lane in whose waveguide it then is

	DAC         string `json:"dac,omitempty"`         // chips: what drives the heaters, role dac
	ADC         string `json:"adc,omitempty"`         // chips: what reads the diodes, role adc; two a module
	Memory      string `json:"memory,omitempty"`      // chips: role memory; one too small for a passport holds the identity alone. cmis: the memory beside the controller, in the cage, if there is one
	Temperature string `json:"temperature,omitempty"` // chips: role temperature
	Rail        string `json:"rail,omitempty"`        // chips: current of the heater rail, role rail
	LaneEnable  string `json:"lane_enable,omitempty"` // chips: bit n lets laser n shine, role lane_enable

	Heaters [][]string `json:"heaters,omitempty"`                         // chips: per DAC, the cell on each channel: mzi1/0 to 7, mzi2/0 to 7, by lane, matrix/0 and on; "" where none is
	Guard   []Sense    `json:"guard,omitempty"`                           // chips: what each channel of the guard ADC sees: loopback, external1, external2 with /upper and /lower, tap/1 and tap/2
	Lanes   []Sense    `json:"lanes,omitempty"`                           // chips: what each channel of the lane ADC sees: lane/0 and on
	Shunt   int64      `json:"rail_shunt_milliohm,omitempty" unit:"mOhm"` // chips: shunt of the rail

	LOSAssert int32         `json:"los_assert_mdbm" unit:"mdBm"` // a lane's power, under which the LOS comparator says dark
	LOSClear  int32         `json:"los_clear_mdbm" unit:"mdBm"`  // over which it says light
	Heater    *HeaterLimits `json:"heater"`                      // what a heater bears
	SettleUS  int64         `json:"settle_us" unit:"us"`         // what a switch is given to settle
}

// Sense is what a channel of an ADC sees.
type Sense struct {
	Sees      string `json:"sees"`                        // which light
	FullScale int32  `json:"full_scale_mdbm" unit:"mdBm"` // power that a full code means
}

// HeaterLimits are what a heater and a module bear.
type HeaterLimits struct {
	MaxMV    int64 `json:"max_mv" unit:"mV"`                // at most on a heater
	MaxUA    int64 `json:"max_ua" unit:"uA"`                // at most through it
	MaxUW    int64 `json:"max_uw" unit:"uW"`                // at most in it
	ModuleUW int64 `json:"module_uw" unit:"uW"`             // at most in all heaters of a module
	LeastOhm int64 `json:"least_ohm" unit:"Ohm"`            // least resistance that the maker states; what is not measured is taken for it
	MostOhm  int64 `json:"most_ohm" unit:"Ohm"`             // most that the maker states
	LeastPi  int64 `json:"least_pi_uw,omitempty" unit:"uW"` // least power for a phase of pi that the maker states; 0: 10,000
	MostPi   int64 `json:"most_pi_uw,omitempty" unit:"uW"`  // most that the maker states; 0: 60,000
	HeatUS   int64 `json:"heat_us,omitempty" unit:"us"`     // longest until heat stands still, the DAC's own time with it; 0: 1,200
}

// Bundle is modules that switch together.
type Bundle struct {
	Latch    string   `json:"latch,omitempty"`     // chips: which latch
	FirstPin int      `json:"first_pin,omitempty"` // chips: its pin of toggle net 0; toggle net 1 and Tx-disable of the upper and lower half follow. 0, 4, 8 and so on
	LOS      LOS      `json:"los"`                 // one line a path: every module has light
	Modules  []Module `json:"modules"`             // 1 to 8, all of one control
}

// LOS are the lines of a bundle that say light or none.
type LOS struct {
	Loopback  Line `json:"loopback"`  // of the loopback diodes
	External1 Line `json:"external1"` // of external path 1
	External2 Line `json:"external2"` // of external path 2
}

// Module says where the chips of one module are.
type Module struct {
	Type    string `json:"type"`              // which kind it is
	SPI     string `json:"spi,omitempty"`     // chips: bus of its DACs
	Selects []int  `json:"selects,omitempty"` // chips: chip select of each DAC
	ADC     string `json:"adc,omitempty"`     // chips: bus of its ADCs
	Guard   Addr   `json:"guard,omitempty"`   // chips: address of the guard ADC
	Lanes   Addr   `json:"lanes,omitempty"`   // chips: address of the lane ADC

	Slow        string `json:"slow,omitempty"`        // chips: bus of what follows; with a mux of the kernel's, the bus of its channel
	MCI         string `json:"mci,omitempty"`         // cmis: bus of its controller
	Mux         string `json:"mux,omitempty"`         // a mux of the agent's own on that bus, with
	Channel     int    `json:"channel,omitempty"`     // the channel that the module is behind
	Temperature Addr   `json:"temperature,omitempty"` // chips
	EEPROM      Addr   `json:"eeprom,omitempty"`      // where the type has a memory
	Rail        Addr   `json:"rail,omitempty"`        // chips
	LaneEnable  Addr   `json:"lane_enable,omitempty"` // chips
	Pattern     Addr   `json:"pattern,omitempty"`     // chips: retimer that makes and checks bit patterns, part cmis-pattern; absent: there is none
}

// Mirrors are the arrays of a circuit switch: light comes in at a port of side a and leaves
// at one of side b.
type Mirrors struct {
	DAC         string      `json:"dac"`         // what drives the electrodes, role mirror dac
	ADC         string      `json:"adc"`         // the power monitors, role adc
	Temperature Sensor      `json:"temperature"` // on the carrier of the arrays
	DACs        []MirrorDAC `json:"dacs"`        // by which electrodes count
	A           []Mirror    `json:"a"`           // by port; as many as of b, at most 576
	B           []Mirror    `json:"b"`           // by port
}

// Sensor is one temperature sensor.
type Sensor struct {
	Part string `json:"part"` // role temperature
	Bus  string `json:"bus"`  // where it is
	Addr Addr   `json:"addr"` // such as "0x48"
}

// MirrorDAC is where one DAC of mirrors is.
type MirrorDAC struct {
	SPI    string `json:"spi"`    // bus
	Select int    `json:"select"` // chip select
}

// Mirror is a port with its mirror and its power monitor.
type Mirror struct {
	Electrodes []int  `json:"electrodes"` // x+, x-, y+ and y-: channel of a DAC and 32 for each DAC before it
	Bus        string `json:"bus"`        // of its monitor
	ADC        Addr   `json:"adc"`        // of its monitor; an ADC has ports of one side
	Channel    int    `json:"channel"`    // of that ADC
}
