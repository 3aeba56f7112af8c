package box_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/sim/boxes"
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

func (e *tornEnd) Hear() []byte {
	if len(e.rest) > 0 {
		rest := e.rest
		e.rest = nil
		return rest
	}
	b := e.farEnd.Hear()
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
	if kind == "patch" {
		kind = "tl1-patch"
	}
	far := boxes.New(kind, ports)
	s.far = &tornEnd{farEnd: far, end: far.End()}
	cfg := box.Config{Client: far.Client(), End: far.End()}
	s.r = &rig{t: s.t, far: s.far, x: box.New(cfg)}
	s.r.x.Start(0)
	s.r.settle()
}

func (s *boxScript) knob(name, arg string, num func(string) int) {
	switch far := s.far.farEnd.(type) {
	case *boxes.SCPI:
		far.Swallow = num(arg)
	case *boxes.TL1:
		switch name {
		case "swallow":
			far.Swallow = num(arg)
		case "deny":
			far.Deny = num(arg)
		default:
			far.Chatter = arg
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
