// Package ad5535b is the frame of the AD5535B, a 32-channel 14-bit
// high-voltage DAC whose outputs drive the electrodes of tilting mirrors. It
// never calls a bus.
//
// A frame is 19 bits, five of address and fourteen of code, most significant
// first, taken on the falling edges of the clock; the output changes with the
// nineteenth, and what is clocked in behind it is ignored. There is no load
// pin, no check sum and nothing to read back: a driver keeps a shadow of what
// it wrote, and only the light proves that it arrived.
//
// Words in quotes are headings of the AD5535B datasheet. Width, channels, full
// scale, clock and update rate were read in its first page (Rev. A); the order
// of the 19 bits and that trailing bits are ignored were not, and want a look
// before real hardware.
package ad5535b
