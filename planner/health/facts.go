package health

import (
	"fmt"
	"strings"
	"time"

	"ringlight/proto"
)

// Facts are what the checks look at: a copy, taken between two steps of a planner, or
// from what a broker keeps. Times are of the wall clock in ms, 0 where nobody knows.
type Facts struct {
	Idle       string        // why nobody plans, "" when somebody does
	Remedy     string        // of that
	Broker     string        // why the broker is not reached, "" when it is
	Loses      string        // what shows that messages are lost or late on their way, "": nothing does
	Lost       uint64        // since when
	Late       time.Duration // by how much the planner itself works too late, 0: it does not
	LateSince  uint64
	Stood      time.Duration // for how long it stood still a while ago, 0: it did not
	StoodUntil uint64
	Judged     bool // devices have had their time to be heard

	Nodes, Heard int
	Devices      []Device // of which something is to be said, by number
	Rings        []Ring   // that are not in service, by number
	Fibres       []Fibre  // that are dark, doubted, or come and go

	RingsWanted, SmallestRing int // the smallest that is wanted, in GPUs
	GPUs, GPUsWanted          int // in rings that are formed
	GPUsLit                   int // in rings that have light
	Spares, SparesWanted      int

	Links, LinksUnproven int      // of rings; that shine, and at an end nobody can say whether well
	Unproven             []string // fibres of those, the first few

	Circuits, CircuitsTuned, CircuitsUnproven int
	Jobs                                      []Job   // that wait
	Routes                                    []Route // that a router does not hold, or still holds

	Given []proto.AlarmStatus // what others than the planner found, by the names of checks
}

// Route is what of a job a router does not hold as it must, or a port that it does not
// drain.
type Route struct {
	Router, Job, Port string

	Over  bool   // the job's are to be taken away, the port is to be used again
	Says  string // why not; "": nothing, for too long
	Since uint64
}

// Device is a node or a switch.
type Device struct {
	ID     proto.NodeID
	Ring   proto.RingID
	What   string // keeps it out of plans: a word of which a check has the name
	Why    string
	Since  uint64
	Quiet  bool          // nobody speaks for it
	Held   string        // an operator keeps it out, so that nothing is wrong with it
	Claims string        // that the planner did not give
	Lately string        // what it did a moment ago in the place of taking a plan; that keeps it in plans
	Late   time.Duration // by how much its agent's work begins too late, 0: it does not
	Board  uint64        // since when its board has answered nothing, 0: it answers
	Low    []Low
	Said   []Said
	Slow   *Slow // where its ring cannot recover in time
}

// Slow is the member whose times a ring waits with, and by how much the others are quicker.
type Slow struct {
	ID   proto.NodeID
	Text string
	All  bool // no other is much quicker
}

// Said is an alarm of a device's own.
type Said struct {
	Kind     proto.EventKind
	Severity proto.Severity
	At       string // bundle or port
	Text     string
	Since    uint64
}

// IDOf is the id that an alarm of a device's own has.
func (d *Device) IDOf(s *Said) string { return place(d.ID) + "/" + s.At + "/" + s.Kind.Slug() }

// Low is a bundle whose own light is less than its calibration expects.
type Low struct {
	Bundle  proto.BundleID
	Missing proto.MilliDBm
}

// Ring is one that is not in service.
type Ring struct {
	ID               proto.RingID
	State            proto.RingState
	Since            uint64
	GPUs, Whole      int
	Links, Confirmed int
	Out              []proto.NodeID // members that cannot carry it
	Members          []proto.NodeID
	Dark             []string // fibres of it
	Waits            string
}

// Fibre is one that is not as it should be.
type Fibre struct {
	Name        string
	A, B        proto.NodeID
	Ring        proto.RingID
	State       proto.FibreState
	Since, Next uint64
	Losses      int
	Shown       string // where the last try without a ring found it dark
}

// Job is one that waits.
type Job struct {
	Name, Cause string
	Since       uint64
}

// place begins the id of a device's alarms.
func place(id proto.NodeID) string {
	if id.IsSwitch() {
		return fmt.Sprintf("switch-%d", id-proto.FirstSwitch)
	}
	return fmt.Sprint(id)
}

// subjectOf is a device in a sentence.
func subjectOf(id proto.NodeID) string {
	if id.IsSwitch() {
		return strings.Replace(place(id), "-", " ", 1)
	}
	return "node " + place(id)
}

// Spans writes 1-4, 6 for 1 2 3 4 6, with at most so many parts.
func Spans[N proto.NodeID | proto.RingID](ids []N, most int) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		text := fmt.Sprint(ids[i])
		if j > i {
			text += fmt.Sprintf("-%d", ids[j])
		}
		if parts = append(parts, text); len(parts) > most {
			return strings.Join(parts[:most], ", ") + " and more"
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}
