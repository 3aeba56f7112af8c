package flow

import "time"

// event is when a run goes on; it is void once the run has another version.
type event struct {
	at      time.Duration
	run     *run
	version uint32
}

// events is a heap of four children a parent, whose levels are half as many
// and whose children lie side by side. Void events stay until they come up.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	a := *h
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 4
		if a[up].at <= e.at {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = e
}

func (h *events) pop() event {
	a := *h
	top, last := a[0], a[len(a)-1]
	a[len(a)-1] = event{}
	a = a[:len(a)-1]
	*h = a
	for i := 0; len(a) > 0; {
		least, first := -1, 4*i+1
		for c := first; c < min(first+4, len(a)); c++ {
			if least < 0 || a[c].at < a[least].at {
				least = c
			}
		}
		if least < 0 || a[least].at >= last.at {
			a[i] = last
			break
		}
		a[i] = a[least]
		i = least
	}
	return top
}

// next is when the first event that holds is, Never without one.
func (h *events) next() time.Duration {
	for len(*h) > 0 {
		if e := &(*h)[0]; e.version == e.run.version {
			return e.at
		}
		h.pop()
	}
	return Never
}
