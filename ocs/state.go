package ocs

import "ringlight/proto"

// State is where the machine of a bundle stands.
//
//	           Start            read back, codes right
//	Off ------------> Reading ---------------------------> Idle
//	                   |  ^  \                             ^ |
//	       codes lost  |  |   `-- retries used up --.      | | Calibrate
//	                   v  |                         |      | v
//	                Staging ------- verified -----------> Idle  Calibrating
//	                   |                            |      ^ |      |
//	                   `---- retries used up ---.   |      | |      | found
//	                                            v   v      | v      v
//	                                           Faulted    Staging <-'
//
// Calibrating ends in Staging with the new codes, or with the old ones when it
// found a fault; without any it ends in Idle. Idle becomes Faulted when its DACs
// cannot be armed. Faulted ends only by Start. Upgrading, of dark modules that take other firmware, comes from Idle and
// ends by Renew.
type State uint8

const (
	Off         State = iota // not started
	Reading                  // reading latch, codes and lane enables back
	Staging                  // writing the codes of all paths, and verifying them
	Idle                     // nothing to do but to follow Select and Light
	Calibrating              // finding every cell, the bundle being dark
	Faulted                  // bus or chips do not do their part
	Upgrading                // a module takes other firmware, the bundle being dark
	numStates
)

var stateNames = [numStates]string{"off", "reading", "staging", "idle", "calibrating", "faulted", "upgrading"}

func (s State) String() string { return proto.NameOf(stateNames[:], uint8(s)) }

// edges are the legal changes: bit b of edges[a] is a -> b.
var edges = [numStates]uint8{
	Off:         1 << Reading,
	Reading:     1<<Reading | 1<<Staging | 1<<Idle | 1<<Faulted,
	Staging:     1<<Idle | 1<<Faulted | 1<<Reading,
	Idle:        1<<Calibrating | 1<<Staging | 1<<Reading | 1<<Faulted | 1<<Upgrading,
	Calibrating: 1<<Staging | 1<<Idle | 1<<Faulted | 1<<Reading,
	Faulted:     1 << Reading,
	Upgrading:   1<<Upgrading | 1<<Reading | 1<<Faulted,
}

// become is the only place that assigns the state.
func (t *Transceiver) become(s State) {
	if edges[t.state]>>s&1 == 0 {
		panic("ocs: " + t.state.String() + " cannot become " + s.String())
	}
	t.state = s
}
