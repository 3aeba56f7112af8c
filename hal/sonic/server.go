package sonic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"ringlight/hal"
)

// Port is a port of a switch. Light is blocked, tuning, connected, failed or powered_off;
// "": the switch does not say.
type Port struct {
	Label    string
	Override string // normal, force_blocked or powered_off
	Light    string
	Target   string
}

// Path is a connection with how it is: enabled, disabled or invalid; "": the switch does
// not say.
type Path struct {
	Connection
	Status  string
	MilliDB int32 // 0: not measured
}

// View is a switch at a moment.
type View struct {
	Ports [hal.NumSides][]Port
	Paths []Path
}

// PortSetting is what a port is to be; nil stays as it is.
type PortSetting struct {
	Side, Port      int
	Label, Override *string
}

// Box is what a Server serves. Update takes connections away and then makes others, all or
// none; it gives the keys of which it is known already that they failed.
type Box interface {
	View() View
	Update(remove []string, add []Connection) (failed []string, err error)
	SetPorts(list []PortSetting) error // all or none
	// Losses are those of a path, by its key, or of all, "", where a switch is not too wide.
	Losses(key string) []FactoryLoss
}

// maxLosses bounds the paths of an answer. chosen: those of 64 by 64 ports, 2 MB.
const maxLosses = 64 * 64

// MaxLabel bounds a port's label. chosen: a host, its port and a remark.
const MaxLabel = 128

// recorder is a Box that keeps records of its ports, by quarters of an hour or days.
type recorder interface {
	Records(side, port int, days bool) any
}

// portRecords are a port's records.
type portRecords struct {
	ID   string `json:"simplex_port_id"`
	Bins any    `json:"BIN_LIST"`
}

// Server answers requests. Dialect: the other one's states are not there; Auto: both are.
type Server struct {
	Box     Box
	Dialect Dialect
}

// row is an entry of a list.
type row struct {
	key  string
	data any
}

// container is one of a module, with its list.
type container struct {
	module, name, list string
	dialect            Dialect
	rows               func(s *Server, v *View) []row // nil: losses, or records of days or quarters
}

var containers = []container{
	{module, "OCS_PORT", "OCS_PORT_LIST", Auto, (*Server).portConfigs},
	{module, "OCS_CROSS_CONNECT", "OCS_CROSS_CONNECT_LIST", Auto, func(_ *Server, v *View) (out []row) {
		for _, p := range v.Paths {
			out = append(out, row{p.ID, p.Connection})
		}
		return out
	}},
	{module, "OCS_PORT_TABLE", "OCS_PORT_LIST", Tables, func(_ *Server, v *View) []row { return portStates(v, true) }},
	{module, "OCS_CROSS_CONNECT_TABLE", "OCS_CROSS_CONNECT_LIST", Tables, func(_ *Server, v *View) (out []row) {
		for _, p := range v.Paths {
			if p.Status != "" {
				out = append(out, row{p.ID, connectionState{ID: p.ID, Status: p.Status, Loss: hundredths(p.MilliDB)}})
			}
		}
		return out
	}},
	{module, "OCS_FACTORY_INSERTION_LOSS_TABLE", "OCS_FACTORY_INSERTION_LOSS_LIST", Tables, nil},
	{states, "OCS_PORT", "OCS_PORT_LIST", States, func(_ *Server, v *View) []row { return portStates(v, false) }},
	{states, "OCS_CROSS_CONNECT", "OCS_CROSS_CONNECT_LIST", States, connectionStates},
	{states, "OCS_FACTORY_INSERTION_LOSS", "OCS_FACTORY_INSERTION_LOSS_LIST", States, nil},
	{records, quarters, "PORT_LIST", Auto, nil},
	{records, days, "PORT_LIST", Auto, nil},
}

// portConfigs are in the dialect's words; of both, in those of the tables.
func (s *Server) portConfigs(v *View) (out []row) {
	v.each(func(name string, p *Port) {
		c := portConfig{ID: name, Label: &p.Label}
		if c.ConfigStatus = p.Override; s.Dialect == States {
			c.State, c.ConfigStatus = p.Override, ""
		}
		out = append(out, row{name, c})
	})
	return out
}

// each goes through the ports: 1A, 1B, 2A.
func (v *View) each(do func(name string, p *Port)) {
	for port := range max(len(v.Ports[0]), len(v.Ports[1])) {
		for side := range v.Ports {
			if port < len(v.Ports[side]) {
				do(portName(side, port), &v.Ports[side][port])
			}
		}
	}
}

func portStates(v *View, tables bool) (out []row) {
	v.each(func(name string, p *Port) {
		switch {
		case p.Light == "":
		case tables:
			out = append(out, row{name, portState{ID: name, Target: p.Target, OperStatus: p.Light}})
		default:
			out = append(out, row{name, portState{ID: name, Target: p.Target, Status: statesWord(p.Light)}})
		}
	})
	return out
}

// statesWord is a word of the tables in the states' dialect, which has four.
func statesWord(light string) string {
	switch light {
	case connected:
		return tuned
	case poweredOff:
		return blocked
	}
	return light
}

// connectionStates are those whose ports both say how they are.
func connectionStates(_ *Server, v *View) (out []row) {
	for _, p := range v.Paths {
		a, b, err := p.Ports()
		if err != nil || a >= len(v.Ports[0]) || b >= len(v.Ports[1]) {
			continue
		}
		c := connectionState{ID: p.ID, A: portName(0, a), B: portName(1, b), AStatus: statesWord(v.Ports[0][a].Light), BStatus: statesWord(v.Ports[1][b].Light)}
		if v.Ports[0][a].Target == c.B && c.AStatus != "" && c.BStatus != "" {
			out = append(out, row{p.ID, c})
		}
	}
	return out
}

// rowsOf are the entries of a container, of losses those of one path where a key names it.
func (s *Server) rowsOf(c *container, v *View, key string) (out []row) {
	if c.rows != nil {
		return c.rows(s, v)
	}
	if c.module == records {
		box, keeps := s.Box.(recorder)
		for at := range 2 * len(v.Ports[0]) {
			if name := portName(at%2, at/2); keeps && (key == "" || key == name) {
				out = append(out, row{name, portRecords{name, box.Records(at%2, at/2, c.name == days)}})
			}
		}
		return out
	}
	path, _, _ := strings.Cut(key, ",")
	for _, l := range s.Box.Losses(path) {
		out = append(out, row{l.ID + "," + string(l.Frequency) + "," + string(l.Temperature), l})
	}
	return out
}

// trimmed is a key with its decimals as RFC 7950 writes them, 193.1 for 193.100, or shorter.
func trimmed(key string) string {
	words := strings.Split(key, ",")
	for i, w := range words {
		if strings.Contains(w, ".") {
			words[i] = strings.TrimRight(w, "0")
		}
	}
	return strings.Join(words, ",")
}

// hundredths of a dB, "" for what was not measured.
func hundredths(milli int32) decimal {
	if milli == 0 {
		return ""
	}
	return decimal(fmt.Sprintf("%.2f", float64(milli)/1000))
}

// NewFactoryLoss is a maker's measurement.
func NewFactoryLoss(a, b int, milliTHz int32, celsius int16, milliDB uint16) FactoryLoss {
	return FactoryLoss{ID: portName(0, a) + "-" + portName(1, b), Frequency: decimal(fmt.Sprintf("%d.%03d", milliTHz/1000, milliTHz%1000)),
		Temperature: decimal(fmt.Sprintf("%d.00", celsius)), Loss: decimal(fmt.Sprintf("%.2f", float64(milliDB)/1000))}
}

// Answer carries out one request.
func (s *Server) Answer(method, target string, body []byte) (status int, reply []byte) {
	out, err := s.answer(method, target, body)
	if err == nil && out == nil {
		return http.StatusNoContent, nil
	}
	if err != nil {
		return ErrorReply(err)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic("sonic: strings always encode: " + err.Error())
	}
	return http.StatusOK, raw
}

func (s *Server) answer(method, target string, body []byte) (any, error) {
	path, query, _ := strings.Cut(target, "?")
	if query != "" {
		return nil, Refuse("invalid-value", "", "query %.60q: no query parameter is known", query)
	}
	if path == bulkUpdate {
		if method != http.MethodPost {
			return nil, Refuse("operation-not-supported", "", "%s of an operation: want POST", method)
		}
		return s.bulkUpdate(body)
	}
	name, ok := strings.CutPrefix(path, root)
	words := strings.Split(strings.TrimSuffix(name, "/"), "/")
	if !ok || len(words) > 3 {
		return nil, missing(path)
	}
	if len(words) == 1 {
		return s.module(method, words[0])
	}
	for i := range containers {
		c := &containers[i]
		if c.module != words[0] || c.name != words[1] || s.Dialect != Auto && c.dialect != Auto && c.dialect != s.Dialect {
			continue
		}
		if len(words) == 2 {
			return s.whole(method, c, body)
		}
		list, raw, keyed := strings.Cut(words[2], "=")
		key, err := url.PathUnescape(raw)
		if list == c.list && keyed && err == nil {
			return s.entry(method, c, key, body)
		}
	}
	return nil, missing(path)
}

func missing(path string) error {
	return &Error{http.StatusNotFound, "invalid-value", "", fmt.Sprintf("%.120q: there is no such resource", path)}
}

// module reads all that a module has.
func (s *Server) module(method, name string) (any, error) {
	v, all := s.Box.View(), map[string]any{}
	for i := range containers {
		if c := &containers[i]; c.module == name && (s.Dialect == Auto || c.dialect == Auto || c.dialect == s.Dialect) {
			rows, err := s.read(c, &v)
			if err != nil {
				continue // too many: they are asked for alone
			}
			all[c.name] = map[string]any{c.list: rows}
		}
	}
	switch {
	case len(all) == 0:
		return nil, missing(root + name)
	case method != http.MethodGet:
		return nil, Refuse("operation-not-supported", "", "%s of a whole module: want GET, or one of its containers", method)
	}
	return map[string]any{name: all}, nil
}

// read are the entries of a list.
func (s *Server) read(c *container, v *View) ([]any, error) {
	if paths := len(v.Ports[0]) * len(v.Ports[1]); c.rows == nil && paths > maxLosses {
		return nil, Refuse("too-big", c.path(), "%d paths: want an entry by its key, or a switch of at most 64 ports", paths)
	}
	rows := s.rowsOf(c, v, "")
	out := make([]any, len(rows))
	for i := range rows {
		out[i] = rows[i].data
	}
	return out, nil
}

// prefix is the module's name, as the first name of a document has it.
func (c *container) prefix() string { return c.module[:strings.IndexByte(c.module, ':')+1] }

func (c *container) path() string { return "/" + c.module + "/" + c.name }

// whole is a request for a container.
func (s *Server) whole(method string, c *container, body []byte) (any, error) {
	v := s.Box.View()
	if method == http.MethodGet {
		rows, err := s.read(c, &v)
		return map[string]any{c.prefix() + c.name: map[string]any{c.list: rows}}, err
	}
	switch {
	case c.module == module && c.name == "OCS_CROSS_CONNECT" && method == http.MethodPatch:
		add, err := inList[Connection](c, body)
		if err == nil {
			_, err = s.update(&v, nil, add)
		}
		return nil, err
	case c.module == module && c.name == "OCS_CROSS_CONNECT" && method == http.MethodDelete:
		var keys []string
		for _, p := range v.Paths {
			keys = append(keys, p.ID)
		}
		_, err := s.update(&v, keys, nil)
		return nil, err
	case c.module == module && c.name == "OCS_PORT" && method == http.MethodPatch:
		list, err := inList[portConfig](c, body)
		if err == nil {
			err = s.setPorts(&v, c, list)
		}
		return nil, err
	}
	return nil, Refuse("operation-not-supported", c.path(), "%s of %s is not known: connections take PATCH and DELETE, ports PATCH", method, c.name)
}

// entry is a request for one entry of a list.
func (s *Server) entry(method string, c *container, key string, body []byte) (any, error) {
	v := s.Box.View()
	rows := s.rowsOf(c, &v, key)
	at := slices.IndexFunc(rows, func(r row) bool { return trimmed(r.key) == trimmed(key) })
	settable := c.module == module && (c.name == "OCS_CROSS_CONNECT" || c.name == "OCS_PORT")
	switch {
	case at < 0 && !(c.name == "OCS_CROSS_CONNECT" && method == http.MethodPatch):
		return nil, &Error{http.StatusNotFound, "invalid-value", c.path(), fmt.Sprintf("%s has no %.60q", c.list, key)}
	case method == http.MethodGet:
		return map[string]any{c.prefix() + c.list: []any{rows[at].data}}, nil
	case method == http.MethodDelete && settable && c.name == "OCS_CROSS_CONNECT":
		_, err := s.update(&v, []string{key}, nil)
		return nil, err
	case method == http.MethodPatch && settable && c.name == "OCS_CROSS_CONNECT":
		list, err := decode[map[string][]Connection](body)
		if add := list[c.prefix()+c.list]; err == nil && len(add) == 1 && add[0].ID == key {
			_, err = s.update(&v, nil, add)
			return nil, err
		}
		return nil, notOne(c, key, err)
	case method == http.MethodPatch && settable:
		list, err := decode[map[string][]portConfig](body)
		if set := list[c.prefix()+c.list]; err == nil && len(set) == 1 && set[0].ID == key {
			return nil, s.setPorts(&v, c, set)
		}
		return nil, notOne(c, key, err)
	}
	return nil, Refuse("operation-not-supported", c.path(), "%s of an entry of %s is not known", method, c.name)
}

func notOne(c *container, key string, err error) error {
	if err != nil {
		return err
	}
	return Refuse("invalid-value", c.path(), "want %q with one entry, whose key is %.60q", c.prefix()+c.list, key)
}
