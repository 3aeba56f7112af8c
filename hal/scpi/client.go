package scpi

import (
	"slices"
	"strconv"
	"strings"

	"ringlight/hal"
)

// maxStale is how many lines a client passes over that do not identify the
// switch: what is left of an exchange that was broken off. chosen: the replies of
// one goal.
const maxStale = 8

// maxPowerPorts is the most ports of one power query.
const maxPowerPorts = 256

// NewClient makes a client of a switch.
func NewClient() *hal.BoxClient {
	return hal.NewBoxClient(&language{}, hal.BoxState{Shutters: true})
}

// language is the switch's, as a client speaks it.
type language struct{ stale int } // lines passed over

// Secret: nobody logs in.
func (l *language) Secret() []byte { return nil }

// Exchanges of a connection that is set alone are two: what the switch has against it is
// asked behind it.
func (l *language) Exchanges(v hal.BoxVerb, alone bool, s *hal.BoxState) int {
	switch {
	case v == hal.BoxMeter:
		return (s.In + s.Out + maxPowerPorts - 1) / maxPowerPorts
	case v == hal.BoxGreet || alone && (v == hal.BoxRemove || v == hal.BoxCreate):
		return 2
	}
	return 1
}

// Say appends a line.
func (l *language) Say(dst []byte, w hal.BoxWord, s *hal.BoxState) []byte {
	set := map[hal.BoxVerb]string{hal.BoxRemove: "conn:sub ", hal.BoxCreate: "conn:add ", hal.BoxBlock: "port:dis ", hal.BoxFree: "port:enab "}[w.Verb]
	switch {
	case w.Verb == hal.BoxGreet && w.N == 0:
		l.stale = 0
		dst = append(dst, "*IDN?"...)
	case w.Verb == hal.BoxGreet:
		dst = append(dst, ":oxc:swit:size?"...)
	case w.Verb == hal.BoxRead:
		dst = append(dst, ":oxc:swit:conn:stat?"...)
	case w.Verb == hal.BoxMeter:
		dst = appendList(append(dst, ":pmon:pow? "...), metered(w, s))
	case w.Verb == hal.BoxPorts: // of a switch that does not know the question, the rest is answered
		dst = append(appendList(append(dst, ":oxc:swit:port:stat? "...), w.Ports), ";*OPC?"...)
	case w.N == 1:
		dst = append(dst, ":syst:err?"...)
	case len(w.Pairs) == 1: // errors of before are not its own
		dst = append(append(append(dst, "*CLS;:oxc:swit:"...), set...), string(appendPairs(nil, w.Pairs, s.In))+";*OPC?"...)
	case len(w.Pairs) > 0:
		dst = append(appendPairs(append(append(dst, ":oxc:swit:"...), set...), w.Pairs, s.In), ";*OPC?"...)
	default:
		dst = append(appendList(append(append(dst, ":oxc:swit:"...), set...), w.Ports), ";*OPC?"...)
	}
	return append(dst, '\n')
}

// metered are the ports of one power query.
func metered(w hal.BoxWord, s *hal.BoxState) (ports []int) {
	for p := w.N * maxPowerPorts; p < min((w.N+1)*maxPowerPorts, s.In+s.Out); p++ {
		ports = append(ports, p)
	}
	return ports
}

// Hear takes a line, its newline being optional.
func (l *language) Hear(line []byte, w hal.BoxWord, s *hal.BoxState) (done bool, err error) {
	reply := strings.TrimSpace(string(line[:min(len(line), MaxLine)]))
	switch {
	case w.Verb == hal.BoxGreet && w.N == 0:
		return l.identity(reply, s)
	case w.Verb == hal.BoxGreet:
		err = size(reply, s)
	case w.Verb == hal.BoxRead:
		s.Map, err = ParseMap(reply, s.In, s.Out)
	case w.Verb == hal.BoxMeter:
		var powers []int32
		powers, err = ParsePowers(reply, len(metered(w, s)))
		s.Powers = append(s.Powers, powers...)
	case w.Verb == hal.BoxPorts:
		err = portStates(reply, w.Ports, s)
	case w.N == 1:
		if !strings.HasPrefix(reply, "0,") {
			err = hal.BoxRefusal(reply)
		}
	case reply != "1":
		err = bad("%q to *OPC?", reply)
	}
	return true, err
}

// identity reads "maker,model,serial,version". Of the models, those whose code
// begins with I-OST have no power meters.
func (l *language) identity(reply string, s *hal.BoxState) (done bool, err error) {
	parts := strings.Split(reply, ",")
	// Two lists of two ports have four parts too.
	if len(parts) != 4 || strings.TrimSpace(parts[1]) == "" || strings.ContainsAny(reply, "()@") {
		if l.stale++; l.stale <= maxStale {
			return false, nil
		}
		return true, bad("identity %q", reply)
	}
	s.Identity = reply
	s.HasMeters = !strings.HasPrefix(strings.TrimSpace(parts[1]), "I-OST")
	return true, nil
}

func size(reply string, s *hal.BoxState) error {
	in, out, ok := strings.Cut(reply, ",")
	a, err := strconv.ParseUint(strings.TrimSpace(in), 10, 16)
	b, err2 := strconv.ParseUint(strings.TrimSpace(out), 10, 16)
	if !ok || err != nil || err2 != nil || a == 0 || b == 0 || a+b > MaxPorts {
		return bad("size %q", reply)
	}
	s.In, s.Out = int(a), int(b)
	return nil
}

// portStates reads "(D,E,F);1": disabled, enabled and failed ports.
func portStates(reply string, ports []int, s *hal.BoxState) error {
	list, _, known := strings.Cut(reply, ");")
	states := strings.Split(strings.TrimPrefix(list, "("), ",")
	if !known || len(states) != len(ports) {
		return hal.BoxRefusal(reply)
	}
	s.Blocked = slices.DeleteFunc(slices.Clone(ports), func(p int) bool { return strings.TrimSpace(states[slices.Index(ports, p)]) != "D" })
	return nil
}
