package planner

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ringlight/planner/audit"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// Terms, other planners, and the first look round.
//
// A planner listens before it says anything, and takes its term from what it
// heard: one above all that somebody knows. So no two lives share a term, be
// their stores copies of each other; and should they meet all the same, agents
// keep to the life that they heard the term from first.

const (
	// BeatPeriod is the time between two signs of life. chosen: three of them
	// are short enough to wait out before a term is raised.
	BeatPeriod = 2 * time.Second
	beatsAlive = 3 // periods within which a live planner is heard

	// gatherQuiet ends the listening at start when some device stays unheard.
	// chosen: longer than an agent's first retry to connect.
	gatherQuiet = 6 * time.Second

	// takeoverPatience is how long one that takes over waits for the other to
	// give way. chosen: its evidence needs three beats; twice that.
	takeoverPatience = 2 * beatsAlive * BeatPeriod

	// voicesWait is how long after the first device that knows of another planner
	// the planner looks which devices do. chosen: a broker brings all their messages in less, and
	// one that lies costs one look a second.
	voicesWait = time.Second
	// Before it is in service a planner goes on from a term that one device alone
	// knows, if it is near, and no more than maxRaises times. chosen: nobody misses
	// some thousand starts, and an agent follows them.
	nearTerm  = 1 << 12
	maxRaises = 3
	// overFirst and overLast are between two raises of the term over a forged plan,
	// doubling. chosen: a person looks in between.
	overFirst = 10 * time.Minute
	overLast  = 24 * time.Hour
)

// sendSigns says that we are alive, when that is due.
func (p *Planner) sendSigns() {
	if !p.j.LinkUp || p.j.Now < p.pulse.due {
		return
	}
	switch p.state {
	case gathering, serving:
		p.pulse.give()
	case standby, following:
		p.pulse.wait()
	}
}

// Will is the planner's death note: the packet that its link registers.
func (c *Config) Will() proto.Packet {
	payload, err := proto.Encode(&proto.PlannerState{Version: proto.Version, Planner: c.PlannerID, Term: c.Term,
		PeriodMillis: uint32(BeatPeriod.Milliseconds()), Fabric: c.Fabric.Name, Life: c.Life, Layout: layoutOf(c.Fabric), Host: proto.Clip(c.Host)})
	if err != nil {
		panic("planner: own death note is refused: " + err.Error())
	}
	return proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: c.Fabric.Name}.Planner(), Payload: payload,
		QoS: proto.TopicPlanner.QoS(), Retain: proto.TopicPlanner.Retain()}
}

// onPlanner hears another planner. A retained message proves nothing of its
// life, but tells what fabric was planned here last.
func (p *Planner) onPlanner(m *proto.PlannerState, retained bool) {
	if m.Planner == p.j.Planner && m.Life == p.j.Life {
		if p.j.LinkUp && !retained {
			p.pulse.echoed(m.Seq)
		}
		return // our own word, come back
	}
	switch {
	case retained:
		if m.Layout != 0 {
			p.lastLayout = m.Layout
		}
		p.sawTerm(m.Term, "")
	case m.Online:
		p.heardRival(m)
	default:
		if r, gave := p.others.ended(m, p.j.Now); r != nil {
			r.behind = behind(p.election.stored, m.Stored)
			if gave {
				above{p}.Voiced() // who heard it first takes nothing of ours
			}
		}
	}
}

// heardRival judges a message of one that says it is in service.
func (p *Planner) heardRival(m *proto.PlannerState) {
	r, first := p.others.heard(m, p.j.Now)
	if r == nil {
		return
	}
	if r.alive(p.j.Now) {
		p.seenTerm = max(p.seenTerm, r.term)
	}
	if first {
		p.j.Note(Warn, "another planner speaks", journal.Note{Rule: "fence", Node: -1, Text: r.String() + "; one message is no proof"})
	}
	switch p.state {
	case listening:
		p.listened()
	case standby:
		if !r.mate && r.alive(p.j.Now) && r.layout != 0 && r.layout != p.j.Layout && !p.served {
			p.leave(r.String() + " plans it from another description now")
		}
	case gathering, serving:
		p.pulse.hasten() // it learns at once that we are here
		p.contest(r)
	}
}

// contest decides which of two in service goes on. One that has just begun
// steps back and listens; later it takes proof over three periods, and then
// the one that takes over stays, else the higher term: agents follow that.
func (p *Planner) contest(r *rival) {
	if r.mate {
		return // the store's election chose us; it does not know yet
	}
	senior := r.seq > p.pulse.beat || r.seq == p.pulse.beat && r.life < p.j.Life
	above := r.term > p.j.Term || r.term == p.j.Term && r.life < p.j.Life
	switch {
	case p.Rings.Deciding():
		// The decision is on its way to the disk; the next word is weighed again.
	case r.takeover && !p.pulse.claiming && r.alive(p.j.Now), above && r.takeover == p.pulse.claiming && r.alive(p.j.Now):
		p.standBy(r, "it is in service now")
	case p.pulse.beat <= beatsAlive && !p.pulse.claiming && !r.takeover && senior:
		p.drop()
		p.become(listening)
	}
}

// listened looks at who was heard, and ends the listening: with a live planner
// heard we wait behind it, replace it or leave; with nobody we begin.
func (p *Planner) listened() {
	if !p.j.LinkUp {
		return
	}
	r := p.others.live(p.j.Now)
	switch {
	case r != nil && p.takeover && !p.served:
		p.replaced, p.pulse.claiming, p.claimUntil = r.String(), true, p.j.Now+takeoverPatience
	case r != nil && !p.served && r.layout != 0 && r.layout != p.j.Layout:
		p.leave(r.String() + " plans it from another description")
		return
	case r != nil:
		p.standBy(r, "it is in service")
		return
	case p.j.Now < p.listenEnd():
		return
	case p.otherLayout():
		p.leave("its agents, or the planner before, hold plans made from another description")
		return
	}
	p.voices()
	p.become(raising)
	p.raises++
	next := uint64(p.seenTerm + 1)
	begins := p.j.Audit(audit.Record{Kind: audit.Start, Term: next, What: fmt.Sprintf("term %d begins", next), Why: p.j.Chain.Damage(), Reason: p.unknown()})
	p.raise = p.j.Persist(slices.Concat([]Record{{Key: keyTerm, Value: strconv.AppendUint(nil, next, 10)},
		{Key: keyLife, Value: strconv.AppendUint(nil, p.j.Life, 10)}}, p.first, begins, p.acts.former(p.j, p.Rings, next))...)
	p.first = nil
}

// unknown is what others know of this fabric and our store does not.
func (p *Planner) unknown() (why string) {
	why, p.beyond = p.beyond, ""
	if why == "" && p.shown > p.j.Term {
		why = fmt.Sprintf("term %d is known, ours is %d", p.shown, p.j.Term)
	}
	return why
}

// listenEnd counts from the link too: what another planner said while we were
// away we did not hear. A planner in service has listened all along, and does not
// stop for one message of unknown origin.
func (p *Planner) listenEnd() time.Duration {
	return max(p.pulse.linkSince, p.others.lastSign(p.served)) + beatsAlive*BeatPeriod
}

// standBy gives way, in this process: nothing more is said to agents until the
// other one is silent.
func (p *Planner) standBy(r *rival, why string) {
	p.drop()
	p.become(standby)
	p.pulse.claiming = false
	p.j.Note(Warn, "standing by for another planner", journal.Note{Rule: "fence", Node: -1, Text: fmt.Sprintf("%s: %s; this is planner %v, term %d", r, why, proto.PlannerCopy{Planner: p.j.Planner, Life: p.j.Life, Host: p.pulse.host}, p.j.Term)})
	p.pulse.wait()
}

// standing looks after who waits.
func (p *Planner) standing() {
	if !p.j.LinkUp || p.j.Now < p.listenEnd() {
		return
	}
	p.j.Note(Warn, "the other planner is silent", journal.Note{Rule: "fence", Node: -1, Text: "this one takes its place"})
	p.become(listening)
	p.listened()
}

// leave ends a start that a person has to look at. Nothing was said to anyone,
// and the store does not keep the description.
func (p *Planner) leave(why string) {
	p.become(exited)
	if p.new && p.first == nil {
		p.j.Persist(Record{Key: keyFabric})
	}
	p.j.Exit(fmt.Sprintf("fabric %s: %s; this planner's differs. Start it with the right -fabric-file, or with -takeover to plan anew from this one", p.Fabric.Name, why))
}

// otherLayout: most of what runs was planned from another description. Where
// agents say nothing of it, the last planner's word counts for a new store.
func (p *Planner) otherLayout() bool {
	if p.takeover || p.served {
		return false
	}
	ours, others := 0, 0
	for _, t := range p.tables() {
		for i := range t.Devices {
			d := &t.Devices[i]
			if !d.Known {
				continue
			}
			switch layout := d.Scalars().Layout; {
			case layout == 0:
			case layout == p.j.Layout || slices.Contains(p.edits.layouts, layout):
				ours++
			default:
				others++
			}
		}
	}
	if ours+others > 0 {
		return others > ours
	}
	return p.first != nil && p.new && p.lastLayout != 0 && p.lastLayout != p.j.Layout
}

// voices looks at what the devices say of other planners. One of them may be
// wrong or lie; what more than half of those that are there say is so: another
// planner was here, or our store was lost.
func (p *Planner) voices() {
	p.voicesAt = Never
	var terms []proto.Term
	there := 0
	for _, t := range p.tables() {
		var n int
		terms, n = t.Numbers.Voices(terms)
		there += n
	}
	slices.Sort(terms)
	if n := len(terms); 2*n > there {
		t := terms[n-1-there/2] // more than half know this one or a higher
		p.sawTerm(t, fmt.Sprintf("term %d is known to %d of %d devices, and ours is %d of planner %s", t, n, there, p.j.Term, proto.PlannerCopy{Life: p.j.Life}))
		return
	}
	if !p.served && p.raises < maxRaises {
		// Nothing stops by it yet: whoever was told by a planner that is gone is not lost.
		for _, t := range slices.Backward(terms) {
			if t <= p.j.Term+nearTerm {
				p.seenTerm = max(p.seenTerm, t)
				p.overtaken(fmt.Sprintf("one device at least knows term %d, ours is %d", t, p.j.Term), false)
				return
			}
		}
	}
	for _, t := range p.tables() {
		t.Numbers.Alone()
		if term, why := t.Numbers.Behind(p.others.gaveWay); why != "" && p.state == serving && p.j.Now >= p.overAt {
			p.overWait = min(max(2*p.overWait, overFirst), overLast)
			p.overAt, p.seenTerm = p.j.Now+p.overWait, max(p.seenTerm, term)
			p.overtaken(why, false)
			return
		}
	}
}

// sawTerm takes a term that is believed, and what shows it: "", that it is higher
// than ours. So another planner was here, or our store was lost.
func (p *Planner) sawTerm(t proto.Term, why string) {
	p.seenTerm, p.shown = max(p.seenTerm, t), max(p.shown, t)
	if why == "" && t > p.j.Term {
		why = fmt.Sprintf("term %d is known, ours is %d", t, p.j.Term)
	}
	if why != "" {
		p.overtaken(why, true)
	}
}

// overtaken goes back to listening, for a term of our own. other: it is shown that
// another planner was here, which the audit chain tells.
func (p *Planner) overtaken(why string, other bool) {
	if p.state != gathering && p.state != serving {
		return
	}
	p.drop()
	if p.Rings.Deciding() {
		return // the decision is on its way to the disk; the term is looked at again after it
	}
	p.become(listening)
	if p.beyond = ""; other {
		p.beyond = why
	}
	p.j.Note(Warn, "the term is raised; listening for another planner", journal.Note{Rule: "fence", Node: -1, Text: why})
}

// drop forgets what is being prepared.
func (p *Planner) drop() {
	p.Rings.Drop()
	if p.Core != nil {
		p.Core.Stages.Drop()
	}
}

func (p *Planner) raised() {
	p.j.Term = p.seenTerm + 1
	p.seenTerm = p.j.Term
	p.become(gathering)
	p.pulse.due = p.j.Now
	if !p.election.warm { // who followed has listened all along
		p.listenFrom = p.j.Now
	}
	if p.pulse.beat == 0 {
		return
	}
	p.j.Note(Info, "term raised", journal.Note{Rule: "fence", Node: -1, Text: fmt.Sprintf("term %d", p.j.Term)})
}

// heard is how many devices have spoken, and since when nothing new was heard. A planner
// that is drawn anew from what a follower remembers hears all of them in their last words:
// that is no news.
func (p *Planner) heard() (count int, since time.Duration) {
	for _, t := range p.tables() {
		n, at := t.Heard()
		count, since = count+n, max(since, at)
	}
	if e := &p.election; e.warm && count <= e.knew {
		since = min(since, e.knewAt)
	}
	return count, max(since, p.listenFrom)
}

// gatherEnd is when the look round is over, heard or not.
func (p *Planner) gatherEnd() (at time.Duration, all bool) {
	heard, since := p.heard()
	for _, t := range p.tables() {
		heard -= len(t.Devices)
	}
	at = since + gatherQuiet
	if all = heard >= 0; all {
		at = p.j.Now
	}
	if p.pulse.claiming && p.others.live(p.j.Now) != nil {
		at = max(at, p.claimUntil) // it gives way by itself
	}
	return at, all
}

// gather waits until every device was heard, or until nothing new came for a
// while. With an empty store it waits for the first one however long, where
// there is any.
func (p *Planner) gather() {
	count, _ := p.heard()
	at, all := p.gatherEnd()
	if !p.j.LinkUp || count == 0 && !all && p.Rings.Table.Numbers.Fresh || p.j.Now < at {
		return
	}
	if p.otherLayout() {
		p.leave("its agents hold plans made from another description")
		return
	}
	if p.voices(); p.state != gathering {
		return
	}
	p.become(serving)
	p.served, p.election.since = true, p.j.Wall
	if p.replaced != "" {
		p.j.Note(Warn, "another planner was replaced", journal.Note{Rule: "takeover", Node: -1, Text: p.replaced})
	}
	p.pulse.claiming = false
	p.Rings.Gathered()
	p.Rollout.Resume()
	if p.Core != nil {
		p.Core.Gathered()
	}
}

// layoutOf is the fingerprint of a fabric's description, never 0.
func layoutOf(f interface{ Encode() []byte }) uint64 {
	d := proto.DigestOf(f.Encode())
	return max(1, binary.BigEndian.Uint64(d[:8]))
}
