package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/scpi"
	"ringlight/hal/sonic"
	"ringlight/hal/tl1"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/mqtt"
	"ringlight/sim/solo"
)

// isSwitch tells whether the board is a circuit switch and not a node's.
func (b *BoardConfig) isSwitch() bool { return b.Ports > 0 }

func (b *BoardConfig) validateMirrors(bad complain) {
	b.validateAlarms(bad)
	switch {
	case b.Direct && b.isSwitch():
		bad("board.direct", "true: want false for a board with ports")
	case b.Factory != "" && !b.isSwitch():
		bad("board.factory", "goes with board.ports")
	case b.Factory == "" && b.isSwitch() && (b.Kind == "linux" || b.Kind == "socket"):
		bad("board.factory", "want the file that came with the board")
	}
}

// thresholds are those of the alarms of a side.
func thresholds(a *boardfile.Alarms) circuit.Thresholds {
	return circuit.Thresholds{On: a.On, Low: proto.MilliDBm(a.Low), Degrade: proto.MilliDBm(a.Degrade), High: proto.MilliDBm(a.High),
		ClearHoldOff: time.Duration(a.ClearMS) * time.Millisecond}
}

func (b *BoardConfig) validateAlarms(bad complain) {
	for side, a := range [hal.NumSides]*boardfile.Alarms{&b.AlarmA, &b.AlarmB} {
		key := "board.alarm_" + string("ab"[side])
		switch {
		case !a.On:
		case !b.isSwitch() || b.Kind == "box":
			bad(key, "goes with a board of mirrors")
		case a.Low > a.Degrade || a.Degrade > a.High:
			bad(key, "%d, %d, %d: want low, degrade and high in this order", a.Low, a.Degrade, a.High)
		default:
			bad.span(key+".clear_ms", a.ClearMS, 0, maxClearMS)
		}
	}
}

// maxClearMS is chosen: an hour.
const maxClearMS = 3_600_000

func (b *BoardConfig) validateBox(bad complain) {
	bad.when(!b.isSwitch(), "board.ports", "kind box: want the ports of the switch, of each side")
	checkBox(&b.Box, bad)
	if ms := b.Box.DeadlineMS; ms != 0 {
		bad.span("board.box.deadline_ms", ms, box.LeastDeadline.Milliseconds(), box.GreatestDeadline.Milliseconds())
	}
}

func checkBox(b *boardfile.Box, bad complain) {
	address, plain := boxAddress(b)
	host, _, err := net.SplitHostPort(address)
	restconf := b.Protocol == protocolSONiC
	switch {
	case err != nil || !restconf && address != b.Address:
		bad("board.box.address", "%q: want host:port", b.Address)
	case plain && !mqtt.IsLoopback(host):
		bad("board.box.address", "%q: plain http is for this machine alone; want https://", b.Address)
	}
	p, d := b.Protocol, sonic.Dialect(b.Dialect)
	bad.when(!restconf && p != "scpi" && p != "tl1" && p != "tl1-patch", "board.box.protocol", "%q: want scpi, tl1, tl1-patch or sonic-ocs", p)
	bad.when(d != "" && (!restconf || d != sonic.Auto && d != sonic.Tables && d != sonic.States), "board.box.dialect", "%q: want auto, tables or states, of protocol sonic-ocs", d)
	bad.when(!restconf && b.CA+b.Cert+b.Key != "" || (b.Cert == "") != (b.Key == ""),
		"board.box.cert", "ca, cert and key are of protocol sonic-ocs, cert and key together")
}

const protocolSONiC = "sonic-ocs"

// boxAddress is host:port, and whether it is spoken to plainly.
func boxAddress(b *boardfile.Box) (hostPort string, plain bool) {
	if rest, ok := strings.CutPrefix(b.Address, "http://"); ok {
		return strings.TrimSuffix(rest, "/"), true
	}
	if rest, ok := strings.CutPrefix(b.Address, "https://"); ok {
		return strings.TrimSuffix(rest, "/"), false
	}
	host, _, _ := net.SplitHostPort(b.Address)
	return b.Address, b.Protocol == protocolSONiC && b.CA == "" && mqtt.IsLoopback(host)
}

// boxDialer opens a connection over TLS to a box that speaks RESTCONF; nil: TCP will do.
func boxDialer(b *boardfile.Box) (func(time.Duration) (hal.LineConn, error), error) {
	address, plain := boxAddress(b)
	if b.Protocol != protocolSONiC || plain {
		return nil, nil
	}
	host, _, _ := net.SplitHostPort(address) // validated
	to, err := cert.Client(host, b.CA, b.Cert, b.Key)
	if err != nil {
		return nil, cli.AsUsage(fmt.Errorf("board.box: %w", err))
	}
	to.MinVersion = tls.VersionTLS12 // of boxes there are older ones
	return func(limit time.Duration) (hal.LineConn, error) {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: limit}, "tcp", address, to)
		if err != nil {
			return nil, cert.Explain(err, b.Cert, b.CA)
		}
		return conn, nil
	}, nil
}

// boxDeadline of an answer of the box.
func boxDeadline(b *boardfile.Box) time.Duration {
	return cmp.Or(time.Duration(b.DeadlineMS)*time.Millisecond, box.DefaultDeadline)
}

// validateSCPI: the language knows no password, so that it stays on this
// machine unless somebody says otherwise.
func (c *Config) validateSCPI(bad complain) {
	if c.SCPI == "" {
		return
	}
	host, _, err := net.SplitHostPort(c.SCPI)
	ip := net.ParseIP(host)
	switch {
	case err != nil:
		bad("scpi", "%q: want host:port", c.SCPI)
	case !c.Board.isSwitch():
		bad("scpi", "goes with board.ports")
	case !c.Insecure && host != "localhost" && (ip == nil || !ip.IsLoopback()):
		bad("scpi", "%q: beyond loopback only with insecure: anybody who reaches it moves mirrors", c.SCPI)
	}
}

// switchConfig adds what an agent of a switch must know.
func (c *Config) switchConfig(cfg *agent.Config) (err error) {
	cfg.Lines = func(b *circuit.Served) agent.LineServer { return scpi.NewServer(b) }
	cfg.ScriptsFirst = c.ByHand
	c.keepLabels(cfg)
	if c.Board.Kind != "box" {
		cfg.Thresholds = [hal.NumSides]circuit.Thresholds{thresholds(&c.Board.AlarmA), thresholds(&c.Board.AlarmB)}
		cfg.Factory, err = c.factory(cfg.Board)
		return err
	}
	b := &c.Board.Box
	cfg.BoxPorts = c.Board.Ports
	cfg.Box = &box.Config{Ports: c.Board.Ports, Deadline: boxDeadline(b)}
	if b.Protocol == "scpi" {
		cfg.Box.Client, cfg.Box.End = scpi.NewClient(), '\n'
		return nil
	}
	password := ""
	if b.PasswordFile != "" {
		raw, err := os.ReadFile(b.PasswordFile)
		if err != nil {
			return cli.AsUsage(fmt.Errorf("board.box.password_file: %w", err))
		}
		password = strings.TrimSpace(string(raw))
	}
	if b.Protocol == protocolSONiC {
		host, _ := boxAddress(b)
		cfg.Box.Client = sonic.NewClient(sonic.Config{Host: host, Dialect: cmp.Or(sonic.Dialect(b.Dialect), sonic.Auto), User: b.User, Password: password})
		return nil
	}
	login := tl1.Config{Password: password, Names: tl1.DefaultNames(c.Board.Ports), User: b.User, Group: b.Group}
	if b.Protocol == "tl1-patch" {
		login.Names, login.Patch = tl1.PatchNames(c.Board.Ports, c.Board.Ports), true
	}
	cfg.Box.Client, cfg.Box.End = tl1.NewClient(login), ';'
	return nil
}

// id is the number under which this board's agent is addressed: a switch's
// may be given from 0, as in the fabric description.
func (c *Config) id() proto.NodeID {
	n := proto.NodeID(c.Node)
	if (c.Board.isSwitch() || c.Board.Direct) && !n.IsSwitch() {
		n += proto.FirstSwitch
	}
	return n
}

// factory is what the maker of a board of mirrors measured; the simulated
// maker measures when it is asked.
func (c *Config) factory(board *hal.Board) (*mems.Factory, error) {
	if c.Board.Factory != "" {
		raw, err := os.ReadFile(c.Board.Factory)
		if err != nil {
			return nil, cli.AsUsage(fmt.Errorf("board.factory: %w", err))
		}
		f, err := mems.DecodeFactory(raw)
		if err != nil {
			return nil, fmt.Errorf("board.factory: %s: %w", c.Board.Factory, err)
		}
		return f, nil
	}
	b, err := solo.New(solo.Config{Board: board, Seed: c.Board.Seed})
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	return mems.Measure(b.World().Maker(b.ID()), board.Mirrors.Ports), nil
}

func printSwitch(s *agent.SwitchStatus) {
	state := cli.Either(s.Busy, "  moving", "")
	if s.Reason != "" {
		state += "  out of service: " + s.Reason
	}
	fmt.Printf("switch of %d ports a side, %s%s\n", s.Ports, proto.Count(len(s.Circuits), "circuit"), state)
	for _, c := range s.Circuits {
		fmt.Printf("circuit %-9s job %-6d %-7s", c.Circuit, c.Job, c.State)
		if c.Loss != proto.NoPower && c.Loss != 0 {
			fmt.Printf(" loses %.2f dB (factory %.2f), tuned in %d moves, %.1f ms", float64(c.Loss)/1000, float64(c.Factory)/1000, c.Moves, float64(c.TookUS)/1000)
		}
		if c.Reason != "" {
			fmt.Printf("  (%s)", c.Reason)
		}
		fmt.Println()
	}
	for _, h := range s.Held {
		fmt.Printf("port %s\n", h)
	}
}

// port holds a port of a switch off, or lets it go: its circuit is dark
// meanwhile, and no new one is taken for it.
func port(ctx context.Context, args []string) error {
	fs, common := newFlags("port hold|free PORT", "hold a port of a circuit switch off, or let it go", "ocs-agent port hold 3A -config switch2.json")
	off := fs.Bool("powered-off", false, "with hold: say powered_off and not force_blocked")
	free, err := common.words(args, 2)
	if err != nil {
		return err
	}
	if len(free) != 2 || free[0] != "hold" && free[0] != "free" {
		return usagef("want: port hold PORT, or port free PORT")
	}
	q := agent.Question{Verb: "hold", Port: free[1], Hold: proto.Normal.String()}
	if free[0] == "hold" {
		if q.Hold = proto.ForceBlocked.String(); *off {
			q.Hold = proto.PoweredOff.String()
		}
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	ans, err := answered(cfg.askSocket(q))
	if err != nil {
		return err
	}
	return answer(common.json, ans.Status.Switch, func() { printSwitch(ans.Status.Switch) })
}
