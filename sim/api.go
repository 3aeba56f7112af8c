package sim

import (
	"fmt"
	"time"

	"ringlight/hal"
)

// BoardID numbers the boards of a World from 0.
type BoardID int

// Latency is what a call into the operating system costs, by two points of
// its distribution.
type Latency struct{ P50, P99 time.Duration }

// Costs are what the virtual clock is charged. chosen: docs/board.md.
type Costs struct {
	Interrupt Latency       // from an input line's edge to user space
	I2CCall   Latency       // before the bits of an I2C operation
	SPICall   Latency       // before the bits of an SPI operation
	SPIFrame  time.Duration // chip select between two frames
	// Decide is what a decision costs an agent that an edge woke: who steps
	// the agent submits the work that it puts out this much later.
	Decide time.Duration
}

// DefaultCosts are those of the default board.
func DefaultCosts() Costs {
	return Costs{
		Interrupt: Latency{25 * time.Microsecond, 60 * time.Microsecond},
		I2CCall:   Latency{18 * time.Microsecond, 45 * time.Microsecond},
		SPICall:   Latency{20 * time.Microsecond, 50 * time.Microsecond},
		SPIFrame:  100 * time.Nanosecond,
		Decide:    8 * time.Microsecond,
	}
}

// LaserSkew bounds the time between the first and the last laser of a node
// that loses its power (W of the protection timers).
const LaserSkew = 500 * time.Microsecond

// WorldConfig makes a world.
type WorldConfig struct {
	Seed  uint64
	Costs Costs // zero: DefaultCosts
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
	MCI           MCITiming // of modules of kind cmis; zero: DefaultMCITiming
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
	if path >= 0 && path < len(pathNames) {
		return pathNames[path]
	}
	return fmt.Sprintf("path(%d)", path)
}

var pathNames = [hal.NumLOS]string{"loopback", "external1", "external2"}

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
