// Package tinygo runs drivers of TinyGo, unmodified, against the chips of a simulated
// board: what they take for an INA219, a TMP102 and an AT24C64 by the datasheet is what
// the simulator's registers have to be. It is a module of its own, so that the judges are
// no dependency.
package tinygo
