// Package tca9534 is the register map of the TCA9534 (and TCA9534A), an 8-bit
// I/O expander, and the builders of its messages. It never calls a bus.
//
// Words in quotes are headings of the TCA9534A datasheet.
package tca9534
