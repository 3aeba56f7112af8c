package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// Proof by light. A stage is over when every switch of it reports its
// generation and light on each circuit that it made.

// openDue is when checkOpen has something to give up.
func (p *Planner) openDue() time.Duration {
	c := p.core
	next := Never
	for _, s := range c.open.sw {
		v := &c.switches[s]
		due := max(v.shownAt, c.open.since) + lightPatience
		if v.pending() || v.unassigned || v.report == nil {
			due = c.open.since + stagePatience
		}
		if due > p.now { // what is over has been looked at
			next = min(next, due)
		}
	}
	if c.dirty {
		next = min(next, c.planAt)
	}
	return next
}

// checkOpen looks at the stage that waits for its proof.
func (p *Planner) checkOpen() {
	c := p.core
	if c.dirty && c.planAt <= p.now {
		// Something to be told, which may be a switch of this stage.
		c.dirty, c.planAt = false, Never
		if p.tellSwitches() {
			p.replanCircuits(0)
			return
		}
		defer p.replanCircuits(debounce)
	}
	var missing, dark []int
	waiting := false
	for _, s := range c.open.sw {
		v := &c.switches[s]
		switch {
		case v.pending() || v.unassigned || v.report == nil:
			// Who is away holds up only what is not decided for good.
			missing = append(missing, s)
			waiting = waiting || (c.open.kind == stageForward || v.ready()) && p.now < c.open.since+stagePatience
		case c.open.kind == stageForward && len(p.unlit(s)) > 0:
			dark = append(dark, s)
			waiting = waiting || !p.givenUp(s) && p.now < max(v.shownAt, c.open.since)+lightPatience
		case c.open.kind != stageForward && p.tuning(s):
			waiting = waiting || p.now < max(v.shownAt, c.open.since)+lightPatience
		}
	}
	switch {
	case waiting:
	case c.open.kind != stageForward:
		p.closeStage("")
	case len(missing) > 0:
		p.rollBack(fmt.Sprintf("switch %d does not show it: %s", missing[0], c.switches[missing[0]].whyUnable()))
	case len(dark) > 0:
		p.darkStage(dark)
	default:
		p.closeStage("")
	}
}

// unlit are the circuits that an open stage made on a switch and light does not
// prove.
func (p *Planner) unlit(s int) []proto.Circuit {
	c := p.core
	at, _ := c.deckOf(s)
	was := c.decks[at]
	for _, b := range c.open.back {
		if b.at == at {
			was = b.deck
		}
	}
	before := c.circuitsOf(s, was)
	var out []proto.Circuit
	for _, x := range c.circuitsOf(s, c.decks[at]) {
		same := func(o proto.Circuit) bool { return o.A == x.A && o.B == x.B }
		if !slices.ContainsFunc(before, same) && c.stateOf(s, x) != proto.Tuned {
			out = append(out, x)
		}
	}
	return out
}

// tuning: some circuit of a switch is on its way.
func (p *Planner) tuning(s int) bool {
	return slices.ContainsFunc(p.core.switches[s].report.Circuits, func(r proto.CircuitReport) bool { return r.State == proto.Tuning })
}

// givenUp: the switch itself holds all its dark circuits to have failed.
func (p *Planner) givenUp(s int) bool {
	return !slices.ContainsFunc(p.unlit(s), func(x proto.Circuit) bool { return p.core.stateOf(s, x) != proto.Failed })
}

// stateOf is what a switch reports of a circuit; Blocked: nothing.
func (c *circuits) stateOf(s int, x proto.Circuit) proto.PortState {
	if r := c.reportOf(s, x.A, x.B); r != nil {
		return r.State
	}
	return proto.Blocked
}

func (c *circuits) reportOf(s int, a, b uint16) *proto.CircuitReport {
	m := c.switches[s].report
	if m == nil {
		return nil
	}
	at, ok := slices.BinarySearchFunc(m.Circuits, a, func(r proto.CircuitReport, a uint16) int { return int(r.A) - int(a) })
	if !ok || m.Circuits[at].B != b {
		return nil
	}
	return &m.Circuits[at]
}

// darkStage decides on a stage of which some circuits did not come up: where
// one of them is of a link that was moved, the link has its old place again.
// Others are told again first (readCircuits).
func (p *Planner) darkStage(dark []int) {
	c := p.core
	moved := false
	for _, s := range dark {
		for _, x := range p.unlit(s) {
			if c.movedByStage(s, x) {
				moved = true
				c.bad[slot{s, x.A, x.B}] = true
			}
			p.note(Warn, "circuit did not come up", note{Rule: "circuit_dark", Node: int64(c.switches[s].id), Gen: c.switches[s].want.gen,
				Text: fmt.Sprintf("port %d to %d, job %d: %s", x.A, x.B, x.Job, c.stateOf(s, x))})
		}
	}
	if moved {
		p.rollBack("a moved link has no light")
		return
	}
	c.stages = nil
	p.closeStage(fmt.Sprintf("%d switches with dark circuits", len(dark)))
}

// movedByStage: the open stage took circuits of this job away somewhere.
func (c *circuits) movedByStage(s int, x proto.Circuit) bool {
	if x.Job == 0 {
		return false // a backup carries nothing
	}
	group := s / c.core.SpinePorts
	for _, b := range c.open.back {
		if c.groupOf(b.at) != group {
			continue
		}
		for i, j := range b.to {
			if j >= 0 && b.job[i] == x.Job && c.decks[b.at].to[i] != j {
				return true
			}
		}
	}
	return false
}

// rollBack gives every deck of the open stage its old content, in a new
// generation. A switch that is away is told when it comes back.
func (p *Planner) rollBack(why string) {
	c := p.core
	c.stages = nil
	p.note(Warn, "stage is rolled back", note{Rule: "roll_back", Node: -1, Gen: c.gen, Text: why})
	back := c.open.back
	if len(back) == 0 {
		p.closeStage("")
		return
	}
	p.prepareCircuits(stageBack, back)
}

// closeStage ends a stage and goes on.
func (p *Planner) closeStage(text string) {
	c := p.core
	gen, kind := proto.Generation(0), c.open.kind
	for _, s := range c.open.sw {
		gen = max(gen, c.switches[s].want.gen)
	}
	stored := len(c.open.back) > 0
	c.open = openStage{}
	c.become(circuitsResting)
	if stored {
		p.persist([]Record{{Key: keyStage}})
	}
	switch {
	case text != "":
		p.note(Warn, "stage is over", note{Rule: "stage", Node: -1, Gen: gen, Text: text})
	case kind == stageForward:
		p.note(Info, "stage proven by light", note{Rule: "stage", Node: -1, Gen: gen, Text: fmt.Sprintf("%d to go", len(c.stages))})
	}
	switch {
	case kind == stageBack:
		// What it failed by may do so again: longer pauses each time.
		p.replanCircuits(min(resendFirst<<min(c.backs, 10), renewLast))
		c.backs++
	case kind == stageForward && text == "":
		c.backs = 0
	}
	if kind != stageBack {
		p.replanCircuits(0)
	}
}
