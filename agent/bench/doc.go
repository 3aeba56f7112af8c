// Package bench is what an engineer does with a board before trusting it:
// look at every chip, read and write the memories, load the buses, measure
// the heaters, see light on every path, and find out which fibre is where. It
// makes a report of it, as data and as one page.
//
// It works on any open board, simulated or not, that moves its time when it is
// asked to wait: see Board. It never starts a goroutine, knows no clock but
// the board's and writes no file; whoever runs it does.
package bench
