// Package core plans circuits: which jobs run on which servers, which
// cross-connects that takes, and how the circuit switches get from what they
// carry to what they should.
//
// A job list becomes servers, links and cross-connect maps; a designer does
// that, one of each kind of core. Between pods (interleaved) links of jobs that
// stay keep their ports unless nothing else fits, and what must move is within
// the core's bound for each leaf. On leaves and spines (isolated) jobs wait
// their turn and are alone on what they have, and nothing of one that runs
// moves. On servers joined directly (direct) the next job is provisioned beside
// the one that runs, and starts with a flip of transceivers; so do the phases of
// a job, and links for what it was measured to send. What changes is
// rolled out in stages, each prepared by all its switches, committed, and proven
// by light before the next, or rolled back: the same for all.
//
// Circuits share term, link and journal with the planner of rings and have
// generations of their own, so that a slow stage never delays a ring. The
// package never looks at a ring or a node, and never takes light away that is
// still wanted but where a stage says so.
package core
