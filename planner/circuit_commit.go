package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// A stage: every switch of it prepares, the decision goes to the store, then
// it is published; then light proves it, or it is rolled back.

// txnKind says what a generation of circuits is for.
type txnKind uint8

const (
	stageForward txnKind = iota
	stageBack            // the old content again, where a stage did not come up
	stageTell            // what is committed, told again
)

// circuitTxn is the generation under way.
type circuitTxn struct {
	decided
	kind     txnKind
	sets     []deckSet // what decks hold with it
	parts    []switchPart
	waiting  int
	deadline time.Duration
	resendAt time.Duration
	backoff  time.Duration
	persist  uint64
}

// switchPart is one switch's share. An absent one is told when it comes back;
// nobody waits for it.
type switchPart struct {
	sw       int
	payload  []byte
	prepared bool
	absent   bool
}

// openStage is a committed stage of which light has not proven all.
type openStage struct {
	kind  txnKind
	back  []deckSet // what its decks held before
	sw    []int
	since time.Duration
}

func (o *openStage) active() bool { return len(o.sw) > 0 }

func (t *circuitTxn) part(sw int) *switchPart {
	at := slices.IndexFunc(t.parts, func(p switchPart) bool { return p.sw == sw })
	if at < 0 {
		return nil
	}
	return &t.parts[at]
}

// prepareCircuits sends the desired states of a stage or a roll-back.
func (p *Planner) prepareCircuits(kind txnKind, sets []deckSet) {
	c := p.core
	var want []switchWant
	for _, set := range sets {
		for _, s := range c.deckSwitches(set.at) {
			want = append(want, switchWant{s, set.deck})
		}
	}
	p.prepareSwitches(kind, sets, want)
}

// tellSwitches tells those again that do not hold what is committed, and can
// be told. It reports whether there are any.
func (p *Planner) tellSwitches() bool {
	c := p.core
	var want []switchWant
	for s := range c.switches {
		if v := &c.switches[s]; v.unassigned && v.ready() {
			at, _ := c.deckOf(s)
			want = append(want, switchWant{s, c.decks[at]})
		}
	}
	if len(want) == 0 {
		return false
	}
	p.prepareSwitches(stageTell, nil, want)
	return true
}

type switchWant struct {
	sw int
	deck
}

func (p *Planner) prepareSwitches(kind txnKind, sets []deckSet, want []switchWant) {
	c := p.core
	c.gen++
	slices.SortFunc(want, func(a, b switchWant) int { return a.sw - b.sw })
	desired := make([]proto.Desired, len(want))
	for i, w := range want {
		desired[i] = proto.Desired{Version: proto.Version, Node: c.switches[w.sw].id, Term: p.term, Generation: c.gen,
			BypassSeq: c.switches[w.sw].quoted(), Decisions: []proto.RingID{c.core.GroupID(w.sw / c.core.SpinePorts)}, Circuits: c.circuitsOf(w.sw, w.deck)}
	}
	plan, err := proto.PlanDigest(desired)
	if err != nil {
		panic("planner: own circuits are refused: " + err.Error())
	}
	t := circuitTxn{decided: decided{p.term, c.gen, plan}, kind: kind, sets: sets,
		deadline: p.now + prepareTimeout, resendAt: p.now + resendFirst, backoff: resendFirst}
	for i, w := range want {
		desired[i].Plan = plan
		payload, err := proto.Encode(&desired[i])
		if err != nil {
			panic("planner: own circuits are refused: " + err.Error())
		}
		absent := kind == stageBack && !c.switches[w.sw].ready()
		t.parts = append(t.parts, switchPart{sw: w.sw, payload: payload, absent: absent})
		if !absent {
			t.waiting++
		}
	}
	c.txn = t
	c.become(circuitsPreparing)
	p.line(Info, "circuits prepare", "circuits_prepare", -1, 0, t.gen, c.explain(&t))
	p.resendCircuits(true)
	if t.waiting == 0 {
		p.decideCircuits()
	}
}

// explain says in a few words what a generation is for.
func (c *circuits) explain(t *circuitTxn) string {
	if t.kind == stageTell {
		return fmt.Sprintf("%d switches told again", len(t.parts))
	}
	made, gone := 0, 0
	for _, set := range t.sets {
		m, g := c.difference(c.decks[set.at], set.deck)
		made, gone = made+m, gone+g
	}
	text := "stage"
	if t.kind == stageBack {
		text = "roll-back"
	}
	return fmt.Sprintf("%s on %d switches: %d circuits removed, %d made", text, len(t.parts), gone, made)
}

// difference counts the cross-connects that come and go between two contents
// of a deck, those of its odd switch included.
func (c *circuits) difference(was, is deck) (made, gone int) {
	for i := range is.to {
		if was.to[i] == is.to[i] {
			continue
		}
		if is.to[i] >= 0 {
			made++
		}
		if was.to[i] >= 0 {
			gone++
		}
	}
	if !c.uniform() {
		made, gone = 2*made, 2*gone
	}
	return made, gone
}

// resendCircuits sends what was not answered.
func (p *Planner) resendCircuits(all bool) {
	t := &p.core.txn
	if !all && p.now < t.resendAt {
		return
	}
	for i := range t.parts {
		if !t.parts[i].prepared {
			p.sendRaw(p.topics.Desired(p.core.switches[t.parts[i].sw].id), proto.TopicDesired, t.parts[i].payload)
		}
	}
	t.resendAt, t.backoff = p.now+t.backoff, min(2*t.backoff, resendLast)
}

func (p *Planner) checkCircuitPrepare() {
	c := p.core
	if p.now < c.txn.deadline {
		p.resendCircuits(false)
		return
	}
	for i := range c.txn.parts {
		if t := &c.txn.parts[i]; !t.prepared && !t.absent {
			v := &c.switches[t.sw]
			v.refuse(proto.Expired, c.txn.gen, "did not answer a prepare", p.now)
			p.note(Warn, "switch did not answer a prepare", note{Rule: "presumed_abort", Node: int64(v.id), Gen: c.txn.gen,
				Text: fmt.Sprintf("circuits generation %d, %d s", c.txn.gen, int(prepareTimeout.Seconds()))})
		}
	}
	p.abortCircuits("not every switch answered in time")
}

// circuitPartLost ends a generation that waits for a switch which is gone.
func (p *Planner) circuitPartLost(v *switchView, why string) {
	c := p.core
	if c.state != circuitsPreparing {
		return
	}
	if t := c.txn.part(c.index(v)); t != nil && !t.absent {
		p.abortCircuits(fmt.Sprintf("switch %d: %s", c.index(v), why))
	}
}

// abortCircuits forgets the generation; nobody has taken any of it. Of a
// roll-back nobody can be the reason: it goes on without who does not answer.
func (p *Planner) abortCircuits(why string) {
	c := p.core
	gen := c.txn.gen
	if c.txn.kind == stageBack {
		for i := range c.txn.parts {
			if t := &c.txn.parts[i]; !t.prepared && !t.absent && (p.now >= c.txn.deadline || !c.switches[t.sw].ready()) {
				t.absent = true
				c.txn.waiting--
			}
		}
		if c.txn.waiting == 0 {
			p.decideCircuits()
		}
		return
	}
	p.dropCircuits()
	p.note(Warn, "circuits generation aborted", note{Rule: "presumed_abort", Node: -1, Gen: gen, Text: why})
	p.replanCircuits(0)
}

// dropCircuits forgets what is being prepared, without a word.
func (p *Planner) dropCircuits() {
	c := p.core
	if c == nil || c.state != circuitsPreparing {
		return
	}
	c.txn, c.stages = circuitTxn{}, nil
	if c.open.active() {
		c.become(circuitsVerifying)
	} else {
		c.become(circuitsResting)
	}
}

func (p *Planner) onSwitchPrepared(v *switchView, m *proto.Ack) {
	c := p.core
	good := m.Code == proto.OK || m.Code == proto.Duplicate
	if (decided{m.Term, m.Generation, m.Plan}) == v.want.decided && v.pending() && !good {
		// It lost what it had staged, and moved.
		v.byHand = max(v.byHand, m.BypassSeq)
		v.unassigned = true
		p.replanCircuits(debounce)
		return
	}
	if c.state != circuitsPreparing || (decided{m.Term, m.Generation, m.Plan}) != c.txn.decided {
		return
	}
	t := c.txn.part(c.index(v))
	if t == nil || t.prepared {
		return
	}
	if !good {
		p.refusedCircuits(v, m)
		return
	}
	t.prepared = true
	v.refusals = 0
	if t.absent {
		return // it came back in time: nobody waits for it all the same
	}
	if c.txn.waiting--; c.txn.waiting == 0 {
		p.decideCircuits()
	}
}

// refusedCircuits takes a switch's no. It takes no part for some time, longer
// each time.
func (p *Planner) refusedCircuits(v *switchView, m *proto.Ack) {
	c := p.core
	v.refuse(m.Code, m.Generation, proto.Clip(m.Field+" "+m.Limit+" "+m.Reason), p.now)
	switch {
	case m.Code == proto.Stale:
		// It holds a higher generation of our own term than we knew of.
		v.refusal = refusal{}
		c.gen = max(c.gen, m.CurrentGeneration)
	case m.Code == proto.Conflict && v.refusals <= maxConflicts:
		v.refusal, v.byHand = refusal{}, max(v.byHand, m.BypassSeq) // it says itself what to quote
	}
	p.note(Warn, "switch refused circuits", note{Rule: "refused", Node: int64(v.id), Gen: c.txn.gen,
		Text: proto.Clip(fmt.Sprintf("%s %s (limit %s): %s", m.Code, m.Field, m.Limit, m.Reason))})
	p.abortCircuits(fmt.Sprintf("switch %d refused: %s", c.index(v), m.Code))
}

// refuse leaves the switch out for some time, longer each time in a row.
func (v *switchView) refuse(code proto.Code, gen proto.Generation, why string, now time.Duration) {
	v.refusals++
	v.refusal = refusal{code: code, gen: gen, reason: why, until: now + min(resendFirst<<min(v.refusals-1, 10), renewLast)}
}

// speaks: a switch that did not answer says something.
func (v *switchView) speaks() {
	if v.refusal.code == proto.Expired {
		v.refusal = refusal{}
	}
}

func (p *Planner) decideCircuits() {
	c := p.core
	c.become(circuitsDeciding)
	c.txn.persist = p.persist(p.circuitRecords())
}

// circuitsPersisted takes the news that the decision is on disk.
func (p *Planner) circuitsPersisted(id uint64) bool {
	c := p.core
	if c == nil || c.state != circuitsDeciding || id != c.txn.persist {
		return false
	}
	t := c.txn
	c.txn = circuitTxn{}
	switch {
	case t.kind != stageTell:
		c.open = openStage{kind: t.kind, since: p.now}
		for _, set := range t.sets {
			c.open.back = append(c.open.back, deckSet{set.at, c.decks[set.at]})
			c.decks[set.at] = set.deck
		}
	case !c.open.active():
		c.open = openStage{kind: stageTell, since: p.now}
	}
	groups := map[int]bool{}
	for i := range t.parts {
		v := &c.switches[t.parts[i].sw]
		v.want, v.unassigned = target{t.decided, t.parts[i].payload}, false
		v.resendAt, v.backoff = p.now+resendFirst, resendFirst
		groups[t.parts[i].sw/c.core.SpinePorts] = true
		if !slices.Contains(c.open.sw, t.parts[i].sw) {
			c.open.sw = append(c.open.sw, t.parts[i].sw)
		}
	}
	c.sweepAt = p.now + sweepPeriod
	c.become(circuitsVerifying)
	p.note(Info, "circuits generation committed", note{Rule: "circuits_commit", Node: -1, Gen: t.gen, Cause: proto.CausePlan, Text: c.committedText(&t)})
	for g := range c.core.Groups() {
		if groups[g] {
			p.sendDecision(c.core.GroupID(g), t.decided)
		}
	}
	p.sawTerm(p.seenTerm)
	return true
}

func (c *circuits) committedText(t *circuitTxn) string {
	absent := 0
	for i := range t.parts {
		if t.parts[i].absent {
			absent++
		}
	}
	text := fmt.Sprintf("%d switches", len(t.parts)-absent)
	if absent > 0 {
		text += fmt.Sprintf(", %d when they are back", absent)
	}
	return text
}
