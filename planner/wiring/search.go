package wiring

import (
	"math/bits"

	"ringlight/mzi/detmath"
)

// The search's constants, in the units of tolls. All chosen, by runs over
// random groups of 128 pods and 8 even switches, full and with idle ports.
const (
	// bidFirst and bidLast: what a missing link pays to push another one out,
	// at the start and at the planned end of a descent. Below the first hardly
	// anything is pushed out; around 600 full groups close.
	bidFirst, bidLast = 300, 900
	// heat: up to how much chance adds to the price of every place.
	heat = 300
	// holdFirst, holdSpan: for how many steps a link pushed out may not come
	// back by pushing; see holdShare.
	holdFirst, holdSpan = 2, 7
	// overrun: after so many times its planned length a descent is ended by
	// insertion.
	overrun = 8
	// lookAt, lookAgain: with so many links missing a descent looks what
	// insertion would make of it; a look costs lookSteps a link. The last links
	// take half of a descent, and insertion loses little by two.
	lookAt, lookAgain, lookSteps = 8, 2, 64
	// firstRound: steps of the first round, per link, and tightRound where
	// nearly all ports are in use: a shorter descent closes no sooner there,
	// and badly. growth: how many times as long the next round is, up to
	// longestRound. Two thirds of a round are planned for its descent.
	firstRound, tightRound, growth, longestRound = 8, 16, 3, 1000
	// priceRounds: subgradient rounds before the first descent by prices;
	// before later ones as many as cost a tenth of the round, at most
	// morePrices.
	priceRounds, morePrices = 8, 200
	// A try of the polish: steps, loss on the way and links missing at once
	// before it is given up.
	tryLength, tryLoss, tryMissing = 100, 6, 10
)

// holdShare is how many links may be missing before a hold grows with them, by
// quarters of a descent's planned length, round and round. With many missing
// each has its turn seldom, and a hold of a few steps means nothing; a longer
// one closes a descent, and keeps links from good places: while hundreds are
// missing it melts what was kept. So in the first round, which is to close
// soon, it grows from half the plan on, and later only from its end on.
// chosen: not always the same, as descents of hundreds of pods get stuck on
// one.
var holdShare = [2][4]int{{8, 4, 2, 1}, {10, 8, 7, 6}}

// Block is one independent piece of a rewiring: at most MaxBlock even
// switches of one group. Its result depends on its input, its seed and the
// number of steps it was given, not on how these were portioned nor on what
// other blocks do, so blocks may run in any order and at the same time.
type Block struct {
	*seats
	prices *prices
	rng    detmath.Random
	phase  phase
	best   []int8 // places of the best configuration
	top    int    // circuits it keeps; -1: there is none yet

	allowed, steps  int
	began, started  int     // steps when the phase and when the descent began
	round, rounds   int     // planned length of a descent and the polish after it; rounds ended
	look            int     // links missing at which to look what insertion gives
	priced, toPrice int     // subgradient rounds of this phase, made and planned
	hold            []int32 // of a link and place: no pushing before this step of the round
}

func newBlock(t Topology, old Half, seed uint64) *Block {
	b := &Block{seats: newSeats(t, old), rng: detmath.Random(seed), top: -1}
	used := t.Ports()
	b.prices = newPrices(b.seats, func(pod int) bool { return used[pod] >= 2*old.Switches })
	b.hold = make([]int32, len(b.toll))
	if b.round = firstRound * len(b.place); b.tight() {
		b.round = tightRound * len(b.place)
	}
	return b
}

// tight says that nearly all ports are in use. Then a descent without prices
// is wasted; else it is nearly as good as one with them.
func (b *Block) tight() bool { return 16*len(b.place) >= 15*len(b.out) }

// Settled says that further steps cannot improve the block.
func (b *Block) Settled() bool { return b.phase == settled }

// Run makes so many steps more. A step is one link placed; a few, of one
// insertion or one try, may be overdrawn, and are then taken from the next
// call.
func (b *Block) Run(steps int) {
	b.allowed += steps
	for b.steps < b.allowed && b.phase != settled {
		switch b.phase {
		case keeping:
			b.keepOld()
		case pricing:
			b.improvePrices()
		case descending:
			b.descend()
		case polishing:
			b.polish()
		}
	}
}

// keepOld gives the first result: what is wanted and can stay, stays; the
// rest is inserted. The first round then begins from what stayed.
func (b *Block) keepOld() {
	b.stay()
	b.prices.bound = b.kept // every old circuit that is still wanted
	b.steps += len(b.place)
	b.insertAll()
	if b.record(); b.phase == settled {
		return
	}
	b.clear()
	if b.tight() {
		b.become(pricing)
		return
	}
	b.stay()
	b.startDescent()
}

// stay puts links where their pairs had circuits.
func (b *Block) stay() {
	for e := range int32(len(b.place)) {
		for places := b.old[e]; places != 0; places &= places - 1 {
			place := bits.TrailingZeros64(places)
			out, in := b.ports(e, place)
			if b.out[out] < 0 && b.in[in] < 0 {
				b.put(e, place)
				break
			}
		}
	}
}

// record remembers a complete configuration that keeps more than any before.
func (b *Block) record() {
	if b.kept > b.top {
		b.top = b.kept
		b.best = append(b.best[:0], b.place...)
	}
	if b.top >= b.prices.bound {
		b.become(settled)
	}
}

func (b *Block) startDescent() {
	b.prices.setTolls(b.seats)
	clear(b.hold)
	b.started, b.look = b.steps, lookAt
	b.become(descending)
}

// planned is the length a descent should have.
func (b *Block) planned() int { return b.round*2/3 + 1 }

// descend places one missing link. Two thirds of a round are planned for a
// descent; it ends when nothing is missing, and is given up when, past its
// plan, it keeps no more than the best: it would keep less and less.
func (b *Block) descend() {
	planned := b.planned()
	spent := b.steps - b.started
	if spent > planned && b.kept+len(b.missing) <= b.top {
		b.nextRound()
		return
	}
	if spent > overrun*planned {
		b.insertAll()
	}
	if n := len(b.missing); n > 0 && n <= b.look {
		b.lookAhead()
		return
	}
	if len(b.missing) > 0 {
		b.repair(int32(bidFirst+(bidLast-bidFirst)*spent/planned), heat)
		return
	}
	if b.record(); b.phase != settled {
		b.become(polishing)
	}
}

// lookAhead remembers what insertion would end the descent with, if that is
// better than what there is, and leaves the descent where it was.
func (b *Block) lookAhead() {
	if b.look = 0; len(b.missing) > lookAgain {
		b.look = lookAgain
	}
	if b.kept <= b.top {
		return
	}
	b.steps += lookSteps * len(b.missing)
	b.note()
	b.insertAll()
	b.record()
	b.undo()
}

// improvePrices makes one subgradient round; each counts half a step a link,
// which is about what it costs.
func (b *Block) improvePrices() {
	cost := len(b.place)/2 + 1
	if b.priced == 0 {
		b.toPrice = priceRounds
		if b.prices.rounds > 0 {
			b.toPrice = min(morePrices, b.round/10/cost)
		}
	}
	if b.priced < b.toPrice {
		b.prices.round(b.seats, b.priced, b.toPrice)
		b.priced++
		b.steps += cost
		return
	}
	b.priced = 0
	if b.top >= b.prices.bound {
		b.become(settled)
		return
	}
	b.clear()
	b.startDescent()
}

func (b *Block) nextRound() {
	b.rounds++
	b.round = min(b.round*growth, longestRound*len(b.place))
	b.become(pricing)
}

// repair places one missing link, drawn at random, where that costs least:
// the toll, and for a port that is taken the bid less what the link there
// pays, so that one which sits badly is pushed out sooner.
func (b *Block) repair(bid int32, warm uint32) {
	b.steps++
	e := b.missing[b.rng.Below(len(b.missing))]
	at := b.cheapest(e, bid, warm)
	if at < 0 {
		return
	}
	b.force(e, at)
}

func (b *Block) cheapest(e, bid int32, warm uint32) int {
	n := b.switches
	l, h := int(b.low[e]), int(b.high[e])
	toll := b.toll[int(e)*2*n : (int(e)+1)*2*n]
	hold := b.hold[int(e)*2*n : (int(e)+1)*2*n]
	lowOut, highOut := b.out[l:l+n], b.out[h:h+n]
	lowIn, highIn := b.in[l:l+n], b.in[h:h+n]
	lowOutPaid, highOutPaid := b.paid[0][l:l+n], b.paid[0][h:h+n]
	lowInPaid, highInPaid := b.paid[1][l:l+n], b.paid[1][h:h+n]
	now := int32(b.steps - b.started)
	best, at := int32(noPlace), -1
	chance := uint64(0)
	for k := range n {
		if k&1 == 0 {
			chance = b.rng.Next()
		}
		there := toll[2*k] + int32(uint32(chance&0xffff)*warm>>16)
		back := toll[2*k+1] + int32(uint32(chance>>16&0xffff)*warm>>16)
		chance >>= 32
		x, y := lowOut[k], highIn[k]
		there += (bid - lowOutPaid[k]) &^ (x >> 31) // nothing where x is none
		if y != x {
			there += (bid - highInPaid[k]) &^ (y >> 31)
		}
		if there < best && (hold[2*k] <= now || x < 0 && y < 0) {
			best, at = there, 2*k
		}
		x, y = highOut[k], lowIn[k]
		back += (bid - highOutPaid[k]) &^ (x >> 31)
		if y != x {
			back += (bid - lowInPaid[k]) &^ (y >> 31)
		}
		if back < best && (hold[2*k+1] <= now || x < 0 && y < 0) {
			best, at = back, 2*k+1
		}
	}
	return at
}

// force puts a link in a place, whoever is there.
func (b *Block) force(e int32, place int) {
	if b.place[e] >= 0 {
		b.drop(e)
	}
	out, in := b.ports(e, place)
	if x := b.out[out]; x >= 0 {
		b.push(x)
	}
	if y := b.in[in]; y >= 0 {
		b.push(y)
	}
	b.put(e, place)
}

func (b *Block) push(e int32) {
	spent := b.steps - b.started
	hold := holdFirst + b.rng.Below(holdSpan)
	from, shares := 4, &holdShare[0]
	if b.rounds == 0 {
		from, shares = 2, &holdShare[1]
	}
	if quarter := 4 * spent / b.planned(); quarter >= from {
		share := shares[quarter%len(shares)]
		hold = hold * max(share, len(b.missing)) / share
	}
	b.hold[int(e)*2*b.switches+int(b.place[e])] = int32(spent + hold)
	b.drop(e)
}

// polish is one try to force a lost circuit back and to repair what that
// broke. It is kept unless it loses.
func (b *Block) polish() {
	if b.steps-b.started >= b.round && b.steps-b.began >= b.round/3 {
		b.nextRound()
		return
	}
	b.steps++
	before := b.kept
	e, place := b.lost()
	if e < 0 {
		return
	}
	b.note()
	b.force(e, place)
	bid, warm := int32(bidFirst+b.rng.Below(bidLast-bidFirst)), uint32(b.rng.Below(heat))
	for end := b.steps + tryLength; len(b.missing) > 0; {
		if b.steps >= end || b.kept+tryLoss < before || len(b.missing) > tryMissing {
			b.undo()
			return
		}
		b.repair(bid, warm)
	}
	if b.kept < before {
		b.undo()
		return
	}
	b.agree()
	b.record()
}

// lost draws a link that is not where its pair was, and one of those places.
func (b *Block) lost() (e int32, place int) {
	for range 64 { // chosen: finds one in a hundred with even odds
		e := int32(b.rng.Below(len(b.place)))
		if b.old[e] == 0 || b.isOld(e, int(b.place[e])) {
			continue
		}
		places := b.old[e]
		for range b.rng.Below(bits.OnesCount64(places)) {
			places &= places - 1
		}
		place := bits.TrailingZeros64(places)
		if out, in := b.ports(e, place); b.out[out] < 0 || b.out[out] != b.in[in] {
			return e, place // not taken by another link of the pair
		}
	}
	return -1, 0
}

// Half is the best configuration so far. A block that was given no step yet
// has what insertion makes of what can stay.
func (b *Block) Half() Half {
	if b.best == nil && b.phase == keeping {
		b.keepOld()
	}
	return b.half(b.best)
}
