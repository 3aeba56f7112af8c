// Package member is a device - a node or a circuit switch - as the planner
// sees it: its life and its reports, what it is wanted to hold, whether it took
// it, what it refused, and how far its events have come; and the two-phase
// transaction by which a generation reaches all of its devices or none.
//
// It is written once for nodes and switches, because to the planner both are
// agents that speak the same protocol. What a report means - light, rings,
// circuits - is the Owner's: the table tells it the news and it draws the
// conclusions. The package never reads a ring, a circuit or a fabric.
package member
