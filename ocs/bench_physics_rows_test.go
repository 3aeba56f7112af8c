package ocs_test

import (
	"time"

	"ringlight/hal"
	"ringlight/sim"
)

// physicsRow is one world that is not ours: what is changed of the default
// board's, what its maker states of it, and what may be said of it.
type physicsRow struct {
	name  string
	world func(*sim.Physics)
	maker func(*hal.HeaterLimits) // nil: as the default board's
	// causes are those for which a module may fail here; none: all calibrate.
	causes []string
	faults []sim.Fault            // planted in the first module, on its buses and chips
	during func(*rig)             // what happens ten seconds into each calibration
	wires  func(real *hal.Optics) // how the board is wired that the file does not say
	chips  bool                   // there is no such row of modules with a controller
	fibres []string               // laid, as plugs are; a trial of fibres tries them
	trial  string                 // what a trial says, of the first bundle; "": there is none
}

// Causes that the physics of a row may give, and what a search calls them.
const (
	causeReach   = "its phase is beyond its heater's limits"
	causeOdd     = "resistance is none that is stated"
	causeSlow    = "its heat does not settle in time"
	causeLeaks   = "too little extinction"
	causeStrays  = "light comes out elsewhere"
	causeNoLight = "no light"
	causeNoise   = "too noisy"
	causeStill   = "phase does not stand still"
	causeFollow  = "light does not follow the heater"
)

// roomy is a maker's heater for more power: with it a phase of two pi is in
// reach.
func roomy(milliwatt, milliampere int64) func(*hal.HeaterLimits) {
	return func(h *hal.HeaterLimits) {
		h.MaxMillivolt, h.MaxMicrowatt, h.MaxMicroampere, h.ModuleMicrowatt = 10_000, milliwatt*1000, milliampere*1000, 4_000_000
	}
}

// settles is a maker's word that heat stands still so late.
func settles(after time.Duration) func(*hal.HeaterLimits) {
	return func(h *hal.HeaterLimits) { h.MostSettle = after }
}

var physicsRows = []physicsRow{
	{name: "nothing", world: func(*sim.Physics) {}},
	{name: "P_pi within 15 %", world: func(p *sim.Physics) { p.PPiSpread = 0.15 }},
	{name: "P_pi within 19 %", world: func(p *sim.Physics) { p.PPiSpread = 0.19 }},
	{name: "P_pi within 25 %", world: func(p *sim.Physics) { p.PPiSpread = 0.25 }, causes: []string{causeReach}},
	{name: "P_pi 7 mW, stated are 10 to 60", world: func(p *sim.Physics) { p.PPi = 7 }, causes: []string{"not as with a power for pi"}},
	{name: "P_pi 15 mW", world: func(p *sim.Physics) { p.PPi = 15 }},
	{name: "P_pi 19 mW", world: func(p *sim.Physics) { p.PPi = 19 }},
	{name: "P_pi 32 mW, heaters of 60 mW", world: func(p *sim.Physics) { p.PPi = 32 }, causes: []string{causeReach}},
	{name: "P_pi 32 mW, heaters of 80 mW", world: func(p *sim.Physics) { p.PPi = 32 }, maker: roomy(80, 10)},
	{name: "P_pi 40 mW, heaters of 100 mW", world: func(p *sim.Physics) { p.PPi = 40 }, maker: roomy(100, 12)},
	// The file of riser states 850 to 1,150 ohm.
	{name: "heater 500 ohm, 15 mA", world: func(p *sim.Physics) { p.HeaterOhm = 500 }, maker: roomy(60, 15), causes: []string{causeOdd}},
	{name: "heater 700 ohm", world: func(p *sim.Physics) { p.HeaterOhm = 700 }, causes: []string{causeOdd}},
	{name: "heater 1,200 ohm", world: func(p *sim.Physics) { p.HeaterOhm = 1200 }, causes: []string{causeOdd}},
	{name: "heater 1,500 ohm, up to 10 V", world: func(p *sim.Physics) { p.HeaterOhm = 1500 }, maker: roomy(60, 10), causes: []string{causeOdd}},
	{name: "heater 2,000 ohm, up to 10 V", world: func(p *sim.Physics) { p.HeaterOhm = 2000 }, maker: roomy(60, 10), causes: []string{causeReach, causeOdd}},
	{name: "heater 2,000 ohm, P_pi 20 mW, 10 V", world: func(p *sim.Physics) { p.HeaterOhm, p.PPi = 2000, 20 }, maker: roomy(60, 10), causes: []string{causeOdd}},
	{name: "heater +3 % at full drive", world: func(p *sim.Physics) { p.HeaterTCR = 0.03 }},
	{name: "heater +8 % at full drive", world: func(p *sim.Physics) { p.HeaterTCR = 0.08 }},
	{name: "heater +16 % at full drive", world: func(p *sim.Physics) { p.HeaterTCR = 0.16 }, causes: []string{causeReach, causeLeaks, causeStrays}},
	// Cell 7 and cell 8 lie side by side and on different nets: the one cannot be set
	// for both phases of the other. 6 % of pi is 0.09 rad either way, which with the
	// couplers' 28 dB leaves 24 dB; 4 %, with a fifth more between some cells, 25.2.
	{name: "crosstalk 4 %", world: func(p *sim.Physics) { p.Crosstalk = 0.04 }, causes: []string{causeLeaks}},
	{name: "crosstalk 6 %", world: func(p *sim.Physics) { p.Crosstalk = 0.06 }, causes: []string{causeLeaks}},
	{name: "crosstalk 12 %", world: func(p *sim.Physics) { p.Crosstalk = 0.12 }, causes: []string{causeReach, causeLeaks, causeStrays}},
	{name: "crosstalk 2 % to the cell 8 apart", world: func(p *sim.Physics) { p.CrosstalkRow = 0.02 }},
	{name: "crosstalk 2 %, half more behind", world: func(p *sim.Physics) { p.Skew = 0.5 }},
	{name: "crosstalk 2 %, all of it behind", world: func(p *sim.Physics) { p.Skew = 1 }, causes: []string{causeLeaks}},
	{name: "thermal tail 2 % of 0.1 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.02, 0.1 }},
	{name: "thermal tail 2 % of 1 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.02, 1 }, causes: []string{causeSlow}},
	{name: "thermal tail 5 % of 1 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 1 }, causes: []string{causeSlow}},
	{name: "thermal tail 5 % of 20 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 20 }, causes: []string{causeSlow}},
	{name: "thermal tail 5 % of 200 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 200 }, causes: []string{causeSlow}},
	{name: "thermal tail 2 % of 1 ms, as stated", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.02, 1 }, maker: settles(15 * time.Millisecond)},
	{name: "thermal tail 5 % of 1.5 ms, as stated", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 1.5 }, maker: settles(20 * time.Millisecond)},
	{name: "common heating 8 K/W", world: func(p *sim.Physics) { p.CommonK = 8 }},
	{name: "time constant 5 us", world: func(p *sim.Physics) { p.TauUS = 5 }},
	{name: "time constant 26 us", world: func(p *sim.Physics) { p.TauUS = 26 }},
	{name: "time constant 32 us", world: func(p *sim.Physics) { p.TauUS = 32 }},
	{name: "time constant 40 us", world: func(p *sim.Physics) { p.TauUS = 40 }},
	{name: "time constant 100 us", world: func(p *sim.Physics) { p.TauUS = 100 }},
	{name: "time constant 400 us", world: func(p *sim.Physics) { p.TauUS = 400 }, causes: []string{causeSlow}},
	{name: "ADC noise x2", world: func(p *sim.Physics) { p.ADCNoise = 2 }},
	{name: "ADC noise x3", world: func(p *sim.Physics) { p.ADCNoise = 3 }},
	{name: "ADC noise x10", world: func(p *sim.Physics) { p.ADCNoise = 10 }, causes: []string{causeNoise, causeLeaks, causeStrays}},
	{name: "laser wander 0.5 % over 10 s", world: func(p *sim.Physics) { p.LaserWander = 0.005 }},
	{name: "laser wander 2 % over 2 s", world: func(p *sim.Physics) { p.LaserWander, p.LaserWanderS = 0.02, 2 }},
	{name: "laser noise 0.1 % rms", world: func(p *sim.Physics) { p.LaserRIN = 0.001 }},
	{name: "diode saturation 10 mW", world: func(p *sim.Physics) { p.Saturation = 10 }},
	{name: "diode saturation 3 mW", world: func(p *sim.Physics) { p.Saturation = 3 }, causes: []string{causeLeaks, causeStrays}},
	{name: "ADC off 5 %, 8 codes", world: func(p *sim.Physics) { p.ADCGain, p.ADCOffset = 0.05, 8 }},
	{name: "ADC bow 8 codes", world: func(p *sim.Physics) { p.ADCBow = 8 }},
	{name: "ADC bow 40 codes", world: func(p *sim.Physics) { p.ADCBow = 40 }},
	{name: "DAC bow 50 mV", world: func(p *sim.Physics) { p.DACBow = 50 }},
	{name: "lasers -0.3 dB", world: func(p *sim.Physics) { p.LaserAgeing = 0.3 }},
	{name: "lasers -2 dB", world: func(p *sim.Physics) { p.LaserAgeing = 2 }},
	// What a cell lets through at its best is then less than a step of a tap's converter:
	// a sound module may be refused, which is not so with -2 dB.
	{name: "lasers -4 dB", world: func(p *sim.Physics) { p.LaserAgeing = 4 }, causes: []string{causeNoLight, causeLeaks}},
	{name: "ripple 0.1 % of 10 ms", world: func(p *sim.Physics) { p.LaserWander, p.LaserWanderS = 0.001, 0.01 }},
	{name: "ripple 0.1 % of 8 ms, tail 1 % of 2 ms", world: func(p *sim.Physics) { p.LaserWander, p.LaserWanderS, p.Tail, p.TailMS = 0.001, 0.008, 0.01, 2 }, causes: []string{causeSlow}},
	{name: "ripple 0.1 % of 8 ms, tail 1 % of 2 ms, as stated", world: func(p *sim.Physics) { p.LaserWander, p.LaserWanderS, p.Tail, p.TailMS = 0.001, 0.008, 0.01, 2 }, maker: settles(20 * time.Millisecond)},
	{name: "power steps of 0.3 dB each 0.5 s", world: func(p *sim.Physics) { p.LaserStep, p.LaserStepS = 0.07, 0.5 }, causes: []string{"not steady"}},
	{name: "power steps of 1 dB each 3 s", world: func(p *sim.Physics) { p.LaserStep, p.LaserStepS = 0.2, 3 }, causes: []string{"not steady"}},
	{name: "case +-10 K a day, +-3 K an hour", world: func(p *sim.Physics) { p.CaseDay, p.CaseHour = 10, 3 }},
	{name: "case +-10 K an hour", world: func(p *sim.Physics) { p.CaseHour = 10 }, causes: []string{causeStill}},
	{name: "dark current of 40 codes", world: func(p *sim.Physics) { p.ADCOffset = 40 }},
	{name: "dark current of 150 codes", world: func(p *sim.Physics) { p.ADCOffset = 150 }, causes: []string{"in the dark"}},
	{name: "a dead laser", world: same, causes: []string{causeNoLight}, faults: []sim.Fault{{Kind: sim.LaserDead, Index: 5}}},
	{name: "a dead lane diode", world: same, causes: []string{causeNoLight}, faults: []sim.Fault{{Kind: sim.DiodeDead, Path: hal.LOSLoopback, Index: 2}}},
	{name: "an open heater", world: same, causes: []string{"heater open"}, faults: []sim.Fault{{Kind: sim.HeaterStuck, Index: 12}}},
	{name: "a short heater", world: same, causes: []string{"heater short"}, faults: []sim.Fault{{Kind: sim.HeaterShort, Index: 30}}},
	{name: "a cell that walks", world: same, causes: []string{causeStill, causeLeaks}, faults: []sim.Fault{{Kind: sim.CellWalk, Index: 9}}},
	{name: "noise of 12 codes on all diodes", world: same, causes: []string{causeNoise, causeLeaks, causeStrays}, faults: []sim.Fault{{Kind: sim.DiodeNoise, Index: 12}}},
	{name: "lane diodes 2 and 3 swapped", world: same, faults: []sim.Fault{{Kind: sim.Swapped, Index: 2}},
		causes: []string{"the diode of lane 3, elsewhere"}}, // of six lanes they are of different halves,
	{name: "lane diodes 2 and 6 swapped", world: same, causes: []string{"the board file has", "none at the loopback diode of lane 2"}, wires: func(o *hal.Optics) { o.Lanes[2], o.Lanes[6] = o.Lanes[6], o.Lanes[2] }, chips: true},
	{name: "half-sums of loopback swapped", world: same, faults: []sim.Fault{{Kind: sim.Swapped, Index: hal.Lanes + hal.GuardLoopUpper}}},
	// Light that leaves by the other fibre only the far end tells.
	{name: "Tx taps swapped", world: same, faults: []sim.Fault{{Kind: sim.Swapped, Index: hal.Lanes + hal.GuardTap1}}, fibres: fibresTold[:1],
		trial: "bundle 0 of node 0 sends by the other path's fibre what it sends to external1: its Tx taps, or the fibres behind them, are swapped"},
	{name: "fibres of both paths swapped", world: same, fibres: []string{"0/external1-1/external2", "0/external2-1/external1"},
		trial: "swap the plugs at"},
	{name: "heaters of MZI1 2 and 3 swapped", world: same, wires: swapHeaters(2, 3), causes: []string{"moves it: swapped"}, chips: true},
	{name: "heaters of MZI2 4 and MZI1 7 swapped", world: same, wires: swapHeaters(12, 7), causes: []string{"moves it: swapped"}, chips: true},
	{name: "heaters of two matrix cells swapped", world: same, wires: swapHeaters(17, 30), causes: []string{causeFollow, "no way found through it"}, chips: true},
	{name: "a brown-out in calibration", world: same, causes: []string{"a supply that dipped", "supply may have dipped"}, during: func(r *rig) { r.plant(sim.Fault{Kind: sim.BrownOut}) }},
	{name: "a bit wrong in 1 of 10,000 bytes read", world: same, causes: []string{"data errors"}, during: func(r *rig) { r.garble(10_000) }},
	{name: "a bit wrong in 1 of 2,000 bytes read", world: same, causes: []string{"data errors"}, during: func(r *rig) { r.garble(2000) }},
	// A module in a cage, on a riser: its connector is loose.
	{name: "a bit wrong in 1 of 10,000 frames to DACs", world: same, causes: []string{"data errors"}, during: func(r *rig) { r.loosen(10_000) }, chips: true},
	{name: "a bit wrong in 1 of 300 frames to DACs", world: same, causes: []string{"data errors"}, during: func(r *rig) { r.loosen(300) }, chips: true},
	{name: "0.1 % of calls 3 ms late", world: func(p *sim.Physics) { p.LateCall = 0.001 }},
	{name: "1 % of calls 3 ms late", world: func(p *sim.Physics) { p.LateCall = 0.01 }},
}

// same is the default board's physics.
func same(*sim.Physics) {}

// fibresTold are those that a trial is told of.
var fibresTold = []string{"0/external1-1/external1", "0/external2-1/external2"}

// swapHeaters is a module whose heaters of two cells are swapped.
func swapHeaters(a, b int) func(*hal.Optics) {
	return func(o *hal.Optics) { o.Heaters[a], o.Heaters[b] = o.Heaters[b], o.Heaters[a] }
}

// loosen flips a bit of one frame in so many to the first bundle's DACs.
func (r *rig) loosen(frames int) {
	r.plant(sim.Fault{Kind: sim.FrameFlip, Bus: r.board.Bundles[0].Modules[0].SPI, Index: frames})
}

// garble flips a bit of one byte in so many that the first module's chips send.
func (r *rig) garble(bytes int) {
	hw := &r.board.Bundles[0].Modules[0]
	if hw.Kind == hal.KindCMIS {
		r.plant(sim.Fault{Kind: sim.WireFlip, Bus: hw.MCI, Addr: hal.MCIAddr, Index: bytes})
		return
	}
	for _, addr := range []uint16{hw.Guard, hw.LaneADC} {
		r.plant(sim.Fault{Kind: sim.WireFlip, Bus: hw.ADC, Addr: addr, Index: bytes})
	}
}
