package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/record"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/sim"
	"ringlight/sim/solo"
)

// Config is the whole of what an agent is configured with.
type Config struct {
	Fabric   string      `json:"fabric" doc:"name of the fabric, 1 to 64 of a-z 0-9 -"`
	Node     int64       `json:"node" doc:"number of this node in HBD order, or of this switch in the fabric, from 0"`
	Broker   string      `json:"broker" doc:"URL of the MQTT broker, mqtt:// or mqtts://, or several of one cluster with commas between; empty: the agent reports to nobody"`
	Cache    string      `json:"cache" doc:"on: the broker keeps births and reports for who comes later; off: nothing is left with it and all goes at QoS 0, as with cache off of the planner"`
	Insecure bool        `json:"insecure" doc:"allow mqtt:// beyond loopback"`
	CA       string      `json:"ca" doc:"file with the broker's certificate authority, PEM"`
	Cert     string      `json:"cert" doc:"file with this node's certificate, PEM"`
	Key      string      `json:"key" doc:"file with the certificate's key, PEM"`
	Password string      `json:"password_file" doc:"where the broker asks for user and password: file with user:password, or with the password alone where broker is mqtts://user@host; only its owner may read it; read again at each connection"`
	Seal     string      `json:"seal" doc:"off, warn or enforce: a planner's message that no trusted key has sealed is read, read and logged, or not read"`
	Trust    string      `json:"trust" doc:"trust document of ocsctl pki, whose seals count; newer editions come from the planner and are kept in the state folder"`
	Reports  string      `json:"reports" doc:"plain or sealed: whether answers, reports, events and births are sealed with key"`
	Token    string      `json:"token" doc:"file of ocsctl pki token: the agent makes its own key and is given its certificate; key, certificate, authorities and trust document are then in the state folder, and renewed"`
	State    string      `json:"state" doc:"folder of journal, calibrations and the socket"`
	Socket   string      `json:"socket" doc:"unix socket for status, calibrate, path and host; empty: agent.sock in the state folder"`
	Firmware string      `json:"firmware" doc:"folder of the modules' firmware, VERSION.bin each, for ocsctl rollout run -firmware; empty: firmware in the state folder"`
	HealthMS int64       `json:"health_ms" unit:"ms" doc:"one health round over all modules; 0: none"`
	Recorder int64       `json:"recorder_kib" unit:"KiB" doc:"memory of the bus recorder, whose last part record begins with; 0: none"`
	SCPI     string      `json:"scpi" doc:"of a circuit switch: TCP address, such as 127.0.0.1:5025, on which scripts for commercial boxes drive it; empty: none; beyond loopback only with insecure"`
	RESTCONF string      `json:"restconf" doc:"of a circuit switch: TCP address on which tools for SONiC's circuit switches drive it; empty: none; beyond loopback over TLS with cert and key, for operators with a certificate of ca"`
	ByHand   bool        `json:"scpi_override" doc:"scripts may change circuits while a planner's generation is in force"`
	Lock     string      `json:"lock" doc:"how often each module is looked at and trimmed while it is quiet: drift: every ten minutes; always: every minute; off: never. Light on the wrong tap and another case temperature bring the next look at once"`
	LogLevel string      `json:"log_level" doc:"debug, info, warn or error"`
	LogForm  string      `json:"log_format" doc:"text or json"`
	LogJSON  bool        `json:"log_json" doc:"the former name of log_format json"`
	Board    BoardConfig `json:"board"`
}

// BoardConfig says which board and where it is.
type BoardConfig struct {
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

	Buses []BusConfig  `json:"buses" doc:"kind linux: device of each bus in the order of the default board: latches; then per bundle SPI, two ADC segments, slow; with module_kind cmis: the segments; empty: the default names; scl and sda, each chip and offset: lines that free a hanging I2C bus"`
	Lines []LineConfig `json:"lines" doc:"kind linux: LOS line of each path in the order of the default board: per bundle loopback, external1, external2; empty: gpiochip0 from 0"`

	AlarmA AlarmConfig `json:"alarm_a"`
	AlarmB AlarmConfig `json:"alarm_b"`

	Box      BoxConfig `json:"box"`
	Protocol string    `json:"protocol" doc:"kind box: short for box.protocol"`
	Address  string    `json:"address" doc:"kind box: short for box.address"`
	Dialect  string    `json:"dialect" doc:"kind box: short for box.dialect"`

	Path string `json:"path" doc:"kind socket: the board's unix socket"`

	Seed       uint64      `json:"seed" doc:"kind sim: the board's optics and noise"`
	Calibrated bool        `json:"calibrated" doc:"kind sim: a bundle without a stored calibration is calibrated at start"`
	SlowMCI    bool        `json:"slow_mci" doc:"kind sim, module_kind cmis: controllers take every hold-off that the specification leaves them"`
	Faults     []string    `json:"faults" doc:"kind sim: what is broken, such as stuck:bundle/module/cell"`
	Physics    sim.Physics `json:"physics"`
	Fibres     []string    `json:"fibres" doc:"kind sim: fibres between the board's own ports, such as 0/external1-1/external1"`

	read *hal.Board // of File
}

// BoxConfig says which commercial switch, and where it is.
type BoxConfig struct {
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

// AlarmConfig are the thresholds of the power at the ports of one side of a
// circuit switch.
type AlarmConfig struct {
	On      bool  `json:"on" doc:"of a circuit switch: power alarms of all ports of this side"`
	Low     int32 `json:"low" unit:"mdBm" doc:"under it: low"`
	Degrade int32 `json:"degrade" unit:"mdBm" doc:"under it: degrade"`
	High    int32 `json:"high" unit:"mdBm" doc:"over it: high"`
	ClearMS int64 `json:"clear_ms" unit:"ms" doc:"an alarm is cleared when looks have found none of it for so long"`
}

// Kinds of modules.
const (
	moduleChips = "chips"
	moduleCMIS  = "cmis"
)

// BusConfig names the device of one bus, and the lines by which an I2C bus
// that hangs is freed where its adapter's driver does not do that itself.
type BusConfig struct {
	Device string      `json:"device"`
	SCL    *LineConfig `json:"scl,omitempty"`
	SDA    *LineConfig `json:"sda,omitempty"`
}

// LineConfig names one input line.
type LineConfig struct {
	Chip      string `json:"chip"`
	Offset    int    `json:"offset"`
	ActiveLow bool   `json:"active_low"`
}

// defaults reports to a broker on this machine, and names no board: nothing is simulated
// unless it is asked for.
func defaults() Config {
	return Config{Fabric: "f1", Broker: "mqtt://127.0.0.1:18830", Cache: "on", State: "./ocs-agent.state", Seal: string(guard.Off), Reports: "plain", HealthMS: 10_000, Recorder: record.DefaultRing / 1024, Lock: "drift", LogLevel: "info", LogForm: "text",
		Board: BoardConfig{GPUs: 4, Bundles: 2, Modules: hal.MaxModules, ModuleKind: moduleChips, Seed: 1, Calibrated: true, Physics: sim.DefaultPhysics()}}
}

// maxConfig bounds a configuration. chosen: far above the widest board's.
const maxConfig = 1 << 20

// readConfig reads file over the defaults; "" is the defaults, "-" stdin.
func readConfig(file string) (Config, error) {
	c := defaults()
	if file == "" {
		return c, nil
	}
	raw, err := readLimited(file, maxConfig)
	if err == nil {
		if err = proto.DecodeFile(raw, &c); err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, err
}

// settle says what is meant by what was left out.
func (b *BoardConfig) settle() {
	if b.Kind == "" && b.File != "" {
		b.Kind = "linux"
	}
	b.Box.Protocol, b.Box.Address, b.Box.Dialect = cmp.Or(b.Box.Protocol, b.Protocol), cmp.Or(b.Box.Address, b.Address), cmp.Or(b.Box.Dialect, b.Dialect)
	if b.DAC == "" && b.File == "" && b.ModuleKind == moduleChips && b.Kind != "box" && !b.isSwitch() {
		b.DAC = "ltc2688"
	}
}

// complain notes what is wrong with a key.
type complain func(key, format string, args ...any)

// when notes it where that is so.
func (bad complain) when(wrong bool, key, format string, args ...any) {
	if wrong {
		bad(key, format, args...)
	}
}

func (bad complain) span(key string, v, low, high int64) {
	bad.when(v < low || v > high, key, "%d: want %d to %d", v, low, high)
}

// Validate joins everything that is wrong, each with its key.
func (c *Config) Validate() error {
	var errs []error
	bad := complain(func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	})
	bad.when(proto.CheckName("fabric", c.Fabric) != nil, "fabric", "%q: want 1 to 64 of a-z 0-9 -", c.Fabric)
	top := int64(proto.FirstSwitch) - 1
	if c.Board.isSwitch() { // whose numbers may be given as a planner shows them
		top = 2*top + 1
	}
	bad.span("node", c.Node, 0, top)
	_, known := ocs.LockModes[c.Lock]
	bad.when(!known, "lock", "%q: want off, drift or always", c.Lock)
	for broker := range strings.SplitSeq(c.Broker, ",") {
		if c.Broker == "" {
			break
		}
		if u, err := url.Parse(broker); err != nil { // whose text has a password, if there is one
			bad("broker", "no URL: want mqtt://host:port or mqtts://host:port")
		} else if u.Scheme != "mqtt" && u.Scheme != "mqtts" || u.Host == "" || u.User != nil && c.Password == "" {
			bad("broker", "%q: want mqtt://host:port or mqtts://host:port", u.Redacted())
		}
	}
	bad.when(c.Cache != "on" && c.Cache != "off", "cache", "%q: want on or off", c.Cache)
	sealing := guard.Mode(c.Seal).On()
	bad.when((c.Cert == "") != (c.Key == "") && (!sealing || c.Cert != ""), "cert", "cert and key go together")
	trust, key := c.Trust, c.Key
	if c.Token != "" {
		bad.when(c.CA+c.Cert+c.Key+c.Trust != "" || !sealing || c.Broker == "",
			"token", "want seal warn or enforce, a broker, and no ca, cert, key and trust, which are in the state folder then")
		trust, key = c.Token, c.Token
	}
	if err := guard.CheckKeys(guard.Mode(c.Seal), trust, c.Reports, key != "" || c.Reports != guard.SealedReports); err != nil {
		e := proto.AsError(err)
		bad(e.Field, "%s: want %s", e.Reason, e.Limit)
	}
	bad.when(c.State == "", "state", "want a folder")
	bad.span("health_ms", c.HealthMS, 0, int64(24*time.Hour/time.Millisecond))
	bad.span("recorder_kib", c.Recorder, 0, maxRecorder)
	cli.CheckLog(c.LogLevel, c.LogForm, bad)
	c.validateSCPI(bad)
	c.validateRequests(bad)
	c.Board.validate(bad)
	return errors.Join(errs...)
}

func (b *BoardConfig) validate(bad complain) {
	bad.span("board.gpus", int64(b.GPUs), 2, 8)
	bad.span("board.bundles", int64(b.Bundles), 1, hal.MaxBundles)
	bad.span("board.modules", int64(b.Modules), 1, hal.MaxModules)
	bad.when(b.ModuleKind != moduleChips && b.ModuleKind != moduleCMIS, "board.module_kind", "%q: want chips or cmis", b.ModuleKind)
	_, known := dacs[b.DAC]
	bad.when(!known || b.DAC != "" && b.ModuleKind != moduleChips, "board.dac", "%q: want ltc2688 or ad5676r, of module_kind chips", b.DAC)
	bad.when(b.ModuleKind != moduleCMIS && (b.Mux || b.SlowMCI), "board.mux", "mux and slow_mci are of module_kind cmis")
	b.validateMirrors(bad)
	b.validateFile(bad)
	b.Physics.Validate(func(key string, value float64, low, high string) {
		bad("board.physics."+key, "%v: want %s to %s", value, low, high)
	})
	bad.when(b.Kind != "sim" && b.Kind != "" && b.Physics != sim.DefaultPhysics(), "board.physics", "is of kind sim")
	layout, err := b.bare()
	switch b.Kind {
	case "linux":
		bad.when(err == nil && len(b.Buses) > 0 && len(b.Buses) != len(layout.Buses), "board.buses", "%d: want %d, or none", len(b.Buses), len(layout.Buses))
		for i, bus := range b.Buses {
			bad.when(bus.Device == "", fmt.Sprintf("board.buses[%d].device", i), "want a device")
			bad.when((bus.SCL == nil) != (bus.SDA == nil) || bus.SCL != nil && err == nil && i < len(layout.Buses) && layout.Buses[i].Kind != hal.I2C,
				fmt.Sprintf("board.buses[%d].scl", i), "scl and sda go together, and with an I2C bus")
		}
		bad.when(err == nil && len(b.Lines) > 0 && len(b.Lines) != len(layout.Lines), "board.lines", "%d: want %d, or none", len(b.Lines), len(layout.Lines))
		for i, l := range b.Lines {
			bad.when(l.Chip == "" || l.Offset < 0, fmt.Sprintf("board.lines[%d]", i), "chip %q offset %d: want a GPIO chip and a line from 0", l.Chip, l.Offset)
		}
	case "socket":
		bad.when(b.Path == "", "board.path", "want the board's socket")
	case "box":
		b.validateBox(bad)
	case "sim", "":
		for i, f := range b.Faults {
			_, err := sim.ParseFault(f)
			bad.when(err != nil, fmt.Sprintf("board.faults[%d]", i), "%v", err)
		}
		for i, f := range b.Fibres {
			_, err := solo.ParseFibre(f)
			bad.when(err != nil, fmt.Sprintf("board.fibres[%d]", i), "%v", err)
		}
	default:
		bad("board.kind", "%q: want linux, sim, socket or box", b.Kind)
	}
}

// named refuses where no board is named.
func (b *BoardConfig) named() error {
	if b.Kind != "" {
		return nil
	}
	return usagef("board.kind: no board is named: want -board FILE (docs/board-file.md; ocs-agent board show default -json prints a first one), " +
		"a configuration with board.kind linux, socket or box, or -sim for a simulated board")
}

// bare is the board with the default names of its devices.
func (b *BoardConfig) bare() (hal.Board, error) {
	if b.Kind == "box" {
		address, _ := b.Box.address()
		dial, err := b.Box.dialer()
		return hal.Board{Buses: []hal.Bus{{Kind: hal.TextLine, Device: address, Timeout: b.Box.deadline() * 19 / 20, Dial: dial}}}, err
	}
	if b.read != nil {
		return *b.read, nil
	}
	if b.isSwitch() {
		return hal.DefaultMEMS(b.Ports)
	}
	if b.ModuleKind == moduleCMIS {
		return boardfile.DefaultCMIS(b.GPUs, b.Bundles, b.Modules, b.Mux)
	}
	return boardfile.DefaultOf(dacs[b.DAC], b.GPUs, b.Bundles, b.Modules)
}

var dacs = map[string]hal.Part{"": hal.LTC2688, "ltc2688": hal.LTC2688, "ad5676r": hal.AD5676R}

// layout is the board as data.
func (b *BoardConfig) layout() (hal.Board, error) {
	board, err := b.bare()
	if err != nil || b.Kind != "linux" {
		return board, err
	}
	for i, bus := range b.Buses {
		board.Buses[i].Device = bus.Device
		board.Buses[i].SCL, board.Buses[i].SDA = bus.SCL.line(), bus.SDA.line()
	}
	for i, l := range b.Lines {
		board.Lines[i] = hal.Line{Chip: l.Chip, Offset: l.Offset, ActiveLow: l.ActiveLow}
	}
	return board, nil
}

// maxRecorder bounds recorder_kib. chosen: a gigabyte.
const maxRecorder = 1 << 20

// recordBytes is the recorder's memory as the agent takes it.
func (c *Config) recordBytes() int {
	return cmp.Or(int(c.Recorder)<<10, -1)
}

// line is nil where none is named.
func (l *LineConfig) line() *hal.Line {
	if l == nil {
		return nil
	}
	return &hal.Line{Chip: l.Chip, Offset: l.Offset, ActiveLow: l.ActiveLow}
}

func (c *Config) socketPath() string {
	return cmp.Or(c.Socket, filepath.Join(c.State, "agent.sock"))
}

func (c *Config) healthPeriod() time.Duration {
	return cmp.Or(time.Duration(c.HealthMS)*time.Millisecond, -1)
}

// keys lists every key with its default and unit, in the order of the file.
func keys() []cli.Key { return cli.Keys(defaults()) }

// configCommand prints the effective configuration, or what there is to
// configure.
func configCommand(args []string) error {
	fs, common := newFlags("config", "print the effective configuration", "ocs-agent config -doc")
	doc := fs.Bool("doc", false, "list every key with its default and unit")
	if err := common.none(args); err != nil {
		return err
	}
	if *doc && common.json {
		return printJSON(keys())
	}
	if *doc {
		return cli.PrintKeys(os.Stdout, defaults(), false)
	}
	c, err := common.load()
	if err != nil {
		return err
	}
	return printJSON(c)
}
