package sim

import (
	"time"

	"ringlight/sim/agenda"
)

type eventKind uint8

const (
	evSubmit  eventKind = iota // an operation reaches its bus
	evBus                      // the bus is at its next step
	evCross                    // light crosses a comparator
	evFilter                   // a comparator's filter follows
	evEdge                     // the host's watcher of a line wakes
	evSettle                   // a bundle's heaters have arrived
	evPower                    // the rails of a board without power are down
	evMCI                      // the controller of a module has done something
	evMirrors                  // what mirrors join is looked at again
)

// event is one thing that will happen. gen must still be that of its owner,
// else it is void.
type event struct {
	board int32
	kind  eventKind
	place uint16 // bus, or comparator of the board, or bundle
	high  bool
	gen   uint32
	op    *work
}

// clock is the virtual time of a world and what will happen in it.
type clock struct {
	now    time.Duration
	events agenda.Queue[event]
}
