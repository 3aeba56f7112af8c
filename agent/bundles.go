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
	*Agent
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
	a := &nodeOptics{Agent: agent, bypasses: newPassed()}
	a.node = node.New(node.Config{ID: cfg.Node, Bundles: len(cfg.Board.Bundles)})
	agent.machine = a.node
	if agent.journal.State != nil {
		a.node.Restore(*agent.journal.State)
	}
	a.lines = make([]lineUse, len(cfg.Board.Lines))
	latch := ocs.NewLatch(cfg.Board)
	a.bundles = make([]bundle, len(cfg.Board.Bundles))
	for i := range a.bundles {
		b := &a.bundles[i]
		var cal *ocs.Calibration
		if i < len(cfg.Calibrations) {
			cal = cfg.Calibrations[i]
		}
		b.optics = ocs.New(ocs.Config{Board: cfg.Board, Bundle: proto.BundleID(i), Latch: latch,
			Calibration: cal, Seed: cfg.Seed + uint64(i), Lock: cfg.Lock})
		b.next, b.retry, b.stopAt = Never, Never, Never
		b.pattern = i < len(agent.journal.Light) && agent.journal.Light[i].Pattern
		for l, line := range cfg.Board.Bundles[i].LOS {
			a.lines[line] = lineUse{used: true, bundle: uint8(i), path: proto.Loopback + proto.Path(l)}
		}
	}
	a.health.next = Never
	a.manual = &manual{optics: a, ops: make([]*manualOp, len(a.bundles))}
	agent.optics, agent.executor, agent.operator, agent.rounds, agent.memory, agent.reporter = a, a, a.manual, a, a, a
}

func (a *nodeOptics) heard(now time.Duration, ev hal.Event) {
	if done := ev.Completion; done != nil {
		// The top bits of the token are ours: which bundle asked.
		i := int(done.Op.Token>>tokenShift) - 1
		if i < 0 || i >= len(a.bundles) {
			panic(fmt.Sprintf("agent: completion of an op with token %#x, which no bundle submitted", done.Op.Token))
		}
		a.bundles[i].done = append(a.bundles[i].done, done)
	}
	if e := ev.Edge; e != nil && int(e.Line) < len(a.lines) && a.lines[e.Line].used {
		a.edge(now, e, a.lines[e.Line])
	}
}

// work gives every bundle and the machine their turns until nothing more is
// due, and appends the bus work.
func (a *nodeOptics) work(now time.Duration, out []Output) []Output {
	for range maxRounds {
		busy := false
		for i := range a.bundles {
			b := &a.bundles[i]
			if b.retry <= now {
				b.retry, b.due = Never, true
				if b.optics.TooHot() {
					b.retry = now + coolsWithin
					b.optics.ReadHot()
				} else {
					b.optics.Start(now)
				}
			}
			if b.due || len(b.done) > 0 || b.next <= now {
				busy = true
				out = a.turn(now, i, out)
			}
			if b.failure != nil {
				busy = true
				a.refusedSelect(now, i)
			}
		}
		if !a.adopted {
			a.tryAdopt(now)
		} else if a.machine.Next() <= now {
			busy = true
			a.step(now, node.Event{Kind: node.Tick})
		}
		a.manual.overdue(now)
		if !busy {
			break
		}
	}
	return out
}

// turn polls the optics of one bundle and hands on what they say.
func (a *nodeOptics) turn(now time.Duration, i int, out []Output) []Output {
	b := &a.bundles[i]
	b.due = false
	a.ops, b.next = b.optics.Poll(now, b.done, a.ops[:0])
	b.done = b.done[:0]
	for _, op := range a.ops {
		op.Op.Token = op.Op.Token&tokenMask | uint64(i+1)<<tokenShift
		out = append(out, Output{Kind: OutSubmit, Bus: op.Bus, Op: op.Op})
	}
	a.opticals = b.optics.TakeEvents(a.opticals[:0])
	for k := range a.opticals {
		a.optical(now, i, &a.opticals[k])
	}
	if b.dump != 0 {
		a.dumped(b)
	}
	return out
}

// due is when a bundle, a question or the health round has something to do.
func (a *nodeOptics) due(now time.Duration) time.Duration {
	at := min(a.health.next, a.manual.overdueAt())
	for i := range a.bundles {
		at = min(at, a.bundles[i].next, a.bundles[i].retry)
		if a.bundles[i].due {
			return now
		}
	}
	return at
}

// unread names the bundles whose optics have said nothing yet, neither that they are
// read nor that they cannot be.
func (a *nodeOptics) unread() string {
	var names []string
	for i := range a.bundles {
		if !a.bundles[i].read {
			names = append(names, named(i, errUnread.Error()))
		}
	}
	return strings.Join(names, ", ")
}

func (a *nodeOptics) do(now time.Duration, act *node.Action) {
	switch act.Kind {
	case node.Select:
		switch act.Cause {
		case proto.CausePlan, proto.CauseOperator, proto.CauseRestore:
			a.rearrange(now, act.Bundle, act.Path)
		default:
			a.choose(now, act.Bundle, act.Path)
		}
	case node.Note:
		if act.Stamps != (node.Stamps{}) { // of a switch
			l, mark := a.ledger(act.Stamps)
			act.Note.Ledger, act.Note.LedgerMark = &l, mark
			a.pm.took(now, uint32(act.Note.Bundle), act.Note.Path, proto.RecoveryTime, time.Duration(l.TotalMicros())*time.Microsecond)
			a.bypasses.take(&act.Note, a.machine.Report)
		}
		a.note(now, act.Note)
	case node.Remedy:
		a.remedy(now, act)
	default:
		panic("agent: machine asks for " + act.Kind.String())
	}
}

// round reads the modules, one at a time.
func (a *nodeOptics) round(now time.Duration, out []Output) []Output {
	if a.health.next <= now {
		out = a.health.due(a, now, out)
	}
	return out
}

// addRecord adds the bundles' light to a record when the journal has it otherwise.
func (a *nodeOptics) addRecord(r *record) bool {
	if !a.lightChanged() {
		return false
	}
	r.Light = slices.Clone(a.kept)
	return true
}

// lightChanged brings kept up to date and reports whether it was not.
func (a *nodeOptics) lightChanged() bool {
	if len(a.kept) != len(a.bundles) {
		a.kept = make([]BundleRecord, len(a.bundles))
		for i := range a.bundles {
			a.kept[i] = a.bundles[i].record()
		}
		return true
	}
	changed := false
	for i := range a.bundles {
		if a.manual.busy(proto.BundleID(i)) {
			continue // a calibration flickers
		}
		if r := a.bundles[i].record(); a.kept[i] != r {
			a.kept[i], changed = r, true
		}
	}
	return changed
}

// waitsForDisk is false: protection never waits for the disk, nor do those who look
// on.
func (a *nodeOptics) waitsForDisk() bool { return false }
