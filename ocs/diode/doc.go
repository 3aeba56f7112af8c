// Package diode reads the photodiodes of a module through the ADCs of its board,
// and says what their codes mean in light. It is the only package of the
// transceivers that knows an ADC.
//
// An ADS7138 converts all its channels continuously, averaging if it is told to, and the
// newest results lie at hand; an AD7998 converts while it is read. Either way a reading
// is a block of codes, light after light, of sixteen bits, low byte first.
//
// It never calls a bus, and does not know what light should be there.
package diode
