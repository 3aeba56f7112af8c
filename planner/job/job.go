package job

import (
	"time"

	"ringlight/proto"
)

// State of a job.
type State string

const (
	Waiting   State = "waiting"   // for room
	Reserved  State = "reserved"  // its nodes are asked whether they can
	Forming   State = "forming"   // told, and light is not yet confirmed on every link
	Ready     State = "ready"     // light is confirmed on every link of every ring
	Degraded  State = "degraded"  // a ring is closed with fewer GPUs, or some link is not confirmed any more
	Repairing State = "repairing" // a generation that mends a ring is under way
	Down      State = "down"      // a ring has no light
	Released  State = "released"  // its nodes are given back
)

// ended: it has nothing any more.
func (s State) ended() bool { return s == Released }

// Kinds of events beside the states, which are events too.
const (
	NodeLost = "node_lost"
	Replaced = "replaced" // out went, in stands at a position
	Left     = "left"     // a node that nobody replaces
	Restored = "restored" // it is ready again, in this order
)

// Event is one thing that happened to a job.
type Event struct {
	Generation uint64 `json:"generation"`    // of the job: the event's number; 0 of a node's
	Number     uint64 `json:"number"`        // among the events of nodes and of all jobs
	Job        string `json:"job,omitempty"` // where several are told of
	Event      string `json:"event"`         // a state that began, node_lost, replaced, left or restored; of a node well, lost or drained
	AtMS       uint64 `json:"at_ms"`         // by the planner's wall clock
	Cause      string `json:"cause,omitempty"`

	Ring      proto.RingID `json:"ring,omitempty"`
	Node      string       `json:"node,omitempty"` // of node_lost, left, and those of nodes
	BypassUS  uint32       `json:"bypass_us,omitempty"`
	Out       string       `json:"out,omitempty"` // of replaced
	In        string       `json:"in,omitempty"`
	Position  *int         `json:"position,omitempty"`
	GPUsTotal int          `json:"gpus_total,omitempty"` // that closed rings have after it

	*HandOver // of degraded, replaced, left and restored, and of the first ready
}

// maxEvents are kept for those who watch; who missed more reads the job itself.
// chosen: a job with as many faults has a person looking at it.
const maxEvents = 256

// job is one job as the planner keeps it. The store has all of it but the
// events, which are records of their own.
type job struct {
	ID     string         `json:"-"`
	Text   string         `json:"wish"` // as it came
	Seq    uint64         `json:"seq"`  // order of arrival; of released jobs order of their end
	State  State          `json:"state"`
	Cause  string         `json:"cause,omitempty"`
	Gen    uint64         `json:"generation"`
	Rings  []proto.RingID `json:"rings,omitempty"` // by position; 0: to be found anew
	Size   int            `json:"size"`            // nodes of a ring; fewer than asked for after shrinking
	Spares []proto.NodeID `json:"spares,omitempty"`
	Once   bool           `json:"once_ready,omitempty"`
	// What was told last, so that a planner that starts tells what has changed.
	Members [][]proto.NodeID `json:"members,omitempty"`
	Lost    []proto.NodeID   `json:"lost,omitempty"`
	Number  proto.JobID      `json:"number,omitempty"`  // of circuits: in the core's list; 0: not in it
	Servers []int            `json:"servers,omitempty"` // of circuits, in the order of ranks

	wish          *Wish
	only, exclude []proto.NodeID // of the wish, sorted
	events        []Event        // the last ones, by number
	at            time.Duration  // when it got its place, or when this planner began
	gpus          int            // that light joined when it was looked at last
	stamp         string         // of its place that routers were told of; "": none
	hurt          time.Duration  // since when a ring is short and nothing is done about it, 0: none is
	resumed       uint64         // the event after which it said last that it computes again
	due           time.Duration  // until when a node is expected in the place of one, 0: none is
}

// told adds an event; the caller stores it.
func (t *Table) told(j *job, e Event) {
	j.Gen++
	e.Generation, e.AtMS = j.Gen, t.j.Wall
	t.handOver(j, &e)
	j.events = append(j.events, e)
}

// missing are the positions of rings that are to be found.
func (j *job) missing() (at []int) {
	for i, id := range j.Rings {
		if id == 0 {
			at = append(at, i)
		}
	}
	return at
}
