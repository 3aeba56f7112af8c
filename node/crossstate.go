package node

// Where the circuits of a cross-connect stand to the plan in force.
//
//	          b              e               d
//	UNREAD ───────► SETTLED ───────► MOVING ◄─────── UNFINISHED
//	  │              ▲   │ ◄────────  │  ▲               │
//	  │ c          b │   │ c   f    c │  │ d             │ c
//	  │              │   ▼            ▼  │               │
//	  └───────────► DIFFERS ◄─── f ── OWED ◄─────────────┘
//	                   │               ▲
//	                   └────── e ──────┘
//
//	a  the journal has a change that may not be over: UNREAD to UNFINISHED
//	b  the hardware is read back, and carries the plan
//	c  ... and carries something else
//	d  a change is completed: its board answers, or carries what it should
//	e  a planner's commit
//	f  every circuit of the change has come up or failed
//
// All but UNREAD and UNFINISHED may be read back again, and a change that is
// under way be followed by the next.
type crossState uint8

const (
	crossUnread     crossState = iota // the hardware has not been read back yet
	crossUnfinished                   // nor then, and a committed change may not be over
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
	crossUnfinished: 1<<crossMoving | 1<<crossOwed,
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
func (s crossState) changing() bool {
	return s == crossUnfinished || s == crossMoving || s == crossOwed
}

// inEffect tells whether the plan in force may be told as what is there.
func (s crossState) inEffect() bool { return s != crossDiffers && s != crossOwed }

// found is the state after the hardware was read back.
func (s crossState) found(asPlanned bool) crossState {
	change, rest := crossMoving, crossSettled
	if !asPlanned {
		change, rest = crossOwed, crossDiffers
	}
	if s.changing() {
		return change
	}
	return rest
}
