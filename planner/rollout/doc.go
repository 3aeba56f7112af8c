// Package rollout brings new software to all agents of a fabric: which of them start
// anew next, what counts as back, and when it stops.
//
// While an agent starts, nobody protects its node. So those that start together are
// more than 2K apart - neither is a way past the other - and in rings without a
// fault. They go in waves: 1, 10, 1 %, 10 % of the fabric, and 10 % until all are
// through, so that a bad release is met by one node first.
//
// A node is back when it has a new session of the software that was wanted, holds the
// plan that it held, with the light that it had on the same paths and the
// calibrations that it had, and its neighbours did not lose its light meanwhile. A
// moment later it must still be so. Anything else stops the roll-out, with the node
// and what differs, and no more nodes are told.
//
// What a host of a node asks for itself (ocs-agent restart-when-allowed) is let in by
// the same rules, one beside the others, and judged in the same way.
//
// Modules' firmware goes the same way, to nodes that carry no ring: see VerbFirmware.
//
// It installs nothing and starts nothing itself: it tells agents, and those that are of
// a release that cannot start anew are left to whoever is there, within a time. What it
// waits for is in the store before anybody is told, so the next planner goes on. It is
// pure, and knows rings only as reasons not to.
package rollout
