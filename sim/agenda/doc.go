// Package agenda holds what will happen on a virtual clock, and tells which is
// first: a Queue of things that each happen once, a Roster of those who want
// to be called again and change their minds about when.
//
// The order is total, or the same seed would give another run: by time; at the
// same time a Queue goes by the order in which things were put in, a Roster by
// number. It has no clock and calls nobody.
package agenda
