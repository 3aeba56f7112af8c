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
	boardfile.Config
	solo.Keys // kind sim
}

// defaults reports to a broker on this machine, and names no board: nothing is simulated
// unless it is asked for.
func defaults() Config {
	return Config{Fabric: "f1", Broker: "mqtt://127.0.0.1:18830", Cache: "on", State: "./ocs-agent.state", Seal: string(guard.Off), Reports: "plain", HealthMS: 10_000, Recorder: record.DefaultRing / 1024, Lock: "drift", LogLevel: "info", LogForm: "text",
		Board: BoardConfig{boardfile.DefaultConfig(), solo.DefaultKeys()}}
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
	if b.DAC == "" && b.File == "" && b.ModuleKind == boardfile.Chips && b.Kind != "box" && !b.isSwitch() {
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
	return errors.Join(append(errs, c.Board.validate(bad))...)
}

func (b *BoardConfig) validate(bad complain) error {
	b.validateMirrors(bad)
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
	default:
		bad("board.kind", "%q: want linux, sim, socket or box", b.Kind)
	}
	_, wrong := b.Keys.Config(&layout, "")
	return errors.Join(b.Check(), wrong)
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
		address, _ := boxAddress(&b.Box)
		dial, err := boxDialer(&b.Box)
		return hal.Board{Buses: []hal.Bus{{Kind: hal.TextLine, Device: address, Timeout: boxDeadline(&b.Box) * 19 / 20, Dial: dial}}}, err
	}
	return b.Config.Layout()
}

// layout is the board as data.
func (b *BoardConfig) layout() (hal.Board, error) {
	board, err := b.bare()
	if err != nil || b.Kind != "linux" {
		return board, err
	}
	for i, bus := range b.Buses {
		board.Buses[i].Device = bus.Device
		board.Buses[i].SCL, board.Buses[i].SDA = line(bus.SCL), line(bus.SDA)
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
func line(l *boardfile.LineDevice) *hal.Line {
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
