package planner

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"ringlight/proto"
)

// The log: what nodes tell, each exactly once and in order per node, and what
// the planner decided. An event is acknowledged when it is in the store.

// note is one decision of the planner. Node -1: of no single node.
type note struct {
	Rule  string           `json:"rule"`
	Node  int64            `json:"node"`
	Ring  proto.RingID     `json:"ring,omitempty"`
	Gen   proto.Generation `json:"gen,omitempty"`
	Cause proto.Cause      `json:"cause,omitempty"`
	Text  string           `json:"text"`
}

// entry is an event or a note with the planner's number for it.
type entry struct {
	seq    uint64
	millis uint64
	event  *proto.Event
	note   *note
}

// eventLog keeps the last maxLog entries, and those not yet in the store.
type eventLog struct {
	entries []entry // a ring buffer once full
	first   int     // index of the oldest
	last    uint64  // number of the newest
	seen    uint64  // events taken, ever
	gaps    uint64  // events given up
	behind  int     // entries that no Persist holds yet
	flushAt time.Duration
	gapAt   time.Duration  // when checkGaps is to look again
	flying  uint64         // the Persist under way, 0 = none
	touched []proto.NodeID // nodes with events since the last flush
	acks    []pendingAck   // to be sent when flying is on disk
	holding int            // nodes that wait for a missing event
}

type pendingAck struct {
	node proto.NodeID
	seq  uint64
}

func newEventLog() eventLog { return eventLog{flushAt: Never, gapAt: Never} }

// eventCursor is how far a node's events have come.
type eventCursor struct {
	last     uint64        // taken in order
	session  proto.Session // of the last one
	moved    uint64        // the last one that tells of a moved side
	counted  bool          // it told the bypass count
	ahead    []*proto.Event
	gapSince time.Duration // since when ahead waits
}

// restarted notices that a node's numbers begin anew: another board, or a
// journal that is lost.
func (c *eventCursor) restarted(m *proto.Reported) {
	if m.Session != c.session && m.LastEvent < c.last {
		*c = eventCursor{}
	}
}

// at gives the i-th oldest entry.
func (l *eventLog) at(i int) *entry { return &l.entries[(l.first+i)%len(l.entries)] }

func (l *eventLog) add(e entry) {
	l.last++
	e.seq = l.last
	if len(l.entries) < maxLog {
		l.entries = append(l.entries, e)
	} else {
		l.entries[l.first] = e
		l.first = (l.first + 1) % maxLog
	}
	l.behind = min(l.behind+1, len(l.entries))
}

func (l *eventLog) next() time.Duration {
	if l.flying != 0 {
		return l.gapAt
	}
	return min(l.flushAt, l.gapAt)
}

// note writes down a decision, and tells the shell's log.
func (p *Planner) note(level Level, message string, n note) {
	n.Text = proto.Clip(n.Text)
	p.log.add(entry{millis: p.wall, note: &n})
	p.log.flushAt = min(p.log.flushAt, p.now+flushDelay)
	p.line(level, message, n.Rule, n.Node, n.Ring, n.Gen, n.Text)
}

// line tells the shell's log alone.
func (p *Planner) line(level Level, message, rule string, node int64, r proto.RingID, gen proto.Generation, text string) {
	p.out = append(p.out, Action{Kind: Log, Line: Line{Level: level, Message: message, Rule: rule, Node: node, Ring: r, Generation: gen, Text: text}})
}

// onEvent takes an event once and in order. One that is ahead waits for those
// before it; a former one is only acknowledged again.
func (p *Planner) onEvent(n *nodeView, m *proto.Event) {
	c := &n.events
	if c.session != 0 && c.session != m.Session && m.Seq < c.last && n.online && m.Session == n.session && n.report != nil && n.report.Session == n.session {
		c.restarted(n.report)
	}
	switch {
	case m.Seq <= c.last:
		p.ackLater(n)
	case m.Seq == c.last+1:
		p.takeEvent(n, m)
		p.drain(n)
	default:
		p.holdEvent(n, m)
	}
}

func (p *Planner) holdEvent(n *nodeView, m *proto.Event) {
	c := &n.events
	at, found := slices.BinarySearchFunc(c.ahead, m.Seq, func(e *proto.Event, seq uint64) int { return int(int64(e.Seq - seq)) })
	if found || len(c.ahead) >= maxAhead {
		return // it comes again
	}
	if len(c.ahead) == 0 {
		c.gapSince = p.now
		p.log.holding++
	}
	c.ahead = slices.Insert(c.ahead, at, m)
	p.log.gapAt = min(p.log.gapAt, c.gapSince+gapPatience)
}

// drain takes what waited for the event just taken.
func (p *Planner) drain(n *nodeView) {
	c := &n.events
	for len(c.ahead) > 0 && c.ahead[0].Seq <= c.last+1 {
		m := c.ahead[0]
		c.ahead = slices.Delete(c.ahead, 0, 1)
		if m.Seq == c.last+1 {
			p.takeEvent(n, m)
		}
		if len(c.ahead) == 0 {
			p.log.holding--
		}
	}
}

// checkGaps gives up events that did not come in several re-sends.
func (p *Planner) checkGaps() {
	if p.now < p.log.gapAt {
		return
	}
	p.log.gapAt = Never
	if p.log.holding == 0 {
		return
	}
	p.eachView(func(n *nodeView) {
		if len(n.events.ahead) == 0 {
			return
		}
		if p.now < n.events.gapSince+gapPatience {
			p.log.gapAt = min(p.log.gapAt, n.events.gapSince+gapPatience)
			return
		}
		// What a node that we know nothing of told before went to another
		// planner; what it had not delivered yet has been sent again by now.
		if n.events.last != 0 || n.events.session != 0 {
			p.log.gaps += n.events.ahead[0].Seq - n.events.last - 1
			p.note(Error, "events are missing", note{Rule: "gap", Node: int64(n.id), Ring: n.ring,
				Text: fmt.Sprintf("events %d to %d did not come in %d s", n.events.last+1, n.events.ahead[0].Seq-1, int(gapPatience.Seconds()))})
		}
		n.events.last = n.events.ahead[0].Seq - 1
		n.events.gapSince = p.now
		p.drain(n)
		if len(n.events.ahead) > 0 {
			p.log.gapAt = min(p.log.gapAt, p.now+gapPatience)
		}
	})
}

// takeEvent writes an event down and acts on it.
func (p *Planner) takeEvent(n *nodeView, m *proto.Event) {
	n.events.last, n.events.session = m.Seq, m.Session
	p.log.seen++
	p.log.add(entry{millis: p.wall, event: m})
	p.ackLater(n)
	p.act(n, m)
}

// ackLater acknowledges a node's events with the next flush.
func (p *Planner) ackLater(n *nodeView) {
	if !slices.Contains(p.log.touched, n.id) {
		p.log.touched = append(p.log.touched, n.id)
	}
	p.log.flushAt = min(p.log.flushAt, p.now+flushDelay)
}

// act draws from an event what the placement needs before the next report.
func (p *Planner) act(n *nodeView, m *proto.Event) {
	if n.id.IsSwitch() {
		p.actSwitch(n, m)
		return
	}
	before := n.flags()
	if n.report != nil && m.Seq <= n.report.LastEvent && m.Session == n.report.Session {
		return // the report, which is newer, has told already
	}
	switch m.Kind {
	case proto.EvLightLost, proto.EvSwitched, proto.EvClosed, proto.EvLightFound, proto.EvRestored:
		p.moved(n, m)
		if m.Side <= proto.Right && m.Generation == n.want.gen && m.Ring == n.ring && m.Ring != 0 {
			lost := m.Kind == proto.EvLightLost || m.Kind == proto.EvClosed || m.SideBypassed
			if m.Kind != proto.EvSwitched || lost {
				n.loss[m.Side] = lossView{lost: lost, moving: m.Kind == proto.EvLightLost, seq: m.Seq, at: p.now}
			} else {
				n.loss[m.Side].moving = false
			}
			n.loss[m.Side].lit, n.loss[m.Side].peer = m.Kind != proto.EvLightLost && m.Kind != proto.EvClosed, m.Peer
		}
	case proto.EvHostFault:
		p.say(n, true, proto.ModeHostDown, m.Seq)
	case proto.EvIsolated:
		p.moved(n, m)
		mode := proto.ModeIsolated
		switch m.Cause {
		case proto.CauseHostFault:
			mode = proto.ModeHostDown
		case proto.CauseOperator:
			mode = proto.ModeDrained
		}
		if !n.said.out {
			p.say(n, true, mode, m.Seq)
		}
		n.said.seq = m.Seq
	case proto.EvReturned:
		p.moved(n, m)
		if n.said.out {
			p.say(n, false, proto.ModeService, m.Seq)
		}
	case proto.EvSplitBrain:
		p.note(Error, "another plan with the same number", note{Rule: "split_brain", Node: int64(n.id), Gen: m.Generation, Text: m.Text})
	}
	p.changed(n, before)
}

// moved takes the bypass count that came with a move.
func (p *Planner) moved(n *nodeView, m *proto.Event) {
	n.events.moved, n.events.counted = m.Seq, m.BypassSeq > 0
	if m.Session == n.session {
		n.bypass = max(n.bypass, m.BypassSeq)
	}
}

// flush puts what is new into the store, one transaction at a time.
func (p *Planner) flush() {
	l := &p.log
	if l.flying != 0 || p.now < l.flushAt {
		return
	}
	l.flushAt = Never
	if l.behind == 0 && len(l.touched) == 0 {
		return
	}
	var records []Record
	for i := len(l.entries) - l.behind; i < len(l.entries); i++ {
		e := l.at(i)
		records = append(records, Record{logKey(e.seq), logValue(e)})
		if e.seq > maxLog {
			records = append(records, Record{Key: logKey(e.seq - maxLog)})
		}
	}
	l.behind = 0
	for _, id := range l.touched {
		c := &p.view(id).events
		l.acks = append(l.acks, pendingAck{id, c.last})
		records = append(records, Record{seenKey(id), fmt.Appendf(nil, "%d %d", c.last, uint64(c.session))})
	}
	l.touched = l.touched[:0]
	l.flying = p.persist(records)
}

// flushed acknowledges events that are on disk.
func (p *Planner) flushed(id uint64) {
	l := &p.log
	if id != l.flying {
		return
	}
	l.flying = 0
	for _, a := range l.acks {
		n := p.view(a.node)
		if n.online && p.linkUp && n.session != 0 && p.state != fenced && p.state != raising {
			p.command(n, proto.Command{Verb: proto.VerbAckEvents, Seq: a.seq})
		}
	}
	l.acks = l.acks[:0]
	if l.behind > 0 || len(l.touched) > 0 {
		l.flushAt = min(l.flushAt, p.now+flushDelay)
	}
}

// command sends a command to the present life of a node and returns its
// correlation.
func (p *Planner) command(n *nodeView, c proto.Command) proto.Corr {
	p.corr++
	seed := fmt.Appendf(nil, "%d/%d/%d", p.cfg.PlannerID, p.term, p.corr)
	c.Version, c.Node, c.Term, c.Session = proto.Version, n.id, p.term, n.session
	c.Corr, c.TTLMillis = proto.Corr(proto.DigestOf(seed)), commandTTLMillis
	p.send(p.topics.Command(n.id), proto.TopicCommand, &c)
	return c.Corr
}

func (p *Planner) restoreSeen(key string, raw []byte) error {
	n, err := p.restoreNodeID(key)
	if err != nil {
		return err
	}
	var session uint64
	if _, err := fmt.Sscanf(string(raw), "%d %d", &n.events.last, &session); err != nil {
		return err
	}
	n.events.session = proto.Session(session)
	return nil
}

func (p *Planner) restoreLog(key string, raw []byte) error {
	seq, err := strconv.ParseUint(key, 16, 64)
	if err != nil {
		return err
	}
	e, err := parseLog(seq, raw)
	if err != nil {
		return err
	}
	p.log.last = seq - 1
	p.log.add(e)
	p.log.behind = 0
	return nil
}
