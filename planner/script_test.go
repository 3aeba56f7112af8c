package planner

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/script"
)

// Goal: what a planner does about nodes, command by command.
// Method: scripts in testdata, as package script plays them; commands are in
// nodeScript.do.
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func([]string) string { return (&nodeScript{t: t}).do })
}

type nodeScript struct {
	t     *testing.T
	w     *fleet
	out   strings.Builder
	beats uint64 // of another planner
}

func (s *nodeScript) do(args []string) string {
	s.out.Reset()
	num := func(i int) proto.NodeID {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			s.t.Fatalf("%v: %v", args, err)
		}
		return proto.NodeID(n)
	}
	switch args[0] {
	case "fabric":
		s.fabric(args[1:])
	case "start", "restart": // [listening] where others may be on the broker, [takeover]
		s.w.listens, s.w.takeover = slices.Contains(args, "listening"), slices.Contains(args, "takeover")
		s.w.start()
	case "save-store": // a backup, or a copy
		s.w.backup = maps.Clone(s.w.store)
	case "old-store":
		s.w.store = maps.Clone(s.w.backup)
	case "lose-store":
		clear(s.w.store)
	case "birth", "cold":
		if args[1] == "all" {
			for i := range s.w.nodes {
				s.w.birth(proto.NodeID(i), true)
			}
			break
		}
		s.w.birth(num(1), args[0] == "cold")
	case "ask": // fabric | rings: as an operator
		s.ask(map[string]proto.Noun{"fabric": proto.NounFabric, "rings": proto.NounRings}[args[1]])
	case "run":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.w.run(d)
	case "die":
		for i := range args[1:] {
			s.w.die(num(i + 1))
		}
	case "dark": // power lost, and nobody knows yet
		for i := range args[1:] {
			n := &s.w.nodes[num(i+1)]
			n.alive, n.current = false, [2]int{-2, -2}
		}
		s.w.light()
	case "will": // the broker's keep-alive is over
		for i := range args[1:] {
			s.w.will(num(i + 1))
		}
	case "mend":
		delete(s.w.cuts, pair(num(1), num(2)))
		s.w.light()
	case "forget": // what the broker retained of a node
		s.w.forget(num(1))
	case "offline":
		s.w.offline(num(1))
	case "online":
		s.w.online(num(1))
	case "drain": // and a planner that is restarted in the middle of it
		s.w.later(proto.OpRequest{Noun: proto.NounDrain, Node: num(1), Bundle: -1})
	case "quarantine":
		s.w.ask(proto.OpRequest{Noun: proto.NounQuarantine, Node: num(1), Bundle: -1, Reason: "lies"})
	case "lift":
		s.w.ask(proto.OpRequest{Noun: proto.NounLift, Node: num(1), Bundle: -1})
	case "clear-fibre":
		s.w.ask(proto.OpRequest{Noun: proto.NounClearFibre, Bundle: -1, Name: args[1]})
	case "replies":
		for _, r := range s.w.replies {
			fmt.Fprintf(&s.out, "reply %s %s\n", r.Code, r.Reason)
		}
	case "host-fault":
		s.w.setMode(num(1), proto.ModeHostDown)
	case "host-ok":
		s.w.setMode(num(1), proto.ModeService)
	case "cut":
		s.w.cuts[pair(num(1), num(2))] = true
		s.w.light()
	case "refuse":
		code, err := strconv.Atoi(args[2])
		if err != nil {
			s.t.Fatal(err)
		}
		s.w.nodes[num(1)].refuse = proto.Code(code)
	case "mute":
		s.w.nodes[num(1)].mute = args[2] == "on"
	case "lags": // on | off
		s.w.nodes[num(1)].lags = args[2] == "on"
	case "misnames": // on | off
		s.w.nodes[num(1)].misnames = args[2] == "on"
	case "tell": // ID FIELD VALUE: a false report, said beside the agent
		s.w.tell(&s.w.nodes[num(1)], args[2], uint64(num(3)))
	case "forge": // ID RING GEN PEERS: it says that it holds such a plan
		var peers []proto.NodeID
		for i := range args[4:] {
			peers = append(peers, num(i+4))
		}
		s.w.forge(&s.w.nodes[num(1)], proto.RingID(num(2)), proto.Generation(num(3)), peers)
	case "alarms": // that stand
		for _, a := range s.w.p.Alarms.List() {
			fmt.Fprintf(&s.out, "alarm %s: %s\n", a.ID, a.Why)
		}
	case "quiet":
		s.w.nodes[num(1)].quiet = true
	case "slow", "hang": // its connection hangs, or all of it
		n := &s.w.nodes[num(1)]
		n.hung = args[0] == "hang" && args[2] == "on"
		if n.slow = args[2] == "on"; !n.slow {
			s.w.up, n.held = append(s.w.up, n.held...), nil
		}
	case "lose-acks":
		s.w.nodes[num(1)].loseAcks = int(num(2))
	case "bump-bypass": // behind the planner's back
		s.w.nodes[num(1)].bypass++
	case "drop":
		s.w.drop = 0
		if args[1] == "decisions" {
			s.w.drop = proto.TopicDecision
		}
	case "sent": // what went out of plans since the last time
		fmt.Fprintf(&s.out, "desired %d decisions %d\n", s.w.sent["desired"], s.w.sent["decision"])
		clear(s.w.sent)
	case "signs": // what the planner said of itself since the last time
		fmt.Fprintf(&s.out, "in service %d taking over %d standing by %d\n", s.w.sent["beat"], s.w.sent["takeover"], s.w.sent["standby"])
		clear(s.w.sent)
	case "disk":
		s.w.holdDisk = args[1] == "hold"
	case "link":
		s.w.linkUp = args[1] == "up"
		if s.w.linkUp {
			s.w.connect()
			for i := range s.w.nodes {
				s.w.nodes[i].lastSent = nil
			}
			s.w.light()
		} else {
			s.w.step(Event{Kind: LinkDown})
		}
	case "planner":
		s.planner(args[1:])
	case "show":
		s.out.WriteString(s.w.show())
	default:
		s.t.Fatalf("unknown command %v", args)
	}
	return s.out.String()
}

func (s *nodeScript) fabric(args []string) {
	p := fabric.Params{Name: "f", GPUsPerNode: 4}
	var verbose bool
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "nodes":
			p.Nodes = n
		case "k":
			p.K = n
		case "tp":
			p.TP = n
		case "spares":
			p.Spares = n
		case "spare-layout":
			p.SpareLayout = fabric.SpareLayout(value)
		case "moves":
			p.Moves = fabric.Moves(value)
		case "ring":
			p.Topology = fabric.Ring
		case "verbose":
			verbose = true
		default:
			s.t.Fatalf("fabric: unknown %s", key)
		}
	}
	f, err := fabric.New(p)
	if err != nil {
		s.t.Fatal(err)
	}
	s.w = newFleet(s.t, f)
	s.w.trace = func(line string) {
		if verbose || strings.HasPrefix(line, "log") || strings.HasPrefix(line, "exit") {
			s.out.WriteString(line + "\n")
		}
	}
}

func (s *nodeScript) ask(noun proto.Noun) {
	payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, TTLMillis: 5000, Corr: proto.Corr{5}, Noun: noun, Bundle: -1})
	if err != nil {
		s.t.Fatal(err)
	}
	s.w.replies = nil
	s.w.raw(s.w.topics.Request("ctl-1"), payload)
	for i := range s.w.replies {
		r := &s.w.replies[i]
		fmt.Fprintf(&s.out, "answer %s %s\n", r.Code, r.Reason)
		if r.Fabric != nil {
			fmt.Fprintf(&s.out, "others: %s\nwaits: %s\n", r.Fabric.Others, strings.Join(r.Fabric.Waiting, "; "))
		}
	}
	if len(s.w.replies) == 0 {
		s.out.WriteString("no answer\n")
	}
}

// planner LIFE TERM BEATS [retained] [takeover] [other] [standby] [copy]: another
// planner speaks, every two seconds. Its description is an other one, or ours;
// a copy has our id.
func (s *nodeScript) planner(args []string) {
	var n [3]uint64
	for i := range n {
		v, err := strconv.ParseUint(args[i], 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		n[i] = v
	}
	is := func(word string) bool { return slices.Contains(args, word) }
	for range n[2] {
		s.beats++
		m := proto.PlannerState{Version: proto.Version, Planner: n[0], Life: n[0], Online: !is("standby"), Standby: is("standby"), Term: proto.Term(n[1]),
			Seq: 100 + s.beats, PeriodMillis: 2000, Takeover: is("takeover"), Layout: layoutOf(s.w.fab)}
		if is("other") {
			m.Layout++
		}
		if is("copy") {
			m.Planner = 77
		}
		payload, err := proto.Encode(&m)
		if err != nil {
			s.t.Fatal(err)
		}
		s.w.up = append(s.w.up, proto.Packet{Kind: proto.Publish, Topic: s.w.topics.Planner(), Payload: payload, QoS: 1, Retain: is("retained")})
		if n[2] > 1 {
			s.w.run(2 * time.Second)
		}
	}
}
