package fleet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

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
	Switch                     // an operator's request for a side, no_request ends it
	Network                    // loss, repetition and reordering from now on, per million
	MirrorStick                // a mirror of a switch no longer moves
	MirrorFree                 //
	JobsApply                  // an operator has the planner run a list of jobs on the core
	RolloutRun                 // a release is installed everywhere, and an operator has the planner bring it to all agents
	RolloutStop                // and end that
	Install                    // another one is installed at one node, and the one before where it is left
	Shed                       // messages in a million that a queue above TCP drops, from now on
	Starve                     // an agent has so many parts in a million of its processor
	Feed                       // and all of it again
	FabricEdit                 // cables and boards are laid, and an operator has the planner plan for them
	numVerbs
)

// forms is what a line looks like: what follows the time. N device, K node, L last node, P port,
// D direction, B fault of a board, S span, C count, M three rates, E side,
// Q request, W whereto, U bundle, X mirror, J jobs, V software, R one rate. Of a switch some have words
// of their own, and only those may be about one; undo ends what lasts "for" a
// while.
var forms = [numVerbs]struct {
	words, args string
	ofSwitch    string
	undo        Verb
}{
	NodeDark: {"node dark", "N", "switch dark", NodeOn}, NodeOn: {"node on", "N", "switch on", 0},
	HostFault: {"host fault", "K", "", HostOK}, HostOK: {"host ok", "K", "", 0},
	AgentCrash: {"agent crash", "N", "switch crash", AgentStart}, AgentStart: {"agent start", "N", "switch start", 0},
	Reboot: {"agent reboot", "NS", "switch reboot", 0}, AgentCalibrate: {"agent calibrate", "KU", "", 0},
	BoardBreak: {"board break", "KB", "", BoardRepair}, BoardRepair: {"board repair", "KB", "", 0},
	FibreCut: {"fibre cut", "PD", "", FibreMend}, FibreMend: {"fibre mend", "PD", "", 0},
	FibreGlitch: {"fibre glitch", "PDS", "", 0}, FibreFlap: {"fibre flap", "PDSC", "", 0},
	BrokerDown: {"broker down", "", "", BrokerUp}, BrokerUp: {"broker up", "S", "", 0},
	LinkCut: {"link cut", "N", "switch cut", LinkMend}, LinkMend: {"link mend", "N", "switch mend", 0},
	PartitionCut: {"partition cut", "KL", "", PartitionMend}, PartitionMend: {"partition mend", "KL", "", 0},
	PlannerKill: {"planner kill", "", "", PlannerStart}, PlannerStart: {"planner start", "", "", 0},
	PlannerPause: {"planner pause", "", "", PlannerResume}, PlannerResume: {"planner resume", "", "", 0},
	PlannerLose: {"planner lose", "", "", PlannerStart}, PlannerCut: {"planner cut", "", "", PlannerMend}, PlannerMend: {"planner mend", "", "", 0},
	RivalStart: {"rival start", "", "", RivalKill}, RivalKill: {"rival kill", "", "", 0},
	Drain: {"operator drain", "K", "", Undrain}, Undrain: {"operator undrain", "K", "", 0}, Switch: {"operator switch", "KEQW", "", 0},
	Network: {"network set", "M", "", 0}, Shed: {"network shed", "R", "", 0},
	Starve: {"agent starve", "NR", "switch starve", Feed}, Feed: {"agent feed", "N", "switch feed", 0},
	MirrorStick: {"", "NX", "switch stick", MirrorFree}, MirrorFree: {"", "NX", "switch free", 0},
	JobsApply: {"jobs apply", "J", "", 0}, FabricEdit: {"fabric edit", "F", "", 0}, Install: {"agent install", "KV", "", 0},
	RolloutRun: {"rollout run", "V", "", 0}, RolloutStop: {"rollout stop", "", "", 0},
}

var argNames = map[byte]string{'N': "NODE", 'K': "NODE", 'X': "a|b PORT", 'J': "JOB:SERVERS/TP/EP/PP[/COLLECTIVE] ...|none", 'P': "NODE/BUNDLE/external1|external2", 'D': "both|out|in", 'B': "FAULT",
	'S': "DURATION", 'C': "COUNT", 'F': "KEY=VALUE|WORD ...", 'M': "LOSS REPEAT REORDER", 'R': "PARTS", 'L': "LASTNODE",
	'E': "left|right", 'Q': "lockout|forced_switch|manual_switch|no_request", 'W': "PEER|loopback", 'U': "BUNDLE", 'V': "SOFTWARE"}

func (v Verb) String() string {
	if v < numVerbs {
		return v.of(forms[v].words == "")
	}
	return fmt.Sprintf("verb(%d)", uint8(v))
}

// of is the noun and the verb, of a switch or of a node.
func (v Verb) of(ofSwitch bool) string {
	if ofSwitch {
		return forms[v].ofSwitch
	}
	return forms[v].words
}

// Fault is one line of a script: a time after the fabric stands, or after a
// commit of circuits, and what happens then.
type Fault struct {
	At       time.Duration
	Commit   int // of the core's switches, counted from 1; 0: At is after the fabric stands
	Verb     Verb
	Node     proto.NodeID  // or switch
	Stage    int           // in place of a switch: the so-manieth of the commit's, counted from 1
	For      time.Duration // until it is undone; 0: it is not
	Jobs     string        // of JobsApply, see parseJobs
	Edit     string        // of FabricEdit, see parseChange
	Mirror   Mirror        // of MirrorStick
	Port     fabric.Port
	Way      sim.Direction
	Board    sim.Fault
	Span     time.Duration
	Count    int // of a flap; the bundle of AgentCalibrate; of Shed and Starve, in a million
	Rates    Rates
	Last     proto.NodeID  // of a partition
	Side     proto.Side    // of Switch
	Ask      proto.Request //
	Peer     int           // its candidate, -1: loopback
	Software string        // of RolloutRun and Install
	// Group ties the losses that count as one fault together, 0: its own.
	Group int
}

// Mirror of a switch.
type Mirror struct{ Side, Port int }

// Rates of what a network does to packets, per million.
type Rates struct{ Loss, Repeat, Reorder uint32 }

var wayNames = [...]string{sim.Both: "both", sim.Out: "out", sim.In: "in"}

// String is the line that parseFault reads.
func (f Fault) String() string {
	s := f.At.String()
	if f.Commit > 0 {
		s = fmt.Sprintf("commit:%d+%v", f.Commit, f.At)
	}
	if f.Verb >= numVerbs {
		return s + " " + f.Verb.String()
	}
	s += " " + f.Verb.of(f.Node.IsSwitch() || forms[f.Verb].words == "")
	for i := range len(forms[f.Verb].args) {
		s += " " + f.word(forms[f.Verb].args[i])
	}
	if f.For != 0 {
		s += " for " + f.For.String()
	}
	if f.Group != 0 {
		s += fmt.Sprintf(" group %d", f.Group)
	}
	return s
}

// word is an argument as text.
func (f *Fault) word(kind byte) string {
	switch kind {
	case 'N', 'K':
		switch {
		case f.Stage > 0:
			return fmt.Sprintf("stage:%d", f.Stage)
		case f.Node.IsSwitch():
			return fmt.Sprint(uint32(f.Node - proto.FirstSwitch))
		}
		return fmt.Sprint(uint32(f.Node))
	case 'P':
		return f.Port.String()
	case 'D':
		return wayNames[f.Way]
	case 'B':
		return f.Board.String()
	case 'S':
		return f.Span.String()
	case 'C', 'U', 'R':
		return strconv.Itoa(f.Count)
	case 'M':
		return fmt.Sprintf("%d %d %d", f.Rates.Loss, f.Rates.Repeat, f.Rates.Reorder)
	case 'L':
		return fmt.Sprint(uint32(f.Last))
	case 'E':
		return f.Side.String()
	case 'Q':
		return f.Ask.String()
	case 'X':
		return fmt.Sprintf("%c %d", "ab"[f.Mirror.Side&1], f.Mirror.Port)
	case 'J':
		return f.Jobs
	case 'V':
		return f.Software
	case 'F':
		return f.Edit
	}
	if f.Peer < 0 { // 'W'
		return proto.Loopback.String()
	}
	return strconv.Itoa(f.Peer)
}

// asks are the requests that an operator makes.
var asks = [...]proto.Request{proto.NoRequest, proto.ManualSwitch, proto.ForcedSwitch, proto.Lockout}

// check finds a fault that is not one of this fabric, of so many nodes when it has
// grown.
func (f *Fault) check(fab *fabric.Fabric, nodes int) error {
	args := forms[f.Verb].args
	if f.Commit > 0 || f.Verb == JobsApply || f.Node.IsSwitch() {
		if err := f.checkCore(fab.Core); err != nil {
			return fmt.Errorf("fault %q: %w", f, err)
		}
	}
	if strings.ContainsAny(args, "NK") && !f.Node.IsSwitch() && int(f.Node) >= nodes {
		return fmt.Errorf("fault %q: node %d: the fabric has %d", f, f.Node, nodes)
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

func (f *Fault) checkCore(core *fabric.Core) error {
	if core == nil {
		return errors.New("the fabric has no circuit switches")
	}
	s := int(f.Node) - int(proto.FirstSwitch)
	if s >= core.Switches() {
		return fmt.Errorf("switch %d: the fabric has %d", s, core.Switches())
	}
	switch mirror := strings.Contains(forms[f.Verb].args, "X"); {
	case mirror && s >= core.Mirrors():
		return fmt.Errorf("switch %d: it is the transceivers of a server; mirrors have 0 to %d", s, core.Mirrors()-1)
	case mirror && f.Mirror.Port >= core.SwitchSize():
		return fmt.Errorf("port %d: a switch has %d", f.Mirror.Port, core.SwitchSize())
	}
	return nil
}
