// Package tl1test is a box at the far end of a TL1 line, for tests: it answers
// from its own state, and its knobs make it do what boxes do to clients.
//
// Programs never link it; a box of theirs is on the wire.
package tl1test
