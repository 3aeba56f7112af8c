// Package sim is one world of simulated boards: the chips at register level,
// the photonics that they drive, the fibres between boards, faults, and one
// event heap in virtual time.
//
// It is the other side of package hal's contract. Boards are built from the
// same hal.Board that a real one is described by, and take the same bytes on
// the same buses; the chips refuse what the real ones refuse. The optics are
// complex fields through the cells of each module, with heater dynamics,
// thermal crosstalk, offsets, drift and finite extinction. Nothing of a
// module's optics can be known but by measuring it: the package shares the
// chips' register tables with the driver, never its physics.
//
// A quiet board costs nothing. Samples, noise and drift are pure functions of
// (seed, place, index) evaluated when somebody reads; a change of light on a
// comparator is found at the event that causes it, by following the heaters
// that it moved, and becomes one event on the heap.
//
// The package has no clock, no goroutine and no chance but its seeds: the
// same calls give the same events, byte for byte, on every machine.
package sim
