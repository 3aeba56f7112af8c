package fleet

import (
	"encoding/binary"

	"ringlight/proto"
)

// What a run's hash is made of: every edge that a host saw, every packet that
// a node or the planner sent, every fault and violation, with time and place.
const (
	traceEdge byte = iota + 1
	tracePacket
	traceText
)

func (r *Run) head(kind byte, who int32) {
	b := append(r.scratch[:0], kind)
	b = binary.BigEndian.AppendUint64(b, uint64(r.now))
	r.scratch = binary.BigEndian.AppendUint32(b, uint32(who))
}

func (r *Run) trace(kind byte, who int32, n uint64, high bool) {
	r.head(kind, who)
	r.scratch = binary.BigEndian.AppendUint64(r.scratch, n)
	if high {
		r.scratch[len(r.scratch)-1] |= 0x80
	}
	r.sum.Write(r.scratch)
}

func (r *Run) tracePacket(who int32, p proto.Packet) {
	r.head(tracePacket, who)
	r.scratch = append(r.scratch, p.Topic...)
	r.scratch = binary.BigEndian.AppendUint32(r.scratch, uint32(len(p.Payload)))
	r.sum.Write(r.scratch)
	r.sum.Write(p.Payload)
}

func (r *Run) traceText(line string) {
	r.head(traceText, plannerID)
	r.scratch = append(r.scratch, line...)
	r.sum.Write(r.scratch)
}
