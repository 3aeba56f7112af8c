// Package at24 builds and decodes the messages of a 24-series EEPROM with
// two address bytes. It never calls a bus.
//
// A write must not leave its page: the address counter wraps inside it. While
// the chip programs it does not acknowledge its address; a master polls.
//
// Section numbers are those of the AT24C64D datasheet.
package at24
