// Package hal says what a board is: plain data (buses, lines, which chip at
// which address) and the contract by which bus work is done. Work is
// submitted and completed, never awaited: a blocking transfer would make its
// caller's time stale and let one stuck bus stop every bundle. Three things
// stand behind the same contract: hal/linux on real devices, hal/socket on a
// board in another process, and the simulator.
//
// Quarantine keeps devices that fail again and again off their bus; hal/record
// is the form in which what happens on the buses is kept.
//
// It has no operating system in it, no goroutine and no clock.
package hal
