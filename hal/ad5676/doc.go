// Package ad5676 is the register map of the AD5676R, an 8-channel 16-bit voltage
// DAC with an input and an output register per channel, and the builders and
// decoders of its frames. It never calls a bus.
//
// Every frame is 24 bits, most significant first: four bits of command, four of
// address, 16 of data, with the chip select raised after each. A readback command
// names a channel; the value comes back in the next frame. There is no check sum.
//
// An edge of the LDAC pin copies every channel's input register to its output
// register, but those that the mask leaves out. The span is that of the
// reference, 2.5 V inside, or twice that where the GAIN pin is high.
//
// Words in quotes are headings of the AD5672R/AD5676R datasheet, Rev. D, whose PDF
// was not at hand: commands were checked against the vendor's published driver
// and the datasheet of the AD5686R family, which has the same first ten. That
// a readback brings the output register and not the input register, and the bit of
// the internal reference, were not, and want a look at the datasheet before real
// hardware.
package ad5676
