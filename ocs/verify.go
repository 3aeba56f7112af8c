package ocs

import (
	"errors"
	"math"
	"strconv"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs/diode"
	"ringlight/proto"
)

// How far a module's own light may lie below what its calibration saw.
const (
	failMilliDB    = proto.LeastLightBelow // half the light is gone: the path is not there
	degradeMilliDB = 400                   // chosen: what warmth and drift may cost; beyond it somebody should look
	laneShare      = 0.6                   // chosen: of the weakest lane's share of a tap, which noise does not take
)

// verification reads the modules' own light on the path in use: the Tx tap of
// an external path, the lane diodes in loopback. The LOS lines have told by
// then whether there is light; this names who lacks it, and may demote a path.
type verification struct {
	t       *Transceiver
	out     int  // reads on the bus
	again   bool // asked for once more meanwhile
	stale   bool // the path has changed under the reads
	routine bool // asked for by a health round: only news are told
	told    finding
	path    proto.Path
	worst   proto.MilliDBm // measured less expected
	module  uint8          // it is about
	lane    uint8
	readErr error

	expected, measured proto.MilliDBm              // of the worst module, last finished reading
	light              [hal.MaxModules]moduleLight // by module, of an external path
	received           proto.MilliDBm              // a lane, of the half that has the least: what comes to an external path
}

// finding is what a verification said last.
type finding struct {
	kind         EventKind
	path         proto.Path
	module, lane uint8
}

// forget is reset for a new life, or what takes the place of what is under way.
func (v *verification) forget() {
	*v = verification{t: v.t}
	v.reset()
}

// reset drops what is under way: the path changes. What was measured is of no
// use any more.
func (v *verification) reset() {
	v.again, v.stale = false, v.out > 0
	v.expected, v.measured = proto.NoPower, proto.NoPower
}

// start reads every module once.
func (v *verification) start() {
	v.routine = false
	v.look()
}

// round looks at the own light without a cause, so that a laser which
// dies under way is found.
func (v *verification) round() {
	if v.t.state == Idle && v.t.path != proto.Dark && !v.t.sw.busy() && v.out == 0 {
		v.routine = true
		v.look()
	}
}

func (v *verification) look() {
	if v.out > 0 {
		v.again = true
		return
	}
	v.path, v.stale, v.readErr = v.t.path, false, nil
	v.worst, v.module, v.lane = 0, None, None
	v.expected, v.measured, v.received = proto.NoPower, proto.NoPower, proto.NoPower
	for i := range v.light {
		v.light[i] = noLight
	}
	v.out = v.t.drive.look()
}

// accounted takes one module's reading; in the dark there is nothing to judge.
func (v *verification) accounted(now time.Duration, module int, block []byte, err error) {
	v.out--
	if err != nil && v.readErr == nil {
		v.readErr = &ModuleError{Module: module, Err: err}
	}
	if err == nil && !v.stale && v.path != proto.Dark && v.t.cfg.Calibration != nil {
		v.judge(v.t.bundle.Modules[module].Optics(), v.t.cfg.Calibration.Modules[module], uint8(module), block)
	}
	if v.out > 0 {
		return
	}
	switch {
	case v.t.state != Idle || v.t.sw.busy():
	case v.stale || v.again:
		v.again = false
		v.start()
	case v.path == proto.Dark || v.t.cfg.Calibration == nil || errors.Is(v.readErr, ErrTriggerMissed):
	default:
		v.concluded(now)
	}
}

func (v *verification) judge(o *hal.Optics, m *ModuleCalibration, module uint8, block []byte) {
	if v.path == proto.Loopback {
		for lane := range o.LaneCount {
			v.compare(m.LaneLoop[lane], diode.LaneLevel(o, block, lane), module, uint8(lane))
		}
		return
	}
	which := int(v.path - proto.External1)
	got := diode.GuardLevel(o, block, hal.GuardTap1+which)
	levels := m.LaneTap[which][:o.LaneCount]
	want := sumLevel(levels)
	lane, _ := missing(levels, want, got)
	v.compare(want, got, module, lane)
	light := &v.light[module]
	light.launched, light.lost = got-proto.MilliDBm(o.LanesMilliDB()), want-got
	for half := range 2 {
		lane := diode.GuardLevel(o, block, hal.GuardExt1Upper+2*which+half) - proto.MilliDBm(o.HalfMilliDB())
		light.received[half] = lane
		if v.received == proto.NoPower || lane < v.received {
			v.received = lane
		}
	}
}

// Recheck reads own light and what comes to the path in use, once more; Verified,
// Degraded or PathFailed tells.
func (t *Transceiver) Recheck() {
	if t.state == Idle && t.path != proto.Dark && !t.sw.busy() {
		t.verify.start()
	}
}

// sumLevel adds the powers of levels.
func sumLevel(levels []proto.MilliDBm) proto.MilliDBm {
	milliwatt := 0.0
	for _, p := range levels {
		if p != proto.NoPower {
			milliwatt += detmath.FromDB(float64(p) / 1000)
		}
	}
	if milliwatt <= 0 {
		return hal.DarkMilliDBm
	}
	return proto.MilliDBm(math.Floor(float64(detmath.DB(milliwatt)*1000) + 0.5))
}

// missing says whether a tap lacks a good half of the weakest lane's share or more, and
// which lane's it comes nearest to; None where it is more than any one's.
func missing(lanes []proto.MilliDBm, want, got proto.MilliDBm) (lane uint8, some bool) {
	lack := detmath.FromDB(float64(want)/1000) - detmath.FromDB(float64(got)/1000)
	best, least, weakest, most := uint8(None), math.MaxFloat64, math.MaxFloat64, 0.0
	for l, level := range lanes {
		share := detmath.FromDB(float64(level) / 1000)
		weakest, most = min(weakest, share), max(most, share)
		if d := math.Abs(lack - share); d < least {
			best, least = uint8(l), d
		}
	}
	one := float64(weakest * laneShare)
	if lack < one || lack > most+one {
		best = None
	}
	return best, lack >= one
}

func (v *verification) compare(want, got proto.MilliDBm, module, lane uint8) {
	if diff := got - want; v.expected == proto.NoPower || diff < v.worst {
		v.worst, v.module, v.lane = diff, module, lane
		v.expected, v.measured = want, got
	}
}

// concluded says what the reads showed.
func (v *verification) concluded(now time.Duration) {
	e := Event{At: now, Path: v.path, Module: v.module, Cell: None, Lane: v.lane, Expected: v.expected, Measured: v.measured, Received: v.received, Err: v.readErr}
	stray, straying := v.t.Health.strays(now)
	switch {
	case v.expected == proto.NoPower && v.path == proto.Loopback && !v.t.lit[v.path]: // there the light is our own
		e.Kind, e.Text = PathFailed, "no light, and own light cannot be read"
		e.Module, e.Lane = None, None
		v.t.port = proto.Failed
	case v.expected == proto.NoPower: // nothing could be read
		e.Kind, e.Text = Degraded, "own light cannot be read"
		e.Module, e.Lane = None, None
	case v.worst < -failMilliDB:
		e.Kind, e.Text = PathFailed, below(v.worst)
		v.t.port = proto.Failed
	case v.t.Health.hot != 0:
		e = v.t.Health.tooHot(now)
	case stray.Kind == PathFailed:
		e = stray
		v.t.port = proto.Failed
	case v.path.External() && v.lane != None:
		e.Kind, e.Text = Degraded, below(v.worst)+": this lane's, or a little of all" // a tap sums them
	case v.worst < -degradeMilliDB:
		e.Kind, e.Text = Degraded, below(v.worst)
	case straying:
		e = stray
	case v.readErr != nil:
		e.Kind, e.Text = Degraded, "own light of a module cannot be read"
		e.Module, e.Lane = moduleOf(v.readErr), None
	default:
		e.Kind = Verified
		if v.t.port == proto.Failed {
			v.t.port = proto.Tuning
			v.t.settleLight()
		}
	}
	found := finding{e.Kind, e.Path, e.Module, e.Lane}
	if e.Kind == Verified {
		found.module, found.lane = None, None // which module is weakest is no news
	}
	news := found != v.told
	v.told = found
	if news || !v.routine {
		v.t.emit(e)
	}
}

// moduleOf is the module that an error names, or None.
func moduleOf(err error) uint8 {
	if m, ok := errors.AsType[*ModuleError](err); ok {
		return uint8(m.Module)
	}
	return None
}

func below(by proto.MilliDBm) string {
	return "own light is " + strconv.FormatFloat(float64(-by)/1000, 'f', 2, 64) + " dB below its calibration"
}
