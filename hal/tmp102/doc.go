// Package tmp102 is the register map of the TMP102 temperature sensor, and
// the builders and decoders of its messages. It never calls a bus.
//
// Section numbers are those of the TMP102 datasheet, SLOS654.
package tmp102
