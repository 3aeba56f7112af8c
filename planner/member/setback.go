package member

import (
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// setback is what most devices never have: all of those share one that is blank, and those
// that had no more than former lives its troubles.
type setback struct {
	shared bool
	former []life         // lives that others have followed, the last one first
	ahead  []*proto.Event // that wait for one before them
	*troubles
}

type troubles struct {
	blank    bool
	whole    *proto.Reported // a switch's last report, as it came
	reportOf proto.Session   // the life that sent the last report, 0: the present one
	GoneAt   time.Duration   // when it went offline
	last     string          // its last word then: why it ended
	deafWhen bool            // nobody could be heard for some time between its last telemetry and then
	early    *proto.Reported // of a session whose birth has not come yet
	truly    bool            // early is sealed

	asks     asking
	stranger stranger
	silences int  // in a row; each is waited out longer than the one before
	trailed  int  // plans in a row that it prepared and did not follow
	hushed   bool // it is Silent because nothing came of it any more

	returns    int // of such ones
	returnedAt time.Duration
	doubt      *doubt // of whether it is one agent, after the first of them
	claim      string // who claims its number, while Disputed

	lower   uint64 // number of a report below the last one's
	lowerAt time.Duration

	fewerAt time.Duration // since when it says that it gave out fewer events than came

	late  time.Duration // by which it said last that its work began too late
	lates int           // how often in a row

	missed   uint64 // number of a report that it says it sent, and that we do not hold
	missedAt time.Duration
	lostAt   time.Duration // when it was last found that a message of its was lost or late, 0: none

	voice   voice         // of a planner that ours is not, as it said last
	claims  string        // that nobody else makes, and that move nothing
	claimAt time.Duration // when it made one last

	odd   string        // what it said last is not believed, and why
	oddAt time.Duration // when that was written down

	Refusal     Refusal
	wrong       wrong
	Refusals    int           // in a row; each is waited out longer than the one before
	silentUntil time.Duration // asked again then, when Silent

	gapSince time.Duration // since when a device waits for an event before those that came
	eventAt  time.Duration // when one came of a device that waits for another
}

// wrong is what a device did last that was wrong.
type wrong struct {
	what, why string
	at        time.Duration
}

const tookNoPlan = "took no plan"

// noSetback is the blank one.
func noSetback() *setback {
	return &setback{shared: true, troubles: &troubles{blank: true, asks: asking{at: journal.Never}}}
}

// lived gives the device a setback of its own, whose former lives may be written.
func (d *Device) lived() *setback {
	if d.shared {
		d.setback = &setback{troubles: d.troubles}
	}
	return d.setback
}

// own is lived whose troubles may be written, too.
func (d *Device) own() *setback {
	x := d.lived()
	if x.blank {
		y := *x.troubles
		y.blank, x.troubles = false, &y
	}
	return x
}

// eased gives troubles and a setback back that say nothing any more: of one that was away,
// or was to be asked for its first report, and need not be.
func eased(d *Device, t *Table) {
	if d.shared || !d.Online() {
		return
	}
	x := *d.troubles
	x.blank, x.GoneAt, x.deafWhen, x.truly = true, 0, false, x.truly && x.early != nil
	if x.asks.at == journal.Never && (x.asks.last == 0 || t.j.Now > x.asks.last+strangerForgotten) {
		x.asks = t.blank.asks
	}
	if t.j.Now > x.stranger.since+strangerForgotten {
		x.stranger = stranger{}
	}
	if x == *t.blank.troubles {
		d.troubles = t.blank.troubles
	}
	if d.blank && len(d.former)+len(d.ahead) == 0 {
		d.setback = t.blank
	}
}
