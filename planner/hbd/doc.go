// Package hbd plans the rings of the high-bandwidth domain: which nodes form
// which rings, what each node should do, which faults the neighbours' evidence
// proves, and how a node is taken out and let in again.
//
// Repair comes before order. A ring that lost something is mended at once and
// alone, from the events of its neighbours (probe.go, cut.go, agenda.go); rings
// are moved, as far as the fabric's moves allow, when nothing is hurt. What fails
// again and again is used later and later (damper.go).
//
// A ring is planned as a line of nodes with loopback at both ends, over the
// seam of a wrapped fabric too. It is never closed by light round all nodes:
// such a ring is one GPU cycle only with an odd number of crossed links.
//
// It never disturbs light that is already right: with an empty store it adopts
// what nodes report, and a ring stays exactly as it is while one of its members
// cannot be told anything.
package hbd
