package fleet

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim"
)

// Limits of a script. chosen: far over what anybody writes, so that a wrong
// file ends soon.
const (
	maxLines = 10_000_000
	maxFlaps = 10_000
	maxSpan  = 10 * 365 * 24 * time.Hour
)

// parseFault reads one line.
func parseFault(line string) (Fault, error) {
	var f Fault
	words := strings.Fields(line)
	if len(words) < 3 {
		return f, errors.New("want a time, a noun and a verb, such as \"10s node dark 5\"")
	}
	if err := f.when(words[0]); err != nil {
		return f, fmt.Errorf("time: %w", err)
	}
	head := words[1] + " " + words[2]
	for f.Verb = 0; f.Verb < numVerbs && forms[f.Verb].words != head && forms[f.Verb].ofSwitch != head; f.Verb++ {
	}
	if f.Verb == numVerbs {
		return f, fmt.Errorf("%q is not one of %s", head, known())
	}
	if forms[f.Verb].ofSwitch == head {
		f.Node = proto.FirstSwitch
	}
	rest := words[3:]
	args := forms[f.Verb].args
	var err error
	for i := range len(args) {
		if rest, err = f.argument(args[i], rest); err != nil {
			return f, fmt.Errorf("%s: %w; want %s", head, err, usage(head, f.Verb))
		}
	}
	if rest, err = f.suffixes(rest); err != nil {
		return f, fmt.Errorf("%s: %w", head, err)
	}
	if len(rest) > 0 {
		return f, fmt.Errorf("%s: unexpected %q; want %s", head, rest[0], usage(head, f.Verb))
	}
	return f, nil
}

// when reads a time, or a commit and a time after it.
func (f *Fault) when(word string) (err error) {
	if n, ok := strings.CutPrefix(word, "commit:"); ok {
		n, after, _ := strings.Cut(n, "+")
		if f.Commit, err = number(n, maxLines); err != nil || f.Commit == 0 {
			return fmt.Errorf("commit %q: want commit:N+DURATION, N from 1", n)
		}
		word = after
	}
	f.At, err = span(word)
	return err
}

// suffixes read how long it lasts, and with what it counts as one.
func (f *Fault) suffixes(rest []string) ([]string, error) {
	var err error
	if len(rest) >= 2 && rest[0] == "for" {
		if forms[f.Verb].undo == 0 {
			return nil, errors.New("for: nothing ends it")
		}
		if f.For, err = span(rest[1]); err != nil || f.For == 0 {
			return nil, fmt.Errorf("for: want a duration over 0, not %q", rest[1])
		}
		rest = rest[2:]
	}
	if len(rest) == 2 && rest[0] == "group" {
		if f.Group, err = number(rest[1], 1<<30); err != nil {
			return nil, fmt.Errorf("group: %w", err)
		}
		rest = nil
	}
	return rest, nil
}

func (f *Fault) argument(kind byte, rest []string) ([]string, error) {
	want := cmp.Or(map[byte]int{'M': 3, 'X': 2}[kind], 1)
	if len(rest) < want {
		return nil, fmt.Errorf("%s is missing", argNames[kind])
	}
	var err error
	switch kind {
	case 'N', 'K', 'L':
		var n int
		if k, ok := strings.CutPrefix(rest[0], "stage:"); ok && f.Node.IsSwitch() && f.Commit > 0 {
			if f.Stage, err = number(k, 1<<16); err == nil && f.Stage == 0 {
				err = errors.New("stage: want 1 and up")
			}
			break
		}
		n, err = number(rest[0], int(proto.FirstSwitch)-1)
		if kind == 'L' {
			f.Last = proto.NodeID(n)
		} else {
			f.Node += proto.NodeID(n)
		}
	case 'E':
		if f.Side = proto.Left; rest[0] == proto.Right.String() {
			f.Side = proto.Right
		} else if rest[0] != proto.Left.String() {
			err = fmt.Errorf("side %q", rest[0])
		}
	case 'Q':
		i := slices.IndexFunc(asks[:], func(q proto.Request) bool { return q.String() == rest[0] })
		if i < 0 {
			err = fmt.Errorf("request %q", rest[0])
		}
		f.Ask = asks[max(i, 0)]
	case 'W':
		if f.Peer = -1; rest[0] != proto.Loopback.String() {
			f.Peer, err = number(rest[0], 1<<31-1)
		}
	case 'P':
		err = f.Port.UnmarshalText([]byte(rest[0]))
	case 'D':
		i := slices.Index(wayNames[:], rest[0])
		if i < 0 {
			err = fmt.Errorf("way %q", rest[0])
		}
		f.Way = sim.Direction(max(i, 0))
	case 'B':
		f.Board, err = sim.ParseFault(rest[0])
	case 'S':
		f.Span, err = span(rest[0])
	case 'C':
		f.Count, err = number(rest[0], maxFlaps)
	case 'R':
		if f.Count, err = number(rest[0], million); err == nil && f.Verb == Starve && f.Count < leastShare {
			err = fmt.Errorf("%d parts: an agent needs %d in a million", f.Count, leastShare)
		}
	case 'U':
		f.Count, err = number(rest[0], hal.MaxBundles-1)
	case 'M':
		var n [3]int
		for i := range n {
			if n[i], err = number(rest[i], 1_000_000); err != nil {
				break
			}
		}
		f.Rates = Rates{uint32(n[0]), uint32(n[1]), uint32(n[2])}
	case 'X':
		if f.Mirror.Side = strings.Index("ab", rest[0]); f.Mirror.Side < 0 || len(rest[0]) != 1 {
			err = fmt.Errorf("side %q", rest[0])
		} else {
			f.Mirror.Port, err = number(rest[1], 1<<16)
		}
	case 'V':
		f.Software = rest[0]
	case 'J':
		f.Jobs, want = strings.Join(rest, " "), len(rest)
		_, err = parseJobs(f.Jobs)
	case 'F':
		f.Edit, want = strings.Join(rest, " "), len(rest)
		_, err = parseChange(f.Edit)
	}
	return rest[want:], err
}

func number(s string, limit int) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > uint64(limit) {
		return 0, fmt.Errorf("%q is not an integer from 0 to %d", s, limit)
	}
	return int(n), nil
}

func span(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxSpan {
		return 0, fmt.Errorf("%q is not a duration from 0 to %v, such as 1h2m or 300us", s, maxSpan)
	}
	return d, nil
}

// Forms are the lines that a script may have, for people.
func Forms() []string { return ofForms(usage) }

// ofForms is what of makes of the words of every form, which of a switch may be others.
func ofForms(of func(head string, v Verb) string) (list []string) {
	for v := range numVerbs {
		for _, head := range []string{forms[v].words, forms[v].ofSwitch} {
			if head != "" {
				list = append(list, of(head, v))
			}
		}
	}
	return list
}

func usage(head string, v Verb) string {
	s := "TIME " + head
	for i := range len(forms[v].args) {
		name := argNames[forms[v].args[i]]
		if forms[v].args[i] == 'N' && head == forms[v].ofSwitch {
			name = "SWITCH"
		}
		s += " " + name
	}
	if forms[v].undo != 0 {
		s += " [for DURATION]"
	}
	return s
}

func known() string {
	return strings.Join(ofForms(func(head string, _ Verb) string { return head }), ", ")
}

// ParseScript reads a whole script; # begins a comment. The lines are put in
// order of time.
func ParseScript(r io.Reader) ([]Fault, error) {
	var out []Fault
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		line, _, _ := strings.Cut(in.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		f, err := parseFault(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if out = append(out, f); len(out) > maxLines {
			return nil, fmt.Errorf("line %d: more than %d faults", n, maxLines)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	order(out)
	return out, nil
}

func order(list []Fault) {
	slices.SortStableFunc(list, func(a, b Fault) int { return int(min(max(a.At-b.At, -1), 1)) })
}
