// Package node decides everything that one node decides by itself: which
// candidate each side of its ring is on, when to leave it, when to close into
// loopback, when to leave the ring altogether, and which plan is in force. It
// is a synchronous machine: Step takes an event that carries its time and
// appends what is to be done; Next says when the machine wants to be called
// again. The order of the actions is part of the contract.
//
// A side acts on light alone: the filtered level of each candidate's path, as
// the hardware's LOS lines tell it. So both ends of a link agree without a
// message, and losing the planner, the broker or the network changes nothing.
// state.go has the states, side.go the table row by row, search.go the way to
// another candidate, timers.go the waits and what they must satisfy, plan.go
// what a planner may want and when it takes effect, adopt.go the start.
//
// A CrossConnect, the machine of a circuit switch, is the second one here (crossconnect.go), much smaller: it
// knows which plan is in force by the same fence (fence.go), and what to remove
// and what to create when that changes.
//
// It never drives what is right already, never lights a path out of the
// journal, never acts on an edge or on a wall clock, never forgets a plan it
// has acknowledged, and never waits for the disk.
//
// # Who fills a ledger
//
// The Note of a move carries Stamps, four moments of the machine's clock.
// The agent makes the proto.Ledger of them, in whole microseconds that add up:
//
//	detect   loss of light to the edge that the host noted, known to whoever measured it
//	holdoff  Decided - Lost: 0 until a hold-off is configured
//	decide   that edge to work on the bus: measured, or the modelled constant on a virtual clock
//	bus      from there to the end of the latch write, from package ocs
//	settle   from there to Settled: the first Switched event
//	confirm  Confirmed - Settled: light of the candidate that won, later steps
//	         of the search included
//
// EvSwitched is noted when the new candidate's light is confirmed, EvLightFound
// when the lost candidate's own light came back, EvRestored after light that
// no one-way cut can feign, EvClosed when the loopback has settled.
//
// # What the agent owes the machine
//
// Adopt comes first, with every bundle read back. Switched comes for every
// Select that was not overtaken by another for the same bundle; a Select that
// cannot be carried out is a PathFailed. Light is told for every path of every
// bundle, selected or not.
package node
