// Package fleet runs many production agents and a production planner on
// simulated boards, on one virtual clock: one event after the other, so that
// the same seed gives the same run, bit for bit, on every machine. A device is
// a node or a circuit switch; a fleet has those that its fabric describes, of
// one kind or of both, under one planner.
//
// The boards are sim's, at register level; agents and planner live in the hosts
// that production has (agent.Host, planner.Host), whose ports are this
// package's; the messages are encoded CBOR and travel through a model of a
// broker that delays, loses, repeats and reorders them; journals lose what was
// not on disk; clocks drift. A fault is a line of a small script, whoever wrote
// it. Checks, an entry in a list for each invariant, look at the light itself
// and at what was said about it. They never feed anything back.
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
// TIME may be commit:N+TIME: so long after the Nth commit of circuits, counted
// over the run; then SWITCH may be stage:K, the Kth of those that the commit is
// for, counted round. "for SPAN" at the end of a line undoes it after a while.
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
//	TIME rollout run SOFTWARE         installed everywhere, and the planner is told; rollout stop
//	TIME agent install N SOFTWARE     at this node another one than elsewhere
//	TIME network set LOSS REPEAT REORDER   packets in a million; who loses one sends it again
//	TIME network shed PARTS           messages in a million that are lost above TCP, each way:
//	                                  a queue drops them, and no connection sends them again
//	TIME agent starve N PARTS         the agent has so many parts in a million of its processor,
//	                                  in slices of 3 ms; agent feed N: all of it
//	TIME switch starve S PARTS        as an agent; switch feed S
//	TIME switch dark|on S             supply of a circuit switch
//	TIME switch crash|start S         its agent alone: its mirrors stay as they are
//	TIME switch reboot S SPAN         its management controller boots
//	TIME switch cut|mend S            its management network
//	TIME switch stick|free S a|b PORT a mirror no longer moves
//	TIME jobs apply LIST|none         an operator's list of jobs for the switches, each
//	                                  JOB:SERVERS/TP/EP/PP, in GPUs and stages, and where
//	                                  it is no ring /COLLECTIVE, or of a leaf-spine core
//	                                  JOB:GPUSg[/DURATION[/PAUSE]]
//	TIME fabric edit KEY=VALUE ...    boards and fibres are laid, then an operator has the
//	                                  planner plan for them: nodes=N k=K tp=GPUS spares=N
//	                                  sizes=GPUSxRINGS,..|none moves=none|few|any hold_off_us=N
//	                                  recable=NODE,.. (two hops to the right, over bundle 2)
//	                                  end=RING,.. drain move
//
// After the last line network, broker and planner are mended, everything that was
// said must arrive, and usable nodes be used. Agents that are starved stay so.
package fleet
