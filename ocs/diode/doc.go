// Package diode reads the photodiodes of a module through the ADCs of its board,
// and says what their codes mean in light. It is the only package of the
// transceivers that knows an ADC.
//
// Every ADC converts all its channels for ever, averaging if it is told to; the
// newest results lie at hand and are read as a block, low byte first.
//
// It never calls a bus, and does not know what light should be there.
package diode
