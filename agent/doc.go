// Package agent is what a node, or a circuit switch, does beside deciding: it
// steps the machine, drives the optics, keeps the journal and speaks the
// protocol. Packets, completions, edges, the disk's word and the host's word
// come in by Deliver; what is to be sent, submitted and persisted goes out by
// Poll, which also says when it wants to be called again.
//
// A Host carries that out and back in. It is the same in real time (Run), on a
// virtual clock (Bench, sim/fleet, sim/live) and in a Replay; they differ in
// its Ports alone.
//
// Poll gives out bus work before everything else and leaves encoding for the
// next call: protection never waits for the journal or the network. An
// acknowledgement leaves only when what it says is on disk, an event only when
// its number is.
//
// The board says which of the two it is: one with mirrors, or a commercial box,
// makes the agent that of a switch. What decides (machine) and what is driven
// (optics) differ; packets, journal, events and reports are the same.
//
// A switch protects nothing and can wait for its disk: a commit is there before
// the first mirror moves, and where the mirrors stand is there before a circuit
// is told as tuned. Whenever its agent dies, the next life moves nothing by
// itself. Where the commit was not on disk, it has all of the old circuits; else
// it holds what light it finds and reports no generation until the planner repeats
// its decision. After a loss of power, which the monitors' brown-out flags tell,
// it does the same.
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
