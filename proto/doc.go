// Package proto is the vocabulary that all rooms share and the wire: CBOR
// messages with integer keys, topics, limits. It knows no broker and no
// clock, and decides nothing.
package proto
