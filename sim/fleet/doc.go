// Package fleet runs many production agents and a production planner on
// simulated boards, on one virtual clock: one event after the other, so that
// the same seed gives the same run, bit for bit, on every machine.
//
// The boards are sim's, at register level; the messages are encoded CBOR and
// travel through a model of a broker that delays, loses, repeats and reorders
// them; journals lose what was not on disk; clocks drift. A fault is a line of
// a small script, whoever wrote it. Checkers, one file for each invariant of a
// node, look at the light itself and at what was said about it. They never
// feed anything back.
//
// What it never does: share formulas with what it tests, look at a wall clock,
// or run two things of one fleet at once.
//
// # The script
//
// One fault a line: a time after the fabric stands, a noun and a verb, what
// they are about. # begins a comment; lines need not be in order. What cannot
// happen - a dark node that loses its supply - does not. ParseFault says what
// a wrong line lacks.
//
//	TIME node dark N                  supply lost, lasers off one after the other; "group G" at
//	                                  the end makes losses within 1 ms one fault of several nodes
//	TIME node on N                    and back: cold, its agent starts after 2 s
//	TIME host fault|ok N              the host says that its GPUs are gone, or back
//	TIME agent crash|start N          the process alone: its board stays as it is
//	TIME agent reboot N SPAN          the management controller boots: crash, new clock, start
//	TIME agent calibrate N BUNDLE     by a person on the node; refused while it carries a ring
//	TIME board break|repair N FAULT   stuck:B/M/CELL short:B/M/CELL (heaters) laser:B/M/LANE
//	                                  diode:B/M/loopback|external1|external2/LANE drift:B/M
//	                                  walk:B/M/CELL (slow drift) hot:B/M (over-temperature)
//	                                  bus:BUS (hangs) nack:BUS/ADDRESS (a chip is gone)
//	TIME fibre cut|mend P WAY         P = NODE/BUNDLE/external1|external2; WAY = both|out|in
//	TIME fibre glitch P WAY SPAN      dark for so long
//	TIME fibre flap P WAY SPAN COUNT  glitches with as long between them
//	TIME link cut|mend N              the node's management network
//	TIME partition cut|mend N LAST    that of all nodes from N to LAST
//	TIME broker down | up SPAN        what it retained in its last SPAN is stale
//	TIME planner kill|start|pause|resume|cut|mend
//	TIME planner lose                 killed, and its store is gone
//	TIME rival start|kill             a second planner, with a store of its own
//	TIME operator drain|undrain N     as ocsctl asks: by way of the planner
//	TIME operator switch N left|right lockout|forced_switch|manual_switch|no_request PEER|loopback
//	TIME network set LOSS REPEAT REORDER   packets in a million
//
// After the last line network, broker and planner are mended, and everything
// that was said must arrive.
package fleet
