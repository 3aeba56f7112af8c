// Package circuit is what every circuit switch is to those that use one, be it a
// board of mirrors (ocs/mems) or a commercial box (ocs/box): its circuits, how
// they are changed, what it tells of them, and what a port's power calls for.
//
// A circuit switch is a machine that is stepped: Start takes up what is there,
// Apply and HealthRound change what it wants, Poll takes the completions of bus
// work, puts out more of it and says when it wants to be called again.
//
// Served lets scripts written for a commercial box drive any of them.
//
// It moves no light itself and never asks a bus.
package circuit
