package member

// State is where a device's connection stands.
//
//	UNHEARD ──a──► ANNOUNCED ──b──► PRESENT ──e──► SILENT
//	 │   ▲             │ │          ▲ │ ▲            │
//	 │   └──────d──────┘ │          b a └─────f──────┘
//	 c                   c          │ ▼
//	 │                   │         BORN ◄──a── OFFLINE, SILENT
//	 └───► OFFLINE ◄─────┴───────c── PRESENT, BORN, SILENT
//
//	 ANNOUNCED, BORN, PRESENT ──g──► DISPUTED ──h, c──► OFFLINE
//
//	a  a birth: a new life, of which no report has come
//	b  a report of this life
//	c  a death note, or it did not come back with the broker
//	d  it did not come back with the broker and never reported
//	e  it did not answer a prepare
//	f  any word of it, or it is to be asked again
//	g  with this birth two lives have followed each other in turn
//	h  one is alone for long, or an operator clears it
type State uint8

const (
	Unheard   State = iota // no message since the planner started
	Announced              // the first birth came, and no report yet
	Offline                // nobody speaks for it
	Born                   // a new life, and no report of it yet
	Present                // it reports
	Silent                 // it did not answer a prepare
	Disputed               // two agents claim its number, and none is believed
)

var stateNames = [...]string{"unheard", "announced", "offline", "born", "present", "silent", "disputed"}

func (s State) String() string { return stateNames[s] }

// edges[s] has a bit for each state that s may become.
var edges = [...]uint8{
	Unheard:   1<<Announced | 1<<Offline,
	Announced: 1<<Present | 1<<Offline | 1<<Unheard | 1<<Disputed,
	Offline:   1 << Born,
	Born:      1<<Present | 1<<Offline | 1<<Disputed,
	Present:   1<<Silent | 1<<Born | 1<<Offline | 1<<Disputed,
	Silent:    1<<Present | 1<<Born | 1<<Offline,
	Disputed:  1 << Offline,
}

// become is the only place that changes a device's state.
func (d *Device) become(s State) {
	if edges[d.state]&(1<<s) == 0 {
		panic("member: illegal edge " + d.state.String() + " to " + s.String())
	}
	d.state = s
}
