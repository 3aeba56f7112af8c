package box_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/scpi"
	"ringlight/hal/tl1"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/sim/script"
)

// Goal: what goes wrong with commercial boxes ends in its own error or in
// recovery, and the other circuits stay.
// Method: the scripts in testdata.
func TestFaultScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func([]string) string { return (&boxScript{t: t}).command })
}

// boxScript is one case: a box at the end of a line.
type boxScript struct {
	t   *testing.T
	r   *rig
	far *tornEnd
}

// tornEnd is a far end whose next lines are torn: cut in the middle, with the
// rest as a line of its own after it, or lost.
type tornEnd struct {
	farEnd
	tear, lose int
	end        byte
	rest       []byte
}

func (e *tornEnd) hear() []byte {
	if len(e.rest) > 0 {
		rest := e.rest
		e.rest = nil
		return rest
	}
	b := e.farEnd.hear()
	switch {
	case len(b) < 2:
	case e.tear > 0:
		e.tear--
		half := len(b) / 2
		e.rest = slices.Clone(b[half:])
		return append(slices.Clone(b[:half]), e.end)
	case e.lose > 0:
		e.lose--
		return append(slices.Clone(b[:len(b)/2]), e.end)
	}
	return b
}

// scpiEnd is a scripted Polatis whose meters follow its connections. Of the
// next sets, so many are answered and not done.
type scpiEnd struct {
	server  *scpi.Server
	state   hal.BoxState
	swallow int
	locked  string // by another user
	error   string // what it has against the last command
	out     []string
	closed  map[string]bool // shutters
	// noShutters: it does not know their commands.
	noShutters bool
	dark       bool // no light comes in
}

func newSCPIEnd(ports int) *scpiEnd {
	e := &scpiEnd{closed: map[string]bool{}, state: hal.BoxState{In: ports, Out: ports, Identity: "Polatis,N-OST-scripted,1,6.5", HasMeters: true}}
	e.server = scpi.NewServer(e)
	return e
}

func (e *scpiEnd) State() (hal.BoxState, bool) {
	s := e.state
	s.Powers = make([]int32, s.In+s.Out)
	for i := range s.Powers {
		s.Powers[i] = -1000
		if e.dark {
			s.Powers[i] = -60_000
		}
		if i >= s.In && !slices.ContainsFunc(s.Map, func(p hal.PortPair) bool { return s.In+int(p.Out) == i }) {
			s.Powers[i] = -60_000
		}
	}
	return s, false
}

func (e *scpiEnd) Change(g hal.BoxGoal) error {
	if e.locked != "" {
		e.error = `-203,"Command protected;locked by ` + e.locked + `"`
		return fmt.Errorf("locked by %s", e.locked)
	}
	if e.swallow > 0 {
		e.swallow--
		return nil
	}
	keep := e.state.Map[:0:0]
	for _, p := range e.state.Map {
		if !g.Only && !slices.Contains(g.Remove, p) && !slices.ContainsFunc(g.Create, func(q hal.PortPair) bool { return q.In == p.In || q.Out == p.Out }) {
			keep = append(keep, p)
		}
	}
	e.state.Map = append(keep, g.Create...)
	return nil
}

// say: of connections it answers as our own server does; errors, which a Polatis has only
// of what it refuses, and shutters are its own.
func (e *scpiEnd) say(b []byte) {
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		verb, arg, _ := strings.Cut(strings.TrimPrefix(line, ":oxc:swit:port:"), " ")
		switch {
		case line == ":syst:err?":
			e.out = append(e.out, cmp.Or(e.error, `0,"No error"`)+"\n")
			e.error = ""
		case strings.HasPrefix(line, ":oxc:swit:port:") && e.noShutters:
			e.out = append(e.out, "1\n")
		case strings.HasPrefix(line, ":oxc:swit:port:"):
			e.out = append(e.out, e.shutters(verb, arg)+"\n")
		default:
			e.error = ""
			e.server.Take([]byte(line))
			e.out = append(e.out, string(e.server.Poll(nil)))
		}
	}
}

// shutters are ports that are off, by their number.
func (e *scpiEnd) shutters(verb, arg string) string {
	arg = strings.TrimSuffix(strings.TrimPrefix(arg, "(@"), ");*OPC?")
	var states []string
	for p := range strings.SplitSeq(arg, ",") {
		switch {
		case verb == "stat?":
			states = append(states, map[bool]string{true: "D", false: "E"}[e.closed[p]])
		case e.locked == "":
			e.closed[p] = verb == "dis"
		}
	}
	if verb == "stat?" {
		return "(" + strings.Join(states, ",") + ");1"
	}
	return "1"
}

func (e *scpiEnd) hear() []byte {
	if len(e.out) == 0 {
		return nil
	}
	line := e.out[0]
	e.out = e.out[1:]
	return []byte(line)
}

// command does one line and gives what came of it:
//
//	box scpi|tl1|patch PORTS      a scripted box
//	connect A-B ..., cut A-B ...
//	health ROUNDS
//	swallow|deny|tear|lose N      of the box's next commands or lines; chatter TEXT
//	start                         once more
//	status
func (s *boxScript) command(w []string) string {
	num := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return n
	}
	switch w[0] {
	case "box":
		s.open(w[1], num(w[2]))
	case "connect", "cut":
		if err := s.r.x.Apply(s.r.now, s.change(w)); err != nil {
			return fmt.Sprintf("refused: %v\n", err)
		}
		s.r.settle()
	case "health":
		for range num(w[1]) {
			s.r.x.HealthRound(s.r.now)
			s.r.settle()
		}
	case "tear":
		s.far.tear = num(w[1])
	case "lose":
		s.far.lose = num(w[1])
	case "swallow", "deny", "chatter":
		s.knob(w[0], strings.Join(w[1:], " "), num)
	case "start":
		s.r.x.Start(s.r.now)
		s.r.settle()
	case "status":
		return s.status()
	default:
		s.t.Fatalf("%q: no such command", w)
	}
	return s.said()
}

func (s *boxScript) open(kind string, ports int) {
	s.far = &tornEnd{end: '\n'}
	cfg := box.Config{End: '\n'}
	if kind == "scpi" {
		s.far.farEnd = newSCPIEnd(ports)
		cfg.Client = scpi.NewClient()
	} else {
		names := tl1.DefaultNames(ports)
		if kind == "patch" {
			names = tl1.PatchNames(ports, ports)
		}
		s.far.farEnd = &scriptEnd{s: &tl1Server{Name: "box", User: "u", Password: "pw", Names: names}}
		s.far.end, cfg.End = ';', ';'
		cfg.Client = tl1.NewClient(tl1.Config{Names: names, User: "u", Password: "pw", Patch: kind == "patch"})
	}
	s.r = &rig{t: s.t, far: s.far, x: box.New(cfg)}
	s.r.x.Start(0)
	s.r.settle()
}

func (s *boxScript) knob(name, arg string, num func(string) int) {
	switch far := s.far.farEnd.(type) {
	case *scpiEnd:
		far.swallow = num(arg)
	case *scriptEnd:
		switch name {
		case "swallow":
			far.s.Swallow = num(arg)
		case "deny":
			far.s.Deny = num(arg)
		default:
			far.s.Chatter = arg
		}
	}
}

// change is what connect and cut ask for, as update; ports count from 1.
func (s *boxScript) change(w []string) (ch circuit.Change) {
	ch.Mode = circuit.Update
	for _, text := range w[1:] {
		var p circuit.Pair
		if _, err := fmt.Sscanf(text, "%d-%d", &p.A, &p.B); err != nil {
			s.t.Fatalf("%q: %v", text, err)
		}
		p.A, p.B = p.A-1, p.B-1
		if w[0] == "cut" {
			ch.Remove = append(ch.Remove, p)
		} else {
			ch.Create = append(ch.Create, p)
		}
	}
	return ch
}

// said is what happened since it was last asked.
func (s *boxScript) said() (out string) {
	for _, e := range s.r.events {
		line := fmt.Sprint(e.Kind)
		if e.Kind != circuit.Ready {
			line += " " + e.Pair.String()
		}
		if e.Err != nil {
			line += ": " + e.Err.Error()
		}
		out += line + "\n"
	}
	s.r.events = nil
	return out
}

func (s *boxScript) status() (out string) {
	if link, _, err := s.r.x.Link(); link != box.LinkQuiet {
		out = fmt.Sprintf("link %v: %v\n", link, err)
	}
	for _, c := range s.r.x.Circuits(nil) {
		line := fmt.Sprintf("%v %v", c.Pair, c.State)
		if c.Err != nil {
			line += ": " + c.Err.Error()
		}
		out += line + "\n"
	}
	return out
}
