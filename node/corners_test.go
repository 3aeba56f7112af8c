package node

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/proto"
)

var depth = flag.Int("corners", 10, "delays of a fault that TestBypassAtEveryCorner takes at both their bounds")

// chooser walks every sequence of yes and no up to a length.
type chooser struct {
	path  []bool
	at    int
	limit int
}

// choose gives the next choice; beyond the limit they alternate.
func (c *chooser) choose() bool {
	c.at++
	switch {
	case c.at > c.limit:
		return c.at%2 == 0
	case c.at > len(c.path):
		c.path = append(c.path, false)
	}
	return c.path[c.at-1]
}

// next turns to the sequence after this one, false when there is none.
func (c *chooser) next() bool {
	c.at = 0
	for len(c.path) > 0 {
		last := len(c.path) - 1
		if !c.path[last] {
			c.path[last] = true
			return true
		}
		c.path = c.path[:last]
	}
	return false
}

// smallFault is one fault of a small ring.
type smallFault struct {
	name   string
	strike func(n *network, at time.Duration) (gone, cut bool)
	victim int
}

// smallFaults lists every single fault of a node: its death, its host's, its
// optics', its agent's with a death beside it, and each of its fibres cut or
// dark for a while, one way and both.
func smallFaults(n *network, victim int) (out []smallFault) {
	kind := func(name string, k netKind) {
		out = append(out, smallFault{name, func(n *network, at time.Duration) (bool, bool) {
			n.push(at, k, port{node: victim}, 0)
			return true, false
		}, victim})
	}
	kind("death", netDeath)
	kind("host fault", netHost)
	kind("own optics", netFail)
	out = append(out, smallFault{"death and return", func(n *network, at time.Duration) (bool, bool) {
		n.push(at, netDeath, port{node: victim}, 0)
		n.push(at+time.Millisecond, netReturn, port{node: victim}, 0)
		return true, true
	}, victim}, smallFault{"agent crash", func(n *network, at time.Duration) (bool, bool) {
		n.push(at, netCrash, port{node: victim}, 0)
		n.push(at+time.Millisecond, netRestart, port{node: victim}, 0)
		return false, false
	}, victim}, smallFault{"agent crash beside a death", func(n *network, at time.Duration) (bool, bool) {
		n.push(at, netDeath, port{node: (victim + 1) % len(n.nodes)}, 0)
		n.push(at+n.between(0, 600), netCrash, port{node: victim}, 0)
		n.push(at+5*time.Millisecond, netRestart, port{node: victim}, 0)
		return true, true
	}, victim})
	for b := range n.nodes[victim].fibres {
		for p, far := range n.nodes[victim].fibres[b] {
			if far == nowhere {
				continue
			}
			near := port{victim, b, p}
			for _, dark := range []time.Duration{0, 50 * time.Microsecond, 200 * time.Microsecond, 900 * time.Microsecond, 2400 * time.Microsecond} {
				for _, ends := range [][]port{{near}, {near, far}} {
					out = append(out, smallFault{fmt.Sprintf("fibre b%d %s, %d ends dark for %v", b, proto.Path(p), len(ends), dark),
						func(n *network, at time.Duration) (bool, bool) {
							for _, e := range ends {
								n.push(at, netCut, e, 0)
								if dark != 0 {
									n.push(at+dark, netMend, e, 0)
								}
							}
							return false, dark == 0
						}, victim})
				}
			}
		}
	}
	return out
}

// Goal: both ends of every bypass agree, in whatever order the two see, act
// and settle: no piece is open, and what can stay one ring does.
// Method: every ring of two to four nodes, K = 2 to 4, every single fault of
// every node, with each of the first -corners delays - of lasers, comparators
// and switches - at its least and at its most. The delays after those alternate
// between both; times within the bounds are TestRingsHeal's.
func TestBypassAtEveryCorner(t *testing.T) {
	runs, split, most := 0, 0, 4
	if testing.Short() {
		most = 3
	}
	for k := 2; k <= 4; k++ {
		for count := 2; count <= most; count++ {
			for victim := range count {
				for _, f := range smallFaults(smallNetwork(k, count, nil), victim) {
					r, s := everyCorner(t, k, count, f)
					runs, split = runs+r, split+s
					if t.Failed() {
						return
					}
				}
			}
		}
	}
	t.Logf("%d runs, %d glitches that left two closed pieces", runs, split)
}

func smallNetwork(k, count int, corner func() bool) *network {
	n := newNetwork(rand.New(rand.NewPCG(1, 1)), layout{k: k, count: count, member: everyone(count)}, nil)
	n.corner = corner
	return n
}

func everyCorner(t *testing.T, k, count int, f smallFault) (runs, split int) {
	c := &chooser{limit: *depth}
	for more := true; more; more = c.next() {
		runs++
		n := smallNetwork(k, count, c.choose)
		start := n.now + 100*time.Microsecond
		gone, spoilt := f.strike(n, start)
		n.run(start + 5*time.Millisecond)
		n.run(n.lost + 60*time.Millisecond)
		bad := n.halves()
		in := func(i int) bool { return n.nodes[i].alive && !(gone && i == f.victim) }
		if !spoilt && n.joinable(in) && n.pieces(in) > 1 {
			if gone {
				bad = append(bad, fmt.Sprintf("%d pieces", n.pieces(in)))
			}
			split++
		}
		if len(bad) > 0 {
			t.Errorf("K=%d, %d nodes, node %d: %s, delays %v: %v", k, count, f.victim, f.name, c.path, bad)
			return runs, split
		}
	}
	return runs, split
}
