package planner

import "ringlight/proto"

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
