// Package limit bounds what a stranger can cost a process: a Listener that
// outlives a shortage of descriptors and lets no client stay that sends or reads
// nothing, Sources that may each send so much, and Lines that keep a log from
// growing with what is received. Agent, planner, broker and simulators share
// it, so that there is one behaviour to know.
//
// It knows no protocol and decides nothing about content: whoever uses it says
// how much is right, and counts what was refused.
package limit
