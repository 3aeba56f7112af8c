package node

// Where the circuits of a cross-connect stand to the plan in force.
//
//	          b              d                c
//	UNREAD ───────► SETTLED ───────► MOVING ─────┐
//	  │  │           ▲   │ ◄───── e ── │  ▲      │
//	  │  │ c       b │   │ c             │ f    │
//	  │  │           │   ▼               │      │
//	  │  └───────► DIFFERS ◄──── e ───── OWED ◄──┘
//	  │ a            ▲   └────── d ─────► ▲
//	  ▼              │                    │
//	UNFINISHED ── g ─┘                    │
//	  └───────────── d ───────────────────┘
//
//	a  the journal does not vouch for the light: a change may not be over, or was
//	   lost, or the journal is an old one of the middle of a change
//	b  the hardware is read back, and carries the plan
//	c  ... and carries something else
//	d  a planner's commit
//	e  every circuit of the change has come up or failed
//	f  a change is completed: its board answers
//	g  the hardware is read back, whatever it carries
//
// All but UNREAD and UNFINISHED may be read back again, and a change that is
// under way be followed by the next. A change is finished only in the life that
// a planner has told it to.
type crossState uint8

const (
	crossUnread     crossState = iota // the hardware has not been read back yet
	crossUnfinished                   // nor then, and the journal does not vouch for the light
	crossSettled                      // the plan is in effect, as far as mirrors do it
	crossMoving                       // a committed change is under way, or waits for a silent board
	crossDiffers                      // the light is not the plan's: a planner has to say it again
	crossOwed                         // it has, or a change was broken off; the board has not begun
)

var crossStateNames = [...]string{"unread", "unfinished", "settled", "moving", "differs", "owed"}

func (s crossState) String() string { return nameOf(crossStateNames[:], uint8(s)) }

// crossEdges[s] has a bit for each state that s may become.
var crossEdges = [...]uint8{
	crossUnread:     1<<crossUnfinished | 1<<crossSettled | 1<<crossDiffers,
	crossUnfinished: 1<<crossUnfinished | 1<<crossDiffers | 1<<crossOwed,
	crossSettled:    1<<crossSettled | 1<<crossMoving | 1<<crossDiffers,
	crossMoving:     1<<crossMoving | 1<<crossSettled | 1<<crossOwed,
	crossDiffers:    1<<crossDiffers | 1<<crossSettled | 1<<crossOwed,
	crossOwed:       1<<crossOwed | 1<<crossMoving | 1<<crossDiffers,
}

// become is the only place that changes the state of a cross-connect.
func (x *CrossConnect) become(next crossState) {
	if crossEdges[x.state]&(1<<next) == 0 {
		panic("node: illegal edge of a cross-connect: " + x.state.String() + " to " + next.String())
	}
	x.state = next
}

// changing tells whether a committed change is not known to be over.
func (s crossState) changing() bool { return s == crossMoving || s == crossOwed }

// inEffect tells whether the plan in force may be told as what is there.
func (s crossState) inEffect() bool {
	return s == crossUnread || s == crossSettled || s == crossMoving
}

// found is the state after the hardware was read back, or was not.
func (s crossState) found(read, asPlanned bool) crossState {
	switch {
	case s == crossUnfinished && !read:
		return crossUnfinished
	case s == crossUnfinished || !s.changing() && !asPlanned:
		return crossDiffers
	case !s.changing():
		return crossSettled
	case asPlanned:
		return crossMoving
	}
	return crossOwed
}
