package scpi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/hal"
)

// Box is what a Server drives.
type Box interface {
	// State is how the box stands; busy says that a change is under way still.
	State() (state hal.BoxState, busy bool)
	// Change carries out what a command asks. Connections in its way give way.
	Change(goal hal.BoxGoal) error
}

// Limits of a server.
const (
	MaxQueue  = 64 // commands that wait behind an *OPC?
	maxErrors = 32 // that nobody has asked for
)

// Errors of the standard's list.
const (
	errNone      = `0,"No error"`
	errHeader    = `-113,"Undefined header"`
	errParameter = `-108,"Parameter not allowed"`
	errRange     = `-222,"Data out of range"`
	errExecution = `-200,"Execution error;%s"`
	errOverflow  = `-350,"Queue overflow"`
	errBuffer    = `-363,"Input buffer overrun"`
	errTooLong   = `-223,"Too much data"`
)

// Server answers lines as a Polatis would. Commands are carried out one after
// the other; *OPC? waits for the light, and everything behind it with it.
type Server struct {
	box    Box
	queue  []queued
	errors []string
	made   []hal.PortPair // of which nobody knows yet whether they were
}

// maxReason bounds what is said of an error, in bytes. chosen: the standard's 255 with the
// error's own name.
const maxReason = 200

// queued is one command; last ends its line.
type queued struct {
	text string
	last bool
}

// NewServer makes a Server of a box.
func NewServer(box Box) *Server { return &Server{box: box} }

// Take takes one line; its commands are carried out by Poll.
func (s *Server) Take(line []byte) {
	if len(line) > MaxLine {
		s.fail(errTooLong)
		return
	}
	parts := strings.Split(strings.TrimSpace(string(line)), ";")
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if p == "" && i < len(parts)-1 || p == "" && i == 0 {
			continue
		}
		if len(s.queue) >= MaxQueue {
			s.fail(errBuffer)
			return
		}
		s.queue = append(s.queue, queued{p, i == len(parts)-1})
	}
}

// Poll carries out what can be, and appends the replies. Replies to the queries
// of one line are one line, separated by semicolons.
func (s *Server) Poll(dst []byte) []byte {
	for len(s.queue) > 0 {
		q := s.queue[0]
		if state, busy := s.box.State(); !busy {
			s.ended(state)
		} else if strings.EqualFold(q.text, "*OPC?") {
			return dst
		}
		reply := s.execute(q.text)
		s.queue = append(s.queue[:0], s.queue[1:]...)
		if reply != "" {
			if n := len(dst); n > 0 && dst[n-1] != '\n' {
				dst = append(dst, ';')
			}
			dst = append(dst, reply...)
		}
		if n := len(dst); q.last && n > 0 && dst[n-1] != '\n' {
			dst = append(dst, '\n')
		}
	}
	return dst
}

// ended queues an error for each connection that was asked for and did not come about.
func (s *Server) ended(state hal.BoxState) {
	for _, p := range s.made {
		err, refused := state.Refused[p]
		if !refused && !slices.Contains(state.Map, p) {
			err = hal.ErrBoxNotMade
		}
		if err != nil {
			s.failed(string(appendPairs(nil, []hal.PortPair{p}, state.In)) + " " + err.Error())
		}
	}
	s.made = s.made[:0]
}

// failed queues an execution error with its reason, which must not end the string.
func (s *Server) failed(why string) {
	why = strings.NewReplacer(`"`, "'", "\n", " ", "\r", " ").Replace(why)
	s.fail(fmt.Sprintf(errExecution, why[:min(len(why), maxReason)]))
}

func (s *Server) fail(what string) {
	if len(s.errors) == maxErrors {
		s.errors[maxErrors-1] = errOverflow
		return
	}
	s.errors = append(s.errors, what)
}

// Headers, by their short and long forms: a keyword matches either.
var headers = []struct {
	form string
	run  func(s *Server, arg string) string
}{
	{"*IDN?", (*Server).identity},
	{"*OPC?", func(*Server, string) string { return "1" }},
	{"*CLS", func(s *Server, _ string) string { s.errors = s.errors[:0]; return "" }},
	{"*RST", func(s *Server, _ string) string { s.errors = s.errors[:0]; return "" }},
	{":SYSTem:ERRor?", func(s *Server, _ string) string { return s.tell(min(1, len(s.errors))) }},
	{":SYSTem:ERRor:ALL?", func(s *Server, _ string) string { return s.tell(len(s.errors)) }},
	{":OXC:SWITch:SIZE?", (*Server).size},
	{":OXC:SWITch:CONNect:ADD", set(func(p []hal.PortPair) hal.BoxGoal { return hal.BoxGoal{Create: p} })},
	{":OXC:SWITch:CONNect:SUB", set(func(p []hal.PortPair) hal.BoxGoal { return hal.BoxGoal{Remove: p} })},
	{":OXC:SWITch:CONNect:ONLY", set(func(p []hal.PortPair) hal.BoxGoal { return hal.BoxGoal{Only: true, Create: p} })},
	{":OXC:SWITch:DISConnect:ALL", func(s *Server, _ string) string { s.change(hal.BoxGoal{Only: true}); return "" }},
	{":OXC:SWITch:CONNect:STATe?", (*Server).state},
	{":OXC:SWITch:CONNect:PORT?", (*Server).port},
	{":PMON:POWer?", (*Server).power},
}

func (s *Server) execute(command string) string {
	header, arg, _ := strings.Cut(command, " ")
	for i := range headers {
		if matches(headers[i].form, header) {
			return headers[i].run(s, strings.TrimSpace(arg))
		}
	}
	s.fail(errHeader)
	return ""
}

// matches compares a header with its form, whose capitals are the short one.
func matches(form, header string) bool {
	if strings.HasPrefix(form, ":") {
		form, header = form[1:], strings.TrimPrefix(header, ":")
	}
	f, h := strings.Split(form, ":"), strings.Split(header, ":")
	if len(f) != len(h) {
		return false
	}
	for i := range f {
		short := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return -1
			}
			return r
		}, f[i])
		if !strings.EqualFold(h[i], short) && !strings.EqualFold(h[i], f[i]) {
			return false
		}
	}
	return true
}

func (s *Server) identity(string) string {
	b, _ := s.box.State()
	return b.Identity
}

// tell takes so many errors out of the queue, the oldest first.
func (s *Server) tell(n int) string {
	if len(s.errors) == 0 {
		return errNone
	}
	told := strings.Join(s.errors[:n], ",")
	s.errors = append(s.errors[:0], s.errors[n:]...)
	return told
}

func (s *Server) size(string) string {
	b, _ := s.box.State()
	return fmt.Sprintf("%d,%d", b.In, b.Out)
}

func (s *Server) change(goal hal.BoxGoal) {
	if err := s.box.Change(goal); err != nil {
		s.failed(err.Error())
		return
	}
	s.made = slices.DeleteFunc(s.made, func(p hal.PortPair) bool {
		return goal.Only || slices.Contains(goal.Remove, p) || slices.ContainsFunc(goal.Create, func(q hal.PortPair) bool { return q.In == p.In || q.Out == p.Out })
	})
	s.made = append(s.made, goal.Create...)
}

// pairs reads the two lists of a command, which name the same number of ports,
// each once.
func (s *Server) pairs(arg string) ([]hal.PortPair, bool) {
	b, _ := s.box.State()
	in, out, err := parseLists(arg)
	if err != nil {
		s.fail(errParameter)
		return nil, false
	}
	if asked := in; len(out) == 0 && len(in) > 0 { // whatever these inputs are connected to
		in = nil
		for _, p := range b.Map {
			if slices.Contains(asked, int(p.In)+1) {
				in, out = append(in, int(p.In)+1), append(out, b.In+int(p.Out)+1)
			}
		}
	}
	if len(in) != len(out) {
		s.fail(errParameter)
		return nil, false
	}
	var pairs []hal.PortPair
	seen := map[int]bool{}
	for i, a := range in {
		o := out[i]
		if a > b.In || o <= b.In || o > b.In+b.Out || seen[a] || seen[o] {
			s.fail(errRange)
			return nil, false
		}
		seen[a], seen[o] = true, true
		pairs = append(pairs, hal.PortPair{In: uint16(a - 1), Out: uint16(o - b.In - 1)})
	}
	return pairs, true
}

// set is a command that names connections.
func set(goal func(pairs []hal.PortPair) hal.BoxGoal) func(s *Server, arg string) string {
	return func(s *Server, arg string) string {
		if pairs, ok := s.pairs(arg); ok {
			s.change(goal(pairs))
		}
		return ""
	}
}

func (s *Server) state(string) string {
	b, _ := s.box.State()
	return string(appendPairs(nil, b.Map, b.In))
}

// port answers with the other end, of a port of either side.
func (s *Server) port(arg string) string {
	b, _ := s.box.State()
	n, err := port(arg)
	if err != nil || n > b.In+b.Out {
		s.fail(errRange)
		return ""
	}
	for _, p := range b.Map {
		switch n {
		case int(p.In) + 1:
			return strconv.Quote(strconv.Itoa(b.In + int(p.Out) + 1))
		case b.In + int(p.Out) + 1:
			return strconv.Quote(strconv.Itoa(int(p.In) + 1))
		}
	}
	return `""`
}

func (s *Server) power(arg string) string {
	b, _ := s.box.State()
	ports, rest, err := parseList(arg)
	switch {
	case err != nil || strings.TrimSpace(rest) != "":
		s.fail(errParameter)
		return ""
	case !b.HasMeters || len(b.Powers) < b.In+b.Out:
		s.failed("no power meters")
		return ""
	case len(ports) == 0 || len(ports) > maxPowerPorts:
		s.fail(errRange)
		return ""
	}
	out := []byte{'('}
	for i, p := range ports {
		if p > b.In+b.Out {
			s.fail(errRange)
			return ""
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendTenths(out, b.Powers[p-1])
	}
	return string(append(out, ')'))
}
