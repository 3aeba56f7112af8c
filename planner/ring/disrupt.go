package ring

import (
	"slices"

	"ringlight/proto"
)

// Fault is a node, by HBD position, that goes out or comes back.
type Fault struct {
	Node proto.NodeID
	Back bool
}

// Method places groups from nothing on the usable positions.
type Method func(usable func(proto.NodeID) bool) [][]proto.NodeID

// Disruption compares what a method that places from nothing after each fault
// and repair does to running groups with what a Tracker does. A group is
// touched when its members change or when it ends; new groups do not count.
type Disruption struct {
	Faults, Repairs int // those that changed a node
	Scratch, Ours   Toll
}

// Toll is what one method did, summed up.
type Toll struct {
	TouchedByFaults, TouchedByRepairs int
	Idle                              int // usable nodes in no group, after each event
}

// Disrupt replays events. A nil method is [IHBD] Alg. 2, whose number of
// groups is that of the Tracker: same waste.
func Disrupt(o Order, size int, usable func(proto.NodeID) bool, events []Fault, method Method) Disruption {
	if method == nil {
		method = func(usable func(proto.NodeID) bool) [][]proto.NodeID {
			return Place(Problem{Order: o, Size: size, Usable: usable, Want: -1})
		}
	}
	t := NewTracker(o, size, usable)
	running := method(t.Usable)
	var d Disruption
	for _, e := range events {
		if t.Usable(e.Node) == e.Back {
			continue
		}
		change := t.Fail
		if e.Back {
			change = t.Repair
		}
		ours := len(change(e.Node).Touched)
		now := method(t.Usable)
		scratch := differing(running, now)
		if running = now; e.Back {
			d.Repairs++
			d.Ours.TouchedByRepairs += ours
			d.Scratch.TouchedByRepairs += scratch
		} else {
			d.Faults++
			d.Ours.TouchedByFaults += ours
			d.Scratch.TouchedByFaults += scratch
		}
		d.Ours.Idle += t.Idle()
		d.Scratch.Idle += t.Idle() + t.Groups()*size
		for _, g := range now {
			d.Scratch.Idle -= len(g)
		}
	}
	return d
}

// DisruptWithin replays events on a Tracker that touches at most so many
// running groups for one: less disruption for a little waste.
func DisruptWithin(limit int, o Order, size int, usable func(proto.NodeID) bool, events []Fault) Toll {
	t := NewTracker(o, size, usable)
	t.Limit = limit
	var toll Toll
	for _, e := range events {
		switch {
		case t.Usable(e.Node) == e.Back:
			continue
		case e.Back:
			toll.TouchedByRepairs += len(t.Repair(e.Node).Touched)
		default:
			toll.TouchedByFaults += len(t.Fail(e.Node).Touched)
		}
		toll.Idle += t.Idle()
	}
	return toll
}

// differing is the number of groups of before that are not in after.
func differing(before, after [][]proto.NodeID) int {
	at := make(map[proto.NodeID]int, len(after))
	for i, g := range after {
		at[g[0]] = i
	}
	n := 0
	for _, g := range before {
		if i, ok := at[g[0]]; !ok || !slices.Equal(after[i], g) {
			n++
		}
	}
	return n
}
