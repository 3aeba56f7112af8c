package sonic

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ringlight/hal"
)

// maxReply bounds an answer. chosen: four times the ports of the widest box of the field,
// 2 x 1,024, in its own words.
const maxReply = 1 << 20

// maxPorts of a side. chosen: those of the widest box of the field.
const maxPorts = 1024

// Config is what a client must know of a box.
type Config struct {
	Host           string // of its address
	Dialect        Dialect
	User, Password string // "": it asks for none
}

// NewClient makes a client of a box.
func NewClient(cfg Config) *hal.BoxClient {
	l := &language{cfg: cfg, bulk: true}
	if cfg.User != "" {
		l.login = base64.StdEncoding.EncodeToString([]byte(cfg.User + ":" + cfg.Password))
	}
	return hal.NewBoxClient(l, hal.BoxState{Shutters: true, Identity: "sonic-ocs"})
}

// language is the box's, as a client speaks it.
type language struct {
	cfg     Config
	login   string
	dialect Dialect // found
	bulk    bool    // it knows bulk-update, as far as it has said
	reply   []byte  // of the answer, so far

	wanted []Connection
	keys   map[hal.PortPair][]string // of its list
	states map[string]connectionState
	ports  map[string]portState
	forced map[string]bool // ports that are not to be normal
}

// Secret is who logs in, and with what.
func (l *language) Secret() []byte { return []byte(l.login) }

// Exchanges: to read is what is wanted, what is made, and of the ports both. Without
// bulk-update each key is deleted alone.
func (l *language) Exchanges(v hal.BoxVerb, alone bool, s *hal.BoxState) int {
	switch {
	case v == hal.BoxRead:
		return 4
	case v == hal.BoxGreet || v == hal.BoxPorts:
		return 2
	case v == hal.BoxRemove && !l.bulk && !alone || v == hal.BoxMeter:
		return 0
	}
	return 1
}

// Say appends a request.
func (l *language) Say(dst []byte, w hal.BoxWord, s *hal.BoxState) []byte {
	l.reply = l.reply[:0]
	tables := l.dialect == Tables
	switch {
	case w.Verb == hal.BoxGreet && w.N == 1:
		return l.request(dst, "GET", root+module+"/OCS_PORT_TABLE", nil)
	case w.Verb == hal.BoxGreet || w.Verb == hal.BoxPorts && w.N == 0 || w.Verb == hal.BoxRead && w.N == 2:
		return l.request(dst, "GET", root+module+"/OCS_PORT", nil)
	case w.Verb == hal.BoxRead && w.N == 0:
		return l.request(dst, "GET", root+module+"/OCS_CROSS_CONNECT", nil)
	case w.Verb == hal.BoxRead && w.N == 1 && tables:
		return l.request(dst, "GET", root+module+"/OCS_CROSS_CONNECT_TABLE", nil)
	case w.Verb == hal.BoxRead && w.N == 1:
		return l.request(dst, "GET", root+states+"/OCS_CROSS_CONNECT", nil)
	case w.Verb == hal.BoxRead || w.Verb == hal.BoxPorts:
		path := states + "/OCS_PORT"
		if tables {
			path = module + "/OCS_PORT_TABLE"
		}
		return l.request(dst, "GET", root+path, nil)
	case w.Verb == hal.BoxRemove || w.Verb == hal.BoxCreate:
		return l.set(dst, w)
	}
	list := make([]portConfig, len(w.Ports))
	for i, p := range w.Ports {
		word := map[bool]string{true: forceBlocked, false: normal}[w.Verb == hal.BoxBlock]
		if list[i].ID = portName(p/s.In, p%s.In); tables {
			list[i].ConfigStatus = word
		} else {
			list[i].State = word
		}
	}
	return l.request(dst, "PATCH", root+module+"/OCS_PORT", map[string]any{"sonic-ocs:OCS_PORT": map[string]any{"OCS_PORT_LIST": list}})
}

// set appends what takes connections away or makes them.
func (l *language) set(dst []byte, w hal.BoxWord) []byte {
	var b bulk
	for _, p := range w.Pairs {
		a, z := portName(hal.SideA, int(p.In)), portName(hal.SideB, int(p.Out))
		if w.Verb == hal.BoxRemove {
			b.Delete = append(b.Delete, l.keys[p]...)
		} else {
			b.Add = append(b.Add, Connection{ID: a + "-" + z, A: a, B: z})
		}
	}
	switch {
	case l.bulk:
		return l.request(dst, "POST", bulkUpdate, map[string]any{"sonic-ocs:input": b})
	case w.Verb == hal.BoxRemove: // of a second key of the same ports the next try is
		return l.request(dst, "DELETE", root+module+"/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST="+url.PathEscape(strings.Join(b.Delete[:min(1, len(b.Delete))], "")), nil)
	}
	return l.request(dst, "PATCH", root+module+"/OCS_CROSS_CONNECT", map[string]any{"sonic-ocs:OCS_CROSS_CONNECT": map[string]any{"OCS_CROSS_CONNECT_LIST": b.Add}})
}

func (l *language) request(dst []byte, method, path string, body any) []byte {
	dst = fmt.Appendf(dst, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nConnection: close\r\n", method, path, l.cfg.Host, mediaType)
	if l.login != "" {
		dst = fmt.Appendf(dst, "Authorization: Basic %s\r\n", l.login)
	}
	if body == nil {
		return append(dst, "\r\n"...)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic("sonic: strings always encode: " + err.Error())
	}
	return append(fmt.Appendf(dst, "Content-Type: %s\r\nContent-Length: %d\r\n\r\n", mediaType, len(raw)), raw...)
}

// Hear takes bytes that arrived; none: the connection has ended.
func (l *language) Hear(b []byte, w hal.BoxWord, s *hal.BoxState) (done bool, err error) {
	if l.reply = append(l.reply, b...); len(l.reply) > maxReply {
		return true, bad("over %d bytes", maxReply)
	}
	status, body, whole := parseReply(l.reply)
	switch {
	case status == 0 && len(b) == 0:
		return true, bad("%.60q, cut short", l.reply)
	case status == 0 || !whole && len(b) > 0:
		return false, nil
	}
	return true, l.answered(status, body, w, s)
}

// parseReply reads an answer; status 0: there is more to come. What tells no length is
// whole when the connection ends.
func parseReply(raw []byte) (status int, body []byte, whole bool) {
	r, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		return 0, nil, false
	}
	if body, err = io.ReadAll(r.Body); err != nil {
		return 0, nil, false
	}
	return r.StatusCode, body, r.ContentLength >= 0 || len(r.TransferEncoding) > 0
}

func bad(format string, args ...any) error {
	return fmt.Errorf("sonic: answer %s: %w", fmt.Sprintf(format, args...), hal.ErrBoxReply)
}

// answered takes a whole answer. A list that is empty is not there, to boxes of the field.
func (l *language) answered(status int, body []byte, w hal.BoxWord, s *hal.BoxState) error {
	read := w.Verb == hal.BoxGreet || w.Verb == hal.BoxRead || w.Verb == hal.BoxPorts
	switch ok := status/100 == 2; {
	case !read && status == http.StatusNotFound && w.Verb == hal.BoxRemove && !l.bulk: // it is gone
	case !ok && !read && l.bulk && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented):
		l.bulk = false
		return hal.BoxRefusal("bulk-update is not known")
	case !ok && (!read || status == http.StatusUnauthorized || status == http.StatusForbidden):
		return hal.BoxRefusal(refusal(status, body)) // whether it did it all the same is read
	case !ok && status != http.StatusNotFound && !(w.Verb == hal.BoxGreet && w.N == 1):
		return bad("%s to what is", refusal(status, body))
	case !read:
		var r struct {
			Output bulkResult `json:"sonic-ocs:output"`
		}
		if json.Unmarshal(body, &r) == nil && len(r.Output.Failed) > 0 {
			return hal.BoxRefusal("failed_keys " + strings.Join(r.Output.Failed, " "))
		}
		return nil
	case !ok:
		body = nil
	}
	switch {
	case w.Verb == hal.BoxGreet && w.N == 0:
		return l.size(body, s)
	case w.Verb == hal.BoxGreet:
		return l.dialectOf(body)
	case w.Verb == hal.BoxPorts && w.N == 0 || w.Verb == hal.BoxRead && w.N == 2:
		return l.overrides(body)
	case w.N == 0:
		return l.list(body, s)
	case w.Verb == hal.BoxRead && w.N == 1:
		list, err := rows[connectionState](body)
		l.states = map[string]connectionState{}
		for _, c := range list {
			l.states[c.ID] = c
		}
		return err
	}
	list, err := rows[portState](body)
	l.ports = map[string]portState{}
	for _, p := range list {
		l.ports[p.ID] = p
	}
	if l.judge(s); w.Verb == hal.BoxPorts {
		s.Blocked = slices.DeleteFunc(slices.Clone(w.Ports), func(p int) bool {
			name := portName(p/s.In, p%s.In)
			return !l.forced[name] || l.light(name) == connected
		})
	}
	return err
}

// refusal is what an answer says is wrong.
func refusal(status int, body []byte) string {
	var e restErrors
	if json.Unmarshal(body, &e) == nil && len(e.Errors.List) > 0 && e.Errors.List[0].Message != "" {
		return e.Errors.List[0].Message
	}
	return fmt.Sprintf("%d %s", status, http.StatusText(status))
}

// rows are the entries of the one list of an answer; nil: it has none.
func rows[T any](body []byte) ([]T, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	var container map[string]map[string][]T
	if err := json.Unmarshal(body, &container); err != nil {
		return nil, bad("%.60q: %v", body, err)
	}
	for _, lists := range container { // any order: there is one
		for _, list := range lists { // any order: there is one
			return list, nil
		}
	}
	return nil, nil
}

// size is that of the numbers of its ports.
func (l *language) size(body []byte, s *hal.BoxState) error {
	list, err := rows[portConfig](body)
	sides := [hal.NumSides]int{}
	l.dialect = l.cfg.Dialect
	for _, p := range list {
		side, port, ok := parsePort(p.ID)
		if !ok || port >= maxPorts {
			return bad("port %.40q", p.ID)
		}
		if sides[side] = max(sides[side], port+1); l.cfg.Dialect == Auto && p.ConfigStatus != "" {
			l.dialect = Tables
		} else if l.cfg.Dialect == Auto && p.State != "" {
			l.dialect = States
		}
	}
	if err == nil && sides[0]*sides[1] == 0 {
		err = bad("without ports: OCS_PORT has none of side A or B")
	}
	s.In, s.Out = sides[0], sides[1]
	return err
}

// dialectOf: of ports of which nothing is wanted, a table tells.
func (l *language) dialectOf(body []byte) error {
	list, err := rows[portState](body)
	if l.dialect != Auto {
		return nil
	}
	if l.dialect = States; len(list) > 0 {
		l.dialect = Tables
	}
	return err
}

func (l *language) overrides(body []byte) error {
	list, err := rows[portConfig](body)
	l.forced = map[string]bool{}
	for _, p := range list {
		l.forced[p.ID] = cmp.Or(p.ConfigStatus, p.State, normal) != normal
	}
	return err
}

// list takes what is wanted of the box. What is no connection of its sides is left alone.
func (l *language) list(body []byte, s *hal.BoxState) (err error) {
	l.wanted, err = rows[Connection](body)
	l.keys = map[hal.PortPair][]string{}
	l.wanted = slices.DeleteFunc(l.wanted, func(c Connection) bool {
		a, b, err := c.Ports()
		if err != nil || a >= s.In || b >= s.Out {
			return true
		}
		p := hal.PortPair{In: uint16(a), Out: uint16(b)}
		l.keys[p] = append(l.keys[p], c.ID)
		return false
	})
	return err
}

// light is the word for a port, "" where there is none.
func (l *language) light(port string) string {
	word := cmp.Or(l.ports[port].OperStatus, l.ports[port].Status)
	if word == tuned {
		return connected
	}
	return word
}

// judge works out what is made of what is wanted, and its light. Of two that want a port
// one is made, which the port's target tells where no state does.
func (l *language) judge(s *hal.BoxState) {
	s.Map, s.Stale, s.Lights = s.Map[:0:0], nil, map[hal.PortPair]hal.BoxLight{}
	for _, c := range l.wanted {
		a, b, _ := c.Ports() // it was kept for being one
		p := hal.PortPair{In: uint16(a), Out: uint16(b)}
		from, to := portName(hal.SideA, a), portName(hal.SideB, b)
		rival := slices.ContainsFunc(l.wanted, func(r Connection) bool {
			x, y, _ := r.Ports()
			return (x == a) != (y == b) && l.ports[portName(hal.SideA, x)].Target == portName(hal.SideB, y)
		})
		lost := rival && l.ports[from].Target != to
		if st := l.states[c.ID]; st.Status == invalid || lost {
			if !slices.Contains(s.Map, p) {
				s.Stale = append(s.Stale, p)
			}
			continue
		}
		s.Stale = slices.DeleteFunc(s.Stale, func(q hal.PortPair) bool { return q == p }) // of another key
		if !slices.Contains(s.Map, p) {
			s.Map = append(s.Map, p)
		}
		s.Lights[p] = l.lightOf(l.states[c.ID], from, to)
	}
	slices.SortFunc(s.Map, func(p, q hal.PortPair) int { return cmp.Or(cmp.Compare(p.In, q.In), cmp.Compare(p.Out, q.Out)) })
}

// lightOf is what the box says of a connection's light: the worse of its ports.
func (l *language) lightOf(st connectionState, from, to string) hal.BoxLight {
	words := [...]string{cmp.Or(l.light(from), "not said"), cmp.Or(l.light(to), "not said")}
	has := func(word string) bool { return words[0] == word || words[1] == word }
	light := hal.BoxLight{Text: fmt.Sprintf("%s is %s, %s is %s", from, words[0], to, words[1])}
	if st.Status != "" {
		light.Text = st.Status + ", " + light.Text
	}
	switch both := words[0] == connected && words[1] == connected; {
	case both:
		light.Lit = st.Status != disabled
		light.Tuning = !light.Lit // one of the two is older
	case has(tuning) && !has(failed) && !has(poweredOff):
		light.Tuning = true
	case l.forced[from] || l.forced[to]:
		light.Blocked = true
	}
	if milli, ok := hal.ParseMilli(string(st.Loss)); ok && light.Lit {
		light.MilliDB = milli
	}
	return light
}
