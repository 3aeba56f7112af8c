package core

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Proof by light. A stage is over when every switch of it reports its
// generation and light on each circuit that it made.

// openDue is when checkOpen has something to give up.
func (c *stages) openDue() time.Duration {
	next := c.agenda.planAt
	for _, s := range c.open.sw {
		v := &c.Evidence.switches[s]
		due := max(v.shownAt, c.open.since) + lightPatience
		if v.Pending() || v.Unassigned || !v.Known {
			due = c.open.since + stagePatience
		}
		if due > c.j.Now { // what is over has been looked at
			next = min(next, due)
		}
	}
	return next
}

// checkOpen looks at the stage that waits for its proof.
func (c *stages) checkOpen() {
	if c.agenda.due() {
		// Something to be told, which may be a switch of this stage.
		if c.tellSwitches() {
			c.agenda.replan(0)
			return
		}
		defer c.agenda.replan(debounce)
	}
	var missing, dark []int
	waiting := false
	for _, s := range c.open.sw {
		v := &c.Evidence.switches[s]
		switch {
		case v.Pending() || v.Unassigned || !v.Known:
			// A device that is away holds up only what is not decided yet.
			missing = append(missing, s)
			waiting = waiting || (c.open.kind == stageForward || v.Ready()) && c.j.Now < c.open.since+stagePatience
		case c.open.kind == stageForward && len(c.unlit(s)) > 0:
			dark = append(dark, s)
			// One that holds all its dark circuits to have failed is not waited for.
			waiting = waiting || slices.ContainsFunc(c.unlit(s), func(x proto.Circuit) bool { return c.Evidence.stateOf(s, x) != proto.Failed }) && c.j.Now < max(v.shownAt, c.open.since)+lightPatience
		case c.open.kind != stageForward && v.tuning():
			waiting = waiting || c.j.Now < max(v.shownAt, c.open.since)+lightPatience
		}
	}
	switch {
	case waiting:
	case c.open.kind != stageForward:
		c.closeStage("")
	case len(missing) > 0:
		c.rollBack(fmt.Sprintf("switch %d does not show it: %s", missing[0], c.Evidence.switches[missing[0]].whyUnable()))
	case len(dark) > 0:
		c.darkStage(dark)
	default:
		c.closeStage("")
	}
}

// unlit are the circuits that an open stage made on a switch and light does not
// prove.
func (c *stages) unlit(s int) []proto.Circuit {
	at, _ := c.Evidence.layout.mapOf(s)
	was := c.Evidence.maps[at]
	for _, b := range c.open.back {
		if b.at == at {
			was = b.crossMap
		}
	}
	before := c.Evidence.layout.circuitsOf(s, was)
	var out []proto.Circuit
	server, is := c.Evidence.fab.ServerOf(s)
	for _, x := range c.Evidence.wanted(s) {
		same := func(o proto.Circuit) bool { return o.A == x.A && o.B == x.B }
		if slices.ContainsFunc(before, same) || c.Evidence.stateOf(s, x).Lit() {
			continue
		}
		gone := x.Job == 0 && c.Evidence.out.why[c.Evidence.out.hits(slot{s, x.A, x.B})] == allDark
		alone := is && x.Job != 0 && c.Evidence.senderTo(server, x.A, x.B) < 0 // it sends, and nobody sends to it
		if !gone && !alone {
			out = append(out, x)
		}
	}
	return out
}

// darkStage decides on a stage of which some circuits did not come up: where
// one of them is of a link that was moved, the link has its old place again.
// Others are told again first (readCircuits).
func (c *stages) darkStage(dark []int) {
	moved := false
	for _, s := range dark {
		for _, x := range c.unlit(s) {
			back := c.movedByStage(s, x)
			if _, server := c.Evidence.fab.ServerOf(s); back || x.Job == 0 && (x.A == x.B || server) {
				moved = moved || back
				c.Evidence.setBad(slot{s, x.A, x.B}, true)
			}
			c.j.Note(journal.Warn, "circuit did not come up", journal.Note{Rule: "circuit_dark", Node: int64(c.Evidence.switches[s].ID), Gen: c.Evidence.switches[s].Want.Gen,
				Text: fmt.Sprintf("port %d to %d, job %d: %s", x.A, x.B, x.Job, c.Evidence.stateOf(s, x))})
		}
	}
	if moved {
		c.rollBack("a moved link has no light")
		return
	}
	c.todo = nil
	c.closeStage(fmt.Sprintf("%d switches with dark circuits", len(dark)))
}

// movedByStage: the open stage took circuits of this job away somewhere.
func (c *stages) movedByStage(s int, x proto.Circuit) bool {
	if x.Job == 0 {
		return false // a backup carries nothing
	}
	group := s / c.Evidence.fab.GroupSwitches()
	for _, b := range c.open.back {
		if c.Evidence.layout.groupOf(b.at) != group {
			continue
		}
		for i, j := range b.to {
			if j >= 0 && b.job[i] == x.Job && c.Evidence.maps[b.at].to[i] != j {
				return true
			}
		}
	}
	return false
}

// rollBack gives every map of the open stage its old content, in a new
// generation. A switch that is away is told when it comes back.
func (c *stages) rollBack(why string) {
	c.todo = nil
	c.j.Note(journal.Warn, "stage is rolled back", journal.Note{Rule: "roll_back", Node: -1, Gen: c.table.Numbers.Gen, Text: why})
	back := c.open.back
	if len(back) == 0 {
		c.closeStage("")
		return
	}
	c.prepareSets(stageBack, back)
}

// closeStage ends a stage and goes on.
func (c *stages) closeStage(text string) {
	c.agenda.unreported = true
	gen, kind := proto.Generation(0), c.open.kind
	for _, s := range c.open.sw {
		gen = max(gen, c.Evidence.switches[s].Want.Gen)
	}
	stored := len(c.open.back) > 0
	c.open = openStage{}
	c.become(Resting)
	if stored {
		c.j.Persist(journal.Record{Key: keyStage})
	}
	switch {
	case text != "":
		c.j.Note(journal.Warn, "stage is over", journal.Note{Rule: "stage", Node: -1, Gen: gen, Text: text})
	case kind == stageForward:
		c.j.Note(journal.Info, "stage proven by light", journal.Note{Rule: "stage", Node: -1, Gen: gen, Text: fmt.Sprintf("%d to go", len(c.todo))})
	}
	switch {
	case kind == stageBack:
		c.drains.release(none)
		// What it failed by may do so again: longer pauses each time.
		c.agenda.replan(member.Backoff(c.backs + 1))
		c.backs++
	case kind == stageForward && text == "":
		c.backs = 0
	}
	if kind != stageBack {
		c.agenda.replan(0)
	}
}
