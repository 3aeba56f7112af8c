// Package fleet runs many production agents and a production planner on
// simulated boards, on one virtual clock: one event after the other, so that
// the same seed gives the same run, bit for bit, on every machine.
//
// The boards are sim's, at register level; the messages are encoded CBOR and
// travel through a model of a broker that delays, loses, repeats and reorders
// them; journals lose what was not on disk; clocks drift. A fault is a line of
// a small script, whoever wrote it. Checkers, one file for each invariant of a
// node, look at the light itself and at what was said about it. They never
// feed anything back.
//
// What it never does: share formulas with what it tests, look at a wall clock,
// or run two things of one fleet at once.
package fleet
