// Package planner is every decision of the fabric: which nodes form which
// rings, what each node should do, and whether it does. It compares desired
// with reported, settles each change as a generation that all touched nodes
// have prepared, concludes faults from evidence, and answers operators.
//
// It has rooms: member is a device - a node or a switch - as the planner sees
// it, hbd plans rings, core plans circuits between pods, and journal is the
// writing side of them all. What stands here is above them: the term and other
// planners (fence.go, pulse.go), what comes in (receive.go), timers, the store's start,
// and the operators' nouns. Rings and circuits have generations of their own,
// so that a slow stage of circuits never delays a ring.
//
// It is a pure machine: Step takes an event that carries its time and appends
// actions whose order is part of the contract; Next says when it wants a Tick.
// It has no goroutine, no clock, no file and no broker, and it never disturbs
// light that is already right: a planner that restarts, even with an empty
// store, first listens and then adopts what it finds.
package planner
