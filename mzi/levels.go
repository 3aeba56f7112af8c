package mzi

import (
	"fmt"
	"math"
	"slices"

	"periph.io/x/conn/v3/physic"
)

// Own is what a module's own diodes say of it with the codes found, the worst of
// all, in thousandths of a dB.
type Own struct {
	MZI      int32 // extinction of MZI1 and MZI2
	Matrix   int32 // and of the cells of the matrix
	Path     int32 // light of a lane in loopback over what of it comes out at any other
	PathLoss int32 // light of a lane in loopback that comes out elsewhere
}

// least is the least extinction of cells, of those that there are.
func least(extinction []int32) int32 {
	found := int32(math.MaxInt32)
	for _, x := range extinction {
		if x != 0 {
			found = min(found, x)
		}
	}
	return found
}

// laneSpread is how many times the weakest lane's light in loopback goes into
// the strongest one's at most. chosen: lanes of a sound module lie within 5 dB.
const laneSpread = 10

// everyLaneSeen: each diode sees its lane in loopback. Where one is blind, the
// cells whose light it was to show have been set by noise.
func (s *Search) everyLaneSeen() bool {
	most := slices.Max(s.result.LaneLoop[:])
	for lane, out := range s.loop[:s.cfg.Lanes] {
		if s.result.LaneLoop[out] < max(physic.MicroWatt, most/laneSpread) {
			s.fail(CellMZI1+lane, NoLight, fmt.Sprintf("%v on the diode of lane %d", s.result.LaneLoop[out], out))
			return false
		}
	}
	return true
}

// stepLevels notes what the module's own diodes see of each lane alone, in each
// setting.
func (s *Search) stepLevels() bool {
	if s.step > 0 {
		lit, lane := Lit((s.step-1)/s.cfg.Lanes), (s.step-1)%s.cfg.Lanes
		sample := &s.sweep.sample
		switch lit {
		case Loop:
			if s.straying.read(s, lane) {
				return true
			}
			s.straying = straying{}
		default:
			s.result.LaneTap[lit-Ext1][lane] = sample.Tap[lit-Ext1]
		}
	}
	if s.step == s.cfg.Lanes && (!s.everyLaneSeen() || !s.accepted() || !s.pathsAccepted()) {
		return false
	}
	if s.step == int(numLits)*s.cfg.Lanes {
		for k := range Cells {
			s.heat(k, 0)
		}
		return false
	}
	lit, lane := Lit(s.step/s.cfg.Lanes), s.step%s.cfg.Lanes
	s.place(lit)
	s.step++
	read := ReadLanes
	if lit != Loop {
		read = ReadTaps
	}
	return s.once(seeLevel, read, 1<<lane)
}

// pathsAccepted says whether each lane's light comes out where it should, and
// little else with it.
func (s *Search) pathsAccepted() bool {
	o := &s.result.Own
	*o = Own{MZI: least(s.result.Extinction[:CellMatrix]), Matrix: least(s.result.Extinction[CellMatrix:]), Path: 1 << 30}
	for lane, out := range s.loop[:s.cfg.Lanes] {
		right := s.stray[lane][out]
		all, other := physic.Power(0), physic.Power(0)
		for i := range s.cfg.Lanes {
			all += s.stray[lane][i]
			if i != int(out) {
				other = max(other, s.stray[lane][i])
			}
		}
		path, lost := extinction(ratio(other, right+other)), loss(ratio(right, all))
		if o.Path = min(o.Path, path); path < LeastPath {
			s.fail(CellMZI1+lane, Strays, fmt.Sprintf("%.1f dB below it on another lane's diode than that of %d, wanted %d", float64(path)/1000, out, LeastPath/1000))
			return false
		}
		if o.PathLoss = max(o.PathLoss, lost); lost > MostPathLoss {
			s.fail(CellMZI1+lane, Strays, fmt.Sprintf("%.2f dB of it, at most %.1f wanted", float64(lost)/1000, MostPathLoss/1000.0))
			return false
		}
	}
	return true
}
