package sim

import (
	"ringlight/hal/ltc2688"
	"ringlight/mzi/detmath"
)

// dither is what an LTC2688 counts for channels in dither mode: rising edges of
// its sources since the mode was chosen. A chip that nobody told to dither has
// none.
type dither struct {
	edges [4]uint32                // of TGP0 to TGP2, from 1
	soft  [ltc2688.Channels]uint32 // of each channel's software source
	nets  [2]bool                  // levels of TGP0 and TGP1
}

// see takes the levels of the toggle pins.
func (d *dither) see(nets [2]bool) {
	for i, high := range nets {
		if high && !d.nets[i] {
			d.edges[ltc2688.SourceTGP0+i]++
		}
	}
	d.nets = nets
}

// softened takes a write to the software toggle register.
func (d *dither) softened(before, after uint16) {
	for ch := range d.soft {
		if after&^before>>ch&1 != 0 {
			d.soft[ch]++
		}
	}
}

// dithering reports whether a channel is in dither mode and enabled.
func (c *dac) dithering(ch int) bool {
	return c.dither != nil && c.toggle>>ch&1 != 0 && c.setting[ch]&ltc2688.SettingDither != 0
}

// sine is what the dither adds to a channel's code.
func (c *dac) sine(ch int) float64 {
	setting := c.setting[ch]
	n := c.dither.soft[ch]
	if source := ltc2688.Source(setting); source != ltc2688.SourceSoftware {
		n = c.dither.edges[source]
	}
	clocks := uint32(ltc2688.Clocks(setting))
	turn := float64(n%clocks)/float64(clocks) + float64(ltc2688.Quarter(setting))/4
	return float64(c.out[ch][1]&ltc2688.DitherAmplitudeMask) * detmath.Sin(2*pi*turn)
}

// ClockTGP2 gives the third toggle pin of a module's DACs n rising edges, as a
// clock generator would; on the default board nothing hangs there. It is for
// tests of the dither.
func (w *World) ClockTGP2(id BoardID, bundle, mod, n int) {
	b := w.boards[id]
	m := &b.bundles[bundle].modules[mod]
	for range n {
		for d := range m.dac {
			if m.dac[d].dither == nil {
				continue
			}
			m.dac[d].dither.edges[ltc2688.SourceTGP2]++
			if w.drive(b, m, d, 1<<ltc2688.Channels-1, b.netsOf(m)) {
				w.moduleChanged(b, bundle, 1<<mod)
			}
		}
	}
}
