// Package at24 builds and decodes the messages of a 24-series EEPROM with
// two address bytes. It never calls a bus.
//
// A write must not leave its page: the address counter wraps inside it. While
// the chip programs it does not acknowledge its address; a master polls.
//
// Words in quotes are headings of the datasheets of the 64 Kbit parts.
package at24
