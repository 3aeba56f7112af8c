// Package ads7138 is the register map of the ADS7138, an 8-channel 12-bit ADC
// on I2C that can scan its channels by itself and average, and the builders
// and decoders of its messages. It never calls a bus.
//
// Every write starts with an opcode and a register address; a read is such a
// write of two bytes and then, after a repeated start, the data.
//
// Words in quotes are headings and register names of the ADS7138 datasheet,
// SBAS976A, whose PDF was not at hand: registers, bits and opcodes were checked
// against the vendor's published header of the ADS7128, which has the same
// map, and the Linux driver (ti-ads7138.c); that an unknown opcode is not
// acknowledged was not.
package ads7138
