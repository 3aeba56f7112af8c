package sim

import (
	"slices"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/mzi/detmath"
)

// wired is a board's data of one type of modules as this package reckons with them.
type wired struct {
	*hal.Optics
	full     [numADCs][ads7138.Channels]float64 // milliwatt of a full code, by channel
	sees     [numADCs][ads7138.Channels]uint8   // which light is on a channel
	assert   float64                            // LOS of a half-sum, milliwatt
	clear    float64
	benes    bool   // its matrix is hal.Benes
	all      uint64 // its cells, by bit
	straight bool   // light n is on channel n of both ADCs
	half     int    // lanes of one half
}

func wire(o *hal.Optics) *wired {
	w := &wired{Optics: o, straight: true, benes: slices.Equal(o.Couplers, hal.Benes), half: o.LaneCount / 2,
		assert: float64(o.LaneCount/2) * detmath.FromDB(float64(o.LOSAssertMilliDBm)/1000),
		clear:  float64(o.LaneCount/2) * detmath.FromDB(float64(o.LOSClearMilliDBm)/1000)}
	for k := range o.All {
		w.all |= 1 << k
	}
	for adc, senses := range [numADCs][]hal.Sense{guardADC: o.Guard[:], laneADC: o.Lanes[:]} {
		for n, s := range senses {
			w.full[adc][s.Channel] = detmath.FromDB(float64(s.FullScaleMilliDBm) / 1000)
			w.sees[adc][s.Channel] = uint8(n)
			w.straight = w.straight && int(s.Channel) == n
		}
	}
	return w
}

// lasers are the lanes of a half, by bit.
func (w *wired) lasers(half int) uint8 { return (1<<w.half - 1) << (half * w.half) }

// arrives is the lane at which light of a lane of another module arrives, if this one has it.
func (w *wired) arrives(lane int, crossed bool) (at int, has bool) {
	if at = lane; !crossed && lane < w.LaneCount { // straight: the other half
		at = w.Opposite(lane)
	}
	return at, at < w.LaneCount
}

// swapped has a photodiode and the next at each other's channels.
func (w *wired) swapped(n int) *wired {
	own := *w.Optics
	senses := own.Lanes[:]
	if n >= ads7138.Channels {
		senses, n = own.Guard[:], n-ads7138.Channels
	}
	a, b := &senses[n], &senses[(n+1)%ads7138.Channels]
	a.Channel, b.Channel = b.Channel, a.Channel
	return wire(&own)
}

// onChannels puts lights where their channels are.
func (w *wired) onChannels(adc converter, lights *[ads7138.Channels]float64) {
	if w.straight {
		return
	}
	by := *lights
	for ch, n := range w.sees[adc] {
		lights[ch] = by[n]
	}
}
