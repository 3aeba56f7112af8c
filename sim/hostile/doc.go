// Package hostile is a stranger that has reached the broker and holds no
// credentials: it forges, mutates, replays, floods and holds connections open,
// an attack after the other, and asks the planner after each whether its rings
// are still what they were. It knows the protocol from schema.cddl and shares
// no code with agents and planner but the codec.
//
// Besides it knows what a device with its own key and no other can lie (Lies): every
// field of what a device says is pushed to its limits, one at a time. The fields
// are read off the messages, so that a new one is lied about, too. The tests of
// sim/fleet and sim/procs tell the lies and judge what comes of them.
//
// The stranger is a test, TestStranger, with all its attacks; what other tests use of it,
// lies, is the rest of the room.
//
// What it cannot see, light and memory, whoever started it must look at: the
// record of the boards and the processes.
//
// It is for fabrics of one's own, on this machine: a broker that is not on a
// loopback address is refused.
package hostile
