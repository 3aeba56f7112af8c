package box_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringlight/hal/tl1"
)

// tl1Server is a box that answers commands from its own state, a scripted one:
// its knobs make it do what boxes do to clients.
type tl1Server struct {
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
	made  []crossConnection
	clock int
}

// crossConnection is one of a tl1Server's: entered, and perhaps active.
type crossConnection struct {
	Source, Destination, Group, Name string
	TwoWay, Active                   bool
}

// Connections are what a tl1Server holds.
func (s *tl1Server) Connections() []crossConnection { return slices.Clone(s.made) }

// Take takes bytes and appends the answers to the commands that are whole.
func (s *tl1Server) Take(b, dst []byte) []byte {
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

// alarmLine is an alarm as a box words it.
func alarmLine(about, level string) string {
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

func (s *tl1Server) answer(dst []byte, command string) []byte {
	// VERB:TID:AID:CTAG:GENERAL:parameters
	part := strings.Split(command, ":")
	for len(part) < 6 {
		part = append(part, "")
	}
	verb, tag := strings.ToUpper(strings.TrimSpace(part[0])), strings.TrimSpace(part[3])
	if tag == "" {
		tag = "0"
	}
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

func (s *tl1Server) run(verb string, part []string) (text []string, code string) {
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
			text = append(text, alarmLine(about, s.Alarms[about]))
		}
	case "RTRV-NE":
		text = []string{fmt.Sprintf("SERIALNUMBER=%s-1,SWPACKAGE=1.0,STATUS=OK,CHASSISTYPE=scripted", s.Name)}
	case "RTRV-CRS":
		for _, c := range s.made {
			kind := "1WAY"
			if c.TwoWay {
				kind = "2WAY"
			}
			if c.Active {
				text = append(text, fmt.Sprintf("%s:SRCPORT=%s,DSTPORT=%s,GRPNAME=%s,CONNNAME=%s,CONNTYPE=%s", c.Name, c.Source, c.Destination, c.Group, c.Name, kind))
			}
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

func (s *tl1Server) port(name string) ([]string, string) {
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
func (s *tl1Server) change(verb string, part []string) (code string) {
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
	at := slices.IndexFunc(s.made, func(c crossConnection) bool { return c.Source == from && c.Destination == to })
	switch verb {
	case "ENT-CRS":
		if at >= 0 || slices.ContainsFunc(s.made, func(c crossConnection) bool { return c.Source == from || c.Destination == to }) {
			return codeInUse
		}
		c := crossConnection{Source: from, Destination: to, Group: args[0], TwoWay: len(args) > 1 && args[1] == "2WAY"}
		c.Name = from + ">" + to
		if c.TwoWay {
			c.Name = from + "-" + to
		}
		s.made = append(s.made, c)
	case "ACT-CRS":
		if at < 0 || args[0] != s.made[at].Name {
			return codeNone
		}
		s.made[at].Active = true
	case "CANC-CRS":
		if at < 0 || !s.made[at].Active {
			return codeNone
		}
		s.made[at].Active = false
	case "DLT-CRS":
		if at < 0 || s.made[at].Active {
			return codeNone
		}
		s.made = slices.Delete(s.made, at, at+1)
	}
	return ""
}

// patch carries out a tl1Server's patch commands.
func (s *tl1Server) patch(verb string, part []string) (text []string, code string) {
	switch verb {
	case "RTRV-NETYPE":
		return []string{"Polatis,scripted,OST,1.0"}, ""
	case "RTRV-PATCH":
		for _, c := range s.made {
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
	keep, found := s.made[:0:0], false
	for _, c := range s.made {
		if c.Source == from || verb == "ENT-PATCH" && c.Destination == to {
			found = true // gives way
			continue
		}
		keep = append(keep, c)
	}
	s.made = keep
	if verb == "ENT-PATCH" {
		s.made = append(s.made, crossConnection{Source: from, Destination: to, Active: true})
	} else if !found {
		return nil, codeNone
	}
	return nil, ""
}
