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
}

func wire(o *hal.Optics) *wired {
	w := &wired{Optics: o, straight: true, benes: slices.Equal(o.Couplers, hal.Benes), all: 1<<o.Cells() - 1,
		assert: hal.HalfLanes * detmath.FromDB(float64(o.LOSAssertMilliDBm)/1000),
		clear:  hal.HalfLanes * detmath.FromDB(float64(o.LOSClearMilliDBm)/1000)}
	for adc, senses := range [numADCs][]hal.Sense{guardADC: o.Guard[:], laneADC: o.Lanes[:]} {
		for n, s := range senses {
			w.full[adc][s.Channel] = detmath.FromDB(float64(s.FullScaleMilliDBm) / 1000)
			w.sees[adc][s.Channel] = uint8(n)
			w.straight = w.straight && int(s.Channel) == n
		}
	}
	return w
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
