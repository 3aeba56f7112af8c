package mems

import (
	"errors"

	"ringlight/proto"
)

// State is where the machine of a crossbar stands. Its work goes in
// rounds that all circuits share: move mirrors, let them settle, look.
//
//	     Start          monitors scan,              mirrors to move
//	Off -------> Starting -- Settling, -> Resting <------------------> Moving
//	                | ^                   ^   |                         |
//	    no monitor  | | Start             |   | someone wants to look   | written
//	    answers     v |                   |   v                         v
//	              Faulted               Looking <------------------ Settling
//
// A round ends in Resting, or goes on to Moving when Looking found something
// to move. A look at everything that nothing answers ends in Faulted too, as does
// one that finds monitors which do not scan any more; and that only by Start,
// which every state but Off allows as well.
type State uint8

const (
	Off      State = iota // not started
	Starting              // making the monitors scan
	Resting               // nothing to do
	Moving                // writing electrodes
	Settling              // letting mirrors come to rest
	Looking               // reading monitors
	Faulted               // the board does not answer
	numStates
)

var stateNames = [numStates]string{"off", "starting", "resting", "moving", "settling", "looking", "faulted"}

func (s State) String() string { return proto.NameOf(stateNames[:], uint8(s)) }

var edges = [numStates]uint8{
	Off:      1 << Starting,
	Starting: 1<<Settling | 1<<Faulted | 1<<Starting,
	Resting:  1<<Moving | 1<<Looking | 1<<Starting,
	Moving:   1<<Settling | 1<<Starting,
	Settling: 1<<Moving | 1<<Looking | 1<<Resting | 1<<Starting,
	Looking:  1<<Moving | 1<<Resting | 1<<Starting | 1<<Faulted,
	Faulted:  1 << Starting,
}

// become is the only place that assigns the state.
func (x *Crossbar) become(s State) {
	if edges[x.state]>>s&1 == 0 {
		panic("ocs: crossbar: " + x.state.String() + " cannot become " + s.String())
	}
	x.state = s
}

// ErrNotAdopted is why a circuit that was saved is not one any more.
var ErrNotAdopted = errors.New("light does not show the circuit that was saved")

// errSupply is why a board is out of service until it is started again.
var errSupply = errors.New("the board has lost its supply meanwhile")

// Startup says what Start does with a board of which nothing can be read back
// but the light.
type Startup uint8

const (
	Keep    Startup = iota // drive nothing; adopt the saved circuits that light proves
	Restore                // drive the saved circuits, park the rest
	Dark                   // park everything
)

// Status is how the board stands.
type Status struct {
	State       State
	Busy        bool // circuits are being made
	BusErrors   uint32
	LimitErrors uint32 // drives that the guard cut down
	Err         error
}
