package boardfile

// Format is the number of the form that this program reads.
const Format = 1

// File is a board as its file has it. Tags doc and unit are its reference.
type File struct {
	Format  int      `json:"format" doc:"1"`
	Name    string   `json:"name" doc:"what people call the board"`
	GPUs    int      `json:"gpus" doc:"GPUs of the node, 2 to 8"`
	Buses   []Bus    `json:"buses" doc:"every bus, also each that the kernel makes of a mux"`
	Muxes   []Mux    `json:"muxes,omitempty" doc:"I2C switches"`
	Latches []Latch  `json:"latches,omitempty" doc:"output expanders of the toggle nets and Tx-disables; not with control cmis"`
	Types   []Type   `json:"types" doc:"kinds of modules"`
	Bundles []Bundle `json:"bundles" doc:"modules that switch together, 1 to 8 bundles"`
}

// Bus is one bus.
type Bus struct {
	Name     string    `json:"name" doc:"by which the rest of the file calls it"`
	Kind     string    `json:"kind" doc:"i2c or spi"`
	Device   string    `json:"device" doc:"/dev/i2c-N, or /dev/spidevN. to which the chip select is appended"`
	Hz       int64     `json:"hz,omitempty" unit:"Hz" doc:"clock; not of a bus that the kernel makes of a mux, which has that of the wires"`
	Mux      string    `json:"mux,omitempty" doc:"the mux, driven by the kernel, whose channel this bus is"`
	Channel  int       `json:"channel,omitempty" doc:"of that mux"`
	Recovery *Recovery `json:"recovery,omitempty" doc:"lines that free the bus when a chip holds it and its adapter's driver cannot; on the wires themselves, not on a channel of a mux"`
}

// Recovery is a pair of lines wired to a bus beside its controller.
type Recovery struct {
	SCL Line `json:"scl" doc:"on the clock"`
	SDA Line `json:"sda" doc:"on the data"`
}

// Line is one GPIO line.
type Line struct {
	Line      string `json:"line,omitempty" doc:"its name in the device tree; or"`
	Chip      string `json:"chip,omitempty" doc:"its chip, such as gpiochip0, and"`
	Offset    int    `json:"offset,omitempty" doc:"its number there"`
	ActiveLow bool   `json:"active_low,omitempty" doc:"low means light"`
}

// Mux is one I2C switch.
type Mux struct {
	Name   string `json:"name" doc:"by which buses and modules call it"`
	Part   string `json:"part" doc:"role mux of the table of parts"`
	Bus    string `json:"bus" doc:"whose wires it switches"`
	Addr   Addr   `json:"addr" doc:"such as \"0x70\""`
	Kernel bool   `json:"kernel,omitempty" doc:"the kernel's driver is bound to it: its channels are buses of their own. Else the agent selects channels itself, and nobody else may"`
}

// Latch is one output expander.
type Latch struct {
	Name string `json:"name" doc:"by which bundles call it"`
	Part string `json:"part" doc:"role latch"`
	Bus  string `json:"bus" doc:"a bus that is best its own: every switch of a path is a write to it"`
	Addr Addr   `json:"addr" doc:"such as \"0x20\""`
}

// Type is a kind of module.
type Type struct {
	Name    string `json:"name" doc:"by which modules call it"`
	Control string `json:"control" doc:"chips: heaters, diodes and memory hang on the board's buses; cmis: a controller at 0x50"`
	Matrix  string `json:"matrix" doc:"loopback matrix: benes-8x8, of 20 cells"`
	Cells   int    `json:"cells" doc:"heated cells in all: 36"`

	DAC         string `json:"dac,omitempty" doc:"chips: what drives the heaters, role dac"`
	ADC         string `json:"adc,omitempty" doc:"chips: what reads the diodes, role adc; two a module"`
	Memory      string `json:"memory,omitempty" doc:"chips: role memory; one too small for a passport holds the identity alone. cmis: the memory beside the controller, in the cage, if there is one"`
	Temperature string `json:"temperature,omitempty" doc:"chips: role temperature"`
	Rail        string `json:"rail,omitempty" doc:"chips: current of the heater rail, role rail"`
	LaneEnable  string `json:"lane_enable,omitempty" doc:"chips: bit n lets laser n shine, role lane_enable"`

	Heaters [][]string `json:"heaters,omitempty" doc:"chips: per DAC, the cell on each channel: mzi1/0 to 7, mzi2/0 to 7, matrix/0 to 19; \"\" where none is"`
	Guard   []Sense    `json:"guard,omitempty" doc:"chips: what each channel of the guard ADC sees: loopback, external1, external2 with /upper and /lower, tap/1 and tap/2"`
	Lanes   []Sense    `json:"lanes,omitempty" doc:"chips: what each channel of the lane ADC sees: lane/0 to lane/7"`
	Shunt   int64      `json:"rail_shunt_milliohm,omitempty" unit:"mOhm" doc:"chips: shunt of the rail"`

	LOSAssert int32         `json:"los_assert_mdbm" unit:"mdBm" doc:"a lane's power, under which the LOS comparator says dark"`
	LOSClear  int32         `json:"los_clear_mdbm" unit:"mdBm" doc:"over which it says light"`
	Heater    *HeaterLimits `json:"heater" doc:"what a heater bears"`
	SettleUS  int64         `json:"settle_us" unit:"us" doc:"what a switch is given to settle"`
}

// Sense is what a channel of an ADC sees.
type Sense struct {
	Sees      string `json:"sees" doc:"which light"`
	FullScale int32  `json:"full_scale_mdbm" unit:"mdBm" doc:"power that a full code means"`
}

// HeaterLimits are what a heater and a module bear.
type HeaterLimits struct {
	MaxMV    int64 `json:"max_mv" unit:"mV" doc:"at most on a heater"`
	MaxUA    int64 `json:"max_ua" unit:"uA" doc:"at most through it"`
	MaxUW    int64 `json:"max_uw" unit:"uW" doc:"at most in it"`
	ModuleUW int64 `json:"module_uw" unit:"uW" doc:"at most in all heaters of a module"`
	LeastOhm int64 `json:"least_ohm" unit:"Ohm" doc:"least resistance that the maker states; what is not measured is taken for it"`
	MostOhm  int64 `json:"most_ohm" unit:"Ohm" doc:"most that the maker states"`
	LeastPi  int64 `json:"least_pi_uw,omitempty" unit:"uW" doc:"least power for a phase of pi that the maker states; 0: 10,000"`
	MostPi   int64 `json:"most_pi_uw,omitempty" unit:"uW" doc:"most that the maker states; 0: 60,000"`
	HeatUS   int64 `json:"heat_us,omitempty" unit:"us" doc:"longest until heat stands still, the DAC's own time with it; 0: 1,200"`
}

// Bundle is modules that switch together.
type Bundle struct {
	Latch    string   `json:"latch,omitempty" doc:"chips: which latch"`
	FirstPin int      `json:"first_pin,omitempty" doc:"chips: its pin of toggle net 0; toggle net 1 and Tx-disable of the upper and lower half follow. 0, 4, 8 and so on"`
	LOS      LOS      `json:"los" doc:"one line a path: every module has light"`
	Modules  []Module `json:"modules" doc:"1 to 8, all of one control"`
}

// LOS are the lines of a bundle that say light or none.
type LOS struct {
	Loopback  Line `json:"loopback" doc:"of the loopback diodes"`
	External1 Line `json:"external1" doc:"of external path 1"`
	External2 Line `json:"external2" doc:"of external path 2"`
}

// Module says where the chips of one module are.
type Module struct {
	Type    string `json:"type" doc:"which kind it is"`
	SPI     string `json:"spi,omitempty" doc:"chips: bus of its DACs"`
	Selects []int  `json:"selects,omitempty" doc:"chips: chip select of each DAC"`
	ADC     string `json:"adc,omitempty" doc:"chips: bus of its ADCs"`
	Guard   Addr   `json:"guard,omitempty" doc:"chips: address of the guard ADC"`
	Lanes   Addr   `json:"lanes,omitempty" doc:"chips: address of the lane ADC"`

	Slow        string `json:"slow,omitempty" doc:"chips: bus of what follows; with a mux of the kernel's, the bus of its channel"`
	MCI         string `json:"mci,omitempty" doc:"cmis: bus of its controller"`
	Mux         string `json:"mux,omitempty" doc:"a mux of the agent's own on that bus, with"`
	Channel     int    `json:"channel,omitempty" doc:"the channel that the module is behind"`
	Temperature Addr   `json:"temperature,omitempty" doc:"chips"`
	EEPROM      Addr   `json:"eeprom,omitempty" doc:"where the type has a memory"`
	Rail        Addr   `json:"rail,omitempty" doc:"chips"`
	LaneEnable  Addr   `json:"lane_enable,omitempty" doc:"chips"`
}
