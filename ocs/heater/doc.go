// Package heater drives the heaters of a module through whatever DACs its board
// names. It is the only package that knows a DAC: it makes the messages that
// bring codes to the chips and read them back, and nobody else can.
//
// A code is a voltage, in steps of hal.HeaterFullScaleMicrovolt / 65536,
// whichever chip makes it. Every cell has two, A and B, between which the toggle
// nets choose; cells of the matrix have A alone. Messages are made only of a
// Setting or of Allowed codes, and both come only out of the driver that has the
// module's limits: a code that has not passed them cannot be written, and none goes
// to another module, or after its heater has turned out to be another.
//
// It never calls a bus, never decides what a heater is for, and has no clock.
package heater
