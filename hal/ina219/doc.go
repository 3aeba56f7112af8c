// Package ina219 is the register map of the INA219 current and voltage
// monitor, and the builders and decoders of its messages. It never calls a
// bus.
//
// Words in quotes are headings of the INA219 datasheet, SBOS448G.
package ina219
