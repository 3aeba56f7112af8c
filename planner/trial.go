package planner

import (
	"fmt"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/member"
	"ringlight/proto"
)

// trialRound bounds a round. chosen: twice what an agent gives a path, and the
// way there and back.
const trialRound = 1500 * time.Millisecond

// trial lights fibres of nodes that carry no ring, to see that they are there
// and lead where the description says. Fibres that share a bundle are lit one
// after the other. Of the others each has a number of its own, and is lit in
// those rounds whose bit it has: two that are plugged in crosswise differ in a
// bit, and then one end of each waits for a light that is not on.
type trial struct {
	p      *Planner
	fibres []fabric.Fibre
	rounds [][]int // fibres lit together
	round  int
	ending bool                 // its fibres go back into loopback
	lit    map[int]bool         // fibres of this round that were asked for
	open   map[proto.Corr]lamp  // questions not answered
	dark   map[int]proto.NodeID // fibres without light, and the end that saw none
	why    map[int]string
	until  time.Duration
}

// lamp is one end of a fibre that is tried.
type lamp struct {
	fibre int
	port  fabric.Port
}

func newTrial(p *Planner, fibres []fabric.Fibre) *trial {
	t := &trial{p: p, fibres: fibres, open: map[proto.Corr]lamp{}, dark: map[int]proto.NodeID{}, why: map[int]string{}}
	type end struct {
		node   proto.NodeID
		bundle proto.BundleID
	}
	var classes [][]int
	var used []map[end]bool
	for i, x := range fibres {
		a, b := end{x.A.Node, x.A.Bundle}, end{x.B.Node, x.B.Bundle}
		c := 0
		for c < len(used) && (used[c][a] || used[c][b]) {
			c++
		}
		if c == len(used) {
			used, classes = append(used, map[end]bool{}), append(classes, nil)
		}
		used[c][a], used[c][b] = true, true
		classes[c] = append(classes[c], i)
	}
	for _, class := range classes {
		for bit := 1; bit <= len(class); bit <<= 1 {
			var lit []int
			for n, i := range class {
				if (n+1)&bit != 0 {
					lit = append(lit, i)
				}
			}
			t.rounds = append(t.rounds, lit)
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
	if !t.ending {
		t.lit = map[int]bool{}
	}
	for _, i := range t.rounds[t.round] {
		for _, port := range [2]fabric.Port{t.fibres[i].A, t.fibres[i].B} {
			c := proto.Command{Verb: proto.VerbTry, Bundle: port.Bundle, Path: port.Path}
			if t.ending {
				c.Path = proto.Loopback
			} else if _, known := t.dark[i]; !known {
				t.lit[i] = true
			}
			if !t.lit[i] {
				continue
			}
			if _, d := t.p.find(port.Node); d != nil && d.Online() {
				t.open[t.p.j.Command(d.ID, d.Session, c)] = lamp{i, port}
			}
		}
	}
}

func (t *trial) done() bool { return t.round == len(t.rounds) }

// answer takes an agent's answer, and reports whether it was to this.
func (t *trial) answer(d *member.Device, m *proto.Ack) bool {
	x, ours := t.open[m.Corr]
	if !ours || x.port.Node != d.ID {
		return false
	}
	delete(t.open, m.Corr)
	if m.Code != proto.OK && !t.ending {
		t.fail(x, m.Reason)
	}
	return true
}

func (t *trial) fail(x lamp, why string) {
	if _, known := t.dark[x.fibre]; !known {
		t.dark[x.fibre], t.why[x.fibre] = x.port.Node, why
	}
}

// step moves on when all have answered, or had their time.
func (t *trial) step() {
	for !t.done() && (len(t.open) == 0 || t.p.j.Now >= t.until) {
		if !t.ending {
			for _, x := range t.open { // any order: of two ends the lower is named
				if n, known := t.dark[x.fibre]; !known || x.port.Node < n {
					t.dark[x.fibre], t.why[x.fibre] = x.port.Node, "its agent did not answer"
				}
			}
		}
		if t.ending {
			t.round++
		}
		t.ending = !t.ending
		t.begin()
	}
}

// found says which fibres showed no light, in their order.
func (t *trial) found() []string {
	var out []string
	for i, x := range t.fibres {
		if n, dark := t.dark[i]; dark {
			out = append(out, proto.Clip(fmt.Sprintf("fibre %v shows no light at node %d: %s", x, n, t.why[i])))
		}
	}
	return out
}
