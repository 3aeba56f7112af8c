package hal

import (
	"time"

	"periph.io/x/conn/v3/gpio"
)

// StampedPin is what an input may have beside periph's interface. Without it nobody
// knows when an edge came, only when somebody was told.
type StampedPin interface {
	gpio.PinIn
	// LastEdge is the edge for which WaitForEdge last returned true: where it led,
	// when it came on the kernel's CLOCK_MONOTONIC, and its number, from 1 on; where
	// numbers have a gap, edges were lost.
	LastEdge() (high bool, at time.Duration, number uint32)
}
