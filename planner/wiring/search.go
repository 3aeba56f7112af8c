package wiring

import "ringlight/mzi/detmath"

// The search's constants, in the units of tolls. All chosen, by runs over
// random groups of 128 pods and 8 even switches, full and with idle ports.
const (
	// bidFirst and bidLast: what a missing link pays to push another one out,
	// at the start and at the planned end of a descent. Below the first hardly
	// anything is pushed out; around two circuits full groups close.
	bidFirst, bidLast = 100, 280
	// heatFirst and heatLast: up to how much chance adds to the price of every
	// place, at these times.
	heatFirst, heatLast = 65, 130
	// holdFirst, holdSpan: for how many steps a link pushed out may not push its
	// way back; of the second as many times a sixteenth as links are missing,
	// and four more: with many missing each has its turn seldom. Half of it and
	// descents do not close, twice and they melt what was kept. Past its plan a
	// descent does not close for want of longer ones: they grow with it.
	holdFirst, holdSpan = 3, 6
	// overrun: after so many times its planned length a descent is ended by
	// insertion.
	overrun = 8
	// lookAt, lookAgain: with so many links missing a descent looks what
	// insertion would make of it; a look costs lookSteps a link. The last links
	// take half of a descent, and insertion loses little by two.
	lookAt, lookAgain, lookSteps = 8, 2, 64
	// fillFrom: a block of more even switches is not ended by the descent: the more
	// switches there are, the seldomer two free ports are in the same one, and the
	// less it costs to give one up for all that is missing.
	fillFrom = 32
	// firstDescent: the planned length of the first descent, in steps a link,
	// and firstTight where nearly all ports are in use: a quick one before it gives
	// an answer in half the time, and makes every later one a quarter to a half
	// later. growth: how many times as long the next one is, up to longestDescent,
	// and that for every 128 pods, as more pods close later. Ten times that keeps a
	// hundredth more at the end of one descent, and the best of ten short ones as
	// much.
	firstDescent, firstTight, growth, longestDescent = 8, 60, 3, 100
	// reopened: so many lost circuits are forced back for the next descent to
	// begin with, at reopenedAt of a hundred of its plan, or of longestDescent.
	reopened, reopenedAt = 8, 70
	// priceRounds: subgradient rounds before the first descent by prices, half of them
	// for more than fillFrom switches, where each takes long and they gain little;
	// before later ones as many as cost a tenth of the round, at most
	// morePrices.
	priceRounds, morePrices = 100, 200
	// polishShare: the part of a descent's plan for which its result is polished
	// afterwards.
	polishShare = 32
	// contested: by so much a port grows dearer for everybody when a link is
	// pushed out of it, up to dearest and to auctionEnd of a descent, in 256ths
	// of its plan. So those who ask for a port come to want others, as in an
	// auction. Half and twice that does as well, a dearest of half or twice that
	// worse, and without an end groups of hundreds of pods do not close.
	contested, auctionEnd = 4, 384
	// bidStep: bids grow by so much at once, as every port has to be told.
	bidStep = 4
	// chances: so many words of chance there are, one of them new at every step;
	// a link reads up to maxWords of them at once, and the next ones so far on.
	chances, maxWords, nextChance = 128, 1 << wordBits, 40
	// A try of the polish: steps, loss on the way and links missing at once
	// before it is given up.
	tryLength, tryLoss, tryMissing = 100, 6, 10
)

// Block is the search of one group of at most MaxBlock even switches. Its result
// depends on its input, its seed and the number of steps it was given, not on how
// these were portioned nor on what other blocks do, so blocks may run in any order
// and at the same time.
type Block struct {
	*seats
	group  Group
	prices *prices
	rng    detmath.Random
	phase  phase
	best   []int16 // places of the best configuration
	top    int     // circuits it keeps; -1: there is none yet

	allowed, steps  int
	began, started  int                        // steps when the phase and when the descent began
	heat            uint64                     // most that chance adds to the price of a place
	late            int                        // sixteenths of its plan that a descent has taken, and no less than all
	auction         bool                       // ports grow dearer
	warmer          int                        // steps of the descent at which these and the bid change
	plan            int                        // length a descent should have
	fillAt          int                        // step of the descent at which to look what giving up switches gives
	look            int                        // links missing at which to look what insertion gives
	priced, toPrice int                        // subgradient rounds of this phase, made and planned
	from            []int16                    // of a link: the place it was pushed out of last
	until           []int32                    // and up to which step of the round it may not push its way back
	chance          [chances + maxWords]uint64 // in lanes; the first ones again at the end
}

func newBlock(t Topology, old Half, seed uint64) *Block {
	b := &Block{group: Group{t, old}, seats: newSeats(t, old), rng: detmath.Random(seed), top: -1}
	used := t.Ports()
	b.prices = newPrices(b.seats, func(pod int) bool { return used[pod] >= 2*old.Switches })
	b.until, b.from = make([]int32, len(b.place)), make([]int16, len(b.place))
	if b.plan = firstDescent * len(b.place); b.tight() {
		b.plan = firstTight * len(b.place)
	}
	return b
}

// tight says that nearly all ports are in use. Then a descent without prices
// is wasted; else it is nearly as good as one with them.
func (b *Block) tight() bool { return 32*len(b.place) >= 15*b.pods*b.places() }

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
// rest is inserted. Without prices the first descent begins from what stayed.
func (b *Block) keepOld() {
	b.stay()
	b.prices.bound = b.kept // every old circuit that is still wanted
	b.steps += len(b.place)
	if b.switches > fillFrom {
		b.fillUp(0)
	} else {
		b.insertAll()
		b.record()
	}
	if b.phase == settled {
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
		b.old[e].all(func(place int) bool {
			free := b.isFree(e, place)
			if free {
				b.put(e, place)
			}
			return !free
		})
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
	clear(b.dearer)
	b.pay()
	clear(b.until)
	b.started, b.look, b.warmer, b.fillAt = b.steps, lookAt, 0, 0
	b.become(descending)
}

// descend places one missing link, ever more eagerly. A descent ends when
// nothing is missing, and is given up when, past its plan, it keeps no more than
// the best: it would keep less and less.
func (b *Block) descend() {
	spent := b.steps - b.started
	if spent > b.plan && b.kept+len(b.missing) <= b.top {
		b.nextRound()
		return
	}
	if spent > overrun*b.plan {
		b.insertAll()
	}
	if b.switches > fillFrom && spent >= b.fillAt {
		if 4*spent > 5*b.plan {
			b.nextRound()
			return
		}
		b.fillUp(spent)
		return
	}
	if n := len(b.missing); n > 0 && n <= b.look {
		b.lookAhead()
		return
	}
	if len(b.missing) > 0 {
		if spent >= b.warmer {
			b.warm(spent)
		}
		b.repair(b.heat)
		return
	}
	if b.record(); b.phase != settled {
		b.become(polishing)
	}
}

// warm sets what belongs to this time of a descent.
func (b *Block) warm(spent int) {
	done := int(int64(spent) << 8 / int64(b.plan))
	if b.auction = done <= auctionEnd; !b.auction {
		clear(b.dearer)
		b.bid = 0 // so that every port is told
	}
	b.offer(bidFirst + (bidLast-bidFirst)*done>>8)
	b.heat = uint64(heatFirst + (heatLast-heatFirst)*min(done, 256)>>8)
	b.late = max(16, done>>4)
	b.warmer = int((int64(done+1)*int64(b.plan) + 255) >> 8)
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

// fillUp remembers what chains, and a switch or two given up, end the descent
// with, if that is better than what there is, and leaves the descent where it was.
func (b *Block) fillUp(spent int) {
	b.fillAt = spent + max(b.plan/8, len(b.place))
	b.steps += len(b.place)
	f, e := newFilling(b.group), 0
	for k := range b.switches {
		f.open = append(f.open, k)
	}
	for n, l := range b.group.Links {
		for range l.circuits() {
			if place := int(b.place[e]); place >= 0 {
				x, y := l.I, l.J
				if place&1 != 0 {
					x, y = y, x
				}
				f.put(0, place>>1, x, y, int32(n))
			}
			e++
		}
	}
	h := f.half()
	if n := h.Kept(b.group.Old); n > b.top {
		b.top, b.best = n, b.placesOf(h)
	}
	if b.top >= b.prices.bound {
		b.become(settled)
	}
}

// placesOf is where the links of the block are in a configuration.
func (b *Block) placesOf(h Half) []int16 {
	next := map[[2]int32]int{}
	e := 0
	for _, l := range b.group.Links {
		next[[2]int32{l.I, l.J}] = e
		e += int(l.circuits())
	}
	out := make([]int16, len(b.place))
	for k := range h.Switches {
		for i, j := range h.Row(k) {
			if j < 0 {
				continue
			}
			i, j, place := int32(i), j, 2*k
			if i > j {
				i, j, place = j, i, place+1
			}
			out[next[[2]int32{i, j}]] = int16(place)
			next[[2]int32{i, j}]++
		}
	}
	return out
}

// improvePrices makes one subgradient round; each counts half a step a link,
// which is about what it costs.
func (b *Block) improvePrices() {
	cost := len(b.place)/2 + 1
	if b.priced == 0 {
		if b.toPrice = priceRounds; b.switches > fillFrom {
			b.toPrice /= 2
		}
		if b.prices.rounds > 0 {
			b.toPrice = min(morePrices, b.plan/10/cost)
		}
		b.prices.begin()
	}
	if b.priced < b.toPrice {
		b.prices.round(b.seats, b.toPrice)
		b.priced++
		b.steps += cost
		return
	}
	b.priced = 0
	if b.top >= b.prices.bound {
		b.become(settled)
		return
	}
	b.startDescent()
	if b.top >= 0 && len(b.missing) < len(b.place) { // a descent has ended before
		b.reopen()
	}
}

// reopen begins a descent from where the last one ended, or from the best where
// that was given up: some lost circuits are forced back, and what is missing
// bids what it would some way down.
func (b *Block) reopen() {
	if len(b.missing) > 0 {
		b.clear()
		for e, place := range b.best {
			b.put(int32(e), int(place))
		}
	}
	b.started -= min(b.plan, longestDescent*len(b.place)) * reopenedAt / 100
	for range reopened {
		if e, place := b.lost(); e >= 0 {
			b.force(e, place)
		}
	}
}

// nextRound prices anew for a longer descent.
func (b *Block) nextRound() {
	b.plan = min(b.plan*growth, longestDescent*max(1, b.pods/128)*len(b.place))
	b.become(pricing)
}

// offer has missing links bid about so much.
func (b *Block) offer(bid int) {
	if bid = min(bid, mostBid) / bidStep * bidStep; bid != b.bid {
		b.setBid(bid)
	}
}

// polish is one try to force a lost circuit back and to repair what that
// broke. It is kept unless it loses.
func (b *Block) polish() {
	if b.steps-b.began >= b.plan/polishShare {
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
	b.offer(bidFirst + b.rng.Below(bidLast-bidFirst))
	warm := uint64(b.rng.Below(heatLast))
	for end := b.steps + tryLength; len(b.missing) > 0; {
		if b.steps >= end || b.kept+tryLoss < before || len(b.missing) > tryMissing {
			b.undo()
			return
		}
		b.repair(warm)
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
		if b.old[e] == (places{}) || b.place[e] < 0 || b.isOld(e, int(b.place[e])) {
			continue
		}
		old, place := b.old[e], 0
		for n, at := b.rng.Below(old.count()), 0; at <= n; place++ {
			if old.has(place) {
				at++
			}
		}
		place--
		if low, high := b.ports(e, place); b.at[low] < 0 || b.at[low] != b.at[high] {
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
