// Package ad7998 is the register map of the AD7998, an 8-channel 12-bit ADC on I2C that
// converts while it is read, and the builders and decoders of its messages. It never
// calls a bus.
//
// The byte that a message begins with points at a register, and of the conversion
// result also says which channels to convert: one, named by its upper half, or all that
// the configuration register names, in turn. As long as the read goes on the chip
// converts and sends on; a stop ends that, so pointer and read are one message with a
// repeated start between them. A result is two bytes, high byte first: alert flag,
// three bits of channel, twelve of code.
//
// Checked against the Linux driver (ad799x.c) and the register tables of the vendor's
// datasheet, as web pages quote them; that a read which goes on beyond the last channel
// begins with the first again is said there of two channels.
package ad7998
