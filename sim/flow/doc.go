// Package flow runs the traffic of training jobs over links of given
// capacity, flow by flow, on a virtual clock: what a placement, a wiring or a
// strategy of routing is worth in time of iterations.
//
// A job is a cyclic Script. Its stages follow one another, the phases of a
// stage run together (that is how communication hides behind compute), and a
// phase is either compute or rounds of flows with a barrier after each. How
// flows share links is the Sharing of the Sim:
//
//   - Rounds: each flow has its own max-min rate until it ends; exact.
//   - Phases: weighted max-min over whole phases, no rounds.
//   - Fullest: the same without barriers: alone, a phase takes as long as its
//     fullest link ([TOPO] eq. 1).
//   - Equal: a link divides itself by the flows on it and nothing that one of
//     them leaves is given to another ([VCLOS]'s simulator).
//   - Isolated: each job is alone on the network, as Alone has it.
//
// A Sim is incremental: whoever schedules jobs adds and removes them, changes
// capacities (a circuit that is dark for a while, a repair) and advances to
// the next instant at which jobs end. Collectives give what ranks send each
// other in rounds; a network (LeafSpine, Rings) gives the links that
// a transfer takes, once per job.
//
// Everything is an integer, so that a run has the same bits on every machine:
// bytes, nanoseconds, bits per second. A share is rounded down, an end up. The
// max-min rates are those of water filling in levels: the level is the
// smallest share, rounded down, of all links that still have flows without a
// rate; all flows of all links with that share get it at once. So the rates
// depend on no order, and solving a part that shares no link with the rest
// gives what solving all would give. What a flow has left is kept in bits per
// second times nanoseconds and never rounded: looking at it changes nothing.
//
// Speed comes from what is not done. Rates are solved anew only for flows
// that hang together with what changed and are not slower than it; the end of a
// flow is an event only where a link of its holds others back; flows that share
// a way are one, and a link that one flow uses alone is a limit of it; while
// nobody disturbs it a phase of equal rounds is one event, and all iterations of
// a job that shares no link are one. What comes in between brings everything to
// where it is then. Unabridged does without, with the same times.
//
// The model Phases is near Rounds where the rounds of a phase are alike (rings).
// Where they use different links it is too fast: a collision holds up a whole
// round, Phases spreads it over the phase. ocs-sim study flows says how far.
//
// It never decides who runs where, keeps no queue of jobs, draws no chance but
// a hash that it is given the seed of, and knows nothing of packets, loss or
// latency.
package flow
