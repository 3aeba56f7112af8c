// Package solo is one simulated board for one process: a sim.World with a
// single board and no neighbours, on the real clock or on the virtual one.
//
// On the real clock (Open) a goroutine lets the world's events happen when
// their time has come, and the board is a piece of hardware like any other.
// What does it (Wall) takes any world, so that many boards share one clock.
// On the virtual clock (Board) nothing moves unless it is stepped: a bench
// calibrates in the time that the arithmetic takes.
//
// What outlives the power of a real board, the EEPROMs, outlives the process
// in a folder.
package solo
