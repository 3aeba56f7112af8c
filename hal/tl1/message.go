package tl1

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ringlight/hal"
)

// MaxMessage bounds one message: all connections of the largest box.
const MaxMessage = 256 << 10

// maxAlarms bounds the alarms of a box that are kept. chosen: as many as a report has.
const maxAlarms = 64

// Message is one output message of a box.
type Message struct {
	// Tag of the command that it answers, 0 for what the box says by itself.
	Tag  uint32
	Code string   // COMPLD, DENY, ..., or what an autonomous message is about
	Text []string // the quoted lines, and of a denial the bare ones
}

// Reader cuts a stream into messages: each ends with a line that begins with a
// semicolon.
type Reader struct{ buf []byte }

// Put adds bytes that arrived.
func (r *Reader) Put(b []byte) { r.buf = append(r.buf, b...) }

// Next is the next whole message, false when there is none. After an error the
// stream has lost its frame and must be opened anew.
func (r *Reader) Next() (m Message, ok bool, err error) {
	for from := 0; ; {
		i := bytes.IndexByte(r.buf[from:], ';')
		if i < 0 {
			if len(r.buf) > MaxMessage {
				return m, false, bad("message over %d bytes", MaxMessage)
			}
			return m, false, nil
		}
		from += i + 1
		// A semicolon inside a line is text.
		if at := from - 2; at >= 0 && r.buf[at] != '\n' && r.buf[at] != '\r' {
			continue
		}
		m, err = parseMessage(string(r.buf[:from-1]))
		r.buf = append(r.buf[:0], r.buf[from:]...)
		return m, err == nil, err
	}
}

func bad(format string, args ...any) error {
	return fmt.Errorf("tl1: %s: %w", fmt.Sprintf(format, args...), hal.ErrBoxReply)
}

// parseMessage reads a message without its semicolon: a header line with name,
// date and time of the box, a line that identifies it, and text.
func parseMessage(s string) (m Message, err error) {
	var lines []string
	for l := range strings.SplitSeq(strings.ReplaceAll(s, "\r", "\n"), "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	// An echo of the command, or a prompt, may stand before the header.
	at := -1
	for i, l := range lines {
		if f := strings.Fields(l); len(f) >= 3 && (f[0] == "M" || f[0] == "A" || f[0] == "*" || f[0] == "**" || f[0] == "*C") {
			at = i
			break
		}
	}
	if at < 0 {
		return m, bad("message %.40q without an identification", s)
	}
	f := strings.Fields(lines[at])
	m.Code = strings.Join(f[2:], " ")
	if f[0] == "M" {
		tag, err := strconv.ParseUint(f[1], 10, 32)
		if err != nil || tag == 0 {
			return m, bad("tag %q", f[1])
		}
		m.Tag, m.Code = uint32(tag), f[2]
	}
	for _, l := range lines[at+1:] {
		if text, quoted := strings.CutPrefix(l, `"`); quoted {
			text, ended := strings.CutSuffix(strings.TrimSuffix(text, ","), `"`)
			if !ended {
				return m, bad("text %.40q without end", l)
			}
			l = text
		}
		m.Text = append(m.Text, l)
	}
	return m, nil
}

// fields are the NAME=value parts of a line of text.
func fields(text string) map[string]string {
	m := map[string]string{}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ':' }) {
		if k, v, ok := strings.Cut(part, "="); ok {
			m[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return m
}

// Names are how a box calls its ports, inputs and outputs. A port of a duplex
// box has one name for both.
type Names struct{ In, Out []string }

// DefaultNames are those of a box of so many duplex ports, eight to a card:
// 1.1.1 to 1.1.8, 1.2.1 and so on.
func DefaultNames(ports int) Names {
	n := Names{}
	for i := range ports {
		n.In = append(n.In, fmt.Sprintf("1.%d.%d", i/8+1, i%8+1))
	}
	n.Out = n.In
	return n
}

// parseMap reads the reply to RTRV-CRS. A port in two active connections is refused.
// What is entered and not activated, or cancelled and not deleted, has the administrative
// state UMA: it is stale.
func (n *Names) parseMap(text []string, group string, s *hal.BoxState) error {
	s.Map, s.Stale = nil, nil
	for _, line := range text {
		f := fields(line)
		if g, ok := f["GRPNAME"]; ok && g != group {
			continue // another owner's; its ports are not ours to touch
		}
		in, out := slices.Index(n.In, f["SRCPORT"]), slices.Index(n.Out, f["DSTPORT"])
		stale := f["AS"] == "UMA"
		if in < 0 || out < 0 || !stale && slices.ContainsFunc(s.Map, func(p hal.PortPair) bool { return int(p.In) == in || int(p.Out) == out }) {
			return bad("connection %.60q", line)
		}
		list := &s.Map
		if stale {
			list = &s.Stale
		}
		*list = append(*list, hal.PortPair{In: uint16(in), Out: uint16(out)})
	}
	slices.SortFunc(s.Map, func(p, q hal.PortPair) int { return int(p.In) - int(q.In) })
	return nil
}

// unasked takes what a box says by itself. Alarms stand until they are cleared, and so
// do conditions that are reported as events; all else passes.
func (l *language) unasked(m Message, s *hal.BoxState) {
	switch {
	case strings.HasPrefix(m.Code, "REPT ALM"):
		l.standing(m.Text, 0, s)
	case strings.HasPrefix(m.Code, "REPT EVT"):
		l.standing(m.Text, 1, s)
	}
}

// standing reads lines such as "1.1.3:MJ,LOS,SA,11-26,14-14-33:\"loss of signal\"" of
// alarms, whose severity comes first, CL clears; or "1.1.3:LOS,SC,..." of events (at 1).
func (l *language) standing(text []string, at int, s *hal.BoxState) {
	for _, line := range text {
		about, rest, _ := strings.Cut(line, ":")
		rest, said, _ := strings.Cut(rest, ":")
		f := strings.Split(rest+",,", ",")
		level, condition := strings.TrimSpace(f[at]), strings.TrimSpace(f[1-at])
		key := about + " " + condition
		switch level {
		case "CL":
			delete(l.alarms, key)
		case "CR", "MJ", "MN", "NA", "SC":
			if _, stands := l.alarms[key]; stands || len(l.alarms) < maxAlarms {
				words := strings.TrimSpace(strings.ReplaceAll(said, `\"`, ""))
				l.alarms[key] = hal.BoxAlarm{Text: strings.TrimSpace("box, " + key + " (" + level + "): " + words), Grave: level == "CR" || level == "MJ"}
			}
		}
	}
	s.Alarms = nil
	for _, about := range slices.Sorted(maps.Keys(l.alarms)) {
		s.Alarms = append(s.Alarms, l.alarms[about])
	}
}
