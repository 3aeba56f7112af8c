// Package tl1 is the command language of Calient optical switches as a pure
// line machine: a Client that provisions, activates and reads back
// cross-connections. It opens no socket and waits for nothing: bytes go in and
// come out. Its talks with a box are tested in ocs/box, where both are.
//
// A connection is made in two steps, entered and then activated, and taken away
// in two, cancelled and then deleted. Every command carries a tag of ours, and
// the response to it names the tag; of what the box says by itself in between its
// alarms are kept until it clears them.
//
// The syntax is that of drivers in public repositories and their tests; the
// maker's manual was not at hand. The order of fields in a port's summary and
// how ports are numbered beyond three parts are theirs.
package tl1
