package planner

// state is where the planner stands as a whole.
//
//	GATHERING ──a──► IDLE ──b──► PREPARING ──d──► DECIDING
//	    ▲             ▲ ▲            │                │
//	    │             │ └─────c──────┘                │
//	    │             └───────────────e───────────────┘
//	    │        any of them ──f──► FENCED ──g──► RAISING
//	    └──────────────────────h────────────────────┘
//	             any of them ──i──► EXITED
//
//	a  every node was heard, or nothing new for a while: adopt, restore
//	b  the placement or a node calls for a generation: desired states are out
//	c  refused, timed out or a participant gone: presumed abort
//	d  every participant has prepared: the decision goes to the store
//	e  the decision is on disk: commit, wherever the link stands
//	f  someone knows a higher term than ours
//	g  no other planner was heard for three beats
//	h  a term above it is on disk
//	i  another planner is alive
type state uint8

const (
	gathering state = iota
	idle
	preparing
	deciding
	fenced
	raising
	exited
)

var stateNames = [...]string{"gathering", "idle", "preparing", "deciding", "fenced", "raising", "exited"}

func (s state) String() string { return stateNames[s] }

// edges[s] has a bit for each state that s may become.
var edges = [...]uint8{
	gathering: 1<<idle | 1<<fenced | 1<<exited,
	idle:      1<<preparing | 1<<fenced | 1<<exited,
	preparing: 1<<idle | 1<<deciding | 1<<fenced | 1<<exited,
	deciding:  1<<idle | 1<<fenced | 1<<exited,
	fenced:    1<<raising | 1<<exited,
	raising:   1<<gathering | 1<<fenced | 1<<exited,
	exited:    0,
}

// become is the only place that changes the planner's state.
func (p *Planner) become(s state) {
	if edges[p.state]&(1<<s) == 0 {
		panic("planner: illegal edge " + p.state.String() + " to " + s.String())
	}
	p.state = s
	p.stateSince = p.now
}
