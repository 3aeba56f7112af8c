// Package journal is the planner's writing side: what it sends, stores and
// logs in a step, in order, and the journal of why - the events that nodes
// told and the planner's own decisions, kept for people and acknowledged when
// they are on disk.
//
// All rooms of the planner write to one Journal, because the order of what a
// step asks for is part of its contract. It decides nothing: it knows no ring,
// no circuit and no device.
package journal
