package wiring

// repair places one missing link, drawn at random, where that costs least:
// the toll, and for a port that is taken the bid less what the link there
// pays, so that one which sits badly is pushed out sooner.
func (b *Block) repair(warm uint64) {
	b.steps++
	draw := b.rng.Next()
	e := b.missing[draw>>32*uint64(len(b.missing))>>32]
	b.perturb(uint(draw), warm)
	if at := b.cheapest(e, uint(draw>>8)%chances); at >= 0 {
		b.force(e, at)
	}
}

// perturb draws four chances anew.
func (b *Block) perturb(at uint, warm uint64) {
	r := b.rng.Next()
	word := (r&0xffff*warm>>16 | r>>16&0xffff*warm>>16<<16 | r>>32&0xffff*warm>>16<<32 | r>>48*warm>>16<<48) << wordBits
	at %= chances
	b.chance[at] = word
	if at < maxWords {
		b.chance[at+chances] = word
	}
}

// cheapest is a link's cheapest place; chance, its words from some one on, adds
// to the price of each.
func (b *Block) cheapest(e int32, from uint) int {
	words := b.words()
	toll := b.toll[int(e)*words:][:words]
	low, high := b.push[uint(b.low[e])/lanes:][:words], b.push[uint(b.high[e])/lanes:][:words]
	held, was := -1, uint64(0)
	if b.until[e] > int32(b.steps-b.started) && !b.isFree(e, int(b.from[e])) {
		held = int(b.from[e]) / lanes
		was = toll[held]
		setLane(toll, int(b.from[e]), noPlace)
	}
	at, cost := -1, noPlace
	for first := 0; first < words; first += maxWords {
		n := min(maxWords, words-first)
		toll, low, high, chance := toll[first:][:n], low[first:][:n], high[first:][:n], b.chance[from:][:n]
		best := uint64(topLane - eachLane)
		for k, t := range toll {
			best = least(best, t+low[k]+swapped(high[k])+chance[k])
		}
		if place, c := leastLane(best); c < cost {
			at, cost = first*lanes+place, c
		}
		from = (from + nextChance) % chances
	}
	if held >= 0 {
		toll[held] = was
	}
	return at
}

// force puts a link in a place, whoever is there.
func (b *Block) force(e int32, place int) {
	if b.place[e] >= 0 {
		b.drop(e)
	}
	low, high := b.ports(e, place)
	if b.at[low] >= 0 {
		b.oust(low)
	}
	if b.at[high] >= 0 {
		b.oust(high)
	}
	b.put(e, place)
}

// oust pushes the link in a port out of its place.
func (b *Block) oust(port int) {
	e := b.at[port]
	if b.auction {
		b.dearer[port] = min(b.dearer[port]+contested, dearest)
	}
	hold := holdFirst + b.rng.Below(holdSpan)*(len(b.missing)+4)/16*b.late/16
	b.from[e], b.until[e] = b.place[e], int32(b.steps-b.started+hold)
	b.drop(e)
}
