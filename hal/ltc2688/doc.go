// Package ltc2688 is the register map of the LTC2688, a 16-channel 16-bit
// voltage DAC with two codes per channel that a pin toggles between, and the
// builders and decoders of its frames. It never calls a bus.
//
// Every frame is 24 bits, most significant first: a command byte and 16 bits
// of data, with the chip select raised after each; Parse takes one apart. Bit 7 of the command reads:
// the value comes back in the next frame. There is no check sum.
//
// Words in quotes are headings and register names of the LTC2688 datasheet,
// whose PDF was not at hand: commands and bits were checked against the Linux
// driver (drivers/iio/dac/ltc2688.c). That driver leaves the update of a channel that
// toggles to the toggle signal, so an edge loads the input register that it goes to;
// whether an update brings both over at once, the
// units of the fine adjustments and the scale of the dither's amplitude were not,
// and want a look at the datasheet before real hardware.
package ltc2688
