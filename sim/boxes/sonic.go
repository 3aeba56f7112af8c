package boxes

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"ringlight/hal"
	"ringlight/hal/sonic"
	"ringlight/ocs/circuit"
)

// Sonic is a box that runs SONiC, with the manners that its makers' pages tell
// of: a key that is there is passed over and counted; of one new connection in the way of
// another the new one is invalid, of two or more the old ones; states come late.
type Sonic struct {
	dark
	server sonic.Server
	out    []byte
	made   map[string]*sonicMade // of Wanted, by key
	clock  int                   // requests so far

	Ports    int
	Wanted   []sonic.Connection   // its list, kept over a reboot
	Override map[string]string    // by port
	Labels   map[string]string    //
	Cards    [hal.NumSides][]bool // ports whose driver card is out
	Lag      int                  // requests until a state is told
	Swallow  int                  // sets that are acknowledged and not done
	Failing  int                  // sets that are done and reported as failed
	Locked   string               // by another user
	Plain    bool                 // it does not know bulk-update
	Piece    int                  // bytes at a time; 0: all
	Before   func(s *Sonic)       // somebody else, before the next set
	Factory  []sonic.FactoryLoss  //
}

type sonicMade struct {
	a, b    int
	invalid bool
	since   int
}

func NewSonic(ports int, dialect sonic.Dialect) *Sonic {
	s := &Sonic{Ports: ports, made: map[string]*sonicMade{}, Override: map[string]string{}, Labels: map[string]string{}}
	s.server = sonic.Server{Box: s, Dialect: dialect}
	for side := range s.Cards {
		s.Cards[side] = make([]bool, ports)
	}
	return s
}

// Client speaks to it.
func (s *Sonic) Client() *hal.BoxClient {
	return sonic.NewClient(sonic.Config{Host: "box", Dialect: sonic.Auto, User: "u", Password: "pw"})
}

// Name is a port, counted from 0, as it calls it.
func Name(side, port int) string { return fmt.Sprint(port+1) + string("AB"[side]) }

func pairOf(c sonic.Connection) (a, b int) {
	if _, err := fmt.Sscanf(c.A+" "+c.B, "%dA %dB", &a, &b); err != nil {
		panic(err)
	}
	return a - 1, b - 1
}

// View is what the box says, which may be late.
func (s *Sonic) View() sonic.View {
	var v sonic.View
	for side := range v.Ports {
		v.Ports[side] = make([]sonic.Port, s.Ports)
		for port := range v.Ports[side] {
			p := &v.Ports[side][port]
			p.Label = s.Labels[Name(side, port)]
			if p.Override, p.Light = s.Override[Name(side, port)], "blocked"; p.Override == "" {
				p.Override = "normal"
			}
		}
	}
	for _, c := range s.Wanted {
		a, b := pairOf(c)
		p := sonic.Path{Connection: c}
		m := s.made[c.ID]
		out := s.Cards[0][a] || s.Cards[1][b]
		switch {
		case m == nil || out && s.clock%2 == 0: // no row
		case m.invalid:
			p.Status = "invalid"
		default:
			v.Ports[0][a].Target, v.Ports[1][b].Target = Name(1, b), Name(0, a)
			for side, port := range [...]int{a, b} {
				switch q := &v.Ports[side][port]; {
				case q.Override != "normal":
				case s.clock-m.since < s.Lag, s.isDark(a):
					q.Light = "tuning"
				case out:
					q.Light = "failed"
				default:
					q.Light = "connected"
				}
			}
			p.Status = "disabled"
			if v.Ports[0][a].Light == "connected" && v.Ports[1][b].Light == "connected" {
				p.Status, p.MilliDB = "enabled", 1230
			}
		}
		if s.clock-sinceOf(m) < s.Lag/2 {
			p.Status = ""
		}
		v.Paths = append(v.Paths, p)
	}
	for side := range s.Cards {
		for port, out := range s.Cards[side] {
			if out {
				v.Ports[side][port].Light = ""
			}
		}
	}
	return v
}

func sinceOf(m *sonicMade) int {
	if m == nil {
		return 0
	}
	return m.since
}

// Lit are the connections that have light, whoever asked for them.
func (s *Sonic) Lit() (out []circuit.Pair) {
	for _, m := range s.made { // any order: sorted below
		if !m.invalid && !s.Cards[0][m.a] && !s.Cards[1][m.b] && s.Override[Name(0, m.a)] == "" && s.Override[Name(1, m.b)] == "" {
			out = append(out, circuit.Pair{A: uint16(m.a), B: uint16(m.b)})
		}
	}
	slices.SortFunc(out, func(p, q circuit.Pair) int { return int(p.A) - int(q.A) })
	return out
}

// Update does as such a box's own.
func (s *Sonic) Update(remove []string, add []sonic.Connection) (failed []string, err error) {
	if s.Before != nil {
		do := s.Before
		s.Before = nil
		do(s)
	}
	switch {
	case s.Locked != "":
		return nil, sonic.Refuse("in-use", "", "locked by %s", s.Locked)
	case s.Swallow > 0:
		s.Swallow--
		return nil, nil
	}
	for _, key := range remove {
		s.Wanted = slices.DeleteFunc(s.Wanted, func(c sonic.Connection) bool { return c.ID == key })
		delete(s.made, key)
	}
	var fresh []sonic.Connection
	for _, c := range add {
		if s.made[c.ID] == nil {
			s.Wanted = append(s.Wanted, c)
			fresh = append(fresh, c)
		}
	}
	s.make(fresh)
	if s.Failing > 0 {
		s.Failing--
		return nil, fmt.Errorf("a table was not written")
	}
	return nil, nil
}

// make: one alone gives way, several have it.
func (s *Sonic) make(fresh []sonic.Connection) {
	inWay := func(a, b int) (keys []string) {
		for key, m := range s.made { // any order: all are treated alike
			if !m.invalid && (m.a == a || m.b == b) {
				keys = append(keys, key)
			}
		}
		return keys
	}
	for _, c := range fresh {
		a, b := pairOf(c)
		m := &sonicMade{a: a, b: b, since: s.clock}
		if rivals := inWay(a, b); len(fresh) > 1 {
			for _, key := range rivals {
				s.made[key].invalid = true
			}
		} else {
			m.invalid = len(rivals) > 0
		}
		s.made[c.ID] = m
	}
}

// Reboot makes its list anew, one by one.
func (s *Sonic) Reboot(keeps bool) {
	clear(s.made)
	if !keeps {
		s.Wanted = nil
	}
	for _, c := range s.Wanted {
		s.make([]sonic.Connection{c})
	}
}

// SetPorts does as such a box's own.
func (s *Sonic) SetPorts(list []sonic.PortSetting) error {
	if s.Locked != "" {
		return sonic.Refuse("in-use", "", "locked by %s", s.Locked)
	}
	for _, p := range list {
		if p.Label != nil {
			s.Labels[Name(p.Side, p.Port)] = *p.Label
		}
		if p.Override != nil {
			s.Override[Name(p.Side, p.Port)] = strings.TrimSuffix(*p.Override, "normal")
		}
	}
	return nil
}

// Losses are its maker's.
func (s *Sonic) Losses(string) []sonic.FactoryLoss { return s.Factory }

// Say takes a request.
func (s *Sonic) Say(b []byte) {
	if len(b) == 0 {
		return // more of the answer is waited for
	}
	s.out = nil
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		s.out = []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.clock++
	status, reply := s.server.Answer(r.Method, r.RequestURI, body)
	switch user, password, _ := r.BasicAuth(); {
	case user != "u" || password != "pw":
		status, reply = sonic.ErrorReply(&sonic.Error{Status: 401, Tag: "access-denied", Message: "who are you"})
	case s.Plain && strings.Contains(r.RequestURI, "bulk-update"):
		status, reply = 404, nil
	}
	s.out = fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/yang-data+json\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(reply), reply)
}

// Hear is what it answers, up to what one read takes.
func (s *Sonic) Hear() []byte {
	n := min(len(s.out), onePiece)
	if s.Piece > 0 {
		n = min(n, s.Piece)
	}
	b := slices.Clone(s.out[:n])
	s.out = s.out[n:]
	return b
}

const onePiece = 16 << 10

// End ends none of its answers.
func (s *Sonic) End() byte { return 0 }

// HangUp is the end of a connection.
func (s *Sonic) HangUp() { s.out = nil }

// Restart loses its list.
func (s *Sonic) Restart() {
	s.HangUp()
	s.Reboot(false)
}

// Lock is another user's, "" nobody's.
func (s *Sonic) Lock(owner string) { s.Locked = owner }

// Cut takes away what has one of two ports.
func (s *Sonic) Cut(a, b uint16) {
	locked := s.Locked
	s.Locked = ""
	for _, c := range slices.Clone(s.Wanted) {
		if x, y := pairOf(c); x == int(a) || y == int(b) {
			_, _ = s.Update([]string{c.ID}, nil)
		}
	}
	s.Locked = locked
}

// Join makes a connection at the box: what is in its way stays in the list, and is invalid.
func (s *Sonic) Join(a, b uint16, group string) {
	for _, m := range s.made { // any order: all are treated alike
		m.invalid = m.invalid || m.a == int(a) || m.b == int(b)
	}
	c := sonic.Connection{ID: fmt.Sprint(group, a, b), A: Name(0, int(a)), B: Name(1, int(b))}
	s.Wanted = append(slices.DeleteFunc(s.Wanted, func(o sonic.Connection) bool { return o.ID == c.ID }), c)
	delete(s.made, c.ID)
	s.make([]sonic.Connection{c})
}
