package main

import (
	"context"
	"fmt"
	"io"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// switchJSON is the form that scripts rely on.
type switchJSON struct {
	Switch         int              `json:"switch"` // from 0
	Online         bool             `json:"online"`
	Mode           string           `json:"mode"`
	Usable         bool             `json:"usable"`
	WantGeneration proto.Generation `json:"want_generation"`
	Generation     proto.Generation `json:"generation"`
	Reason         string           `json:"reason,omitempty"`
	*switchReport
}

// switchReport is what a switch says of itself.
type switchReport struct {
	Term      proto.Term        `json:"term"`
	UptimeUS  uint64            `json:"uptime_us"`
	LastEvent uint64            `json:"last_event"`
	DarkUS    uint32            `json:"dark_us"` // longest that a moved circuit was dark
	Circuits  []switchPortsJSON `json:"circuits"`
	Alarms    []switchAlarmJSON `json:"alarms"`
}

type switchPortsJSON struct {
	PortA uint16          `json:"port_a"`
	PortB uint16          `json:"port_b"`
	Job   proto.JobID     `json:"job"`
	State string          `json:"state"`
	Loss  *proto.MilliDBm `json:"loss_millidb"` // null: not measured
}

type switchAlarmJSON struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	PortA    uint16 `json:"port_a"`
	PortB    uint16 `json:"port_b"`
	SinceUS  uint64 `json:"since_us"`
	Text     string `json:"text,omitempty"`
}

func switchFrom(s *proto.NodeStatus) switchJSON {
	j := switchJSON{Switch: int(s.Node - proto.FirstSwitch), Online: s.Online, Mode: s.Mode.String(), Usable: s.Usable, WantGeneration: s.Want, Generation: s.Generation, Reason: s.Reason}
	r := s.Reported
	if r == nil {
		return j
	}
	j.switchReport = &switchReport{Term: r.Term, UptimeUS: r.UptimeMicros, LastEvent: r.LastEvent, DarkUS: r.DarkMicros, Circuits: []switchPortsJSON{}, Alarms: []switchAlarmJSON{}}
	for _, c := range r.Circuits {
		j.Circuits = append(j.Circuits, switchPortsJSON{c.A, c.B, c.Job, c.State.String(), c.Loss.Known()})
	}
	for i := range r.Alarms {
		a := &r.Alarms[i]
		j.Alarms = append(j.Alarms, switchAlarmJSON{a.Kind.String(), a.Severity.String(), a.PortA, a.PortB, a.SinceMicros, a.Text})
	}
	return j
}

// switches lists the switches between pods, or shows one.
func switches(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	return listing[proto.NodeStatus, switchJSON]{
		noun: "switch", plural: "switches", help: help("switch"), from: uint64(proto.FirstSwitch), list: proto.NounNodes,
		show: func(word string, q *proto.OpRequest) error {
			id, err := number("switch", word, 0)
			q.Noun, q.Node = proto.NounNode, min(proto.FirstSwitch+proto.NodeID(id), 1<<32-1)
			return err
		},
		of:   func(r *proto.OpReply) []proto.NodeStatus { return r.Nodes },
		form: switchFrom, table: switchRows, print: printSwitch,
		keep: func(s *switchJSON, f *filters) bool { return f.stateIs(s.Mode, s.Online, s.Usable) },
	}.run(ctx, c, args, out)
}

func switchRows(out io.Writer, all []switchJSON) {
	rows(out, "SWITCH\tONLINE\tMODE\tGENERATION\tWANTED\tUSABLE", all, func(s switchJSON) string {
		return fmt.Sprintf("%d\t%s\t%s\t%d\t%d\t%s", s.Switch, yesNo(s.Online), modeWords(s.Mode), s.Generation, s.WantGeneration, usableText(s.Usable, s.Reason))
	})
}

func printSwitch(out io.Writer, s *switchJSON) {
	switchRows(out, []switchJSON{*s})
	if s.switchReport == nil {
		return
	}
	fmt.Fprintf(out, "\n%s\n", proto.Count(len(s.Circuits), "circuit"))
	if len(s.Circuits) > 0 {
		rows(out, "PORT A\tPORT B\tJOB\tSTATE\tLOSS", s.Circuits, func(c switchPortsJSON) string {
			return fmt.Sprintf("%d\t%d\t%d\t%s\t%s", c.PortA, c.PortB, c.Job, c.State, decibel(c.Loss))
		})
	}
	for _, a := range s.Alarms {
		cli.Say(out, "alarm %s, %s, port %d: %s", a.Kind, a.Severity, a.PortA, a.Text)
	}
}

// decibel is a loss for people.
func decibel(millidB *proto.MilliDBm) string {
	if millidB == nil {
		return "-"
	}
	return fmt.Sprintf("%d.%02d dB", *millidB/1000, *millidB%1000/10)
}

func yesNo(b bool) string { return cli.Either(b, "yes", "no") }

func usableText(usable bool, reason string) string { return cli.Either(usable, "yes", "no: "+reason) }

// modeWords are a mode's name for people.
func modeWords(name string) string {
	for m := proto.ModeUnplanned; m <= proto.ModeDrained; m++ {
		if m.String() == name {
			return m.Words()
		}
	}
	return name
}
