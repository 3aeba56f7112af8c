// Package pca9535 is the register map of the PCA9535, a 16-bit I/O expander,
// and the builders and decoders of its messages. It never calls a bus. The
// board uses it as a latch: its outputs keep their level when the process
// that wrote them is gone.
//
// Registers come in pairs, one per port of eight pins; further bytes of a
// message go to the other register of the pair in turn.
//
// Words in quotes are headings of the PCA9535 datasheet.
package pca9535
