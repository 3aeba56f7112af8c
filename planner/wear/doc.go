// Package wear follows what lasers and heaters of each module take, over years, and says how
// long it is until a limit.
//
// Light ages over months, and no planner lives as long: what is known is in the store, some
// 44 bytes for a laser or a heater path of a module, written once in four hours. A line is drawn by
// least squares through the means of four hours each, over which a room is as warm as it is; what is
// older than two months counts ever less, so that what begins to creep after
// years is seen. It begins anew with another module, and heaters do with another calibration.
//
// A Book is a pure machine: time comes in, records go out. It decides nothing; floats of it
// are for people.
package wear
