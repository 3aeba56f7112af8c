// Package fleet runs many production agents and a production planner on
// simulated boards, on one virtual clock: one event after the other, so that
// the same seed gives the same run, bit for bit, on every machine. A device is
// a node or a circuit switch; a fleet has those that its fabric describes, of
// one kind or of both, under one planner.
//
// The boards are sim's, at register level; agents and planner live in the hosts
// that production has (agent.Host, planner.Host), whose ports are this
// package's; the messages are encoded CBOR and travel through a model of a
// broker that delays, loses, repeats and reorders them; journals lose what was
// not on disk; clocks drift. A fault is a line of a small script, whoever wrote
// it. Checks, an entry in a list for each invariant, look at the light itself
// and at what was said about it. They never feed anything back.
//
// What it never does: share formulas with what it tests, look at a wall clock,
// or run two things of one fleet at once.
//
// The script's lines are in docs/fleet.md, and ocs-sim fleet -h.
package fleet
