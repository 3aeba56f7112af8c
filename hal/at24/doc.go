// Package at24 builds and decodes the messages of 24-series EEPROMs: the 24C64,
// of 8 KiB with two address bytes and pages of 32, and the 24C02, of 256 bytes with one
// and pages of 8. It never calls a bus.
//
// A write must not leave its page: the address counter wraps inside it. While
// the chip programs it does not acknowledge its address; a master polls.
//
// Words in quotes are headings of the datasheets of the 64 Kbit parts; shapes are those
// of the table of the Linux driver (at24.c), whose 24c02 has byte writes alone: a page
// of 8 is the least that its makers state.
package at24
