package guard

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"ringlight/proto"
	"ringlight/proto/metric"
	"ringlight/proto/seal"
)

// Senders are told apart by what their topics are for: a seal that is wrong says
// nothing about the sender.
const (
	Nodes = iota
	Planners
	Operators
	senders
)

var senderNames = [senders]string{"node", "planner", "operator"}

func sender(t proto.Topic) int {
	switch {
	case t.Kind == proto.TopicRequest:
		return Operators
	case t.Kind == proto.TopicAck || t.Kind == proto.TopicReported || t.Kind == proto.TopicPresence || t.Kind == proto.TopicEvent:
		return Nodes
	}
	return Planners
}

// Tally counts messages by sender and by what was wrong with their seals.
type Tally [senders][seal.Faults]uint64

// Sum is all of them.
func (t Tally) Sum() (n uint64) {
	for i := range t {
		for _, x := range t[i] {
			n += x
		}
	}
	return n
}

// Counts of a guard since New.
type Counts struct {
	Mode    Mode
	Edition uint64
	Opened  [senders]uint64 // rightly sealed
	Refused Tally           // not read; of an operator's question: answered so
	Doubted Tally           // read all the same
}

// Counts are a copy; of no guard those of the mode off.
func (g *Guard) Counts() Counts {
	if g == nil {
		return Counts{Mode: Off}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.counts
	c.Mode, c.Edition = g.cfg.Mode, g.Trust().Edition
	return c
}

// Doubt is what was wrong last with what came under a name.
type Doubt struct {
	Topic  proto.Topic
	Reason string
	Read   bool // all the same

	at time.Time
}

const (
	// doubtFor is how long a doubt stands after the last message that gave rise to it.
	// chosen: all of them speak more often, but for operators.
	doubtFor  = time.Minute
	maxDoubts = 1024 // names are a stranger's to choose; chosen: a person reads fewer
)

// wrong counts a message whose seal is not as it must be, and says why.
func (g *Guard) wrong(p *proto.Packet, t proto.Topic, err error, now time.Time) string {
	tally, d := &g.counts.Refused, Doubt{Topic: t, Reason: proto.AsError(err).Reason, Read: g.cfg.Mode == Warn, at: now}
	if d.Read {
		tally = &g.counts.Doubted
	}
	fault := seal.FaultOf(err)
	tally[sender(t)][fault]++
	if p.Retain || fault == seal.NoRight || fault == seal.Unchecked {
		return d.Reason // what a broker kept is of a former life, and these say nothing of the seal
	}
	name := Name(t)
	if _, known := g.doubts[name]; known || len(g.doubts) < maxDoubts {
		g.doubts[name] = d
	}
	return d.Reason
}

// Name is whose topic one is, as alarms name it.
func Name(t proto.Topic) string {
	switch {
	case sender(t) == Operators:
		return "operator-" + t.Client
	case sender(t) == Planners:
		return "planner"
	case t.Node.IsSwitch():
		return "switch-" + strconv.Itoa(int(t.Node-proto.FirstSwitch))
	}
	return strconv.Itoa(int(t.Node))
}

// Doubts are those of the last minute, by name.
func (g *Guard) Doubts(now time.Time) (list []Doubt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.doubts, func(_ string, d Doubt) bool { return now.Sub(d.at) >= doubtFor })
	list = slices.Collect(maps.Values(g.doubts))
	slices.SortFunc(list, func(a, b Doubt) int { return cmp.Compare(Name(a.Topic), Name(b.Topic)) })
	return list
}

// Features is how far a program is with seals; sealed: it seals what it says.
func Features(m Mode, sealed bool) proto.Features {
	f := proto.FeatureSeals
	if m.On() {
		f |= proto.FeatureJudges
	}
	if m.On() && sealed {
		f |= proto.FeatureSealed
	}
	if m == Enforce {
		f |= proto.FeatureEnforce
	}
	return f
}

func tallied(name, help string, of func(*Counts) *Tally) metric.Measure[*Counts] {
	return metric.Of(metric.Family{Name: name, Kind: metric.Counter, Labels: []string{"sender", "reason"}, Help: help}, func(c *Counts, p *metric.Page) {
		for s, faults := range of(c) {
			for f, n := range faults {
				if f := seal.Fault(f); f != seal.NoRight || s == Operators {
					p.Word(senderNames[s]).Word(f.String()).Is(int64(n))
				}
			}
		}
	})
}

// Measures are those of what stands at a link.
var Measures = []metric.Measure[*Counts]{
	metric.Of(metric.Family{Name: "ringlight_seal_mode", Labels: []string{"mode"}, Help: "1 for the mode that seals are in: off, warn, enforce."},
		func(c *Counts, p *metric.Page) {
			for _, m := range []Mode{Off, Warn, Enforce} {
				p.Word(string(m)).Bool(c.Mode == m)
			}
		}),
	metric.Of(metric.Family{Name: "ringlight_trust_edition", Help: "Edition of the trust document in force; 0: none."},
		func(c *Counts, p *metric.Page) { p.Is(int64(c.Edition)) }),
	metric.Of(metric.Family{Name: "ringlight_seals_opened_total", Kind: metric.Counter, Labels: []string{"sender"}, Help: "Messages that were rightly sealed."},
		func(c *Counts, p *metric.Page) {
			for s, n := range c.Opened {
				p.Word(senderNames[s]).Is(int64(n))
			}
		}),
	tallied("ringlight_seals_refused_total", "Messages that were not read for their seal, by whose topic they came on.", func(c *Counts) *Tally { return &c.Refused }),
	tallied("ringlight_seals_doubted_total", "Messages that were read in mode warn, and would not be in mode enforce.", func(c *Counts) *Tally { return &c.Doubted }),
}
