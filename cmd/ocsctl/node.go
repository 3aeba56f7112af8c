package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

type nodeJSON struct {
	Node           proto.NodeID     `json:"node"`
	Name           string           `json:"name,omitempty"`
	Online         bool             `json:"online"`
	Mode           string           `json:"mode"`
	Usable         bool             `json:"usable"`
	Ring           *proto.RingID    `json:"ring"` // null: in none
	WantGeneration proto.Generation `json:"want_generation"`
	Generation     proto.Generation `json:"generation"`
	Reason         string           `json:"reason,omitempty"`
	Drain          *proto.DrainNote `json:"drain,omitempty"` // an operator keeps it out
	*reportedJSON
}

// reportedJSON is what a node says of itself.
type reportedJSON struct {
	Term      proto.Term   `json:"term"`
	SeenTerm  proto.Term   `json:"seen_term"`
	Plan      string       `json:"plan"`
	BypassSeq uint64       `json:"bypass_seq"`
	UptimeUS  uint64       `json:"uptime_us"`
	LastEvent uint64       `json:"last_event"`
	Bundles   []bundleJSON `json:"bundles"`
	Sides     []sideJSON   `json:"sides"`
	Alarms    []alarmJSON  `json:"alarms"`
}

type bundleJSON struct {
	Bundle     proto.BundleID  `json:"bundle"`
	Path       string          `json:"path"`
	State      string          `json:"state"`
	Cause      string          `json:"cause"`
	SinceUS    uint64          `json:"since_us"`
	Measured   *proto.MilliDBm `json:"measured_mdbm"` // null: never measured
	Expected   *proto.MilliDBm `json:"expected_mdbm"`
	Flaps      uint32          `json:"flaps"`
	Calibrated bool            `json:"calibrated"`
	Held       string          `json:"held"` // of the path, against drift
	drift      string          // the same for people
	why        string          // Cause for people
}

type sideJSON struct {
	Side    string        `json:"side"`
	State   string        `json:"state"`
	Request string        `json:"request"`
	Working uint8         `json:"working"`
	Current int8          `json:"current"`
	Peer    *proto.NodeID `json:"peer"`
}

type alarmJSON struct {
	Kind     string         `json:"kind"`
	Severity string         `json:"severity"`
	Bundle   proto.BundleID `json:"bundle"`
	SinceUS  uint64         `json:"since_us"`
	Text     string         `json:"text,omitempty"`
}

func nodeOf(s *proto.NodeStatus) nodeJSON {
	n := nodeJSON{Node: s.Node, Ring: known(&s.Ring), Name: s.Name, Online: s.Online, Mode: s.Mode.String(), Usable: s.Usable, WantGeneration: s.Want, Generation: s.Generation, Reason: s.Reason, Drain: s.Drain}
	r := s.Reported
	if r == nil {
		return n
	}
	j := &reportedJSON{Term: r.Term, SeenTerm: r.SeenTerm, Plan: r.Plan.String(), BypassSeq: r.BypassSeq, UptimeUS: r.UptimeMicros, LastEvent: r.LastEvent,
		Bundles: []bundleJSON{}, Sides: []sideJSON{}, Alarms: []alarmJSON{}}
	for i := range r.Bundles {
		b := &r.Bundles[i]
		j.Bundles = append(j.Bundles, bundleJSON{b.Bundle, b.Path.String(), b.State.String(), b.Cause.String(), b.SinceMicros,
			b.Measured.Known(), b.Expected.Known(), b.Flaps, !b.Calibration.IsZero(), b.Held.String(), r.Holding(b), b.Cause.Words()})
	}
	for i := range r.Sides {
		d := &r.Sides[i]
		side := sideJSON{Side: d.Side.String(), State: d.State.String(), Request: d.Request.String(), Working: d.Working, Current: d.Current}
		if d.Current >= 0 {
			side.Peer = &d.Peer
		}
		j.Sides = append(j.Sides, side)
	}
	for i := range r.Alarms {
		a := &r.Alarms[i]
		j.Alarms = append(j.Alarms, alarmJSON{a.Kind.String(), a.Severity.String(), a.Bundle, a.SinceMicros, a.Text})
	}
	n.reportedJSON = j
	return n
}

func node(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	if len(args) > 1 && args[0] == "show" { // a switch has a number, too
		if id, err := number("node", args[1], uint64(proto.FirstSwitch)); err == nil {
			return switches(ctx, &clientFlags{flags: cli.NewFlags("switch")}, slices.Concat([]string{"show", strconv.Itoa(int(id) - int(proto.FirstSwitch))}, args[2:]), out)
		}
	}
	return listing[proto.NodeStatus, nodeJSON]{
		noun: "node", help: help("node"), list: proto.NounNodes,
		show: func(word string, q *proto.OpRequest) error {
			q.Noun = proto.NounNode
			return c.nodeArg("node", word, &q.Node)
		},
		of:   func(r *proto.OpReply) []proto.NodeStatus { return r.Nodes },
		form: nodeOf, table: nodeRows, print: printNode,
		keep: func(n *nodeJSON, f *filters) bool {
			return f.stateIs(n.Mode, n.Online, n.Usable) && strings.Contains(n.Name, f.name) && (f.ring == 0 || n.Ring != nil && uint(*n.Ring) == f.ring)
		},
	}.run(ctx, c, args, out)
}

func nodeRows(out io.Writer, nodes []nodeJSON) {
	named := slices.ContainsFunc(nodes, func(n nodeJSON) bool { return n.Name != "" })
	head, name := "NODE", func(*nodeJSON) string { return "" }
	if named {
		head, name = "NODE\tNAME", func(n *nodeJSON) string { return "\t" + dash(n.Name) }
	}
	rows(out, head+"\tONLINE\tMODE\tRING\tGENERATION\tWANTED\tUSABLE", nodes, func(n nodeJSON) string {
		return fmt.Sprintf("%d%s\t%s\t%s\t%s\t%d\t%d\t%s", n.Node, name(&n), yesNo(n.Online), modeWords(n.Mode), orDash(n.Ring), n.Generation, n.WantGeneration, usableText(n.Usable, n.Reason))
	})
}

func printNode(out io.Writer, n *nodeJSON) {
	nodeRows(out, []nodeJSON{*n})
	if n.reportedJSON == nil {
		return
	}
	fmt.Fprintln(out)
	rows(out, "BUNDLE\tPATH\tSTATE\tCAUSE\tMEASURED\tEXPECTED\tLOSSES\tCALIBRATED", n.Bundles, func(b bundleJSON) string {
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s", b.Bundle, b.Path, b.State, b.Cause, orDash(b.Measured), orDash(b.Expected), b.Flaps, yesNo(b.Calibrated))
	})
	for _, b := range n.Bundles {
		if b.why != strings.ReplaceAll(b.Cause, "_", " ") {
			cli.Say(out, "bundle %d, %s: %s", b.Bundle, b.Cause, b.why)
		}
		if b.drift != "" {
			cli.Say(out, "bundle %d, drift: %s", b.Bundle, b.drift)
		}
	}
	if len(n.Sides) > 0 {
		fmt.Fprintln(out)
		rows(out, "SIDE\tSTATE\tREQUEST\tPLANNED\tIN USE\tPEER", n.Sides, func(s sideJSON) string {
			current := &s.Current
			if s.Peer == nil {
				current = nil
			}
			return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s", s.Side, s.State, s.Request, s.Working, orDash(current), orDash(s.Peer))
		})
	}
	for _, a := range n.Alarms {
		fmt.Fprintln(out)
		cli.Say(out, "alarm %s, %s, bundle %d: %s", a.Kind, a.Severity, a.Bundle, a.Text)
	}
}
