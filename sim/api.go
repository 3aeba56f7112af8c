package sim

import (
	"fmt"
	"time"

	"ringlight/hal"
)

// BoardID numbers the boards of a World from 0.
type BoardID int

// LaserSkew bounds the time between the first and the last laser of a node
// that loses its power (W of the protection timers).
const LaserSkew = 500 * time.Microsecond

// WorldConfig makes a world.
type WorldConfig struct {
	Seed  uint64
	Costs Costs // without a source: DefaultCosts
}

// BoardConfig makes a board of a world.
type BoardConfig struct {
	Board hal.Board
	// Personalities are the optics of [bundle][module]; nil: drawn from Seed,
	// each module its own.
	Personalities [][]*Personality
	Physics       *Physics // of its calls, and of the optics when they are drawn; nil: DefaultPhysics
	Seed          uint64   // of noise, drift and latencies
	Faults        []Fault
	Powered       bool
	MCI           MCITiming     // of modules of kind cmis; zero: DefaultMCITiming
	Mirrors       MirrorPhysics // of a MEMS board
	// TogglesHold makes the toggle pins of LTC2688s choose between codes that an
	// update has brought over; else their edges load the input registers.
	TogglesHold bool
}

// Port is one end of a fibre pair: a path of a bundle of a board.
type Port struct {
	Board  BoardID
	Bundle int
	Path   int // hal.LOSExternal1 or hal.LOSExternal2; hal.LOSLoopback for Lit
}

func (p Port) String() string {
	return fmt.Sprintf("%d/%d/%s", p.Board, p.Bundle, pathName(p.Path))
}

func pathName(path int) string {
	if path >= 0 && path < hal.NumLOS {
		return hal.LOSNames[path]
	}
	return fmt.Sprintf("path(%d)", path)
}

// Fibre joins two ports in both directions.
type Fibre struct {
	LossMilliDB int32 // besides the connectors
	// Crossed joins upper half to upper half and lower to lower; straight
	// joins upper to lower.
	Crossed bool
}

// Direction picks one way through a fibre, as seen from the port named.
type Direction uint8

const (
	Both Direction = iota
	Out            // light that leaves the port
	In             // light that comes to the port
)
