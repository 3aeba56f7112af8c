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

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	h := append(w.heap, e)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	w.heap = h
}

func (w *World) pop() event {
	h := w.heap
	top := h[0]
	n := len(h) - 1
	h[0] = h[n]
	h[n] = event{}
	h = h[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && h.less(c+1, c) {
			c++
		}
		if !h.less(c, i) {
			break
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
	w.heap = h
	return top
}
