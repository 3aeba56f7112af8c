package ocs

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// In service the acceptance of a calibration is sampled: each health round reads a
// module's taps, and light where none should be tells, over all lanes, how much its
// MZI1 and MZI2 let through. A lock has its chance; what stays below is told, and what
// is below that of a path does not count as tuned. The matrix shows in the light of
// the lanes alone.

// misroutedRounds looks in a row say that it stays. chosen: a lock takes hold with the
// first, and needs less than a round.
const misroutedRounds = 3

// misroutedSlack is what is wanted more until what was told is over, thousandths of a dB.
// chosen: twice what readings differ by, so that a module at the limit is told once.
const misroutedSlack = 1000

const misroutedText = "lets light to the wrong side"

// misrouted is what the taps said last of a module's light that goes the wrong way.
type misrouted struct {
	path   proto.Path
	rounds int   // in a row that it was too much
	below  int32 // the path's light, thousandths of a dB
}

// tapLights are the light of a path, and what of it is on the wrong tap, in milliwatt.
// In loopback both taps are wrong.
func (m *ModuleCalibration) tapLights(o *hal.Optics, path proto.Path, taps []byte) (right, wrong float64) {
	var tap [2]float64
	for i := range tap {
		tap[i] = max(guardMilliwatt(o, taps, hal.GuardTap1, i)-float64(m.DarkTap[i])/1e6, 0)
	}
	switch path {
	case proto.External1:
		return tap[0], tap[1]
	case proto.External2:
		return tap[1], tap[0]
	}
	for _, level := range m.LaneTap[0] {
		right += milliwattOf(level)
	}
	return right, tap[0] + tap[1]
}

// sample takes a health round's look at a module's taps.
func (a *misrouted) sample(path proto.Path, below int32) {
	if path != a.path {
		*a = misrouted{path: path}
	}
	good := int32(mzi.LeastExtinction)
	if a.rounds >= misroutedRounds {
		good += misroutedSlack
	}
	if a.below = below; below >= good {
		a.rounds = 0
		return
	}
	a.rounds++
}

// below is by how much light on the wrong side is below that of the path, in
// thousandths of a dB; in the dark nothing is wrong, and nothing is asked of a module
// whose calibration did not note what its cells have.
func (m *ModuleCalibration) below(o *hal.Optics, path proto.Path, taps []byte) int32 {
	right, wrong := m.tapLights(o, path, taps)
	if !(right > 0) || m.Extinction[hal.CellMZI1] == 0 {
		return mzi.LeastExtinction
	}
	return int32(1000 * detmath.DB(right/max(wrong, right/1e6)))
}

// misroutes says whether too much of a module's light goes the wrong way, and stays.
func (h *Health) misroutes(module int) bool {
	if module >= len(h.last) {
		return false
	}
	a := &h.last[module].misrouted
	return a.path == h.t.path && a.rounds >= misroutedRounds
}

// forgetMisrouted: what taps said before a calibration says nothing of the light after it.
func (h *Health) forgetMisrouted() {
	for i := range h.last {
		h.last[i].misrouted = misrouted{}
	}
}

// strays is the event about the module of which most light goes the wrong way, if it is
// too much and stays.
func (h *Health) strays(now time.Duration) (e Event, found bool) {
	worst := -1
	for i := range h.last {
		if a := &h.last[i].misrouted; h.misroutes(i) && (worst < 0 || a.below < h.last[worst].misrouted.below) {
			worst = i
		}
	}
	// Whom it was told of last is told of again, so that two that are alike are no
	// news every round.
	if i := int(h.t.verify.told.module); h.t.verify.told.kind == Degraded && worst >= 0 && h.last[worst].misrouted.below >= mzi.LeastPath && h.misroutes(i) {
		worst = i
	}
	if worst < 0 {
		return e, false
	}
	below := h.last[worst].misrouted.below
	e = Event{Kind: Degraded, At: now, Path: h.t.path, Module: uint8(worst), Cell: None, Lane: None, Expected: proto.NoPower, Measured: proto.NoPower,
		Text: fmt.Sprintf("module %d: light on the wrong side is %.1f dB below that of %v, wanted %d", worst, float64(below)/1000, h.t.path, mzi.LeastExtinction/1000)}
	if below < mzi.LeastPath {
		e.Kind = PathFailed
	}
	if held := h.t.Holds(); worst < len(held) && held[worst].Looks > 0 && float64(max(held[worst].LastMicrorad, -held[worst].LastMicrorad)) > lockLost*1e6 {
		e.Cell = held[worst].LastCell
		e.Text += fmt.Sprintf("; cell %d (%s) is off by %d mrad", e.Cell, mzi.CellName(int(e.Cell)), held[worst].LastMicrorad/1000)
	}
	return e, true
}
