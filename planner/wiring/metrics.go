package wiring

import "math"

// Fit compares the links that are realised with those that were asked for,
// over any number of groups.
type Fit struct {
	Asked, Realised int // links; realised ones beyond what was asked do not count

	both, asked, realised int64 // sums of products over the matrices
}

// Add takes in one group. Realised links are as Half.Links or
// Matchings.Links give them.
func (f *Fit) Add(t Topology, realised []Link) {
	n := 0
	for _, l := range t.Links {
		for n < len(realised) && byPair(realised[n], l) < 0 {
			f.realised += square(realised[n])
			n++
		}
		f.Asked += int(l.circuits())
		f.asked += square(l)
		if n < len(realised) && byPair(realised[n], l) == 0 {
			r := realised[n]
			f.Realised += int(min(l.circuits(), r.circuits()))
			f.both += entries(l) * int64(l.Count) * int64(r.Count)
			f.realised += square(r)
			n++
		}
	}
	for ; n < len(realised); n++ {
		f.realised += square(realised[n])
	}
}

// entries is how often a pair stands in the whole matrix.
func entries(l Link) int64 {
	if l.I == l.J {
		return 1
	}
	return 2
}

func square(l Link) int64 { return entries(l) * int64(l.Count) * int64(l.Count) }

// LTRR is the logical topology realisation rate of [CROSS] eq. 15, for
// reports. It is a cosine, so it is 1 even where half of every pair's links
// are missing: print links realised of links asked beside it.
func (f Fit) LTRR() float64 {
	if f.asked == 0 || f.realised == 0 {
		if f.asked == f.realised {
			return 1
		}
		return 0
	}
	return float64(f.both) / math.Sqrt(float64(f.asked)*float64(f.realised))
}
