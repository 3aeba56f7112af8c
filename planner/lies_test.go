package planner

import (
	"slices"

	"ringlight/proto"
)

// tell publishes a report with a number that is false, newer than all that the agent
// has said.
func (w *fleet) tell(n *fakeNode, field string, value uint64) {
	r := w.reportOf(n)
	r.Seq = n.repSeq + 50
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
