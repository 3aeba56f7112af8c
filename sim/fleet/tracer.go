package fleet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"ringlight/hal"
	"ringlight/proto"
)

// What a run's hash is made of: every edge that a host saw, every packet that
// a device or the planner sent, every fault and violation, with time and place.
const (
	traceEdge byte = iota + 1
	tracePacket
	traceText
)

// tracer keeps what a replay must repeat, and tells people what happens.
type tracer struct {
	*timeline
	sum     hash.Hash
	scratch []byte
	line    func(string) // nil: nobody reads along
}

func (t *tracer) head(kind byte, who int32) {
	b := append(t.scratch[:0], kind)
	b = binary.BigEndian.AppendUint64(b, uint64(t.now))
	t.scratch = binary.BigEndian.AppendUint32(b, uint32(who))
}

func (t *tracer) edge(who int32, e *hal.Edge) {
	t.head(traceEdge, who)
	t.scratch = binary.BigEndian.AppendUint64(t.scratch, uint64(e.Line))
	if e.High {
		t.scratch[len(t.scratch)-1] |= 0x80
	}
	t.sum.Write(t.scratch)
}

func (t *tracer) packet(who int32, p proto.Packet) {
	t.head(tracePacket, who)
	t.scratch = append(t.scratch, p.Topic...)
	t.scratch = binary.BigEndian.AppendUint32(t.scratch, uint32(len(p.Payload)))
	t.sum.Write(t.scratch)
	t.sum.Write(p.Payload)
}

func (t *tracer) text(line string) {
	t.head(traceText, plannerID)
	t.scratch = append(t.scratch, line...)
	t.sum.Write(t.scratch)
}

// linef writes a line for people, with its time.
func (t *tracer) linef(format string, args ...any) {
	if t.line != nil {
		t.line(t.now.String() + " " + fmt.Sprintf(format, args...))
	}
}

func (t *tracer) hash() string { return hex.EncodeToString(t.sum.Sum(nil)) }
