package ocs

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
)

// Goal: a half of loopback whose diode shows nothing is no half that says that its cells are
// right, whatever the other half shows.
// Method: cell 2 steps light out of the path, which its half shows or does not.
func TestDarkHalfIsSeenByThePath(t *testing.T) {
	const cell, step = hal.CellMZI1 + 2, 0.01
	for _, blind := range []bool{false, true} {
		var look lockLook
		for n := range lockSteps {
			gone := 0.5 + 0.1*float64(pattern(cell, n))
			look[seenTap1][n], look[seenLower][n] = 8-gone, 0.3
			if !blind {
				look[seenUpper][n] = gone
			}
		}
		one, _ := look.signals(mzi.Ext1, step)
		if sum := one.sum(cell); sum < 0.99*0.1*lockSteps || sum > 1.01*0.1*lockSteps {
			t.Errorf("blind %v: the cell moves %v", blind, sum)
		}
	}
}

// Goal: a cell that has jumped is trimmed when a second look finds it too, however well it was
// known where it stood. Method: a cell that many looks found where it was, and then .3 rad off.
func TestCellThatJumpedIsTrimmedAtOnce(t *testing.T) {
	m := lockModule{}
	at := time.Duration(0)
	look := func(off float64) {
		at += time.Second
		m.learn(&LockConfig{}, at, []lockFinding{{0, off, 6e-4}, {1, 0, 6e-4}})
	}
	for range 100 {
		look(0)
	}
	look(0.3)
	if m.offset[0] != 0 {
		t.Errorf("trimmed by %.3f rad at first sight", m.offset[0])
	}
	if look(0.31); m.offset[0] < 0.2 {
		t.Errorf("trimmed by %.3f rad of .31", m.offset[0])
	}
}
