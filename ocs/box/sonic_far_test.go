package box_test

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

// sonicEnd is a simulated box that runs SONiC, with the manners that its makers' pages tell
// of: a key that is there is passed over and counted; of one new connection in the way of
// another the new one is invalid, of two or more the old ones; states come late.
type sonicEnd struct {
	server sonic.Server
	ports  int
	out    []byte

	wanted   []sonic.Connection    // its list, kept over a reboot
	made     map[string]*sonicMade // of it, by key
	override map[string]string     // by port
	labels   map[string]string     //
	cards    [hal.NumSides][]bool  // ports whose driver card is out
	clock    int                   // requests so far
	lag      int                   // requests until a state is told
	swallow  int                   // sets that are acknowledged and not done
	failing  int                   // sets that are done and reported as failed
	locked   string                // by another user
	plain    bool                  // it does not know bulk-update
	piece    int                   // bytes at a time; 0: all
	before   func(s *sonicEnd)     // somebody else, before the next set
	losses   []sonic.FactoryLoss   //
}

type sonicMade struct {
	a, b    int
	invalid bool
	since   int
}

func newSonicEnd(ports int, dialect sonic.Dialect) *sonicEnd {
	s := &sonicEnd{ports: ports, made: map[string]*sonicMade{}, override: map[string]string{}, labels: map[string]string{}}
	s.server = sonic.Server{Box: s, Dialect: dialect}
	for side := range s.cards {
		s.cards[side] = make([]bool, ports)
	}
	return s
}

func (s *sonicEnd) client() *hal.BoxClient {
	return sonic.NewClient(sonic.Config{Host: "box", Dialect: sonic.Auto, User: "u", Password: "pw"})
}

func name(side, port int) string { return fmt.Sprint(port+1) + string("AB"[side]) }

func pairOf(c sonic.Connection) (a, b int) {
	if _, err := fmt.Sscanf(c.A+" "+c.B, "%dA %dB", &a, &b); err != nil {
		panic(err)
	}
	return a - 1, b - 1
}

// View is what the box says, which may be late.
func (s *sonicEnd) View() sonic.View {
	var v sonic.View
	for side := range v.Ports {
		v.Ports[side] = make([]sonic.Port, s.ports)
		for port := range v.Ports[side] {
			p := &v.Ports[side][port]
			p.Label = s.labels[name(side, port)]
			if p.Override, p.Light = s.override[name(side, port)], "blocked"; p.Override == "" {
				p.Override = "normal"
			}
		}
	}
	for _, c := range s.wanted {
		a, b := pairOf(c)
		p := sonic.Path{Connection: c}
		m := s.made[c.ID]
		out := s.cards[0][a] || s.cards[1][b]
		switch {
		case m == nil || out && s.clock%2 == 0: // no row
		case m.invalid:
			p.Status = "invalid"
		default:
			v.Ports[0][a].Target, v.Ports[1][b].Target = name(1, b), name(0, a)
			for side, port := range [...]int{a, b} {
				switch q := &v.Ports[side][port]; {
				case q.Override != "normal":
				case s.clock-m.since < s.lag:
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
		if s.clock-sinceOf(m) < s.lag/2 {
			p.Status = ""
		}
		v.Paths = append(v.Paths, p)
	}
	for side := range s.cards {
		for port, out := range s.cards[side] {
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

// lit are the connections that have light, whoever asked for them.
func (s *sonicEnd) lit() (out []circuit.Pair) {
	for _, m := range s.made { // any order: sorted below
		if !m.invalid && !s.cards[0][m.a] && !s.cards[1][m.b] && s.override[name(0, m.a)] == "" && s.override[name(1, m.b)] == "" {
			out = append(out, circuit.Pair{A: uint16(m.a), B: uint16(m.b)})
		}
	}
	slices.SortFunc(out, func(p, q circuit.Pair) int { return int(p.A) - int(q.A) })
	return out
}

// Update does as such a box's own.
func (s *sonicEnd) Update(remove []string, add []sonic.Connection) (failed []string, err error) {
	if s.before != nil {
		do := s.before
		s.before = nil
		do(s)
	}
	switch {
	case s.locked != "":
		return nil, sonic.Refuse("in-use", "", "locked by %s", s.locked)
	case s.swallow > 0:
		s.swallow--
		return nil, nil
	}
	for _, key := range remove {
		s.wanted = slices.DeleteFunc(s.wanted, func(c sonic.Connection) bool { return c.ID == key })
		delete(s.made, key)
	}
	var fresh []sonic.Connection
	for _, c := range add {
		if s.made[c.ID] == nil {
			s.wanted = append(s.wanted, c)
			fresh = append(fresh, c)
		}
	}
	s.make(fresh)
	if s.failing > 0 {
		s.failing--
		return nil, fmt.Errorf("a table was not written")
	}
	return nil, nil
}

// make: one alone gives way, several have it.
func (s *sonicEnd) make(fresh []sonic.Connection) {
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

// reboot makes its list anew, one by one.
func (s *sonicEnd) reboot(keeps bool) {
	clear(s.made)
	if !keeps {
		s.wanted = nil
	}
	for _, c := range s.wanted {
		s.make([]sonic.Connection{c})
	}
}

func (s *sonicEnd) SetPorts(list []sonic.PortSetting) error {
	if s.locked != "" {
		return sonic.Refuse("in-use", "", "locked by %s", s.locked)
	}
	for _, p := range list {
		if p.Label != nil {
			s.labels[name(p.Side, p.Port)] = *p.Label
		}
		if p.Override != nil {
			s.override[name(p.Side, p.Port)] = strings.TrimSuffix(*p.Override, "normal")
		}
	}
	return nil
}

func (s *sonicEnd) Losses(string) []sonic.FactoryLoss { return s.losses }

// say takes a request.
func (s *sonicEnd) say(b []byte) {
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
	case s.plain && strings.Contains(r.RequestURI, "bulk-update"):
		status, reply = 404, nil
	}
	s.out = fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/yang-data+json\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(reply), reply)
}

func (s *sonicEnd) hear() []byte {
	n := min(len(s.out), boxPiece)
	if s.piece > 0 {
		n = min(n, s.piece)
	}
	b := slices.Clone(s.out[:n])
	s.out = s.out[n:]
	return b
}

const boxPiece = 16 << 10
