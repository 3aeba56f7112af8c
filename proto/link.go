package proto

import "strconv"

// PacketKind tells what a Packet asks of a link, or what a link tells.
type PacketKind uint8

const (
	Publish     PacketKind = iota // both ways
	Subscribe                     // to the link; it holds over reconnects
	Unsubscribe                   // to the link
	LinkUp                        // from the link: connected, every subscription granted
	LinkDown                      // from the link
	Refused                       // from the link: the broker refused Topic
	Shed                          // from the link: messages came faster than they may; see ShedPacket
)

// Packet is what a transport carries: one publication, or a notice about the
// transport itself.
type Packet struct {
	Kind    PacketKind
	Topic   string
	Payload []byte
	QoS     byte
	Retain  bool
	// Of a publication that came, what the link found out about its seal.
	By     string // holder of its seal: f1/planner/a; "": no seal was checked
	Denied string // why an operator's question is to be refused; "": it is not
	Doubt  string // why it would not be read if seals were enforced; "": it would
	Sealed []byte // as it came, where it was sealed; Payload is what was in it
}

// Passage is what becomes of a publication at a link's guard.
type Passage uint8

const (
	Passes  Passage = iota // to the reader
	Kept                   // it was for the guard
	Stopped                // nobody reads it
)

// ShedPacket tells that n messages came and were not delivered.
func ShedPacket(n uint64) Packet {
	return Packet{Kind: Shed, Payload: strconv.AppendUint(nil, n, 10)}
}

// ShedCount is the n of a ShedPacket.
func (p *Packet) ShedCount() uint64 {
	n, _ := strconv.ParseUint(string(p.Payload), 10, 64)
	return n
}
