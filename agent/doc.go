// Package agent is a node's hands: it steps the node machine, drives the
// optics, keeps the journal and speaks the protocol. Packets, completions,
// edges, the disk's word and the host's word come in by Deliver; what is to be
// sent, submitted and persisted goes out by Poll, which also says when it
// wants to be called again. Whoever delivers polls at the same instant, and
// polls again while the answer is not later than now.
//
// Poll gives out bus work before everything else and leaves encoding for the
// next call: protection never waits for the journal or the network. An
// acknowledgement leaves only when what it says is on disk, an event only when
// its number is.
//
// Every message is refused or taken as a whole. What is refused changes
// nothing, is answered with a reason, and is counted.
//
// Between agent and board the runner keeps devices that fail again and again
// off their bus (hal.Quarantine), and records what the agent is told, when it
// is asked and what it asks of its buses (hal/record). Replay lets the code of
// today live through such a recording and names the first op that differs.
//
// The package is pure but for run*.go, which has the goroutines, the timers,
// the files and the log.
package agent
