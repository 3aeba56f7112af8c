// Package ring places TP groups on a K-hop fabric ([IHBD] sec 4.2, 4.3).
//
// A group is a line of nodes in HBD order, each at most K hops from the next;
// its ends are closed by loopback, so it never needs the fabric's seam to be
// crossed, even where it passes over it. Place finds as many groups as there
// can be, PlaceSizes groups of several sizes. Both place from nothing.
//
// A Tracker mends what runs after a fault or a repair and touches as few groups
// as it can, which no paper has; Mend.Replace is the same for a plan on paper.
// It keeps an index over runs and rows, so that a fault costs what it touches
// (tracker.go, rows.go, shift.go): mend.go chooses the nodes of a short group and
// replace.go which group comes first. An exact program finds what no row gives
// (exact.go, lay.go).
//
// Orchestrate places one job so that ranks that talk over the data centre
// network meet under the same ToR ([IHBD] Alg. 3-5 and an exact method).
//
// Unlike [IHBD] Alg. 2, placement knows that with an odd K the offsets -K and
// +K of a node hang on one bundle, and never gives a node both.
//
// It is pure, knows no terms and no messages, and decides nothing about what
// counts as a fault.
package ring
