// Package cli is what all commands have in common for those who type:
// words and flags in any order, help, man pages and completion from one table,
// errors in one form with one meaning of the exit code, tables that fit a
// screen, colour where there is one.
//
// A command is a row of a table; what it takes is known from the flag set that
// it gives to Parse, which is all that -h, man pages and completion read. So
// none of them can say what the command does not take.
//
// It never decides what a command does, and it knows nothing of planners or
// boards. The agent links it: it must stay small.
package cli
