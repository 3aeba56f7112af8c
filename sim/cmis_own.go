package sim

import (
	"encoding/binary"
	"math"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
)

// ownCodes are a module's own codes of all paths, which stay without power. How a maker
// finds them is its affair: the simulated one knows its cells.
type ownCodes struct {
	has, solved bool
	busy        bool // it calibrates itself
	failed      bool // and the last time came to nothing
	other       bool // Default was set by a host
	def         byte
	code        [2][cmis.Cells]uint16
	lane        [hal.NumLOS][hal.Lanes]float64 // milliwatts that each diode shows
}

// What the simulated module does by itself. chosen.
const (
	ownDefault     = cmis.TriggerValid | cmis.TriggerUpper | cmis.TriggerLower | hal.LOSExternal1
	ownCalibration = 12 * time.Second
	ownRounds      = 30 // of its search; crosstalk of 2 % is gone after a few
)

// powered is the module in ModuleReady: its codes go to the heaters, and nobody having
// said otherwise its default path is set, for whoever turns the lasers on.
func (o *ownCodes) powered(c *mci) {
	if !o.has {
		return
	}
	o.busy = false // low power has ended its calibration
	if !o.solved {
		o.solve(c)
	}
	o.stage(c)
	if !c.hosted && o.path(c) != 0 {
		c.fire(o.path(c))
	}
}

// path is the trigger of the default path, 0: there is none.
func (o *ownCodes) path(c *mci) byte {
	if o.other {
		return o.def
	}
	return ownDefault
}

// stage brings the own codes to the heaters.
func (o *ownCodes) stage(c *mci) {
	c.lock.trim, c.lock.large = [cmis.Cells]float64{}, [mciLockCells]float64{}
	c.forced, c.applied = o.code, true
	c.freeze()
	c.drive()
}

// command carries out a command of the own codes.
func (o *ownCodes) command(c *mci, id uint16, in []byte) (reply []byte, status byte) {
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	if want, known := map[uint16]int{cmis.CommandOwnInfo: 0, cmis.CommandOwnStage: 0, cmis.CommandOwnTrigger: 1,
		cmis.CommandOwnMeasure: 1, cmis.CommandOwnCalibrate: 0, cmis.CommandOwnDefault: 1}[id]; !known {
		return nil, cmis.CDBUnknown
	} else if len(in) != want {
		return nil, cmis.CDBBadValue
	}
	lit := (c.lower[cmis.InForce]|c.lower[cmis.Trigger])&lasers != 0
	busy := c.state() != cmis.ModuleReady || c.search || o.busy
	switch id {
	case cmis.CommandOwnInfo:
		x := cmis.Own{Pages: !c.timing.NoPages, Default: o.path(c), InForce: c.lower[cmis.InForce], Calibration: ownCalibration}
		switch {
		case o.busy:
			x.State = cmis.OwnCalibrating
		case o.failed:
			x.State = cmis.OwnFailed
		}
		return x.Bytes(), cmis.CDBSuccess
	case cmis.CommandOwnDefault:
		if in[0] != 0 && !cmis.ValidTrigger(in[0]) {
			return nil, cmis.CDBBadValue
		}
		o.other, o.def = true, in[0]
		if in[0]&lasers == 0 {
			o.def = 0
		}
		return nil, cmis.CDBSuccess
	case cmis.CommandOwnMeasure:
		return o.measure(c, int(in[0]))
	case cmis.CommandOwnTrigger:
		if c.triggered(in[0]); c.lower[cmis.TriggerAnswer] != byte(cmis.AnswerUnderWay) {
			return nil, cmis.CDBNotNow
		}
		return append(reply, c.lower[cmis.TriggerTook:cmis.TriggerTook+2]...), cmis.CDBSuccess
	}
	switch {
	case busy, id == cmis.CommandOwnCalibrate && lit, lit && c.forced != o.code:
		return nil, cmis.CDBNotNow // light would move
	case id == cmis.CommandOwnStage:
		o.stage(c)
	default:
		o.busy = true
		c.later(ownCalibration, mciOwn, 0)
	}
	return nil, cmis.CDBSuccess
}

// calibrated ends a calibration of the module's own.
func (o *ownCodes) calibrated(c *mci) {
	if !o.busy || c.state() != cmis.ModuleReady {
		o.busy = false
		return
	}
	o.busy = false
	if p := c.m.planted; p != nil && p.open|p.short != 0 {
		o.failed = true // a heater does not warm its cell
		return
	}
	o.failed = false
	o.solve(c)
	o.stage(c)
}

func (o *ownCodes) measure(c *mci, what int) (reply []byte, status byte) {
	if what == cmis.MeasureNow {
		c.refresh(cmis.PageService, false)
		return append(reply, c.pages[cmis.PageService][:cmis.Raised-cmis.Levels]...), cmis.CDBSuccess
	}
	if what > hal.NumLOS || !o.solved {
		return nil, cmis.CDBBadValue
	}
	for _, milliwatt := range o.lane[what-1] {
		reply = binary.BigEndian.AppendUint16(reply, uint16(float64(milliwatt*10_000)+0.5))
	}
	return reply, cmis.CDBSuccess
}

// solve finds the codes of all paths: in turn every cell is brought to its side, until
// none moves the others.
func (o *ownCodes) solve(c *mci) {
	m := c.m
	m.refresh()
	var phase [hal.CellsPerMod]float64
	var heat [2][cmis.Cells]float64
	for range ownRounds {
		for path := range hal.NumLOS {
			var warm padded
			for k := range cmis.Cells {
				warm[k+crosstalkBand] = m.per.warmthOf(k, float64(heaterMicrovolt(o.code[ownRegister(k, path)][k]))/1e6)
			}
			m.standing(&warm, m.wired.all, &phase)
			for k := range cmis.Cells {
				side, used := ownSide(k, path)
				if !used {
					continue
				}
				r := ownRegister(k, path)
				x := heat[r][k] + float64((side-phase[k])/pi)
				x -= float64(2 * math.Floor(x/2))
				heat[r][k], o.code[r][k] = x, o.least(c, k, x)
			}
			o.light(c, path, &phase)
		}
	}
	o.solved = true
}

// ownRegister is which code of a cell a path takes.
func ownRegister(k, path int) int {
	return boolToInt(k < hal.CellMZI2 && path != hal.LOSLoopback || k >= hal.CellMZI2 && k < hal.CellMatrix && path == hal.LOSExternal2)
}

// ownSide is the phase that a cell has on a path that uses it. In loopback the halves are
// swapped, by the middle column of the matrix.
func ownSide(k, path int) (phase float64, used bool) {
	const middle = hal.CellMatrix + hal.Lanes
	bar := false
	switch {
	case k < hal.CellMZI2:
		bar, used = path != hal.LOSLoopback, true
	case k < hal.CellMatrix:
		bar, used = path == hal.LOSExternal2, path != hal.LOSLoopback
	default:
		bar, used = k < middle || k >= middle+hal.Lanes/2, path == hal.LOSLoopback
	}
	if bar {
		phase = pi
	}
	return phase, used
}

// least is the least code that warms a heater so far, within what it bears.
func (o *ownCodes) least(c *mci, k int, warmth float64) (code uint16) {
	for bit := uint16(1 << 15); bit != 0; bit >>= 1 {
		if x := code | bit; c.allows(x) && c.m.per.warmthOf(k, float64(heaterMicrovolt(x))/1e6) <= warmth {
			code = x
		}
	}
	return code
}

// light notes what the diodes show of each lane on a path.
func (o *ownCodes) light(c *mci, path int, phase *[hal.CellsPerMod]float64) {
	per := c.m.per
	for l, p := range per.laser {
		bar := per.cells[hal.CellMZI1+l].bar(phase[hal.CellMZI1+l])
		if p *= cellGain; path == hal.LOSLoopback {
			to := l ^ hal.HalfLanes
			o.lane[path][to] = float64(float64(p*(1-bar)) * per.loopGain[to])
			continue
		}
		p, second := float64(float64(p*bar)*cellGain), per.cells[hal.CellMZI2+l].bar(phase[hal.CellMZI2+l])
		if path == hal.LOSExternal1 {
			second = 1 - second
		}
		o.lane[path][l] = float64(p * second)
	}
}
