package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// tell publishes a report with a number that is false, until the agent reports again.
func (w *fleet) tell(n *fakeNode, field string, value uint64) {
	r := w.reportOf(n)
	r.Seq = n.repSeq
	switch field {
	case "bypass":
		r.BypassSeq += value
	case "times": // longest of its optics, microseconds
		r.Measured.DetectMaxMicros, r.Measured.SwitchMaxMicros = uint32(value), uint32(value)
	case "last-event":
		r.LastEvent += value
	default:
		w.t.Fatalf("tell: unknown %s", field)
	}
	w.publish(n, w.topics.Reported(n.id), proto.TopicReported, r)
}

// forge has a node say that it holds a plan which nobody made, with these peers beside it.
func (w *fleet) forge(n *fakeNode, ring proto.RingID, gen proto.Generation, peers []proto.NodeID) {
	d := *n.applied
	d.Generation, d.Plan, d.Rings = gen, proto.DigestOf([]byte("forged")), slices.Clone(w.nodes[1].applied.Rings[:1])
	r := &d.Rings[0]
	r.Ring, r.Left, r.Right = ring, nil, nil
	for i, p := range peers { // two at most: a bundle has as many fibres
		r.Right = append(r.Right, proto.Candidate{Bundle: 1, Path: proto.External1 + proto.Path(i), Peer: p})
	}
	n.applied = &d
	n.lastSent = nil
	w.light()
}

// Goal: a ring that was told to wait as long as one member said it takes is told the
// truth when that member's times go back, after a restart too, once.
// Method: a plan is made while a report is false, or while the times are long, and a
// planner starts that did not make it; then the agent reports.
func TestTimesThatGoBackAreToldAnew(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := small(t, 12, 2, 32, 4)
		again := 0
		w.trace = func(line string) {
			if strings.Contains(line, "and it was told 900") {
				again++
			}
		}
		n := &w.nodes[1]
		if restart {
			n.times = &proto.Envelope{DetectMaxMicros: 900, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500}
			w.light()
		} else {
			w.tell(n, "times", 900)
		}
		w.die(6)
		w.run(time.Second)
		if restart {
			if again > 0 {
				t.Error("told again while it is slow")
			}
			w.start()
			w.run(10 * time.Second)
			n.times = nil
			w.light()
		}
		w.run(20 * time.Second)
		if got := w.nodes[2].applied.Rings[0].Envelope.DetectMaxMicros; again != 1 || got != measured.DetectMaxMicros || w.p.Overview().InService != 1 {
			t.Errorf("restart %t: told again %d times, %d us\n%s", restart, again, got, w.show())
		}
	}
}
