package ocs

import "ringlight/hal"

// Latch is the node's output latches as they are meant to be: shadow registers
// that all Transceivers of the node share, because one byte holds the bits of
// two bundles.
type Latch struct {
	board *hal.Board
}

// NewLatch is the latches of a board, not yet read.
func NewLatch(board *hal.Board) *Latch {
	return &Latch{board: board}
}
