// Package trace is what goes wrong in a cluster and when: it reads the public
// fault trace of the InfiniteHBD paper ([IHBD] App. A), generates one of the
// same statistics from a seed, maps its servers to the nodes of a fabric, and
// says what each class of fault does to a board or its host.
//
// Times are durations since the epoch of the trace. A server with several
// faults open at once is down until the last of them ends: overlapping events
// are a count, not a set.
//
// It does no input or output of its own beyond the reader it is handed, keeps
// no clock and is the same for the same seed on every machine.
package trace
