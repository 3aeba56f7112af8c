package tl1

import (
	"fmt"
	"slices"
	"strings"

	"ringlight/hal"
)

// Config is what a client must know of a box.
type Config struct {
	Names          Names
	User, Password string
	// Group owns our connections; those of others are left alone.
	Group string
	// Patch: the box speaks of patches, see patch.go. Its ports have numbers, and
	// nobody owns them.
	Patch bool
}

// NewClient makes a client.
func NewClient(cfg Config) *hal.BoxClient {
	if cfg.Group == "" {
		cfg.Group = "ringlight"
	}
	return hal.NewBoxClient(&language{cfg: cfg, alarms: map[string]hal.BoxAlarm{}},
		hal.BoxState{In: len(cfg.Names.In), Out: len(cfg.Names.Out), HasMeters: true, Shutters: cfg.Patch})
}

// language is the box's, as a client speaks it: every command has the next tag.
type language struct {
	cfg    Config
	reader Reader
	tag    uint32
	alarms map[string]hal.BoxAlarm // by what they are about
}

// Secret is what no recording of the talk may hold.
func (l *language) Secret() []byte { return []byte(l.cfg.Password) }

// Exchanges: a connection is entered and then activated, cancelled and then deleted.
func (l *language) Exchanges(v hal.BoxVerb, alone bool, s *hal.BoxState) int {
	switch {
	case v == hal.BoxGreet:
		return 3 // login, what it is, its alarms
	case !alone:
		return 0
	case l.cfg.Patch || v == hal.BoxRead || v == hal.BoxPorts:
		return 1
	case v == hal.BoxMeter:
		return s.In + s.Out
	}
	return 2
}

// Say appends a command.
func (l *language) Say(dst []byte, w hal.BoxWord, s *hal.BoxState) []byte {
	if l.tag++; w.Verb == hal.BoxGreet {
		switch w.N {
		case 0:
			l.reader = Reader{}
			return fmt.Appendf(dst, "ACT-USER::%s:%d::%s;", l.cfg.User, l.tag, l.cfg.Password)
		case 2:
			return fmt.Appendf(dst, "RTRV-ALM-ALL:::%d;", l.tag)
		}
	}
	if l.cfg.Patch {
		return l.sayPatch(dst, w)
	}
	switch w.Verb {
	case hal.BoxGreet:
		return fmt.Appendf(dst, "RTRV-NE:::%d;", l.tag)
	case hal.BoxRead:
		return fmt.Appendf(dst, "RTRV-CRS:::%d::ALL;", l.tag)
	case hal.BoxMeter:
		return fmt.Appendf(dst, "RTRV-PORT-SUM::%s:%d;", l.portName(w.N), l.tag)
	}
	from, to := l.cfg.Names.In[w.Pairs[0].In], l.cfg.Names.Out[w.Pairs[0].Out]
	name, group := from+">"+to, l.cfg.Group
	switch {
	case w.Verb == hal.BoxRemove:
		return fmt.Appendf(dst, "%s-CRS::%s,%s:%d::,%s,%s;", [...]string{"CANC", "DLT"}[w.N], from, to, l.tag, group, name)
	case w.N == 0:
		return fmt.Appendf(dst, "ENT-CRS::%s,%s:%d::%s,1WAY;", from, to, l.tag, group)
	}
	return fmt.Appendf(dst, "ACT-CRS::%s,%s:%d::%s,%s;", from, to, l.tag, name, group)
}

// portName is the name of a port, the inputs first.
func (l *language) portName(i int) string {
	if in := l.cfg.Names.In; i < len(in) {
		return in[i]
	}
	return l.cfg.Names.Out[i-len(l.cfg.Names.In)]
}

// Hear takes bytes that arrived; a message may come in pieces.
func (l *language) Hear(b []byte, w hal.BoxWord, s *hal.BoxState) (done bool, err error) {
	l.reader.Put(b)
	for {
		m, ok, err := l.reader.Next()
		switch {
		case err != nil || !ok:
			return false, err
		case m.Tag == 0:
			l.unasked(m, s)
		case m.Tag == l.tag: // else late: an answer to what we gave up waiting for
			return true, l.answered(m, w, s)
		}
	}
}

func (l *language) answered(m Message, w hal.BoxWord, s *hal.BoxState) (err error) {
	text := strings.Join(slices.Compact(m.Text), " ")
	if m.Code != "COMPLD" {
		if w.Verb == hal.BoxGreet && w.N == 2 {
			l.standing(nil, 0, s) // it does not list alarms, but may tell them
			return nil
		}
		if p := l.cfg.Password; p != "" { // a box may say what it was told
			text = strings.ReplaceAll(text, p, "***")
		}
		return hal.BoxRefusal(text)
	}
	switch {
	case w.Verb == hal.BoxGreet && w.N == 1:
		s.Identity = text
	case w.Verb == hal.BoxGreet && w.N == 2:
		clear(l.alarms)
		l.standing(m.Text, 0, s)
	case w.Verb == hal.BoxRead && l.cfg.Patch:
		err = l.cfg.Names.parsePatches(m.Text, s)
	case w.Verb == hal.BoxRead:
		err = l.cfg.Names.parseMap(m.Text, l.cfg.Group, s)
	case w.Verb == hal.BoxPorts:
		s.Blocked = slices.DeleteFunc(slices.Clone(w.Ports), func(p int) bool {
			return !slices.ContainsFunc(m.Text, func(line string) bool { return strings.EqualFold(line, l.portName(p)+":CLOSED") })
		})
	case w.Verb == hal.BoxMeter && l.cfg.Patch:
		s.Powers, err = l.patchPowers(m.Text, s.In+s.Out)
	case w.Verb == hal.BoxMeter: // what comes in at an input, what leaves at an output
		key := "INPWR"
		if w.N >= s.In {
			key = "OUTPWR"
		}
		power := fields(strings.Join(m.Text, ","))[key]
		v, ok := hal.ParseMilli(power)
		if !ok {
			return bad("power %.20q of port %s", power, l.portName(w.N))
		}
		s.Powers = append(s.Powers, v)
	}
	return err
}
