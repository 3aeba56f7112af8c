// Package sc18is602 is the messages of NXP's SC18IS602B, a bridge from I2C to four chip
// selects of SPI, as the data sheet "SC18IS602B" and the Linux driver spi-sc18is602 have
// them.
package sc18is602
