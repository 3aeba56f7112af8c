package boxes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringlight/hal"
	"ringlight/hal/tl1"
	"ringlight/ocs/circuit"
)

// TL1Server is a box that answers commands from its own state, a scripted one:
// its knobs make it do what boxes do to clients.
type TL1Server struct {
	Name           string
	User, Password string
	Names          tl1.Names
	Powers         map[string][2]string // by port: in, out
	// Deny is how many of the next changes are refused; Swallow how many are
	// acknowledged and not done. Chatter goes out before each answer.
	Deny, Swallow int
	Chatter       string
	// Alarms stand, by what they are about: "1.1.3 LOS" is "MJ". Closed shutters, by port.
	Alarms map[string]string
	Closed map[string]bool
	// NoMeters: a question for them is denied.
	NoMeters bool
	// Locked is another user who has the box: every change is refused by the name.
	Locked string

	buf   []byte
	in    bool
	Made  []CrossConnection
	clock int
}

// CrossConnection is one of a TL1Server's: entered, and perhaps active.
type CrossConnection struct {
	Source, Destination, Group, Name string
	TwoWay, Active                   bool
}

// Connections are what a TL1Server holds.
func (s *TL1Server) Connections() []CrossConnection { return slices.Clone(s.Made) }

// Take takes bytes and appends the answers to the commands that are whole.
func (s *TL1Server) Take(b, dst []byte) []byte {
	s.buf = append(s.buf, b...)
	for {
		i := slices.Index(s.buf, ';')
		if i < 0 {
			if len(s.buf) > tl1.MaxMessage {
				s.buf = s.buf[:0]
			}
			return dst
		}
		command := strings.TrimSpace(string(s.buf[:i]))
		s.buf = append(s.buf[:0], s.buf[i+1:]...)
		dst = s.answer(dst, command)
	}
}

// AlarmLine is an alarm as a box words it.
func AlarmLine(about, level string) string {
	aid, condition, _ := strings.Cut(about, " ")
	return fmt.Sprintf(`%s:%s,%s,SA,11-26,14-14-33,NEND:\"of the box\"`, aid, level, condition)
}

// Of the standard's error codes.
const (
	codeSyntax = "ICNV" // input, command not valid
	codeAccess = "PIUI" // privilege, illegal user identity
	codeLogin  = "PLNA" // privilege, login not active
	codeRange  = "IIAC" // input, invalid access identifier
	codeInUse  = "SAOP" // status, already operated
	codeNone   = "SRCN" // status, requested condition not there
	codeDenied = "SROF" // status, requested operation failed
)

func (s *TL1Server) answer(dst []byte, command string) []byte {
	// VERB:TID:AID:CTAG:GENERAL:parameters
	part := strings.Split(command, ":")
	for len(part) < 6 {
		part = append(part, "")
	}
	verb, tag := strings.ToUpper(strings.TrimSpace(part[0])), strings.TrimSpace(part[3])
	tag = cmp.Or(tag, "0")
	text, code := s.run(verb, part)
	if s.Chatter != "" {
		s.clock++
		dst = fmt.Appendf(dst, "\r\n\n   %s 26-01-01 00:00:%02d\r\nA  %d %s\r\n;", s.Name, s.clock%60, s.clock, s.Chatter)
	}
	s.clock++
	dst = fmt.Appendf(dst, "\r\n\n   %s 26-01-01 00:00:%02d\r\n", s.Name, s.clock%60)
	if code != "" {
		return fmt.Appendf(dst, "M  %s DENY\r\n   %s\r\n;", tag, code)
	}
	dst = fmt.Appendf(dst, "M  %s COMPLD\r\n", tag)
	for _, t := range text {
		dst = fmt.Appendf(dst, "   \"%s\"\r\n", t)
	}
	return append(dst, ';')
}

func (s *TL1Server) run(verb string, part []string) (text []string, code string) {
	if verb == "ACT-USER" {
		if part[2] != s.User || part[5] != s.Password {
			return nil, codeAccess
		}
		s.in = true
		return nil, ""
	}
	if !s.in {
		return nil, codeLogin
	}
	switch verb {
	case "CANC-USER":
		s.in = false
	case "RTRV-HDR":
	case "RTRV-ALM-ALL":
		for _, about := range slices.Sorted(maps.Keys(s.Alarms)) {
			text = append(text, AlarmLine(about, s.Alarms[about]))
		}
	case "RTRV-NE":
		text = []string{fmt.Sprintf("SERIALNUMBER=%s-1,SWPACKAGE=1.0,STATUS=OK,CHASSISTYPE=scripted", s.Name)}
	case "RTRV-CRS":
		for _, c := range s.Made {
			kind := "1WAY"
			if c.TwoWay {
				kind = "2WAY"
			}
			state := "AS=UMA,OS=RDY"
			if c.Active {
				state = "AS=IS,OS=IS"
			}
			text = append(text, fmt.Sprintf("%s:SRCPORT=%s,DSTPORT=%s,GRPNAME=%s,CONNNAME=%s,CONNTYPE=%s,%s,OC=OK", c.Name, c.Source, c.Destination, c.Group, c.Name, kind, state))
		}
	case "RTRV-PORT-SUM":
		return s.port(part[2])
	case "ENT-PATCH", "DLT-PATCH", "RTRV-PATCH", "RTRV-NETYPE", "RTRV-PORT-PMON", "RTRV-PORT-SHUTTER", "OPR-PORT-SHUTTER", "RLS-PORT-SHUTTER":
		return s.patch(verb, part)
	case "ENT-CRS", "ACT-CRS", "CANC-CRS", "DLT-CRS":
		return nil, s.change(verb, part)
	default:
		return nil, codeSyntax
	}
	return text, ""
}

func (s *TL1Server) port(name string) ([]string, string) {
	in := slices.Contains(s.Names.In, name)
	out := slices.Contains(s.Names.Out, name)
	if !in && !out {
		return nil, codeRange
	}
	if s.NoMeters {
		return nil, codeSyntax
	}
	p, ok := s.Powers[name]
	if !ok {
		p = [2]string{"-60.00", "-60.00"}
	}
	return []string{fmt.Sprintf("%s:ALIAS=,INPWR=%s,OUTPWR=%s,CONNNAME1=,CONNSTATE1=", name, p[0], p[1])}, ""
}

// change is one of the four commands that make and take away.
func (s *TL1Server) change(verb string, part []string) (code string) {
	from, to, _ := strings.Cut(part[2], ",")
	okIn := slices.Contains(s.Names.In, from)
	okOut := slices.Contains(s.Names.Out, to)
	if !okIn || !okOut {
		return codeRange
	}
	if s.Locked != "" {
		return codeDenied + "\r\n   \"locked by " + s.Locked + "\""
	}
	if s.Deny > 0 {
		s.Deny--
		return codeDenied
	}
	if s.Swallow > 0 {
		s.Swallow--
		return ""
	}
	args := strings.Split(part[5], ",")
	at := slices.IndexFunc(s.Made, func(c CrossConnection) bool { return c.Source == from && c.Destination == to })
	switch verb {
	case "ENT-CRS":
		if at >= 0 || slices.ContainsFunc(s.Made, func(c CrossConnection) bool { return c.Source == from || c.Destination == to }) {
			return codeInUse
		}
		c := CrossConnection{Source: from, Destination: to, Group: args[0], TwoWay: len(args) > 1 && args[1] == "2WAY"}
		c.Name = from + ">" + to
		if c.TwoWay {
			c.Name = from + "-" + to
		}
		s.Made = append(s.Made, c)
	case "ACT-CRS":
		if at < 0 || args[0] != s.Made[at].Name {
			return codeNone
		}
		s.Made[at].Active = true
	case "CANC-CRS":
		if at < 0 || !s.Made[at].Active {
			return codeNone
		}
		s.Made[at].Active = false
	case "DLT-CRS":
		if at < 0 || s.Made[at].Active {
			return codeNone
		}
		s.Made = slices.Delete(s.Made, at, at+1)
	}
	return ""
}

// patch carries out a TL1Server's patch commands.
func (s *TL1Server) patch(verb string, part []string) (text []string, code string) {
	switch verb {
	case "RTRV-NETYPE":
		return []string{"Polatis,scripted,OST,1.0"}, ""
	case "RTRV-PATCH":
		for _, c := range s.Made {
			text = append(text, c.Source+","+c.Destination)
		}
		return text, ""
	case "RTRV-PORT-PMON":
		if s.NoMeters {
			return nil, codeSyntax
		}
		for _, names := range [][]string{s.Names.In, s.Names.Out} {
			for _, n := range names {
				p, ok := s.Powers[n]
				if !ok {
					p = [2]string{"-60.00", "-60.00"}
				}
				if !slices.Contains(s.Names.In, n) {
					p[0] = p[1]
				}
				text = append(text, n+":1310.00,"+p[0]+",4")
			}
		}
		return text, ""
	}
	if strings.HasSuffix(verb, "SHUTTER") {
		if s.Closed == nil {
			s.Closed = map[string]bool{}
		}
		for port := range strings.SplitSeq(part[2], "&") {
			switch {
			case !slices.Contains(append(slices.Clone(s.Names.In), s.Names.Out...), port):
				return nil, codeRange
			case verb != "RTRV-PORT-SHUTTER" && s.Locked != "":
				return nil, codeDenied
			case verb == "RTRV-PORT-SHUTTER":
				text = append(text, port+map[bool]string{true: ":CLOSED", false: ":OPEN"}[s.Closed[port]])
			default:
				s.Closed[port] = verb == "OPR-PORT-SHUTTER"
			}
		}
		return text, ""
	}
	from, to, _ := strings.Cut(part[2], ",")
	okIn := slices.Contains(s.Names.In, from)
	okOut := slices.Contains(s.Names.Out, to)
	switch {
	case !okIn || verb == "ENT-PATCH" && !okOut:
		return nil, codeRange
	case s.Locked != "":
		return nil, codeDenied + "\r\n   \"locked by " + s.Locked + "\""
	case s.Deny > 0:
		s.Deny--
		return nil, codeDenied
	case s.Swallow > 0:
		s.Swallow--
		return nil, ""
	}
	keep, found := s.Made[:0:0], false
	for _, c := range s.Made {
		if c.Source == from || verb == "ENT-PATCH" && c.Destination == to {
			found = true // gives way
			continue
		}
		keep = append(keep, c)
	}
	s.Made = keep
	if verb == "ENT-PATCH" {
		s.Made = append(s.Made, CrossConnection{Source: from, Destination: to, Active: true})
	} else if !found {
		return nil, codeNone
	}
	return nil, ""
}

// TL1 is a TL1Server at the end of a line, whose meters follow its connections.
type TL1 struct {
	dark
	*TL1Server
	Patch bool
	Out   []byte // what it has to say
}

// NewTL1 makes one of so many ports of either side, of groups or of patches.
func NewTL1(ports int, patch bool) *TL1 {
	names := tl1.DefaultNames(ports)
	if patch {
		names = tl1.PatchNames(ports, ports)
	}
	return &TL1{TL1Server: &TL1Server{Name: "box", User: "u", Password: "pw", Names: names}, Patch: patch}
}

// Client speaks to it.
func (e *TL1) Client() *hal.BoxClient {
	return tl1.NewClient(tl1.Config{Names: e.Names, User: "u", Password: "pw", Group: "G", Patch: e.Patch})
}

// End ends its answers.
func (e *TL1) End() byte { return ';' }

// Say takes bytes.
func (e *TL1) Say(b []byte) {
	const light, none = "-1.00", "-60.00"
	e.Powers = map[string][2]string{}
	for port, n := range e.Names.In {
		if e.Powers[n] = [2]string{light, none}; e.isDark(port) {
			e.Powers[n] = [2]string{none, none}
		}
	}
	for _, c := range e.Made {
		if c.Active && e.Powers[c.Source][0] == light {
			e.Powers[c.Destination] = [2]string{e.Powers[c.Destination][0], "-3.10"}
		}
	}
	e.Out = e.Take(b, e.Out)
}

// Hear gives up to one semicolon at a time, as the transport does.
func (e *TL1) Hear() []byte {
	n := slices.Index(e.Out, ';') + 1
	b := slices.Clone(e.Out[:n])
	e.Out = e.Out[n:]
	return b
}

// HangUp is the end of a connection: nobody is logged in.
func (e *TL1) HangUp() { e.Out, e.buf, e.in = nil, nil, false }

// Restart loses all connections.
func (e *TL1) Restart() {
	e.HangUp()
	e.Made = nil
}

// Lock is another user's, "" nobody's.
func (e *TL1) Lock(owner string) { e.Locked = owner }

// Lit are the connections that no shutter closes.
func (e *TL1) Lit() (out []circuit.Pair) {
	for _, c := range e.Made {
		if c.Active {
			out = append(out, circuit.Pair{A: uint16(slices.Index(e.Names.In, c.Source)), B: uint16(slices.Index(e.Names.Out, c.Destination))})
		}
	}
	return open(out, e.Closed, len(e.Names.In))
}

// Cut takes away what has one of two ports.
func (e *TL1) Cut(a, b uint16) {
	e.Made = slices.DeleteFunc(e.Made, func(c CrossConnection) bool {
		return c.Source == e.Names.In[a] || c.Destination == e.Names.Out[b]
	})
}

// Join makes a connection of a group at the box.
func (e *TL1) Join(a, b uint16, group string) {
	e.Cut(a, b)
	from, to := e.Names.In[a], e.Names.Out[b]
	e.Made = append(e.Made, CrossConnection{Source: from, Destination: to, Group: group, Name: from + ">" + to, Active: true})
}
