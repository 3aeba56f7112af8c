// Package view is the live view of a fabric in a browser: the fabric as strips
// of rings, a ring, a node, why it is so, what happened when, and what breaks
// next. Pages are static files of this package; they need no build step and no
// library.
//
// The planner's goroutine only notes what has changed. Ten times a second at
// most, and only while somebody watches, the hub takes that (planner.Look),
// keeps a copy, and sends every viewer the same frame: a binary snapshot first,
// then a stream of changes with a number each. Who misses one, or is slow,
// takes a snapshot again. What breaks next is tried on a copy in a goroutine of
// the view's own.
//
// It changes nothing: it shows the ocsctl line that would. It draws no
// conclusion of its own: sentences are those of why.
package view
