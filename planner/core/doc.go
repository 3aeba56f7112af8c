// Package core plans circuits between pods: which jobs run on which servers,
// which cross-connects that takes, and how the circuit switches get from what
// they carry to what they should.
//
// A job list becomes servers, links, spines and cross-connect maps. What
// changes is rolled out in stages, each prepared by all its switches,
// committed, and proven by light before the next, or rolled back. Links of jobs
// that stay keep their ports unless nothing else fits, and what must move is
// within the core's bound for each leaf.
//
// Circuits share term, link and journal with the planner of rings and have
// generations of their own, so that a slow stage never delays a ring. The
// package never looks at a ring or a node, and never takes light away that is
// still wanted but where a stage says so.
package core
