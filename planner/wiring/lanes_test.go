package wiring

import (
	"testing"

	"ringlight/mzi/detmath"
)

// What four lanes at once find is what a look at one place after the other
// finds.
// Method: random tolls, what is paid, what ports grew dearer by, bids and
// chance, all of them at their limits now and then, on 1 to MaxBlock switches.
func TestLanesFindTheCheapestPlace(t *testing.T) {
	r := detmath.Random(21)
	drawn := func(most int) int { return []int{0, most, r.Below(most + 1), r.Below(most + 1)}[r.Below(4)] }
	for range 3000 {
		switches := 1 + r.Below(MaxBlock)
		b := newBlock(Topology{2, []Link{{0, 1, 1}}}, NewHalf(2, switches), r.Next())
		b.prices.setTolls(b.seats)
		for place := range b.places() {
			setLane(b.toll, place, []int{drawn(mostToll), noPlace}[r.Below(8)/7])
		}
		bid, most := drawn(mostBid), 0
		if bid <= 370 {
			most = dearest
		}
		for pod := range 2 {
			for place := range b.places() {
				port := pod*b.words()*lanes + place
				b.paid[port], b.dearer[port] = int16(drawn(mostToll)), int16(drawn(most))
				if r.Below(3) == 0 {
					b.paid[port] = unpaid
				}
			}
		}
		b.setBid(bid)
		for range 500 {
			b.perturb(uint(r.Next()), uint64(drawn(heatLast)))
		}
		from := r.Below(chances)
		best := noPlace
		costs := make([]int, b.places())
		for place := range costs {
			low, high := b.ports(0, place)
			cost := b.tollOf(0, place) + laneOf(b.chance[(from+place/(lanes*maxWords)*nextChance)%chances:], place%(lanes*maxWords))
			for _, port := range []int{low, high} {
				cost += max(0, bid-int(b.paid[port])) + int(b.dearer[port])
			}
			costs[place] = cost
			best = min(best, cost)
		}
		at := b.cheapest(0, uint(from))
		switch {
		case at < 0 && best < noPlace, at >= b.places(), at >= 0 && costs[at] != best:
			t.Fatalf("%d switches, bid %d: place %d of %v", switches, bid, at, costs)
		}
	}
}
