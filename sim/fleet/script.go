package fleet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Verb is what a line of a fault script does.
type Verb uint8

const (
	NodeDark       Verb = iota // the node loses its supply, lasers fall one after the other
	NodeOn                     // and has it again
	HostFault                  // the host says that its GPUs are gone
	HostOK                     //
	AgentCrash                 // the agent process dies, its board stays as it is
	AgentStart                 //
	Reboot                     // the management controller boots for a while: crash, new clock, start
	BoardBreak                 // a fault of sim on the board
	BoardRepair                //
	FibreCut                   // of one way or both, as seen from the port
	FibreMend                  //
	FibreGlitch                // cut and mended after a while
	FibreFlap                  // glitches, one after the other
	BrokerDown                 // the broker dies
	BrokerUp                   // and comes back; what it kept of its last Span is stale
	LinkCut                    // the node's management network is cut
	LinkMend                   //
	PartitionCut               // that of all nodes from one to another
	PartitionMend              //
	PlannerKill                // the planner process dies
	PlannerStart               // and starts from its store
	PlannerPause               // it stands still and its packets wait
	PlannerResume              //
	PlannerLose                // it dies and its store is gone
	PlannerCut                 // its network is cut
	PlannerMend                //
	RivalStart                 // somebody starts a second planner, with a store of its own
	RivalKill                  //
	AgentCalibrate             // a person on the node calibrates a bundle
	Drain                      // an operator has the planner take a node out
	Undrain                    // and let it in again
	Switch                     // an operator's request for a side; no_request ends it
	Network                    // loss, repetition and reordering from now on, per million
	numVerbs
)

// forms is what a line looks like: what follows the time. N node, L last node, P port,
// D direction, B fault of a board, S span, C count, M three rates, E side,
// Q request, W whereto, U bundle.
var forms = [numVerbs]struct{ words, args string }{
	NodeDark: {"node dark", "N"}, NodeOn: {"node on", "N"},
	HostFault: {"host fault", "N"}, HostOK: {"host ok", "N"},
	AgentCrash: {"agent crash", "N"}, AgentStart: {"agent start", "N"}, Reboot: {"agent reboot", "NS"}, AgentCalibrate: {"agent calibrate", "NU"},
	BoardBreak: {"board break", "NB"}, BoardRepair: {"board repair", "NB"},
	FibreCut: {"fibre cut", "PD"}, FibreMend: {"fibre mend", "PD"}, FibreGlitch: {"fibre glitch", "PDS"}, FibreFlap: {"fibre flap", "PDSC"},
	BrokerDown: {"broker down", ""}, BrokerUp: {"broker up", "S"},
	LinkCut: {"link cut", "N"}, LinkMend: {"link mend", "N"},
	PartitionCut: {"partition cut", "NL"}, PartitionMend: {"partition mend", "NL"},
	PlannerLose: {"planner lose", ""}, PlannerCut: {"planner cut", ""}, PlannerMend: {"planner mend", ""},
	RivalStart: {"rival start", ""}, RivalKill: {"rival kill", ""},
	Drain: {"operator drain", "N"}, Undrain: {"operator undrain", "N"}, Switch: {"operator switch", "NEQW"},
	PlannerKill: {"planner kill", ""}, PlannerStart: {"planner start", ""}, PlannerPause: {"planner pause", ""}, PlannerResume: {"planner resume", ""},
	Network: {"network set", "M"},
}

var argNames = map[byte]string{'N': "NODE", 'P': "NODE/BUNDLE/external1|external2", 'D': "both|out|in", 'B': "FAULT",
	'S': "DURATION", 'C': "COUNT", 'M': "LOSS REPEAT REORDER", 'L': "LASTNODE",
	'E': "left|right", 'Q': "lockout|forced_switch|manual_switch|no_request", 'W': "PEER|loopback", 'U': "BUNDLE"}

func (v Verb) String() string {
	if v < numVerbs {
		return forms[v].words
	}
	return fmt.Sprintf("verb(%d)", uint8(v))
}

// Fault is one line of a script: a time after the fabric stands, and what
// happens then.
type Fault struct {
	At    time.Duration
	Verb  Verb
	Node  proto.NodeID
	Port  fabric.Port
	Way   sim.Direction
	Board sim.Fault
	Span  time.Duration
	Count int // of a flap; the bundle of AgentCalibrate
	Rates Rates
	Last  proto.NodeID  // of a partition
	Side  proto.Side    // of Switch
	Ask   proto.Request //
	Peer  int           // its candidate, -1: loopback
	// Group ties the losses that count as one fault together, 0: its own.
	Group int
}

// Rates of what a network does to packets, per million.
type Rates struct{ Loss, Repeat, Reorder uint32 }

var wayNames = [...]string{sim.Both: "both", sim.Out: "out", sim.In: "in"}

// String is the line that ParseFault reads.
func (f Fault) String() string {
	s := f.At.String() + " " + f.Verb.String()
	if f.Verb >= numVerbs {
		return s
	}
	for i := range len(forms[f.Verb].args) {
		switch forms[f.Verb].args[i] {
		case 'N':
			s += fmt.Sprintf(" %d", f.Node)
		case 'P':
			s += " " + f.Port.String()
		case 'D':
			s += " " + wayNames[f.Way]
		case 'B':
			s += " " + f.Board.String()
		case 'S':
			s += " " + f.Span.String()
		case 'C', 'U':
			s += fmt.Sprintf(" %d", f.Count)
		case 'M':
			s += fmt.Sprintf(" %d %d %d", f.Rates.Loss, f.Rates.Repeat, f.Rates.Reorder)
		case 'L':
			s += fmt.Sprintf(" %d", f.Last)
		case 'E':
			s += " " + f.Side.String()
		case 'Q':
			s += " " + f.Ask.String()
		case 'W':
			if f.Peer < 0 {
				s += " loopback"
			} else {
				s += fmt.Sprintf(" %d", f.Peer)
			}
		}
	}
	if f.Group != 0 {
		s += fmt.Sprintf(" group %d", f.Group)
	}
	return s
}

// Limits of a script. chosen: far over what anybody writes, so that a wrong
// file ends soon.
const (
	maxLines = 10_000_000
	maxFlaps = 10_000
	maxSpan  = 10 * 365 * 24 * time.Hour
)

// ParseFault reads one line.
func ParseFault(line string) (Fault, error) {
	var f Fault
	words := strings.Fields(line)
	if len(words) < 3 {
		return f, errors.New("want a time, a noun and a verb, such as \"10s node dark 5\"")
	}
	var err error
	if f.At, err = span(words[0]); err != nil {
		return f, fmt.Errorf("time: %w", err)
	}
	head := words[1] + " " + words[2]
	for f.Verb = 0; f.Verb < numVerbs && forms[f.Verb].words != head; f.Verb++ {
	}
	if f.Verb == numVerbs {
		return f, fmt.Errorf("%q is not one of %s", head, known())
	}
	rest := words[3:]
	args := forms[f.Verb].args
	for i := range len(args) {
		if rest, err = f.argument(args[i], rest); err != nil {
			return f, fmt.Errorf("%s: %w; want %s", head, err, usage(f.Verb))
		}
	}
	if len(rest) == 2 && rest[0] == "group" {
		if f.Group, err = number(rest[1], 1<<30); err != nil {
			return f, fmt.Errorf("group: %w", err)
		}
		rest = nil
	}
	if len(rest) > 0 {
		return f, fmt.Errorf("%s: unexpected %q; want %s", head, rest[0], usage(f.Verb))
	}
	return f, nil
}

func (f *Fault) argument(kind byte, rest []string) ([]string, error) {
	want := 1
	if kind == 'M' {
		want = 3
	}
	if len(rest) < want {
		return nil, fmt.Errorf("%s is missing", argNames[kind])
	}
	var err error
	switch kind {
	case 'N', 'L':
		var n int
		n, err = number(rest[0], 1<<31-1)
		if kind == 'L' {
			f.Last = proto.NodeID(n)
		} else {
			f.Node = proto.NodeID(n)
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
	}
	return rest[want:], err
}

// asks are the requests that an operator makes.
var asks = [...]proto.Request{proto.NoRequest, proto.ManualSwitch, proto.ForcedSwitch, proto.Lockout}

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
func Forms() []string {
	list := make([]string, numVerbs)
	for v := range list {
		list[v] = usage(Verb(v))
	}
	return list
}

func usage(v Verb) string {
	s := "TIME " + v.String()
	for i := range len(forms[v].args) {
		s += " " + argNames[forms[v].args[i]]
	}
	return s
}

func known() string {
	list := make([]string, numVerbs)
	for v := range list {
		list[v] = Verb(v).String()
	}
	return strings.Join(list, ", ")
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
		f, err := ParseFault(line)
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

// check finds a fault that is not one of this fabric.
func (f *Fault) check(fab *fabric.Fabric) error {
	args := forms[f.Verb].args
	if strings.Contains(args, "N") && int(f.Node) >= fab.Nodes {
		return fmt.Errorf("fault %q: node %d: the fabric has %d", f, f.Node, fab.Nodes)
	}
	if strings.Contains(args, "L") && (int(f.Last) >= fab.Nodes || f.Last < f.Node) {
		return fmt.Errorf("fault %q: last node %d: want %d to %d", f, f.Last, f.Node, fab.Nodes-1)
	}
	if strings.Contains(args, "P") {
		if _, _, ok := fab.At(f.Port); !ok {
			return fmt.Errorf("fault %q: port %v has no fibre", f, f.Port)
		}
	}
	return nil
}
