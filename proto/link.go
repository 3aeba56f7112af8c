package proto

// PacketKind tells what a Packet asks of a link, or what a link tells.
type PacketKind uint8

const (
	Publish     PacketKind = iota // both ways
	Subscribe                     // to the link; it holds over reconnects
	Unsubscribe                   // to the link
	LinkUp                        // from the link: connected, every subscription granted
	LinkDown                      // from the link
	Refused                       // from the link: the broker refused Topic
)

// Packet is what a transport carries: one publication, or a word about the
// transport itself.
type Packet struct {
	Kind    PacketKind
	Topic   string
	Payload []byte
	QoS     byte
	Retain  bool
}
