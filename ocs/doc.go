// Package ocs is the things that switch light. A Transceiver is all OCSTrx
// modules of one bundle, driven as one: it reads the hardware back, stages
// codes, switches a path by one write to a latch, verifies it by light, and
// calibrates modules from nothing.
//
// Its drive gets it there: latch and chips of the board, whose heaters package
// heater has alone, or the controllers of CMIS modules, which package mci asks.
// What switches circuits, any port to any port, is apart from it: packages
// circuit, mems and box.
//
// A Transceiver is a machine that is stepped: Start, Select, Light and the like change
// what it wants, Poll takes the completions of bus work and puts out more of
// it, and says when it wants to be called again. It never waits, has no clock
// and no goroutine; all bus work is submitted and completed.
//
// A switch takes no per-module bus access: the codes of every path lie in the
// DACs' two code registers beforehand, and toggle nets and Tx-disables shared
// by all modules hang on the latch. Light lost and found comes by pins (Light);
// the reads that name module and lane follow, and may demote a path.
//
// A bundle of CMIS modules is driven by the same calls: its controllers hold the
// codes, one trigger byte to all of them takes the latch's place, and the timing
// is measured with the hold-offs that such controllers may take (cmis_timing.go).
//
// A calibration lives in a file of the host and in each module's own EEPROM, its
// passport: a module that comes from elsewhere brings its own, and the file's is
// refused for it (passport.go). In service a lock may hold the cells of the path in
// use by their Tx taps, without taking traffic off it (lock.go).
//
// Limits live below commands: codes become frames in package heater alone, and
// only those that its limits have let pass, whoever asked for them. A restarted
// process adopts what it finds: what is right already is not driven again.
package ocs
