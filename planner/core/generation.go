package core

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// A stage: every switch of it prepares, the decision goes to the store, then
// it is published; then light proves it, or it is rolled back.

// kind says what a generation of circuits is for.
type kind uint8

const (
	stageForward kind = iota
	stageBack         // the old content again, where a stage did not come up
	stageTell         // what is committed, told again
)

// purpose is what the generation under way is to bring about.
type purpose struct {
	kind kind
	sets []mapSet // what maps hold with it
}

// openStage is a committed stage of which light has not proven all.
type openStage struct {
	kind  kind
	back  []mapSet // what its maps held before
	sw    []int
	since time.Duration
}

func (o *openStage) active() bool { return len(o.sw) > 0 }

// stages take circuits from what switches carry to what a change wants.
type stages struct {
	j        *journal.Journal
	agenda   *agenda
	Evidence *evidence
	drains   *drains
	table    *member.Table

	state State
	Txn   member.Txn
	about purpose   // of the generation in txn
	open  openStage // committed, not yet proven
	todo  [][]mapSet
	backs int // roll-backs in a row
}

// switchWant is what a switch is to carry.
type switchWant struct {
	sw int
	crossMap
}

// prepareSets sends the desired states of a stage or a roll-back.
func (c *stages) prepareSets(k kind, sets []mapSet) {
	var want []switchWant
	for _, set := range sets {
		for _, s := range c.Evidence.layout.switchesOf(set.at) {
			want = append(want, switchWant{s, set.crossMap})
		}
	}
	c.prepare(purpose{k, sets}, want)
}

// tellSwitches tells those again that do not hold what is committed, and can
// be told. It reports whether there are any.
func (c *stages) tellSwitches() bool {
	var want []switchWant
	for s := range c.Evidence.switches {
		if v := &c.Evidence.switches[s]; v.Unassigned && v.Ready() {
			at, _ := c.Evidence.layout.mapOf(s)
			want = append(want, switchWant{s, c.Evidence.maps[at]})
		}
	}
	if len(want) == 0 {
		return false
	}
	c.prepare(purpose{kind: stageTell}, want)
	return true
}

func (c *stages) prepare(about purpose, want []switchWant) {
	c.table.Numbers.Gen++
	slices.SortFunc(want, func(a, b switchWant) int { return a.sw - b.sw })
	desired := make([]proto.Desired, len(want))
	for i, w := range want {
		v := &c.Evidence.switches[w.sw]
		desired[i] = proto.Desired{Version: proto.Version, Node: v.ID, Term: c.j.Term, Generation: c.table.Numbers.Gen,
			BypassSeq: v.quoted(), Decisions: []proto.RingID{v.Group}, Circuits: c.Evidence.layout.circuitsOf(w.sw, w.crossMap)}
	}
	c.about = about
	c.Txn.Prepare(c.table.Numbers.Gen, proto.Count(len(want), "switch"), c.j.Now, desired, func(d *member.Device) bool { return about.kind == stageBack && !d.Ready() })
	c.j.Line(journal.Line{Level: journal.Info, Message: "circuits prepare", Rule: "circuits_prepare", Node: -1, Generation: c.table.Numbers.Gen, Text: c.explain()})
	c.Txn.Resend()
	if c.Txn.Complete() {
		c.Txn.Decide(c.records())
	}
}

// explain says in a few words what a generation is for.
func (c *stages) explain() string {
	if c.about.kind == stageTell {
		return "plan sent again to " + proto.Count(len(c.Txn.Parts), "switch")
	}
	made, gone := 0, 0
	for _, set := range c.about.sets {
		m, g := c.Evidence.layout.difference(c.Evidence.maps[set.at], set.crossMap)
		made, gone = made+m, gone+g
	}
	text := "stage"
	if c.about.kind == stageBack {
		text = "roll-back"
	}
	return fmt.Sprintf("%s on %d switches: %d circuits removed, %d made", text, len(c.Txn.Parts), gone, made)
}

func (c *stages) checkPrepare() {
	if !c.Txn.Late() {
		c.Txn.Resend()
		return
	}
	c.Txn.Unanswered(func(part *member.Part) {
		d := part.Device
		d.Refusing(d.Refusals + 1)
		c.table.Silence(d, c.j.Now+member.Backoff(d.Refusals))
		c.j.Note(journal.Warn, "switch did not answer a prepare", journal.Note{Rule: "presumed_abort", Node: int64(d.ID), Gen: c.Txn.Gen,
			Text: fmt.Sprintf("circuits generation %d, %d s", c.Txn.Gen, int(member.PrepareTimeout.Seconds()))})
	})
	c.abort("not every switch answered in time")
}

// abort forgets the generation; nobody has taken any of it. Of a roll-back
// nobody can be the reason: it goes on without devices that do not answer.
func (c *stages) abort(why string) {
	gen := c.Txn.Gen
	if c.about.kind == stageBack {
		c.Txn.Unanswered(func(part *member.Part) {
			if c.Txn.Late() || !part.Device.Ready() {
				c.Txn.LeaveOut(part)
			}
		})
		if c.Txn.Complete() {
			c.Txn.Decide(c.records())
		}
		return
	}
	c.Drop()
	c.j.Note(journal.Warn, "circuits generation aborted", journal.Note{Rule: "presumed_abort", Node: -1, Gen: gen, Text: why})
	c.agenda.replan(0)
}

// Drop forgets what is being prepared and sends nothing.
func (c *stages) Drop() {
	if c.Txn.Phase() == member.Preparing {
		c.Txn.Drop()
		c.todo = nil
	}
}

// prepared takes a switch's answer to a prepare.
func (c *stages) prepared(v *switchView, m *proto.Ack) {
	switch c.Txn.Answer(v.Device, m) {
	case member.Lost:
		v.byHand = max(v.byHand, m.BypassSeq)
		v.Unassigned = true
		c.agenda.replan(debounce)
	case member.Refused:
		c.refused(v, m)
	case member.Complete:
		c.Txn.Decide(c.records())
	}
}

// refused takes a switch's no. It takes no part for some time, longer each
// time.
func (c *stages) refused(v *switchView, m *proto.Ack) {
	v.Refuse(m, c.j.Now)
	if m.Code == proto.Conflict && v.Refusals <= maxConflicts {
		v.Refused(member.Refusal{})
		v.byHand = max(v.byHand, m.BypassSeq) // it says itself what to quote
	}
	c.j.Note(journal.Warn, "switch refused circuits", journal.Note{Rule: "refused", Node: int64(v.ID), Gen: c.Txn.Gen,
		Text: m.Words()})
	c.abort(fmt.Sprintf("switch %d refused: %s", v.index(), m.Code))
}

// Persisted takes the news that records are on disk. It reports whether they
// were a decision of the circuits.
func (c *stages) Persisted(id uint64) bool {
	c.drains.onDisk(id)
	if !c.Txn.Persisted(id) {
		return false
	}
	c.agenda.unreported = true
	switch {
	case c.about.kind != stageTell:
		c.open = openStage{kind: c.about.kind, since: c.j.Now}
		for _, set := range c.about.sets {
			c.open.back = append(c.open.back, mapSet{set.at, c.Evidence.maps[set.at]})
			c.Evidence.maps[set.at] = set.crossMap
		}
	case !c.open.active():
		c.open = openStage{kind: stageTell, since: c.j.Now}
	}
	c.Txn.Commit()
	told, absent := map[proto.RingID]bool{}, 0
	for i := range c.Txn.Parts {
		part := &c.Txn.Parts[i]
		told[part.Device.Group] = true
		if s := int(part.Device.ID - proto.FirstSwitch); !slices.Contains(c.open.sw, s) {
			c.open.sw = append(c.open.sw, s)
		}
		if part.Absent {
			absent++
		}
	}
	if c.state == Resting {
		c.become(Verifying)
	}
	text := fmt.Sprintf("%d switches", len(c.Txn.Parts)-absent)
	if absent > 0 {
		text += fmt.Sprintf(", %d when they are back", absent)
	}
	c.j.Note(journal.Info, "circuits generation committed", journal.Note{Rule: "circuits_commit", Node: -1, Gen: c.Txn.Gen, Cause: proto.CausePlan, Text: text})
	for g := range c.Evidence.fab.Groups() {
		if id := c.Evidence.fab.GroupID(g); told[id] {
			c.table.SendDecision(id, c.Txn.Decided)
		}
	}
	return true
}
