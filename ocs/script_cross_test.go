package ocs_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/scpi"
	"ringlight/hal/tl1"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/script"
)

// Goal: what goes wrong with mirrors, their monitors and commercial boxes ends in
// its own error or in recovery, and the other circuits stay.
// Method: scripts in testdata/faults/cross, as those of the transceivers.
func TestCrossFaultScripts(t *testing.T) {
	script.Run(t, "testdata/faults/cross/*.txt", func(t *testing.T) func([]string) string { return (&crossScript{t: t}).command })
}

// crossScript is one case: a board of mirrors, or a box at the end of a line.
type crossScript struct {
	t   *testing.T
	m   *mirrorRig
	box *boxRig
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
}

func newSCPIEnd(ports int) *scpiEnd {
	e := &scpiEnd{state: hal.BoxState{In: ports, Out: ports, Identity: "Polatis,N-OST-scripted,1,6.5", HasMeters: true}}
	e.server = scpi.NewServer(e)
	return e
}

func (e *scpiEnd) State() (hal.BoxState, bool) {
	s := e.state
	s.Powers = make([]int32, s.In+s.Out)
	for i := range s.Powers {
		s.Powers[i] = -1000
		if i >= s.In && !slices.ContainsFunc(s.Map, func(p hal.PortPair) bool { return s.In+int(p.Out) == i }) {
			s.Powers[i] = -60_000
		}
	}
	return s, false
}

func (e *scpiEnd) Change(g hal.BoxGoal) error {
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

func (e *scpiEnd) say(b []byte) {
	if len(b) > 0 {
		e.server.Take(b)
	}
}
func (e *scpiEnd) hear() []byte { return e.server.Poll(nil) }

// command does one line and gives what came of it:
//
//	mirrors PORTS SEED            a board of mirrors
//	box scpi|tl1|patch PORTS      a scripted box
//	connect A-B ..., cut A-B ...  ports from 1, as update
//	creep SIDE/PORT RATE          microradian an hour, on both axes, from then on
//	stick SIDE/PORT, free SIDE/PORT
//	noise CODES                   of all monitors, rms
//	dark PORT, lit PORT           what comes in at side A
//	health ROUNDS
//	swallow|deny|tear|lose N      of the box's next commands or lines; chatter TEXT
//	start                         of the box, once more
//	run TIME, status
func (s *crossScript) command(w []string) string {
	num := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return n
	}
	place := func() (side, port int) {
		if _, err := fmt.Sscanf(w[1], "%d/%d", &side, &port); err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		return side, port - 1
	}
	switch w[0] {
	case "mirrors":
		s.m = newMirrorRig(s.t, num(w[1]), uint64(num(w[2])))
	case "box":
		s.open(w[1], num(w[2]))
	case "connect", "cut":
		return s.apply(w[0] == "cut", w[1:])
	case "creep":
		side, port := place()
		s.m.world.CreepMirror(s.m.id, side, port, int32(num(w[2])))
	case "stick", "free":
		side, port := place()
		s.m.world.StickMirror(s.m.id, side, port, w[0] == "stick")
	case "noise":
		s.m.world.NoisyMonitors(s.m.id, num(w[1]))
	case "dark", "lit":
		s.m.world.SetMirrorInput(s.m.id, num(w[1])-1, sim.InputLight{Lit: w[0] == "lit"})
	case "health":
		s.health(num(w[1]))
	case "tear":
		s.far.tear = num(w[1])
	case "lose":
		s.far.lose = num(w[1])
	case "swallow", "deny", "chatter":
		s.knob(w[0], strings.Join(w[1:], " "), num)
	case "start":
		s.box.x.Start(s.box.now)
		s.box.settle()
	case "run":
		d, err := time.ParseDuration(w[1])
		if err != nil {
			s.t.Fatalf("%q: %v", w, err)
		}
		s.m.until(d, func() bool { return false })
	case "status":
		return s.status()
	default:
		s.t.Fatalf("%q: no such command", w)
	}
	return s.said()
}

func (s *crossScript) open(kind string, ports int) {
	s.far = &tornEnd{end: '\n'}
	cfg := box.Config{End: '\n'}
	if kind == "scpi" {
		s.far.farEnd = newSCPIEnd(ports)
		cfg.Dialect = new(scpi.Client)
	} else {
		names := tl1.DefaultNames(ports)
		if kind == "patch" {
			names = tl1.PatchNames(ports, ports)
		}
		s.far.farEnd = &scriptEnd{s: &tl1.Server{Name: "box", User: "u", Password: "pw", Names: names}}
		s.far.end, cfg.End = ';', ';'
		cfg.Dialect = tl1.NewClient(tl1.Config{Names: names, User: "u", Password: "pw", Patch: kind == "patch"})
	}
	s.box = &boxRig{t: s.t, far: s.far, x: box.New(cfg)}
	s.box.x.Start(0)
	s.box.settle()
}

func (s *crossScript) knob(name, arg string, num func(string) int) {
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

func (s *crossScript) apply(cut bool, list []string) string {
	ch := circuit.Change{Mode: circuit.Update}
	for _, text := range list {
		var a, b uint16
		if _, err := fmt.Sscanf(text, "%d-%d", &a, &b); err != nil {
			s.t.Fatalf("%q: %v", text, err)
		}
		p := circuit.Pair{A: a - 1, B: b - 1}
		if cut {
			ch.Remove = append(ch.Remove, p)
		} else {
			ch.Create = append(ch.Create, p)
		}
	}
	var err error
	if s.m != nil {
		if err = s.m.x.Apply(s.m.world.Now(), ch); err == nil {
			s.m.until(2*time.Second, s.m.idle)
		}
	} else if err = s.box.x.Apply(s.box.now, ch); err == nil {
		s.box.settle()
	}
	if err != nil {
		return fmt.Sprintf("refused: %v\n", err)
	}
	return s.said()
}

func (s *crossScript) health(rounds int) {
	for range rounds {
		if s.m == nil {
			s.box.x.HealthRound(s.box.now)
			s.box.settle()
			continue
		}
		s.m.x.HealthRound(s.m.world.Now())
		s.m.until(time.Second, func() bool { return false })
	}
}

// said is what happened since it was last asked.
func (s *crossScript) said() string {
	events := &[]circuit.Event{}
	if s.m != nil {
		events = &s.m.events
	} else if s.box != nil {
		events = &s.box.events
	}
	var out strings.Builder
	last, n := "", 0
	flush := func() {
		if n > 1 {
			last += fmt.Sprintf(" (%d times)", n)
		}
		if n > 0 {
			out.WriteString(last + "\n")
		}
	}
	for _, e := range *events {
		line := fmt.Sprintf("%v %v", e.Kind, e.Pair)
		if e.Kind == circuit.Ready {
			line = fmt.Sprint(e.Kind)
		}
		if e.Err != nil {
			line += ": " + cause(e.Err)
		}
		if line == last {
			n++
			continue
		}
		flush()
		last, n = line, 1
	}
	flush()
	*events = nil
	return out.String()
}

func (s *crossScript) status() string {
	var list []circuit.Circuit
	out := ""
	if s.m != nil {
		list = s.m.x.Circuits(nil)
		if n := s.m.world.PulledIn(s.m.id); n > 0 {
			out = fmt.Sprintf("%d mirrors on their stops\n", n)
		}
	} else {
		list = s.box.x.Circuits(nil)
		if link, _, err := s.box.x.Link(); link != box.LinkQuiet {
			out = fmt.Sprintf("link %v: %s\n", link, cause(err))
		}
	}
	for _, c := range list {
		line := fmt.Sprintf("%v %v", c.Pair, c.State)
		if c.Err != nil {
			line += ": " + cause(c.Err)
		}
		if s.m != nil && c.State == proto.Tuned {
			if over := s.m.world.MirrorLoss(s.m.id, int(c.Pair.A), int(c.Pair.B)) - int32(c.Factory); over > 550 {
				line += ", by the light itself too weak"
			}
		}
		out += line + "\n"
	}
	return out
}
