// Package pca953x is the register map of I/O expanders of the PCA953x family, and the
// builders and decoders of their messages. It never calls a bus. The board uses
// them as latches: outputs keep their level when the process that wrote them is gone.
//
// A register belongs to a function and a port of eight pins; how far functions lie
// apart is the part's. The TCA9534 has one port, the PCA9535 two, and further bytes of a
// message go to the other port in turn. The PCAL6524 has three, and goes on to the next port only
// where the command byte asks for it.
//
// Checked against the Linux driver (gpio-pca953x.c). That the PCAL6524, asked to go
// on, begins again with a function's first port after its last was not: no message
// here is longer.
package pca953x
