// Package mems drives a board of two arrays of mirrors, any port to any port: a
// Crossbar is a circuit switch as package circuit describes it.
//
// A mirror is sent where its maker found the path, in steps that cannot pull it
// in, and from there uphill by the light between the monitors of its two ports.
// The DACs have nothing to read back: what was written is kept as a shadow, and
// only the loss of a circuit proves it. All circuits share their rounds of
// moving, settling and looking, so that a change of all of them takes hardly
// longer than one.
//
// It never moves a mirror that carries a circuit which is right, and whatever
// is asked for, no electrode goes where a mirror would be pulled in.
package mems
