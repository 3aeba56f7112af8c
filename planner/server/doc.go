// Package server is the planner's hands: a store on disk, a link to a broker,
// an embedded broker for those who have none, and the clock. It decides
// nothing; Run carries events to a planner.Planner and its actions to the
// world, from one goroutine.
//
// What the planner wants stored is on disk before anything that it says after
// it leaves: a decision that members act on is never unknown to the planner's
// next life. The term of this life is stored before the first packet.
//
// The HTTP server only reads, on loopback, on a socket or for those whose
// certificate may; handlers see the planner between two of its steps (Read).
//
// The embedded broker is for demonstrations, tests and small laboratories. The
// planner reaches it over TCP like any other broker, so that the same code
// runs against all of them.
package server
