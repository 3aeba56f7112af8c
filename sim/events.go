package sim

import "time"

type eventKind uint8

const (
	evSubmit eventKind = iota // an operation reaches its bus
	evBus                     // the bus is at its next step
	evCross                   // light crosses a comparator
	evFilter                  // a comparator's filter follows
	evEdge                    // the host's watcher of a line wakes
	evSettle                  // a bundle's heaters have arrived
	evPower                   // the rails of a board without power are down
	evMCI                     // the controller of a module has done something
)

// event is one thing that will happen. gen must still be that of its owner,
// else it is void.
type event struct {
	at    time.Duration
	seq   uint64
	board int32
	kind  eventKind
	place uint16 // bus, or comparator of the board, or bundle
	high  bool
	gen   uint32
	op    *work
}

// heap orders by time, then by the order in which events were made.
type heap []event

func (h heap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}

// clock is the virtual time of a world and what will happen in it.
type clock struct {
	now  time.Duration
	seq  uint64
	heap heap
}

func (c *clock) push(e event) {
	c.seq++
	e.seq = c.seq
	h := append(c.heap, e)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	c.heap = h
}

func (c *clock) pop() event {
	h := c.heap
	top := h[0]
	n := len(h) - 1
	h[0] = h[n]
	h[n] = event{}
	h = h[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	c.heap = h
	return top
}
