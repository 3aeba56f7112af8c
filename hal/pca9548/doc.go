// Package pca9548 builds and decodes the messages of the PCA9548 I2C switch:
// one control byte, bit n connects channel n. It never calls a bus.
//
// Words in quotes are headings of the PCA9548A datasheet.
package pca9548
