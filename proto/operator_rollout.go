package proto

import (
	"fmt"
	"strconv"
	"strings"
)

// How new software comes to all agents.

// RolloutState is where a roll-out stands.
type RolloutState uint8

const (
	RolloutIdle     RolloutState = iota // there is none
	RolloutRunning                      // waves go out
	RolloutStopping                     // an operator ended it; the wave under way is awaited
	RolloutStopped                      // by an operator, or because a node came back otherwise than it went
	RolloutDone                         // every agent that could be restarted runs the software
)

var rolloutNames = [...]string{"idle", "running", "stopping", "stopped", "done"}

func (s RolloutState) String() string { return NameOf(rolloutNames[:], uint8(s)) }

// RolloutStatus is how a roll-out stands, and what it would do next.
type RolloutStatus struct {
	State       RolloutState  `cbor:"1,keyasint"`
	Software    string        `cbor:"2,keyasint,omitempty"`
	Author      string        `cbor:"3,keyasint,omitempty"`
	SinceMillis uint64        `cbor:"4,keyasint,omitempty"` // planner's wall clock
	Reason      string        `cbor:"5,keyasint,omitempty"` // why it stopped
	Node        *NodeID       `cbor:"6,keyasint,omitempty"` // that it stopped for
	Wave        uint32        `cbor:"7,keyasint,omitempty"` // the last one that went out, from 1
	Nodes       uint32        `cbor:"8,keyasint"`           // of the fabric; 0: none was asked for its firmware since the planner began
	Current     uint32        `cbor:"9,keyasint"`           // of them, online with the software
	Back        uint32        `cbor:"10,keyasint"`          // of them, restarted by this roll-out
	UnderWay    []RolloutNode `cbor:"11,keyasint,omitempty"`
	Waves       []RolloutWave `cbor:"12,keyasint,omitempty"` // still to come, as things stand; a page at a time
	Left        []RolloutNode `cbor:"13,keyasint,omitempty"` // that cannot be restarted now, and why; the first of them
	LeftTotal   uint32        `cbor:"14,keyasint,omitempty"`
	Waiting     string        `cbor:"15,keyasint,omitempty"` // what the next wave waits for
	Firmware    bool          `cbor:"16,keyasint,omitempty"` // Software is that of the modules
}

// RolloutNode is a node of which there is something to say.
type RolloutNode struct {
	Node   NodeID `cbor:"1,keyasint" json:"node"`
	Why    string `cbor:"2,keyasint" json:"why"`
	ByHand bool   `cbor:"3,keyasint,omitempty" json:"by_hand"` // its agent cannot restart itself: somebody there must
}

// RolloutWave is nodes that restart together.
type RolloutWave struct {
	Wave  uint32   `cbor:"1,keyasint" json:"wave"`
	Size  uint32   `cbor:"2,keyasint" json:"size"`
	Nodes []NodeID `cbor:"3,keyasint" json:"nodes"` // the first of them
}

// FirmwareVersion is that of a module.
type FirmwareVersion struct {
	Major, Minor uint8
	Build        uint16
}

func (v FirmwareVersion) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Build) }

// ParseFirmware reads what String writes.
func ParseFirmware(s string) (v FirmwareVersion, refused *Error) {
	var n [3]uint64
	words, err := strings.Split(s, "."), error(nil)
	for i, bits := range [3]int{8, 8, 16} {
		if len(words) != len(n) {
			err = strconv.ErrSyntax
		} else if err == nil {
			n[i], err = strconv.ParseUint(words[i], 10, bits)
		}
	}
	if err != nil {
		return v, &Error{Code: Invalid, Field: "software", Limit: "MAJOR.MINOR.BUILD, up to 255.255.65535", Reason: Clip(fmt.Sprintf("%q", s))}
	}
	return FirmwareVersion{uint8(n[0]), uint8(n[1]), uint16(n[2])}, nil
}
