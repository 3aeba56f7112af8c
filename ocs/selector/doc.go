// Package selector is the transceivers of a server as a circuit switch. Each
// interface of a server has one, and its two external paths make it a switch of
// one to two: port i of side A, the interface, goes to port i or i + n of side
// B, its first or second fibre; with no circuit its light stays inside.
//
// So a server takes part in plans like any other switch. What differs from
// mirrors: it can be read back, so that nothing of it need be on disk before it
// moves, and pins tell its light at once.
//
// It takes no path for good that has no light: a circuit is tuned when the far
// side's light is there. It never leaves a path by itself.
package selector
