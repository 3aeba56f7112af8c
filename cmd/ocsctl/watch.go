package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

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
	Measured   *proto.MilliDBm  `json:"measured_mdbm,omitempty"`
	Text       string           `json:"text,omitempty"`
	Switch     *int             `json:"switch,omitempty"` // where Node is a switch; its ports and their job
	PortA      *uint16          `json:"port_a,omitempty"`
	PortB      *uint16          `json:"port_b,omitempty"`
	Job        proto.JobID      `json:"job,omitempty"`
	Planner    uint64           `json:"planner,omitempty"`
	Life       uint64           `json:"life,omitempty"` // of the planner; two may have one id
	Term       proto.Term       `json:"term,omitempty"`

	words, host string // for people
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

func watch(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	lines := c.flags.Int("n", 0, "stop after this many lines; 0: never")
	f := watchFilter{c.flags.String("node", "", "only of this `NODE`, or switch-N"), c.flags.String("kind", "", "only this `EVENT`: Switched, Closed, ..., online, offline, planner"),
		c.flags.String("severity", "ok", "only from this `SEVERITY` on: ok, warning or critical"), c.flags.Bool("all", false, "each line of each node that a plan moves, too"), 0}
	if err := c.readNone(args, help("watch")); err != nil {
		return err
	}
	if *f.node != "" {
		if err := c.placeArg(*f.node, &f.only, nil); err != nil {
			return err
		}
	}
	if _, known := severities[strings.ToLower(*f.severity)]; !known {
		return wrongUsage("severity", "ok, warning or critical", "%q", *f.severity)
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
	if err := c.findNamed(ctx, cl); err != nil {
		return err
	}
	last := map[[2]uint64]string{} // beats are not news
	plans := planLines{}
	for shown := 0; *lines == 0 || shown < *lines; {
		select {
		case p := <-cl.Link.Recv():
			line, ok := cl.news(p, last)
			if !ok || !f.passes(&line) || !c.json && !*f.all && plans.folds(&line) {
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

// news turns a packet into a line, when it is one. last is what each life of a planner said
// last: a copy of its store has its id.
func (cl *client) news(p proto.Packet, last map[[2]uint64]string) (watchJSON, bool) {
	topic, err := proto.ParseTopic(p.Topic)
	if p.Kind != proto.Publish || p.Retain || err != nil || topic.Fabric != cl.Topics.Fabric {
		return watchJSON{}, false
	}
	switch topic.Kind {
	case proto.TopicEvent:
		var e proto.Event
		if decoded(p, &e) {
			return eventLine(&e), true
		}
	case proto.TopicPresence:
		var m proto.Presence
		if decoded(p, &m) {
			line := watchJSON{Kind: "offline", Node: &m.Node, Switch: switchOf(m.Node)}
			if m.Online {
				line.Kind, line.Text, line.Generation, line.Term = "online", m.Software, m.Generation, m.Term
			}
			return line, true
		}
	case proto.TopicPlanner:
		var m proto.PlannerState
		if decoded(p, &m) {
			text := fmt.Sprintf("online, term %d", m.Term)
			switch {
			case m.Standby:
				text = "standing by"
			case !m.Online:
				text = "offline"
			case m.Takeover:
				text += ", taking over"
			}
			if who := [2]uint64{m.Planner, m.Life}; last[who] != text {
				last[who] = text
				return watchJSON{Kind: "planner", Planner: m.Planner, Life: m.Life, Term: m.Term, Text: text, host: m.Host}, true
			}
		}
	}
	return watchJSON{}, false
}

func eventLine(e *proto.Event) watchJSON {
	line := watchJSON{Kind: "event", Node: &e.Node, Seq: e.Seq, Event: e.Kind.MessageID(), Severity: e.Severity.String(), AtUS: e.AtMicros,
		Bundle: &e.Bundle, Path: e.Path.String(), FromPath: e.FromPath.String(), Ring: e.Ring, Cause: e.Cause.String(), Count: e.Count,
		Generation: e.Generation, Measured: e.Measured.Known(), Text: e.Text, words: e.Kind.Words()}
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
	return new(int(id - proto.FirstSwitch))
}

// who says that.
func (l *watchJSON) who() string {
	if l.Switch != nil {
		return fmt.Sprintf("switch-%d", *l.Switch)
	}
	return fmt.Sprint(*l.Node)
}

// watchFilter chooses lines.
type watchFilter struct {
	node, kind, severity *string
	all                  *bool
	only                 proto.NodeID // that of node
}

var severities = map[string]int{"ok": 0, "warning": 1, "critical": 2}

func (f *watchFilter) passes(l *watchJSON) bool {
	if *f.node != "" && (l.Node == nil || *l.Node != f.only) {
		return false
	}
	if *f.kind != "" && !strings.EqualFold(*f.kind, l.Kind) && !strings.EqualFold(*f.kind, l.Event[strings.LastIndexByte(l.Event, '.')+1:]) {
		return false
	}
	return severities[strings.ToLower(l.Severity)] >= severities[strings.ToLower(*f.severity)]
}

// planLines are the generations of which a line was shown.
type planLines map[proto.Generation]bool

// folds reports whether a line says of one more node what was said of the first:
// that a plan moved it. That nodes apply a plan is news once.
func (p planLines) folds(l *watchJSON) bool {
	if l.Kind != "event" || l.Severity != proto.SeverityOK.String() {
		return false
	}
	switch l.Event {
	case proto.EvLightUnselected.MessageID():
		return true // that an unselected path has light or not changes nothing
	case proto.EvApplied.MessageID():
		was := p[l.Generation]
		p[l.Generation] = true
		return was
	case proto.EvSwitched.MessageID(), proto.EvRestored.MessageID(), proto.EvLightFound.MessageID():
		return l.Cause == proto.CausePlan.String()
	}
	return false
}

// watchColumns are fixed: a line must be shown before the next is known.
const watchColumns = "%s  %-9s  %-8s  "

func show(out io.Writer, l *watchJSON, asJSON bool) error {
	if asJSON {
		return printJSON(out, l)
	}
	where, severity, text := "planner", "", fmt.Sprintf("%s: %s", proto.PlannerCopy{Planner: l.Planner, Life: l.Life, Host: l.host}, l.Text)
	switch l.Kind {
	case "event":
		where, severity, text = l.who(), l.Severity, l.sentence()
		if l.Event == proto.EvApplied.MessageID() {
			where, text = "plan", fmt.Sprintf("generation %d is applied, first by %s", l.Generation, l.who())
		}
	case "online", "offline":
		where, text = l.who(), strings.TrimSpace("agent "+l.Kind+" "+l.Text)
	}
	screen := cli.ScreenOf(out)
	head := fmt.Sprintf(watchColumns, time.Now().Format("2006-01-02 15:04:05.000 -0700"), where, severity)
	_, err := fmt.Fprintln(out, strings.TrimRight(head+cli.Wrap(text, max(0, screen.Width-len(head)), strings.Repeat(" ", len(head))), " "))
	return err
}

// sentence is an event for people.
func (l *watchJSON) sentence() string {
	text := l.words
	if l.Bundle != nil && l.Path != "" && l.Path != proto.Dark.String() {
		text += fmt.Sprintf(", bundle %d on %s", *l.Bundle, l.Path)
	}
	if l.PortA != nil {
		text += fmt.Sprintf(", port %d to %d, job %d", *l.PortA, *l.PortB, l.Job)
	}
	if l.Peer != nil {
		text += fmt.Sprintf(", %s side of ring %d, peer %d", l.Side, l.Ring, *l.Peer)
	}
	if l.Cause != "none" {
		text += ", " + strings.ReplaceAll(l.Cause, "_", " ")
	}
	if l.Ledger != nil {
		text += fmt.Sprintf(", %d us", l.Ledger.Total)
	}
	if l.Text != "" {
		text += ": " + l.Text
	}
	return text
}
