// Package ads7138 is the register map of the ADS7138, an 8-channel 12-bit ADC
// on I2C that can scan its channels by itself and average, and the builders
// and decoders of its messages. It never calls a bus.
//
// Every write starts with an opcode and a register address; a read is such a
// write of two bytes and then, after a repeated start, the data.
//
// Section numbers are those of the ADS7138 datasheet, SBAS976A.
package ads7138
