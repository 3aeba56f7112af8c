package flow

import (
	"time"

	"ringlight/sim/agenda"
)

// event is that a run goes on; it is void once the run has another version.
type event struct {
	run     *run
	version uint32
}

// events are those to come. Void ones stay until they come up.
type events struct{ agenda.Queue[event] }

// next is when the first event that holds is, Never without one.
func (h *events) next() time.Duration {
	for h.Len() > 0 {
		at, e := h.First()
		if e.version == e.run.version {
			return at
		}
		h.Pop()
	}
	return Never
}
