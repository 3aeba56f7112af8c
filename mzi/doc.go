// Package mzi is one Mach-Zehnder cell and the matrix made of them: transfer
// function and inverse, quantisation of heater voltages, routing of
// permutations, and the search that finds every cell of a module from nothing.
//
// The search works by reverse communication: it asks for a drive, the caller
// measures and answers, and the search asks for the next. So it knows no bus,
// no chip and no clock, and the same search runs on hardware, in a simulator
// and in a test. Nothing here is shared with the simulator: a search that
// starts from the simulator's own formulas proves nothing.
//
// Floats stay inside; what comes in and goes out has physical units in whole
// numbers. All functions but Sqrt, Abs and Floor come from mzi/detmath, and
// products are rounded before they are added, so that a search takes the same
// course on every machine.
package mzi
