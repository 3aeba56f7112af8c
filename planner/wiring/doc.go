// Package wiring turns the links that pods want into the cross-connects of
// optical switches, and changes one set of cross-connects into another with as
// few circuits moved as it can ([LUMOS], [CROSS]).
//
// The words. A group is the h-th spine of every pod and the optical switches
// it hangs on; groups know nothing of each other. Under interleaved wiring
// (Cross wiring in [CROSS]) the switches of a group come in pairs: the even
// one realises a set of directed circuits, the odd one its transpose, so that
// every link is bidirectional by construction. All work is therefore done on
// the even half: a Half holds, for each even switch, a partial permutation of
// the pods, and a link {i, j} is one circuit i->j or j->i there. Which of the
// two is free to choose, and the freedom is worth a lot.
//
// What is here: the wiring as data (physical.go); what is asked of a group
// (topology.go); the exact decompositions by Euler walks (orient.go,
// decompose.go); leaf requirements onto spines (lumoscore.go,
// respread.go); a first answer in one pass (first.go); minimal rewiring as an
// anytime search (rewire.go, search.go, repair.go, insert.go); what others
// publish, for comparison (cross.go, uniform.go, helios.go); a change taken apart,
// assigned to stages and ordered within one (pieces.go, stage.go, order.go); idle ports as a backup
// mesh (backup.go); a measure (metrics.go) and the postcondition (check.go),
// which every result of this package has passed.
//
// It is pure: budgets are steps, not milliseconds, and the same input, seed
// and steps give the same answer on every machine, in whatever order groups
// and blocks are run. It never returns a configuration that is not valid, and
// it never gives a box a conflict to resolve.
package wiring
