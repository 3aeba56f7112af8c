package boxes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ringlight/hal"
	"ringlight/hal/scpi"
	"ringlight/ocs/circuit"
)

// SCPI is a scripted Polatis whose meters follow its connections. Of the
// next sets, so many are answered and not done.
type SCPI struct {
	dark
	server *scpi.Server
	error  string // what it has against the last command
	out    []string

	Box     hal.BoxState
	Swallow int
	Locked  string          // by another user
	Closed  map[string]bool // shutters
	// NoShutters: it does not know their commands.
	NoShutters bool
}

// NewSCPI makes one of so many ports of either side.
func NewSCPI(ports int) *SCPI {
	e := &SCPI{Closed: map[string]bool{}, Box: hal.BoxState{In: ports, Out: ports, Identity: "Polatis,N-OST-scripted,1,6.5", HasMeters: true}}
	e.server = scpi.NewServer(e)
	return e
}

// State is how it stands.
func (e *SCPI) State() (hal.BoxState, bool) {
	s := e.Box
	s.Powers = make([]int32, s.In+s.Out)
	for i := range s.Powers {
		s.Powers[i] = -60_000
		if i < s.In && !e.isDark(i) || i >= s.In && slices.ContainsFunc(s.Map, func(p hal.PortPair) bool { return s.In+int(p.Out) == i && !e.isDark(int(p.In)) }) {
			s.Powers[i] = -1000
		}
	}
	return s, false
}

// Change does what a command asks.
func (e *SCPI) Change(g hal.BoxGoal) error {
	if e.Locked != "" {
		e.error = `-203,"Command protected;locked by ` + e.Locked + `"`
		return fmt.Errorf("locked by %s", e.Locked)
	}
	if e.Swallow > 0 {
		e.Swallow--
		return nil
	}
	keep := e.Box.Map[:0:0]
	for _, p := range e.Box.Map {
		if !g.Only && !slices.Contains(g.Remove, p) && !slices.ContainsFunc(g.Create, func(q hal.PortPair) bool { return q.In == p.In || q.Out == p.Out }) {
			keep = append(keep, p)
		}
	}
	e.Box.Map = append(keep, g.Create...)
	return nil
}

// Say: of connections it answers as our own server does; errors, which a Polatis has only
// of what it refuses, and shutters are its own.
func (e *SCPI) Say(b []byte) {
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		verb, arg, _ := strings.Cut(strings.TrimPrefix(line, ":oxc:swit:port:"), " ")
		switch {
		case line == ":syst:err?":
			e.out = append(e.out, cmp.Or(e.error, `0,"No error"`)+"\n")
			e.error = ""
		case strings.HasPrefix(line, ":oxc:swit:port:") && e.NoShutters:
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
func (e *SCPI) shutters(verb, arg string) string {
	arg = strings.TrimSuffix(strings.TrimPrefix(arg, "(@"), ");*OPC?")
	var states []string
	for p := range strings.SplitSeq(arg, ",") {
		switch {
		case verb == "stat?":
			states = append(states, map[bool]string{true: "D", false: "E"}[e.Closed[p]])
		case e.Locked == "":
			e.Closed[p] = verb == "dis"
		}
	}
	if verb == "stat?" {
		return "(" + strings.Join(states, ",") + ");1"
	}
	return "1"
}

// Hear is its next line.
func (e *SCPI) Hear() []byte {
	if len(e.out) == 0 {
		return nil
	}
	line := e.out[0]
	e.out = e.out[1:]
	return []byte(line)
}

// Client speaks to it.
func (e *SCPI) Client() *hal.BoxClient { return scpi.NewClient() }

// End ends its answers.
func (e *SCPI) End() byte { return '\n' }

// HangUp is the end of a connection.
func (e *SCPI) HangUp() { e.server, e.out = scpi.NewServer(e), nil }

// Restart loses all connections.
func (e *SCPI) Restart() {
	e.HangUp()
	e.Box.Map = nil
}

// Lock is another user's, "" nobody's.
func (e *SCPI) Lock(owner string) { e.Locked = owner }

// Lit are the connections that no shutter closes.
func (e *SCPI) Lit() (out []circuit.Pair) {
	for _, p := range e.Box.Map {
		out = append(out, circuit.Pair{A: p.In, B: p.Out})
	}
	return open(out, e.Closed, e.Box.In)
}

// Cut takes away what has one of two ports.
func (e *SCPI) Cut(a, b uint16) {
	e.Box.Map = slices.DeleteFunc(e.Box.Map, func(p hal.PortPair) bool { return p.In == a || p.Out == b })
}

// Join makes a connection at the box.
func (e *SCPI) Join(a, b uint16, _ string) {
	e.Cut(a, b)
	e.Box.Map = append(e.Box.Map, hal.PortPair{In: a, Out: b})
}
