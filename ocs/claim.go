package ocs

import (
	"fmt"
	"math"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/mzi/detmath"
	"ringlight/ocs/heater"
	"ringlight/proto"
)

// MZI1 and MZI2 of a path count as good cell by cell, each by its own last look: how far
// off that left it, how far off the look may be, and how far the cell goes by itself, as
// its looks have found it to. What calibration saw is a cell's look as long as it has no
// other.

const (
	// claimWalk is what a cell drifts, radian^2 a second, that was not found to do more:
	// the 50 mrad in 6 h of docs/board.md.
	claimWalk = 2.4e-7
	// claimMost is more than any cell is believed to drift. chosen: in a second it takes
	// four deviations to what costs 25 dB of 28; who goes faster shows in the look itself.
	claimMost = 2.5e-4
	// claimFades is what is left at a look of the drift that earlier ones found. chosen:
	// one that is by chance where it was for five looks is looked at often still.
	claimFades = 0.8
	// claimChance is of what both looks may be off the part of a square that counts as no
	// drift. chosen: of 16 cells that stand still one has more in every fifth look.
	claimChance = 6
	// claimSure is by how many deviations. chosen: of 16 cells one in a thousand.
	claimSure = 4
	// claimFound is what a calibration leaves a cell off, radian: it ends within that.
	claimFound = 0.008
	// claimTrimmed is what a controller leaves a cell off, rms, of the largest error that its
	// look found. chosen: of sixteen that are off by chance one is by 2.5 deviations, and
	// trimming by seven tenths of what is found leaves .6 of one.
	claimTrimmed = 0.3
	// claimKelvin is what a case does to a cell, radian a kelvin; claimCarried, of that,
	// where a lock has learned it. chosen: silicon's in docs/board.md.
	claimKelvin  = 0.02
	claimCarried = 0.25
)

// sight is the last look at a cell.
type sight struct {
	at     time.Duration
	seen   bool    // no: at is when that was calibrated, or found
	square float64 // radian^2, what it may have been off then
	walk   float64 // radian^2 a second
}

// found takes what a look found of a cell, beyond what all cells had in common, with its
// variance; left is what is known of it after.
func (s *sight) found(now time.Duration, off, variance, left float64) {
	if s.seen && now > s.at {
		went := (float64(off*off) - float64(claimChance*(variance+s.square))) / (float64(now-s.at) / float64(time.Second))
		s.walk = min(max(claimWalk, claimFades*s.walk, went), claimMost)
	}
	s.seen, s.at, s.square, s.walk = true, now, left, max(s.walk, claimWalk)
}

// may is how far off a cell may be by itself after a time.
func (s *sight) may(now time.Duration) float64 {
	return claimSure * math.Sqrt(s.square+float64(s.walk*(float64(now-s.at)/float64(time.Second))))
}

// lasts is after how long that is all the room there is; 0: it is from the beginning.
func (s *sight) lasts(room float64) time.Duration {
	x := room / claimSure
	seconds := (float64(x*x) - s.square) / s.walk
	if !(room > 0 && seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 1e6) * float64(time.Second))
}

// rooms are how much further off, in radian, the cells of a path may be than they are
// known to be.
type rooms struct {
	path  proto.Path
	codes *heater.Codes // for which they were made
	own   bool          // as a module's own lock has trimmed them
	of    [lockCells]float64
}

// leastPathLeak and leastCellLeak are the shares that may go the wrong way.
var leastCellLeak, leastPathLeak = detmath.FromDB(-float64(mzi.LeastExtinction) / 1000), detmath.FromDB(-float64(mzi.LeastPath) / 1000)

// make those of a module whose cells stand by now as moved says, nil: right. A path of loopback wants
// less.
func (r *rooms) make(t *Transceiver, module int, moved *ModuleCalibration) {
	codes := t.heat.codes(module)
	if r.codes == codes && r.path == t.path && r.own == (moved == nil) {
		return
	}
	r.codes, r.path, r.own = codes, t.path, moved == nil
	cal := t.cfg.Calibration.Modules[module]
	made, _ := cal.model(&t.bundle.Modules[module].Optics().Heater)
	model := made
	if !r.own {
		model, _ = moved.model(&t.bundle.Modules[module].Optics().Heater)
	}
	began, volts := voltages(cal.codes()), voltages(codes)
	allowed := leastCellLeak
	if t.path == proto.Loopback {
		allowed = leastPathLeak
	}
	for k := range r.of {
		null := leastCellLeak / 2 // of a calibration that did not note it. chosen
		if db := cal.Extinction[k]; db != 0 {
			off := 0.0
			for lit := mzi.Loop; lit <= mzi.Ext2; lit++ {
				sin := detmath.Sin(made.Error(k, lit, 0, &began) / 2)
				off = max(off, float64(sin*sin))
			}
			null = max(detmath.FromDB(-float64(db)/1000)-off, 0)
		}
		r.of[k] = float64(2 * math.Sqrt(max(allowed-null, 0)))
		if !r.own {
			r.of[k] -= math.Abs(model.Error(k, litOf(t.path), 0, &volts))
		}
	}
}

// shines says whether light of a path passes a cell.
func shines(k int, p proto.Path) bool { return k < hal.CellMZI2 || p.External() }

// claim is why a cell of a module does not count as good, "": all do. kelvin is how far its
// case may be from where that was found.
func (p *proof) claim(t *Transceiver, now time.Duration, module int, kelvin float64) string {
	r := &t.rooms[module]
	r.make(t, module, p.moved)
	for k, room := range r.of {
		if !shines(k, t.path) || !t.bundle.Modules[module].Optics().Has(k) {
			continue
		}
		s := &sight{at: p.since, square: max(claimFound*claimFound, p.found*p.found), walk: claimWalk}
		switch {
		case p.sights == nil:
		case p.sights[k].seen && p.sights[k].at > t.calibrated:
			s = &p.sights[k]
		case t.foundIt:
			return fmt.Sprintf("cell %d (%s) %s", k, mzi.CellName(k), notInThisLife)
		default:
			s.at = t.calibrated
		}
		if may := float64(kelvin*p.slope) + s.may(now); may > room {
			return fmt.Sprintf("cell %d (%s) may be off by %.0f mrad more than its last look found, and %.0f cost too much", k, mzi.CellName(k), 1000*may, 1000*max(room, 0))
		}
	}
	return ""
}

// doubts is how far a case may move cells until it is read again, radian a kelvin, beyond
// what a lock has learned.
func (c *carry) doubts() float64 {
	if c.slope() == 0 {
		return claimKelvin
	}
	return claimCarried * claimKelvin
}

// within brings the next look forward to when the first cell would no longer count as good;
// a cell that cannot is not looked at more often for that.
func (m *lockModule) within(now time.Duration, r *rooms, least time.Duration) {
	for k := range m.sights {
		if s := &m.sights[k]; s.seen && shines(k, r.path) {
			if d := s.lasts(r.of[k] - float64(m.carry.doubts()*lookKelvin)); d > 0 && d < m.period {
				m.period = max(d, least)
				m.next = min(m.next, now+m.period)
			}
		}
	}
}
