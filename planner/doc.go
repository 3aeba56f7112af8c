// Package planner is every decision of the fabric: which nodes form which
// rings, what each node should do, and whether it does. It compares desired
// with reported, settles each change as a generation that all touched nodes
// have prepared, concludes faults from evidence, and answers operators.
//
// Repair comes before order. A ring that lost something is mended at once and
// alone, from the events of its neighbours (hail.go, cut.go, stir.go); rings
// are moved, as far as the fabric's moves allow, when nothing is hurt.
//
// A ring is planned as a line of nodes with loopback at both ends, over the
// seam of a wrapped fabric too. It is never closed by light round all nodes:
// such a ring is one GPU cycle only with an odd number of crossed links.
//
// Where the fabric has a core of optical switches, it also plans circuits
// between pods (circuit*.go): a job list becomes servers, links, spines and
// cross-connects; what changes is rolled out in stages, each prepared by all
// its switches, committed, and proven by light before the next, or rolled
// back. Links of jobs that stay keep their ports unless nothing else fits, and
// what must move is within the core's bound for each leaf. Circuits have
// generations of their own, so that a slow stage never delays a ring.
//
// It is a pure machine: Step takes an event that carries its time and appends
// actions whose order is part of the contract; Next says when it wants a Tick.
// It has no goroutine, no clock, no file and no broker, and it never disturbs
// light that is already right: a planner that restarts, even with an empty
// store, first listens and then adopts what it finds.
package planner
