package agent

import (
	"fmt"
	"slices"
	"time"

	"ringlight/agent/pm"
	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// Ports are where a Host takes what its agent asks for. Their methods are
// called during a Round; what they learn at once they may Deliver from there,
// but they must not begin another Round.
type Ports interface {
	// Submit gives work to a bus. Its completion is delivered when it has one;
	// work that is refused ends at once, with the error.
	Submit(now time.Duration, w Work) error
	// Send gives a packet to the link. An error says that it is lost, which the
	// agent is told; a port that loses packets in silence returns none.
	Send(now time.Duration, p proto.Packet) error
	// Persist begins to append a record to the journal. When it is on disk,
	// InPersisted with its id is delivered. An error is final: it ends the Round.
	Persist(now time.Duration, id uint64, record *Record) error
}

// Work is an op that an agent wants on a bus.
type Work struct {
	Bus hal.BusID
	Op  *hal.Op
	// Decided says that it answers an edge heard at this very instant. On a
	// virtual clock, where thinking takes no time, the port adds what it would
	// take: see Thinking.
	Decided bool
}

// Host keeps one life of an agent: it carries the agent's outputs to the ports
// and their answers back. It has no clock. Whoever has one makes the host,
// tells it the Levels of the input lines, and from then on
//
//	delivers what happens, each time followed by Settle at the same instant,
//	and calls Settle when Next has come.
//
// A runner in real time, whose now goes on while it works, calls Round instead
// of Settle. An agent that dies takes its host with it; the next life is a new
// Host with the journal that was on disk, and drops what was under way.
type Host struct {
	// Calibrated is given a bundle's new calibration, Line the reply for a
	// client (nil: it is sent away), Log what happened (level as of OutLog).
	// They are set before the first Deliver; nil: dropped.
	Calibrated func(proto.BundleID, *ocs.Calibration)
	Line       func(client uint64, reply []byte)
	Log        func(level uint8, text string)
	// Restart is asked whether the agent's software, "" any, can be started anew: it
	// delivers InRestart. End is told that this life is over. nil: for an agent that
	// does not restart.
	Restart func(software string)
	End     func()
	// Firmware is asked for the file of a firmware version, and delivers InFirmware. nil:
	// there are none.
	Firmware func(version string)
	// Bins keeps a row of the records at a slot, for the next life's Journal.
	Bins func(slot int, row []byte)

	agent    *Agent
	view     View
	ports    Ports
	recorder *Recorder // nil: nothing is recorded
	next     time.Duration
	told     bool // since the last poll
	decided  bool // an edge was heard since the agent was last quiet
	flying   []*hal.Op
	asked    uint64
	asks     map[uint64]func(*Answer)
	out      []Output
}

// NewHost makes a host with a new agent: see New. recorder may be nil; it must
// be of the same configuration and journal.
func NewHost(cfg Config, journal Journal, ports Ports, recorder *Recorder) *Host {
	a := newAgent(cfg, journal)
	return &Host{agent: a, view: view{a.machine}, ports: ports, recorder: recorder}
}

// Levels tells the agent how the input lines of its board stand, as edges. It
// comes before the first Round.
func (h *Host) Levels(now time.Duration, level func(hal.LineID) (bool, error)) error {
	board := h.agent.cfg.Board
	for i := range board.Bundles {
		for _, line := range board.Bundles[i].LOS {
			high, err := level(line)
			if err != nil {
				return fmt.Errorf("agent: line %d: %w", line, err)
			}
			h.Deliver(now, Input{Kind: InHardware, Hardware: hal.Event{Edge: &hal.Edge{Line: line, High: high, At: now}}})
		}
	}
	h.decided = false
	return nil
}

// Deliver tells the agent what happened. A completion of work that this life
// has not asked for is dropped.
func (h *Host) Deliver(now time.Duration, in Input) {
	if in.Kind == InHardware {
		if c := in.Hardware.Completion; c != nil && !h.landed(c.Op) {
			return
		}
		h.decided = h.decided || in.Hardware.Edge != nil
	}
	h.told = true
	if h.recorder != nil {
		h.recorder.Told(now, in)
	}
	h.agent.Deliver(now, in)
}

// landed takes an op from those under way and reports whether it was there.
func (h *Host) landed(op *hal.Op) bool {
	for i, o := range h.flying {
		if o == op {
			last := len(h.flying) - 1
			h.flying[i] = h.flying[last]
			h.flying[last] = nil
			h.flying = h.flying[:last]
			return true
		}
	}
	return false
}

// Ask puts a question. answer is called with what the agent says to it, during
// a later Round; nil: nobody wants to know.
func (h *Host) Ask(now time.Duration, q Ask, answer func(*Answer)) {
	h.asked++
	q.ID = h.asked
	if answer != nil {
		if h.asks == nil {
			h.asks = map[uint64]func(*Answer){}
		}
		h.asks[q.ID] = answer
	}
	h.Deliver(now, Input{Kind: InAsk, Ask: q})
}

// maxRoundsAtOnce bounds the rounds of one instant. A few, of work, disk and
// answers, are usual; so many are an agent that spins.
const maxRoundsAtOnce = 10_000

// Settle lets the agent act at now until it wants nothing more before Next.
func (h *Host) Settle(now time.Duration) error {
	for range maxRoundsAtOnce {
		if _, err := h.Round(now); err != nil {
			return err
		}
		if h.Quiet(now) {
			return nil
		}
	}
	return fmt.Errorf("agent: node %d wants to be polled for ever at %v", h.agent.cfg.Node, now)
}

// Round polls the agent once and carries out what it asks; asked says whether
// that was anything.
func (h *Host) Round(now time.Duration) (asked bool, err error) {
	if h.recorder != nil {
		h.recorder.bulk = h.agent.upgrading()
		h.recorder.Polled(now)
	}
	h.told = false
	h.out, h.next = h.agent.Poll(now, h.out[:0])
	for i := range h.out {
		o := &h.out[i]
		switch o.Kind {
		case OutSubmit:
			if h.recorder != nil {
				h.recorder.Asked(now, o.Bus, o.Op)
			}
			h.flying = append(h.flying, o.Op)
			if err := h.ports.Submit(now, Work{o.Bus, o.Op, h.decided}); err != nil { // refused: it is over at once
				h.Deliver(now, Input{Kind: InHardware, Hardware: hal.Event{Completion: &hal.Completion{
					Bus: o.Bus, Op: o.Op, Start: now, End: now, Err: err}}})
			}
		case OutSend:
			if h.ports.Send(now, o.Packet) != nil {
				h.Deliver(now, Input{Kind: InSendFailed})
			}
		case OutPersist:
			if err := h.ports.Persist(now, o.ID, o.Saved); err != nil {
				return true, err
			}
		case OutAnswer:
			answer := h.asks[o.Answer.ID]
			delete(h.asks, o.Answer.ID)
			if answer != nil {
				answer(o.Answer)
			}
		case OutCalibrate:
			if h.Calibrated != nil {
				h.Calibrated(o.Bundle, o.Calibration)
			}
		case OutLine:
			if h.Line != nil {
				h.Line(o.ID, o.Record)
			}
		case OutBins:
			if h.Bins != nil {
				h.Bins(int(o.ID), o.Record)
			}
		case OutLog:
			if h.Log != nil {
				h.Log(o.Level, o.Text)
			}
		case OutRestart:
			if h.Restart != nil {
				h.Restart(o.Text)
			}
		case OutFirmware:
			if h.Firmware != nil {
				h.Firmware(o.Text)
			}
		case OutEnd:
			if h.End != nil {
				h.End()
			}
		default:
			panic(fmt.Sprintf("agent: output of kind %d", o.Kind))
		}
	}
	clear(h.out)
	if h.Quiet(now) {
		h.decided = false
	}
	return len(h.out) > 0, nil
}

// Quiet reports whether the agent has nothing to do at now: the last Round
// asked for none, and nothing was delivered since.
func (h *Host) Quiet(now time.Duration) bool { return h.next > now && !h.told }

// SaveBins has the records kept as they are, before a life ends.
func (h *Host) SaveBins(now time.Duration) {
	for _, o := range h.agent.pm.save(now, true, nil) {
		if h.Bins != nil {
			h.Bins(int(o.ID), o.Record)
		}
	}
}

// Next is when the agent wants to be called again if nothing happens before.
func (h *Host) Next() time.Duration { return h.next }

// NextWithin is Next, or what comes first: the agent measures by how much it is called
// too late.
func (h *Host) NextWithin(at time.Duration) time.Duration {
	h.next = min(h.next, at)
	h.agent.due = min(h.agent.due, at)
	return h.next
}

// Status is what the agent says of itself, at once.
func (h *Host) Status(now time.Duration) *Status { return h.agent.status(now) }

// Unacked is how many events nobody has acknowledged.
func (h *Host) Unacked() int { return len(h.agent.outbox.queue) }

// Plan is which one is in force; 0, 0: none.
func (h *Host) Plan() (proto.Term, proto.Generation) {
	var r proto.Reported
	h.agent.machine.Report(&r)
	return r.Term, r.Generation
}

// Adopted reports whether the hardware was read back and taken as it was found.
func (h *Host) Adopted() bool { return h.agent.adopted }

// View reads the machine inside, that of a node or of a switch.
func (h *Host) View() View { return h.view }

// View is a machine for whoever looks on: a checker, a test, a display.
type View interface {
	Mode() proto.Mode
	Report(*proto.Reported) // sides and bundles of a node, circuits of a switch
	State() node.State
}

// view hides what steps a machine.
type view struct{ m machine }

func (v view) Mode() proto.Mode         { return v.m.Mode() }
func (v view) Report(r *proto.Reported) { v.m.Report(r) }
func (v view) State() node.State        { return v.m.State() }

// Thinking is the time that decisions take, modelled for a virtual clock, on
// which the agent itself takes none. The zero Thinking takes none either.
type Thinking struct {
	Takes time.Duration // one decision
	until time.Duration // the end of the last
}

// Leaves is when work leaves for its bus: what was decided just now after the
// time of a decision, all else at once, but never before the work of an
// earlier decision.
func (t *Thinking) Leaves(now time.Duration, decided bool) time.Duration {
	if decided {
		t.until = now + t.Takes
	}
	return max(now, t.until)
}

// Disk is a journal in memory, for agents on a virtual clock: what is on it
// outlives them, the record on its way may not.
type Disk struct {
	Journal  Journal
	id       uint64
	underWay *Record // nil: none
}

// Begin takes a record on its way; an agent has one at a time.
func (d *Disk) Begin(id uint64, record *Record) { d.id, d.underWay = id, record }

// Busy reports whether a record is under way.
func (d *Disk) Busy() bool { return d.underWay != nil }

// Commit brings the record under way to the disk and gives its id.
func (d *Disk) Commit() (id uint64, err error) {
	rec := d.underWay
	d.underWay = nil
	return d.id, d.Journal.Take(rec)
}

// Lose forgets the record under way: the agent died before it was synced.
func (d *Disk) Lose() { d.underWay = nil }

// KeepBins keeps a row of the records.
func (d *Disk) KeepBins(slot int, row []byte) {
	if d.Journal.Bins == nil {
		d.Journal.Bins = make([][]byte, pm.Slots)
	}
	d.Journal.Bins[slot] = row
}

// Restore is what a next life reads of the bytes of it.
func (d *Disk) Restore() (j Journal) {
	if err := j.Apply(d.Journal.Snapshot()); err != nil {
		panic(err) // it was written by this process
	}
	j.Bins = slices.Clone(d.Journal.Bins)
	return j
}
