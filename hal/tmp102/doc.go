// Package tmp102 is the register map of the TMP102 temperature sensor, and
// the builders and decoders of its messages. It never calls a bus.
//
// Words in quotes are headings of the TMP102 datasheet.
package tmp102
