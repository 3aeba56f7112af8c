package hbd

import "time"

// Times and limits that we chose, with their reasons; cuts, probes and drains have their own.
const (
	// debounce lets the evidence of one fault arrive before it is planned for. chosen:
	// neighbours tell within a millisecond or two of each other.
	debounce = 5 * time.Millisecond
	// settleWait is how long a ring with a fault waits for the reports of its
	// neighbours, so that the plan quotes their bypass. chosen: several times
	// the 12 ms in which they have settled.
	settleWait = 60 * time.Millisecond
	// splitWait is how long a ring of sound members may stand split before it
	// is formed anew. chosen: longer than any search of a side.
	splitWait = 300 * time.Millisecond
	// slowPrepare is how long the agents of a ring take to prepare at most that are
	// quick. Slow ones need followTurns times as long to go where a plan wants them,
	// before their ring is held to be split, and followMost at most. chosen: seen with agents
	// that have a twentieth of a processor; a prepare that was lost is no slow agent.
	slowPrepare = 20 * time.Millisecond
	followTurns = 10
	followMost  = 5 * time.Second
	// betterWait is how long after a repair, or a return, rings may be moved or
	// formed. chosen: longer than a repair takes, so that what is hurt next need
	// not wait for it.
	betterWait = 100 * time.Millisecond
	// maxFetch is how many whole rings move in one generation where more must in
	// all. chosen: as many as may at once; what is hurt meanwhile waits for no
	// more nodes.
	maxFetch = 8
	// slowWait is the same after a node was left out because it did not answer:
	// no ring is moved for one that is only slow. chosen: an agent whose
	// broker hung for a moment is back in less.
	slowWait = time.Second
	// joinWait is how long a repair waits at least for a node from outside the ring
	// when all others have answered; where probes took longer, it does so in proportion.
	// chosen: it may be dead, and nobody has missed its light; it is one of several, or
	// the ring does without it for now.
	joinWait = 60 * time.Millisecond
	// maxJoinWaits is how often that doubles for one that did not answer the times
	// before. chosen: an answer takes 100 ms where a machine has much else to do, and
	// who has missed three waits longer than all of that takes.
	maxJoinWaits = 2
	// agentPatience is how long an agent may be away before the light that one
	// neighbour lost counts against it. chosen: a supervisor restarts it
	// within a second or two.
	agentPatience = 5 * time.Second
	renewFirst    = 2 * time.Second // between two attempts to join a split ring
	renewLast     = 5 * time.Minute
	renewsToCut   = 2 // attempts after which the fibre is held to be cut
)
