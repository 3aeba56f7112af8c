// Package proto is the vocabulary that all rooms share and the wire: CBOR
// messages with integer keys, topics, limits. It knows no broker and no
// clock, and decides nothing.
//
// What to implement the protocol from is schema.cddl, every message, key, limit,
// code and topic, and docs/protocol.md, the rules that a schema cannot say.
// testdata/vectors.txt holds accepted encodings of every message and refused
// ones with the reason. Tests hold all three to the code. In short:
//
// A message is one CBOR item in the core deterministic encoding, at most 64
// KiB, and has exactly one form: a reader refuses long integers, unsorted or
// duplicate keys, indefinite lengths, tags and null. It skips and counts keys
// that it does not know. It refuses any version but its own before it looks at
// anything else, and says so by name. MQTT's QoS and retained messages shorten
// delays; nothing relies on them.
//
// The planner's messages are ordered by (term, generation), in this order. A
// term belongs to one start of one planner. Desired is the whole of what a
// node shall do: an agent checks and stages it, and answers with an Ack of
// PhasePrepare; a Decision that names the same term, generation and plan makes
// it act, once. What is lower is answered Stale with what is in force, what is
// equal is answered again, and what is equal with another plan is a Conflict.
// An Ack that promises something leaves after that is on disk. Everything is
// sent again until it is answered, so that every message may come twice, late
// and out of order, and has its effect once.
//
// An agent draws a Session at each start. Its birth, its death note (the
// broker's will) and the commands to it carry it: those of another life have
// no effect. Events are numbered per node without gaps over restarts and are
// sent again until a Command with VerbAckEvents says that they arrived.
//
// A refusal is an Ack of PhaseProtocol, or an OpReply, with a code, the
// documented name of the field, and the limit that was exceeded.
package proto
