// Package box drives commercial circuit switches at the end of a text line: a
// Box is a circuit switch as package circuit describes it, in whatever
// language (hal.BoxLanguage).
//
// What the switch reports is compared with what was asked for, and its meters
// with both: it does its own tuning, and says nothing of it. After a line that
// was torn everything is asked anew, as nobody knows what of it arrived.
//
// It keeps nothing over a restart: the switch is the memory.
package box
