package boardfile

import (
	"cmp"
	"errors"

	"ringlight/hal"
)

// Config is the object `board` of a configuration, but for what a simulated board has
// besides: which board it is, and where. Programs share it, so that each knows all its
// keys; what is of a kind that a program has not, it refuses.
type Config struct {
	Kind    string `json:"kind" doc:"linux: buses and lines of this machine; sim: simulated in this process; socket: in a process of its own; box: a commercial switch on the network; empty: linux with a board file, else none, and what needs a board refuses"`
	File    string `json:"file" doc:"board file, docs/board-file.md; empty: a default board. gpus, bundles, modules, module_kind, dac and mux are then the file's"`
	GPUs    int    `json:"gpus" doc:"GPUs of the node"`
	Bundles int    `json:"bundles" doc:"OCSTrx bundles of the node, 1 to 8"`
	Modules int    `json:"modules" doc:"modules of a bundle, 1 to 8"`

	ModuleKind string `json:"module_kind" doc:"chips: heaters, diodes and memory of each module hang on the board's buses; cmis: each module has a controller, at 0x50"`
	DAC        string `json:"dac" doc:"module_kind chips: what drives the heaters, ltc2688 or ad5676r; empty: ltc2688"`
	Mux        bool   `json:"mux" doc:"module_kind cmis: the modules of a bundle share one segment behind a mux; else each has its own"`

	Direct bool `json:"direct" doc:"the bundles are the interfaces of a server that is joined directly: node is the number of its switch, as circuit list has it; calibrate it without first"`

	Ports   int    `json:"ports" doc:"over 0: a circuit switch with so many ports on either side, not a node; gpus, bundles and modules then mean nothing"`
	Factory string `json:"factory" doc:"of a circuit switch: file with what its maker measured; kind sim needs none"`

	Buses []BusDevice  `json:"buses" doc:"kind linux: device of each bus in the order of the default board: latches; then per bundle SPI, two ADC segments, slow; with module_kind cmis: the segments; empty: the default names; scl and sda, each chip and offset: lines that free a hanging I2C bus"`
	Lines []LineDevice `json:"lines" doc:"kind linux: LOS line of each path in the order of the default board: per bundle loopback, external1, external2; empty: gpiochip0 from 0"`

	AlarmA Alarms `json:"alarm_a"`
	AlarmB Alarms `json:"alarm_b"`

	Box      Box    `json:"box"`
	Protocol string `json:"protocol" doc:"kind box: short for box.protocol"`
	Address  string `json:"address" doc:"kind box: short for box.address"`
	Dialect  string `json:"dialect" doc:"kind box: short for box.dialect"`

	Path string `json:"path" doc:"kind socket: the board's unix socket"`

	read *hal.Board // of File
}

// Box says which commercial switch, and where it is.
type Box struct {
	Protocol     string `json:"protocol" doc:"kind box: scpi, tl1 (groups and connections), tl1-patch (numbered ports) or sonic-ocs (RESTCONF)"`
	Address      string `json:"address" doc:"kind box: host:port; of sonic-ocs also https://host:port, or http:// on loopback, where a bare address without ca means it too"`
	DeadlineMS   int64  `json:"deadline_ms" doc:"kind box: how long an answer may take, 100 to 60000; 0: 5000"`
	User         string `json:"user" doc:"kind box, tl1 and sonic-ocs: who logs in"`
	PasswordFile string `json:"password_file" doc:"kind box, tl1 and sonic-ocs: file with the password"`
	Dialect      string `json:"dialect" doc:"kind box, sonic-ocs: how it says its states: tables (config_status, connected), states (state, tuned) or auto; empty: auto"`
	CA           string `json:"ca" doc:"kind box, sonic-ocs: file with the authority of the box's certificate, or with that itself where it is its own, PEM; empty: this machine's"`
	Cert         string `json:"cert" doc:"kind box, sonic-ocs: file with the certificate that the box wants to see, PEM"`
	Key          string `json:"key" doc:"kind box, sonic-ocs: file with the certificate's key, PEM"`
	Group        string `json:"group" doc:"kind box, tl1: group that owns our connections; those of others are left alone"`
}

// Alarms are the thresholds of the power at the ports of one side of a
// circuit switch.
type Alarms struct {
	On      bool  `json:"on" doc:"of a circuit switch: power alarms of all ports of this side"`
	Low     int32 `json:"low" unit:"mdBm" doc:"under it: low"`
	Degrade int32 `json:"degrade" unit:"mdBm" doc:"under it: degrade"`
	High    int32 `json:"high" unit:"mdBm" doc:"over it: high"`
	ClearMS int64 `json:"clear_ms" unit:"ms" doc:"an alarm is cleared when looks have found none of it for so long"`
}

// Kinds of modules.
const (
	Chips = "chips"
	CMIS  = "cmis"
)

// BusDevice names the device of one bus, and the lines by which an I2C bus
// that hangs is freed where its adapter's driver does not do that itself.
type BusDevice struct {
	Device string      `json:"device"`
	SCL    *LineDevice `json:"scl,omitempty"`
	SDA    *LineDevice `json:"sda,omitempty"`
}

// LineDevice names one input line.
type LineDevice struct {
	Chip      string `json:"chip"`
	Offset    int    `json:"offset"`
	ActiveLow bool   `json:"active_low"`
}

// DefaultConfig is the default board, of no kind.
func DefaultConfig() Config {
	return Config{GPUs: 4, Bundles: 2, Modules: hal.MaxModules, ModuleKind: Chips}
}

// Take takes in the board that File describes. What a file says is not said again by
// the keys of the default boards.
func (c *Config) Take(b *hal.Board) {
	c.read, c.DAC = b, ""
	if b.Mirrors != nil {
		c.Ports = b.Mirrors.Ports
		return
	}
	c.GPUs, c.Bundles, c.Modules, c.ModuleKind, c.Mux = b.GPUs, len(b.Bundles), 1, Chips, false
	for i := range b.Bundles {
		c.Modules = max(c.Modules, len(b.Bundles[i].Modules))
	}
	if b.CMIS() {
		c.ModuleKind = CMIS
	}
}

// Check joins all that is wrong with the keys of the layout.
func (c *Config) Check() error {
	m := new(maker)
	m.span("board.gpus", int64(c.GPUs), 2, 8)
	m.span("board.bundles", int64(c.Bundles), 1, hal.MaxBundles)
	m.span("board.modules", int64(c.Modules), 1, hal.MaxModules)
	m.span("board.ports", int64(c.Ports), 0, hal.MaxCrossbarPorts)
	m.when(c.ModuleKind != Chips && c.ModuleKind != CMIS, "board.module_kind", "chips or cmis", "%q", c.ModuleKind)
	if c.DAC != "" && c.ModuleKind != Chips {
		m.bad("board.dac", "module_kind chips", "%q", c.DAC)
	} else if c.DAC != "" {
		m.part("board.dac", c.DAC, hal.RoleDAC)
	}
	m.when(c.Mux && c.ModuleKind != CMIS, "board.mux", "module_kind cmis", "true")
	m.when(c.File != "" && (c.Kind == "box" || c.Ports > 0 && (c.read == nil || c.read.Mirrors == nil)), "board.file", "none of a box, and of a switch one that has its ports", "%q", c.File)
	m.when(c.File != "" && len(c.Buses)+len(c.Lines) > 0, "board.buses", "none: buses and lines are in board.file", "%d and %d", len(c.Buses), len(c.Lines))
	return errors.Join(m.errs...)
}

// Layout is the board that was taken in, else the default board of the keys, with the
// default names of its devices.
func (c *Config) Layout() (hal.Board, error) {
	switch {
	case c.read != nil:
		return *c.read, nil
	case c.Ports > 0:
		return hal.DefaultMEMS(c.Ports)
	case c.ModuleKind == CMIS:
		return DefaultCMIS(c.GPUs, c.Bundles, c.Modules, c.Mux)
	}
	return DefaultOf(cmp.Or(hal.PartOf(c.DAC), hal.LTC2688), c.GPUs, c.Bundles, c.Modules)
}
