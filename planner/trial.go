package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/member"
	"ringlight/proto"
)

// trialRound bounds a round. chosen: twice what an agent gives a path, and the
// way there and back.
const trialRound = 1500 * time.Millisecond

// trial lights fibres, to see that they are there and lead where the description
// says: from both ends, or from one, where the other is of a node in a ring, which
// lights nothing for it and looks whether the light comes. Fibres that share a
// bundle that is lit are lit one after the other. Of the others each has a number
// of its own; for every bit those that have it are lit, and then those that have
// it not: two that are plugged in crosswise differ in one, and then each waits once
// for a light that is not on.
type trial struct {
	p      *Planner
	fibres []tried
	rounds [][]int // fibres lit together
	round  int
	phase  phase
	bits   *bitTest            // nil: light is all that is looked for
	lit    map[int]bool        // fibres of this round that were asked for
	open   map[proto.Corr]lamp // questions not answered
	dark   map[int]*[2]string  // fibres without light: why, by end; "": that one has seen some
	until  time.Duration
}

// phase of a round.
type phase uint8

const (
	lighting phase = iota
	making         // bit patterns, where they are counted
	checking
	resting // bits go over
	counting
	ending // its fibres go back into loopback
)

// pattern is what the ends of a fibre are asked for in a phase.
var pattern = [...]proto.Pattern{lighting: proto.PatternAhead, making: proto.PatternMake, checking: proto.PatternCheck, counting: proto.PatternCount, ending: 0}

// tried is a fibre, and which of its ends only looks.
type tried struct {
	fabric.Fibre
	looks [2]bool
}

// lamp is one end of a fibre that is tried.
type lamp struct {
	fibre, end int
}

// ends of a fibre.
func (x *tried) ends() [2]fabric.Port { return [2]fabric.Port{x.A, x.B} }

func (e *edits) trial(fibres []tried, bits *bitTest) *trial {
	t := &trial{p: e.p, fibres: fibres, bits: bits, open: map[proto.Corr]lamp{}, dark: map[int]*[2]string{}}
	type end struct {
		node   proto.NodeID
		bundle proto.BundleID
	}
	var classes [][]int
	var used []map[end]bool
	for i, x := range fibres {
		var lit []end
		for n, at := range x.ends() {
			if !x.looks[n] {
				lit = append(lit, end{at.Node, at.Bundle})
			}
		}
		c := 0
		for c < len(used) && slices.ContainsFunc(lit, func(at end) bool { return used[c][at] }) {
			c++
		}
		if c == len(used) {
			used, classes = append(used, map[end]bool{}), append(classes, nil)
		}
		for _, at := range lit {
			used[c][at] = true
		}
		classes[c] = append(classes[c], i)
	}
	for _, class := range classes {
		if len(class) == 1 {
			t.rounds = append(t.rounds, class)
		}
		for bit := 1; bit < len(class); bit <<= 1 {
			var lit [2][]int
			for n, i := range class {
				lit[n/bit&1] = append(lit[n/bit&1], i)
			}
			t.rounds = append(t.rounds, lit[0], lit[1])
		}
	}
	t.begin()
	return t
}

// begin asks both ends of each fibre of the round.
func (t *trial) begin() {
	if t.done() {
		return
	}
	t.until = t.p.j.Now + trialRound
	clear(t.open)
	switch t.phase {
	case lighting:
		t.lit = map[int]bool{}
	case resting:
		t.until = t.p.j.Now + bitsRest
		return
	}
	for _, i := range t.rounds[t.round] {
		switch {
		case t.phase != lighting && !t.lit[i], t.phase != ending && t.dark[i] != nil:
			continue
		case t.bits != nil && t.phase != ending && !t.bits.wants(t, i):
			continue
		}
		t.lit[i] = true
		for end, port := range t.fibres[i].ends() {
			if t.phase == ending && t.fibres[i].looks[end] {
				continue // there is nothing to put back
			}
			c := proto.Command{Verb: proto.VerbTry, Bundle: port.Bundle, Path: port.Path}
			c.Alone = t.fibres[i].looks[1-end] && t.phase == lighting
			if t.bits != nil && !t.bits.of[i].done {
				c.Pattern = pattern[t.phase]
			}
			if t.phase == ending {
				c.Path = proto.Loopback
			}
			if _, d := t.p.find(port.Node); d != nil && d.Online() {
				t.open[t.p.j.Command(d.ID, d.Session, c)] = lamp{i, end}
			}
		}
	}
}

func (t *trial) done() bool { return t.round == len(t.rounds) }

// answer takes an agent's answer, and reports whether it was to this.
func (t *trial) answer(d *member.Device, m *proto.Ack) bool {
	x, ours := t.open[m.Corr]
	if !ours || t.fibres[x.fibre].ends()[x.end].Node != d.ID {
		return false
	}
	delete(t.open, m.Corr)
	if t.bits != nil && t.bits.answer(t, x, m) {
		return true
	}
	if m.Code != proto.OK && t.phase == lighting && !t.fibres[x.fibre].looks[1-x.end] { // of one that nothing comes to the other end says what is wrong
		t.fail(x, m.Reason)
	}
	return true
}

func (t *trial) fail(x lamp, why string) {
	if t.dark[x.fibre] == nil {
		t.dark[x.fibre] = new([2]string)
	}
	t.dark[x.fibre][x.end] = why
}

// step moves on when all have answered, or had their time.
func (t *trial) step() {
	for !t.done() && (len(t.open) == 0 && t.phase != resting || t.p.j.Now >= t.until) {
		for _, x := range t.open { // any order: each end is its own
			switch {
			case t.phase == lighting && (t.bits == nil || !t.bits.asked):
				t.fail(x, "its agent did not answer")
			case t.phase != ending:
				t.bits.refused(x, t.fibres[x.fibre].ends()[x.end].Node, "its agent did not answer")
			}
		}
		switch {
		case t.phase == ending:
			t.phase = lighting
			t.round++
		case t.bits == nil || !t.bits.open(t):
			t.phase = ending
		case t.phase == counting:
			t.phase = resting
		default:
			t.phase++
		}
		t.begin()
	}
}

// found says which fibres showed no light, in their order.
func (t *trial) found() []string {
	var out []string
	for i := range t.fibres {
		if why := t.why(i); why != "" {
			out = append(out, why)
		}
	}
	return out
}

// why a fibre showed no light, "" where it did.
func (t *trial) why(i int) string {
	x, why := &t.fibres[i], t.dark[i]
	switch {
	case why == nil:
		return ""
	case why[0] != "" && why[1] != "":
		return proto.Clip(fmt.Sprintf("fibre %v shows no light at nodes %d and %d: %s", x.Fibre, x.A.Node, x.B.Node, why[0]))
	case why[0] == "":
		return proto.Clip(fmt.Sprintf("fibre %v shows no light at node %d: %s", x.Fibre, x.B.Node, why[1]))
	}
	return proto.Clip(fmt.Sprintf("fibre %v shows no light at node %d: %s", x.Fibre, x.A.Node, why[0]))
}

// shown says which ends of a fibre have light, "" where both have. Where one end only looks
// light goes one way.
func (t *trial) shown(i int) string {
	x, why := &t.fibres[i], t.dark[i]
	if why == nil {
		return ""
	}
	var parts []string
	other := ""
	for end, at := range x.ends() {
		if why[end] != "" {
			parts = append(parts, fmt.Sprintf("node %d: %s", at.Node, why[end]))
		} else if x.looks[0] || x.looks[1] {
			other = fmt.Sprintf("; the other way was not tried, as node %d is in a ring", x.ends()[1-end].Node)
		} else {
			parts = append(parts, fmt.Sprintf("node %d has light", at.Node))
		}
	}
	return strings.Join(parts, "; ") + other
}
