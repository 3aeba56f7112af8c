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
// another candidate, timers.go the waits and what they must satisfy
// (how long lost light may come back, the hold-off, is the plan's: hold_off_us of the
// fabric file), plan.go
// what a planner may want and when it takes effect, adopt.go the start.
//
// CrossConnect is the machine of a circuit switch, much smaller. Both are one
// half of prepare and commit (participant.go) and judge plans by the same fence
// (fence.go); crossstate.go has the states of a cross-connect, circuit.go its
// circuits.
//
// Two ends that both looked while the other had no processor would miss each
// other without end. So a node that finds that it was late - by its own timers, or
// by the time at which the hardware noted the light that it is told of - searches
// again with its closed sides, a few times from then on, and stays on each candidate
// as long as it was late, so that an end that is as late sees it. Whoever was
// not late listens, as ever; no search is endless, since light that passes a fibre one
// way only would open rings again and again.
//
// It never drives what is right already, never lights a path out of the
// journal, never acts on an edge or on a wall clock, never forgets a plan it
// has acknowledged, and never waits for the disk.
//
// # Usage
//
// Whoever hosts a machine tells it everything, in order, and carries out what
// it asks for, in order; the package's example does so by hand.
//
//	m := node.New(node.Config{ID: 5, Bundles: 2})
//	m.Restore(journal) // if there is one
//	out := m.Step(node.Event{At: now, Kind: node.Adopt, Lits: found}, nil)
//	for {
//		for _, a := range out {
//			// Select: drive a bundle. Note, Answer: to the planner. Save: m.State().
//		}
//		// Wait for an event, until m.Next() at most: then a Tick.
//		out = m.Step(ev, out[:0])
//	}
//
// # Invariants
//
// What the checkers of sim/fleet hold every run to, by number:
//
//  1. Closed rings: while fibres allow it a ring is one cycle through all GPUs
//     of the nodes left to it; under any fault every piece is closed in 12 ms.
//  2. No stranger's light: no receiver stays on light from another ring.
//  3. Fail static: the death of a process changes no light.
//  4. Bounded: recovery under 1 ms p99 after one and two adjacent losses, under
//     2 ms after three, and a ledger of where the time went.
//  5. Monotone: generation and term never go back.
//  6. Limits: no heater leaves its own, whatever is commanded.
//  7. Nothing lost: every change of light is in an event or a count of one.
//  8. No half switch: at rest both ends of a link agree.
//  9. Usable and out: at rest, minutes after the last fault, nobody who is alive, lit
//     and reachable is out of service, and no ring is smaller than the nodes at
//     hand allow, unless the planner's status names the cause and the next try.
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
// bundle, selected or not, with the time at which the hardware noted it: a loss
// that is told late is acted upon 100 us later, as it may be over.
package node
