package ring

import (
	"cmp"
	"slices"
	"time"

	"ringlight/planner/fabric"
)

// Patience decides how many whole groups move so that one more can be whole, and when. That
// costs the jobs on those something once, and that it is not done costs the nodes of a
// group, for as long as it lacks one: until a node comes back that makes it whole more
// cheaply, and this is a share of how long nodes are away. How long that is, a planner sees.
// So it lets as many move at once as cost less than what is expected to be lost, and
// for more waits until what was really lost comes to a multiple of the price: an outage
// that is longer than all before is mended too. Before it has seen outages, few move at once,
// and more when the loss equals the price, which never costs more than twice the best of
// one who knew what comes. While nothing could be gained, what was lost runs out as it
// ran up: an idle node that is away for a second does not begin the wait anew, and a lack
// that is long over pays for no other.
type Patience struct {
	Price time.Duration // of a whole group that moves, in time of a group that lacks a node

	moves int           // whole groups that would have to move for one more; 0: nothing is short
	short int           // groups that could be whole
	lost  time.Duration // their time that was lost by then, but for what was paid with moves
	then  time.Duration

	away  [256]time.Duration // the last outages
	count int                // of all
	sum   time.Duration      // of those in away

	resumed []time.Duration // what the last rings with other nodes cost their jobs
}

const (
	awayLeast = 16 // outages that are seen before they count; chosen: their mean is within a quarter, mostly
	// moreShare, of a mean outage, is what is expected to be lost by a group that lacks a node, in
	// tenths, and moreWait how often the price is lost before more than that move. Measured:
	// TestPatienceLosesLess has what others would lose.
	moreShare   = 3
	moreWait    = 4
	resumedMost = 64 // chosen: as many as a bad hour has
	mostMoves   = 64 // at once, whatever outages last; chosen: a thousand nodes that blink for one are enough
)

// Resumed takes note of how long after its light a job computed again.
func (p *Patience) Resumed(after time.Duration) {
	p.resumed = append(p.resumed[max(0, len(p.resumed)-resumedMost+1):], after)
}

// Cost is how long jobs take to compute again, of how many: the median, so that one job's word
// does not count for all; 0 before enough said so.
func (p *Patience) Cost() (median time.Duration, of int) {
	if of = len(p.resumed); of < awayLeast {
		return 0, of
	}
	return max(time.Millisecond, slices.Sorted(slices.Values(p.resumed))[of/2]), of
}

// SetPrice has the price of a fabric that says one, else what jobs said, and before they did
// what is likely.
func (p *Patience) SetPrice(f *fabric.Fabric) {
	p.Price = time.Duration(cmp.Or(f.MovePriceMS, fabric.DefaultMovePriceMS)) * time.Millisecond
	if cost, _ := p.Cost(); f.MovePriceMS == 0 && cost > 0 {
		p.Price = cost
	}
}

// Away takes note of how long a node was away.
func (p *Patience) Away(d time.Duration) {
	at := &p.away[p.count%len(p.away)]
	p.sum += d - *at
	*at = d
	p.count++
}

// Mean is how long nodes were away, of how many; 0 before enough were.
func (p *Patience) Mean() (mean time.Duration, of int) {
	if of = min(p.count, len(p.away)); of < awayLeast {
		return 0, of
	}
	return p.sum / time.Duration(of), of
}

// worth is how many moves cost what is expected to be lost without them.
func (p *Patience) worth() int {
	mean, _ := p.Mean()
	return int(mean * moreShare / 10 / max(1, p.Price))
}

// AtOnce is how many whole groups may move for one more without a wait, where few may.
func (p *Patience) AtOnce() int { return max(maxMoves, min(p.worth(), mostMoves)) }

// Each is how long groups lack nodes, all their times added, for each of the whole ones that
// then move.
func (p *Patience) Each() time.Duration {
	if mean, _ := p.Mean(); mean > 0 && p.moves > p.worth() {
		return moreWait * p.Price
	}
	return p.Price
}

// Waits is for how many moves it waits, 0: for none.
func (p *Patience) Waits() int { return p.moves }

// since counts on what is lost.
func (p *Patience) since(now time.Duration) {
	if d := now - p.then; p.moves > 0 {
		p.lost += time.Duration(p.short) * d
	} else {
		p.lost = max(0, p.lost-d)
	}
	p.then = now
}

// Paid reports whether as much was lost as the moves would cost.
func (p *Patience) Paid(now time.Duration) bool {
	p.since(now)
	return p.moves > 0 && p.lost >= time.Duration(p.moves)*p.Each()
}

// Saw takes what a look found, and says when what it waits for is paid; false: it waits for
// nothing.
func (p *Patience) Saw(r *Result, now time.Duration) (due time.Duration, waits bool) {
	p.since(now)
	p.lost -= time.Duration(r.Fetched) * p.Each()
	p.moves, p.short = r.Dearer, r.Lost
	if p.moves == 0 {
		return 0, false
	}
	left := max(0, time.Duration(p.moves)*p.Each()-p.lost)
	return now + (left+time.Duration(p.short)-1)/time.Duration(p.short), true
}

// Restart forgets what is short, as after another description of the fabric, and keeps what
// outages have taught.
func (p *Patience) Restart() { p.moves, p.short, p.lost = 0, 0, 0 }
