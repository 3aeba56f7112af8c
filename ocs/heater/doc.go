// Package heater drives the heaters of a module through whatever DACs its board
// names. It is the only package that knows a DAC: it makes the messages that
// bring codes to the chips and read them back, and nobody else can.
//
// A code is a voltage, in steps of hal.HeaterFullScaleMicrovolt / 65536,
// whichever chip makes it. Every cell has two, A and B, between which the toggle
// nets choose; cells of the matrix have A alone. Messages are made only of a
// Setting or of Allowed codes, and both come only out of Limits: a code that has
// not passed them cannot be written.
//
// It never calls a bus, never decides what a heater is for, and has no clock.
package heater
