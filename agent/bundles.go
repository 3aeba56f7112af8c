package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// maxRounds bounds how often one Poll goes round the bundles: a switch that
// answers at once asks for another turn, and no switch asks for ten.
const maxRounds = 10

// nodeOptics are the bundles of a node.
type nodeOptics struct {
	agent    *Agent
	node     *node.Machine
	bundles  []bundle
	lines    []lineUse // by hal.LineID
	ops      []hal.BusOp
	opticals []ocs.Event
	health   health
	manual   *manual
	kept     []BundleRecord // of the journal
	bypasses passed
}

// lineUse says what an input line of the board means.
type lineUse struct {
	used   bool
	bundle uint8
	path   proto.Path
}

// newNodeOptics makes an agent that of a node.
func newNodeOptics(agent *Agent) {
	cfg := &agent.cfg
	o := &nodeOptics{agent: agent, bypasses: newPassed()}
	o.node = node.New(node.Config{ID: cfg.Node, Bundles: len(cfg.Board.Bundles)})
	agent.machine = o.node
	if agent.journal.State != nil {
		o.node.Restore(*agent.journal.State)
	}
	o.lines = make([]lineUse, len(cfg.Board.Lines))
	latch := ocs.NewLatch(cfg.Board)
	o.bundles = make([]bundle, len(cfg.Board.Bundles))
	for i := range o.bundles {
		b := &o.bundles[i]
		var cal *ocs.Calibration
		if i < len(cfg.Calibrations) {
			cal = cfg.Calibrations[i]
		}
		b.optics = ocs.New(ocs.Config{Board: cfg.Board, Bundle: proto.BundleID(i), Latch: latch,
			Calibration: cal, Seed: cfg.Seed + uint64(i), Lock: cfg.Lock})
		b.next, b.retry, b.stopAt = Never, Never, Never
		b.pattern = i < len(agent.journal.Light) && agent.journal.Light[i].Pattern
		for l, line := range cfg.Board.Bundles[i].LOS {
			o.lines[line] = lineUse{used: true, bundle: uint8(i), path: proto.Loopback + proto.Path(l)}
		}
	}
	o.health.next = Never
	o.manual = &manual{agent: agent, optics: o, ops: make([]*manualOp, len(o.bundles))}
	agent.optics, agent.operator = o, o.manual
}

func (o *nodeOptics) heard(now time.Duration, ev hal.Event) (_ node.Event, told bool) {
	if done := ev.Completion; done != nil {
		// The top bits of the token are ours: which bundle asked.
		i := int(done.Op.Token>>tokenShift) - 1
		if i < 0 || i >= len(o.bundles) {
			panic(fmt.Sprintf("agent: completion of an op with token %#x, which no bundle submitted", done.Op.Token))
		}
		o.bundles[i].done = append(o.bundles[i].done, done)
	}
	if e := ev.Edge; e != nil && int(e.Line) < len(o.lines) && o.lines[e.Line].used {
		return o.edge(now, e, o.lines[e.Line])
	}
	return node.Event{}, false
}

// work gives every bundle and the machine their turns until nothing more is
// due, and appends the bus work.
func (o *nodeOptics) work(now time.Duration, out []Output) []Output {
	for range maxRounds {
		busy := false
		for i := range o.bundles {
			b := &o.bundles[i]
			if b.retry <= now {
				b.retry, b.due = Never, true
				if b.optics.Health.TooHot() {
					b.retry = now + coolsWithin
					b.optics.Health.ReadHot()
				} else {
					b.optics.Start(now)
				}
			}
			if b.due || len(b.done) > 0 || b.next <= now {
				busy = true
				out = o.turn(now, i, out)
			}
			if b.failure != nil {
				busy = true
				o.refusedSelect(now, i)
			}
		}
		if !o.agent.adopted {
			o.tryAdopt(now)
		} else if o.agent.machine.Next() <= now {
			busy = true
			o.agent.step(now, node.Event{Kind: node.Tick})
		}
		o.manual.overdue(now)
		if !busy {
			break
		}
	}
	return out
}

// turn polls the optics of one bundle and hands on what they say.
func (o *nodeOptics) turn(now time.Duration, i int, out []Output) []Output {
	b := &o.bundles[i]
	b.due = false
	o.ops, b.next = b.optics.Poll(now, b.done, o.ops[:0])
	b.done = b.done[:0]
	for _, op := range o.ops {
		op.Op.Token = op.Op.Token&tokenMask | uint64(i+1)<<tokenShift
		out = append(out, Output{Kind: OutSubmit, Bus: op.Bus, Op: op.Op})
	}
	o.opticals = b.optics.TakeEvents(o.opticals[:0])
	for k := range o.opticals {
		o.optical(now, i, &o.opticals[k])
	}
	if b.dump != 0 {
		o.dumped(b)
	}
	return out
}

// due is when a bundle, a question or the health round has something to do.
func (o *nodeOptics) due(now time.Duration) time.Duration {
	at := min(o.health.next, o.manual.overdueAt())
	for i := range o.bundles {
		at = min(at, o.bundles[i].next, o.bundles[i].retry)
		if o.bundles[i].due {
			return now
		}
	}
	return at
}

// unread names the bundles whose optics have said nothing yet, neither that they are
// read nor that they cannot be.
func (o *nodeOptics) unread() string {
	var names []string
	for i := range o.bundles {
		if !o.bundles[i].read {
			names = append(names, named(i, errUnread.Error()))
		}
	}
	return strings.Join(names, ", ")
}

func (o *nodeOptics) do(now time.Duration, act *node.Action) {
	switch act.Kind {
	case node.Select:
		planned := act.Cause == proto.CausePlan || act.Cause == proto.CauseOperator || act.Cause == proto.CauseRestore
		o.drive(now, act.Bundle, act.Path, !planned)
	case node.Note:
		if act.Stamps != (node.Stamps{}) { // of a switch
			l, mark := o.ledger(act.Stamps)
			act.Note.Ledger, act.Note.LedgerMark = &l, mark
			o.agent.pm.took(now, uint32(act.Note.Bundle), act.Note.Path, proto.RecoveryTime, time.Duration(l.TotalMicros())*time.Microsecond)
			o.bypasses.take(&act.Note, o.agent.machine.Report)
		}
		o.agent.outbox.add(act.Note)
	case node.Remedy:
		o.remedy(now, act)
	default:
		panic("agent: machine asks for " + act.Kind.String())
	}
}

// round reads the modules, one at a time.
func (o *nodeOptics) round(now time.Duration, out []Output) []Output {
	if o.health.next <= now {
		out = o.health.due(o, now, out)
	}
	return out
}

// addRecord adds the bundles' light to a record when the journal has it otherwise.
func (o *nodeOptics) addRecord(r *record) bool {
	if !o.lightChanged() {
		return false
	}
	r.Light = slices.Clone(o.kept)
	return true
}

// lightChanged brings kept up to date and reports whether it was not.
func (o *nodeOptics) lightChanged() bool {
	if len(o.kept) != len(o.bundles) {
		o.kept = make([]BundleRecord, len(o.bundles))
		for i := range o.bundles {
			o.kept[i] = o.bundles[i].record()
		}
		return true
	}
	changed := false
	for i := range o.bundles {
		if o.manual.busy(proto.BundleID(i)) {
			continue // a calibration flickers
		}
		if r := o.bundles[i].record(); o.kept[i] != r {
			o.kept[i], changed = r, true
		}
	}
	return changed
}

// waitsForDisk is false: protection never waits for the disk, nor do those who look
// on.
func (o *nodeOptics) waitsForDisk() bool { return false }
