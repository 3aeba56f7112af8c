// Package record is the form in which a node's life on its buses is kept: what
// the agent asked of its board, what came back, and everything else that it
// was told, in the order in which it happened. A recorder in the agent keeps
// the last of it in memory, see Ring; a file has as much as its disk. The package holds
// none, and no clock: blocks go out as byte slices. What one bus carried is made of, and
// into, the Ops of periph's i2ctest.Playback and spitest.Playback.
//
// A recording is a sequence of blocks:
//
//	"RLREC" version   6 bytes, once; version 1
//	block             type, 1 byte: 'H' head, 'E' entries
//	                  length of the body, 4 bytes, low byte first
//	                  body
//	                  CRC-32C of type, length and body, 4 bytes, low byte first
//
// The head is one JSON document, the writer's own; it comes first and once. A
// body of entries starts with the time of its first entry in nanoseconds of
// the board's clock, the number of entries since the writer's birth before
// it, and the number of the first op, as uvarints; so a block can be read
// without those before it, and whoever cannot keep everything drops whole
// blocks. Then follow the entries; numbers are uvarints, texts a length and bytes:
//
//	kind         1 byte
//	after        uvarint, nanoseconds since the entry before
//	submit       bus, class, deadline in ns, number of messages; for each
//	             message its address, frame, length of W + W, and 0 for no R
//	             or 1 + its length. The op's number is that of the submit.
//	             A secret in W or R is three asterisks.
//	completion   number of the op; start and end in ns; failed message;
//	             cause, 1 byte; its text; what each R holds now: length + bytes
//	edge         line, level, at, origin
//	poll         nothing: the agent was asked what it wants
//	other        what it is, 1 byte, and bytes of the writer's own form
package record
