package sim

import (
	"fmt"
	"math"

	"ringlight/hal"
	"ringlight/hal/ad5535b"
)

// What follows is what the maker of a MEMS board knows of it and what its
// checkers see; none of it is for agents.

func (w *World) mirrors(id BoardID) *mems {
	m := w.boards[id].mems
	if m == nil {
		panic(fmt.Sprintf("sim: board %d has no mirrors", id))
	}
	return m
}

func (b *board) carrier() int32 { return b.ambientMilli + carrierAdd }

// Maker is who made a board of mirrors: it measured the board before anything
// aged, or does when it is asked.
type Maker struct{ m *mems }

// Maker of a board.
func (w *World) Maker(id BoardID) Maker { return Maker{w.mirrors(id)} }

// Drive is how far from hal.MirrorBias the factory found that the
// electrodes must stand for a path from port a to port b: x and y of the
// mirror of A, x and y of that of B.
func (f Maker) Drive(a, b int) (drive [4]int16) {
	angle := f.m.aim(a, b)
	for side, port := range [hal.NumSides]int{a, b} {
		for i := range 2 {
			drive[2*side+i] = f.m.arrays[side][port].axes[i].driveFor(angle[side][i])
		}
	}
	return drive
}

// Park is where a mirror points at nothing.
func (f Maker) Park(side, port int) (drive [2]int16) {
	for i := range drive {
		// The sides park to opposite corners, so that two parked mirrors do
		// not look at each other.
		angle := memsParkAngle
		if side == hal.SideB && i == 0 {
			angle = -angle
		}
		drive[i] = f.m.arrays[side][port].axes[i].driveFor(angle)
	}
	return drive
}

func (x *axis) driveFor(angle float64) int16 {
	bias := float64(ad5535b.Microvolt(hal.MirrorBias, hal.MirrorReferenceMillivolt)) * 1e-6
	step := float64(ad5535b.Microvolt(1<<12, hal.MirrorReferenceMillivolt)) * 1e-6 / (1 << 12)
	codes := (angle - x.mount) / x.gain / (4 * bias * step)
	return int16(math.Floor(codes + 0.5))
}

// Loss is the insertion loss of a path as it was measured.
func (f Maker) Loss(a, b int, milliTHz, millicelsius int32) (milliDB int32) {
	h := derive(derive(f.m.seed, seedFactory), uint64(a)<<16|uint64(b))
	return int32(1000 * (f.m.pathLoss(a, b, milliTHz, millicelsius) + between(h, -memsFactoryErr, memsFactoryErr)))
}

// SetMirrorInput changes the light that comes in at a port of side A.
func (w *World) SetMirrorInput(id BoardID, port int, in InputLight) {
	w.mirrors(id).setInput(port, in)
}

// MirrorLoss is the true loss from port a to port b now, at most
// NoLightMilliDB.
func (w *World) MirrorLoss(id BoardID, a, b int) (milliDB int32) {
	loss := w.mirrors(id).loss(int64(w.now), a, b, w.boards[id].carrier())
	return int32(1000 * min(loss, memsNoLightLoss))
}

// NoLightMilliDB is the loss at which there is no path.
const NoLightMilliDB = 1000 * memsNoLightLoss

// MirrorOutput is the true light that leaves at port b of side B in
// milliwatts.
func (w *World) MirrorOutput(id BoardID, b int) float64 {
	return w.mirrors(id).leaves(int64(w.now), b, w.boards[id].carrier())
}

// PulledIn is how many mirrors hang on their stops.
func (w *World) PulledIn(id BoardID) (n int) {
	m := w.mirrors(id)
	for side := range m.arrays {
		for p := range m.arrays[side] {
			for i := range m.arrays[side][p].axes {
				if x := &m.arrays[side][p].axes[i]; x.pulled != 0 || int64(w.now) >= x.pullAt {
					n++
					break
				}
			}
		}
	}
	return n
}

// CreepMirror makes both axes of a mirror creep without bound from now on, by
// so many microradian an hour; 0 ends it where it is.
func (w *World) CreepMirror(id BoardID, side, port int, microradPerHour int32) {
	now := int64(w.now)
	for i := range w.mirrors(id).arrays[side][port].axes {
		x := &w.mirrors(id).arrays[side][port].axes[i]
		x.crept += float64(x.creep * float64(now-x.creepSince) * seconds)
		x.creep, x.creepSince = float64(microradPerHour)*1e-6/3600, now
	}
}

// StickMirror makes a mirror deaf to its electrodes, or well again.
func (w *World) StickMirror(id BoardID, side, port int, stuck bool) {
	mi := &w.mirrors(id).arrays[side][port]
	mi.stuck = stuck
	mi.pull(int64(w.now))
}

// NoisyMonitors lets all monitors of a board see noise of so many codes, rms; 0
// is what they have.
func (w *World) NoisyMonitors(id BoardID, codes int) { w.mirrors(id).noise = float64(codes) }
