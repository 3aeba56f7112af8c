package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// watchJSON is one line of watch.
type watchJSON struct {
	Kind       string           `json:"kind"` // event, online, offline, planner
	Node       *proto.NodeID    `json:"node,omitempty"`
	Seq        uint64           `json:"seq,omitempty"`
	Event      string           `json:"event,omitempty"` // MessageId in Redfish's style
	Severity   string           `json:"severity,omitempty"`
	AtUS       uint64           `json:"at_us,omitempty"` // of the agent's clock
	Bundle     *proto.BundleID  `json:"bundle,omitempty"`
	Path       string           `json:"path,omitempty"`
	FromPath   string           `json:"from_path,omitempty"`
	Side       string           `json:"side,omitempty"`
	Ring       proto.RingID     `json:"ring,omitempty"`
	Peer       *proto.NodeID    `json:"peer,omitempty"`
	Cause      string           `json:"cause,omitempty"`
	Count      uint32           `json:"count,omitempty"`
	Generation proto.Generation `json:"generation,omitempty"`
	Ledger     *ledgerJSON      `json:"ledger,omitempty"`
	Measured   *int32           `json:"measured_mdbm,omitempty"`
	Text       string           `json:"text,omitempty"`
	Switch     *int             `json:"switch,omitempty"` // where Node is a switch; its ports and their job
	PortA      *uint16          `json:"port_a,omitempty"`
	PortB      *uint16          `json:"port_b,omitempty"`
	Job        proto.JobID      `json:"job,omitempty"`
	Planner    uint64           `json:"planner,omitempty"`
	Life       uint64           `json:"life,omitempty"` // of the planner; two may have one id
	Term       proto.Term       `json:"term,omitempty"`
}

type ledgerJSON struct {
	Total   uint32 `json:"total_us"`
	Detect  uint32 `json:"detect_us"`
	Holdoff uint32 `json:"holdoff_us"`
	Decide  uint32 `json:"decide_us"`
	Bus     uint32 `json:"bus_us"`
	Settle  uint32 `json:"settle_us"`
	Confirm uint32 `json:"confirm_us"`
	// Modelled are the parts that were not measured.
	Modelled []string `json:"modelled"`
}

const watchHelp = `ocsctl watch [flags]

Follows events, births and deaths of agents and planners until interrupted.
What stood before is not repeated. An event that its agent sends again shows
again, with the same number.

  ocsctl watch -json
`

func watch(ctx context.Context, args []string, out io.Writer) error {
	var c clientFlags
	fs := cli.NewFlags("watch")
	lines := fs.Int("n", 0, "stop after this many lines; 0: never")
	words, err := c.read(fs, args, watchHelp)
	if err != nil {
		return err
	}
	if len(words) > 0 {
		return wrongUsage("watch", "no further word", "%q", strings.Join(words, " "))
	}
	scope := proto.Topics{Fabric: proto.AnyFabric}
	if c.fabric != "" {
		scope.Fabric = c.fabric
	}
	cl, err := c.dial(ctx, scope.EveryNode(proto.TopicEvent), scope.EveryNode(proto.TopicPresence), scope.Planner())
	if err != nil {
		return err
	}
	defer cl.close()
	last := map[speaker]string{} // beats are not news
	for shown := 0; *lines == 0 || shown < *lines; {
		select {
		case p := <-cl.Link.Recv():
			line, ok := cl.news(p, last)
			if !ok {
				continue
			}
			shown++
			if err := show(out, &line, c.json); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// speaker is one life of a planner: a copy of its store has its id.
type speaker struct{ id, life uint64 }

// news turns a packet into a line, when it is one.
func (cl *client) news(p proto.Packet, last map[speaker]string) (watchJSON, bool) {
	topic, err := proto.ParseTopic(p.Topic)
	if p.Kind != proto.Publish || p.Retain || err != nil || topic.Fabric != cl.Topics.Fabric {
		return watchJSON{}, false
	}
	switch topic.Kind {
	case proto.TopicEvent:
		var e proto.Event
		if _, err := proto.Decode(p.Payload, &e); err == nil {
			return eventLine(&e), true
		}
	case proto.TopicPresence:
		var m proto.Presence
		if _, err := proto.Decode(p.Payload, &m); err == nil {
			line := watchJSON{Kind: "offline", Node: &m.Node, Switch: switchOf(m.Node)}
			if m.Online {
				line.Kind, line.Text, line.Generation, line.Term = "online", m.Software, m.Generation, m.Term
			}
			return line, true
		}
	case proto.TopicPlanner:
		var m proto.PlannerState
		if _, err := proto.Decode(p.Payload, &m); err == nil {
			text := fmt.Sprintf("online, term %d", m.Term)
			switch {
			case m.Standby:
				text = "standing by"
			case !m.Online:
				text = "offline"
			case m.Takeover:
				text += ", taking over"
			}
			if who := (speaker{m.Planner, m.Life}); last[who] != text {
				last[who] = text
				return watchJSON{Kind: "planner", Planner: m.Planner, Life: m.Life, Term: m.Term, Text: text}, true
			}
		}
	}
	return watchJSON{}, false
}

func eventLine(e *proto.Event) watchJSON {
	line := watchJSON{Kind: "event", Node: &e.Node, Seq: e.Seq, Event: e.Kind.MessageID(), Severity: e.Severity.String(), AtUS: e.AtMicros,
		Bundle: &e.Bundle, Path: e.Path.String(), FromPath: e.FromPath.String(), Ring: e.Ring, Cause: e.Cause.String(), Count: e.Count,
		Generation: e.Generation, Measured: power(e.Measured), Text: e.Text}
	switch e.Kind {
	case proto.EvLightLost, proto.EvLightFound, proto.EvSwitched, proto.EvRestored, proto.EvClosed, proto.EvBanned:
		line.Side, line.Peer = e.Side.String(), &e.Peer
	}
	if line.Switch = switchOf(e.Node); line.Switch != nil {
		line.Bundle, line.Path, line.FromPath, line.Side, line.Peer = nil, "", "", "", nil
		if e.Job != 0 || e.PortA != 0 || e.PortB != 0 {
			line.PortA, line.PortB, line.Job = &e.PortA, &e.PortB, e.Job
		}
	}
	if l := e.Ledger; l != nil {
		line.Ledger = &ledgerJSON{l.TotalMicros(), l.DetectMicros, l.HoldoffMicros, l.DecideMicros, l.BusMicros, l.SettleMicros, l.ConfirmMicros, e.LedgerMark.Modelled()}
	}
	return line
}

// switchOf is the number of a switch, as circuit list has it; nil: a node.
func switchOf(id proto.NodeID) *int {
	if !id.IsSwitch() {
		return nil
	}
	n := int(id - proto.FirstSwitch)
	return &n
}

// who says that.
func (l *watchJSON) who() string {
	if l.Switch != nil {
		return fmt.Sprintf("switch %d", *l.Switch)
	}
	return fmt.Sprintf("node %d", *l.Node)
}

func show(out io.Writer, l *watchJSON, asJSON bool) error {
	if asJSON {
		return printJSON(out, l)
	}
	var err error
	switch l.Kind {
	case "event":
		text := fmt.Sprintf("%s  #%d  %s  %s", l.who(), l.Seq, l.Event, l.Severity)
		if l.Bundle != nil {
			text += fmt.Sprintf("  bundle %d %s", *l.Bundle, l.Path)
		}
		if l.PortA != nil {
			text += fmt.Sprintf("  port %d to %d, job %d", *l.PortA, *l.PortB, l.Job)
		}
		if l.Peer != nil {
			text += fmt.Sprintf("  %s side of ring %d, peer %d", l.Side, l.Ring, *l.Peer)
		}
		if l.Cause != "none" {
			text += "  " + l.Cause
		}
		if l.Ledger != nil {
			text += fmt.Sprintf("  %d us", l.Ledger.Total)
		}
		if l.Text != "" {
			text += "  " + l.Text
		}
		_, err = fmt.Fprintln(out, text)
	case "planner":
		_, err = fmt.Fprintf(out, "planner %d (life %d)  %s\n", l.Planner, l.Life, l.Text)
	default:
		_, err = fmt.Fprintf(out, "%s  agent %s  %s\n", l.who(), l.Kind, l.Text)
	}
	return err
}
