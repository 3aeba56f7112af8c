package mzi

import (
	"math"
	"slices"

	"ringlight/mzi/detmath"

	"periph.io/x/conn/v3/physic"
)

// A converter shows nothing of a diode whose zero lies below its own: what it reads
// in the dark is 0, and so is what it reads of a little light. How far below is
// found by light itself, since one laser and another together show more than the sum of
// both alone by what the zero takes off each; and where a little light is to be
// seen, another lane puts a little more on the diode. Diodes are the lanes' and both
// taps.
const diodes = Lanes + 2

// below finds the diodes whose zero is too low, and how low.
type below struct {
	dark  [diodes]bool // reads 0 in the dark
	one   [diodes]uint8
	two   [diodes]uint8
	alone [Lanes]Sample
	sum   [diodes]float64 // watt, of all rounds
	diode int

	squares [diodes]float64 // of readings, watt^2
	rough   [diodes]float64 // watt, that keep noise off the converter's zero
}

const (
	// chosen: of a diode at zero a fifth of the conversions show a step, and one in
	// 10^12 shows none in so many looks of 32.
	darkLooks = 4
	// chosen: ten steps of a tap's converter and forty of a lane's: out of the dark,
	// and dim enough that no diode saturates.
	dim = 20e-6
	// chosen: what a zero is known to is a tenth of a step then.
	belowRounds = 4
)

const (
	// Of noise around nought a converter shows what is above, whose mean is four times
	// what averages of 32 are off; of noise two deviations above nought it shows all, and
	// the mean is eleven times that. chosen: a little more.
	cutOff = 12
	// chosen: what looks are off is known to a fifth.
	cutLooks = 16
	// chosen: three deviations of the noise.
	roughOff = 20
)

// on is what a sample has of a diode.
func (x *Sample) on(diode int) *physic.Power {
	if diode < Lanes {
		return &x.Lane[diode]
	}
	return &x.Tap[diode-Lanes]
}

// look notes what the diodes show with no light, and of those that show nothing
// how far below that their zero is.
func (b *below) look(s *Search) bool {
	sample := &s.sweep.sample
	step := s.step
	s.step++
	switch {
	case step == 0:
		return s.once(seeDark, ReadAll, 0)
	case step == 1:
		s.result.Dark = *sample
	case step <= darkLooks:
	case step <= darkLooks+s.cfg.Lanes:
		b.alone[step-darkLooks-1] = *sample
	default:
		b.took(s, (step-darkLooks-s.cfg.Lanes-1)%3)
	}
	if step <= darkLooks {
		for d := range b.dark {
			b.dark[d] = (d < s.cfg.Lanes || d >= Lanes) && *sample.on(d) == 0 && (step == 1 || b.dark[d])
		}
		if !slices.Contains(b.dark[:], true) {
			return false
		}
	}
	switch {
	case step < darkLooks:
		return s.once(seeDark, ReadAll, 0)
	case step < darkLooks+s.cfg.Lanes:
		return s.once(seeDark, ReadAll, 1<<(step-darkLooks))
	case step == darkLooks+s.cfg.Lanes:
		b.pair(s.cfg.Lanes)
	}
	// Of each diode, in rounds: the one laser, the other, both.
	n := step - darkLooks - s.cfg.Lanes
	for b.diode < diodes && b.one[b.diode] == b.two[b.diode] {
		b.diode++
	}
	if b.diode == diodes {
		return false
	}
	lasers := [3]uint8{b.one[b.diode], b.two[b.diode], b.one[b.diode] | b.two[b.diode]}[n%3]
	return s.once(seeDark, ReadAll, lasers)
}

// again notes more surely what the diodes show with no light: it is taken off all that
// follow. A converter that cuts half of the noise off shows too little of a little light,
// too.
func (b *below) again(s *Search) bool {
	tries := max(s.tries(), cutLooks)
	if s.step == 0 {
		b.sum, b.squares = [diodes]float64{}, [diodes]float64{}
	} else {
		for d := range b.sum {
			y := float64(*s.sweep.sample.on(d)) / float64(physic.Watt)
			b.sum[d] += y
			b.squares[d] += float64(y * y)
		}
	}
	if s.step < tries {
		s.step++
		return s.once(seeDark, ReadAll, 0)
	}
	n := float64(tries)
	for d := range b.sum {
		mean := b.sum[d] / n
		off := math.Sqrt(max(b.squares[d]/n-float64(mean*mean), 0))
		if !b.dark[d] {
			*s.result.Dark.on(d) = physic.Power(mean * float64(physic.Watt))
			b.dark[d] = mean < float64(cutOff*off)
		}
		b.rough[d] = float64(roughOff * off)
	}
	return false
}

// pair chooses the two dimmest lasers that each diode in question sees; where there
// are none, its zero is taken for its converter's.
func (b *below) pair(lanes int) {
	for d, dark := range b.dark {
		best := [2]physic.Power{math.MaxInt64, math.MaxInt64}
		var which [2]uint8
		for l := range b.alone[:lanes] {
			switch p := *b.alone[l].on(d); {
			case !dark || float64(p) < dim*float64(physic.Watt):
			case p < best[0]:
				best, which = [2]physic.Power{p, best[0]}, [2]uint8{1 << l, which[0]}
			case p < best[1]:
				best[1], which[1] = p, 1<<l
			}
		}
		if which[1] != 0 {
			b.one[d], b.two[d] = which[0], which[1]
		}
	}
}

// took takes a reading of the diode under way: one laser, the other, or both.
func (b *below) took(s *Search, which int) {
	d := b.diode
	y := float64(*s.sweep.sample.on(d))
	if which < 2 {
		b.sum[d] += y
		return
	}
	b.sum[d] -= y
	if n := (s.step - darkLooks - s.cfg.Lanes - 1) / 3 % belowRounds; n == 0 {
		*s.result.Dark.on(d) = min(physic.Power(b.sum[d]/belowRounds), 0)
		b.diode++
	}
}

// pedestal is light of another lane on a diode that would not show a little.
type pedestal struct {
	lane int     // whose laser; -1: none is needed
	asks bool    // the reading under way is of that light alone
	y    float64 // and what was seen of it
	view view    // of the cell
	k    int
}

const (
	// chosen: out of the dark by as much as the zero is below it, and by a
	// hundredth of all light for noise.
	pedestalZeros = 2
	pedestalShare = 0.01
	pedestalMost  = 0.2 // of a lane's light
)

// low says how far below its converter's the zero of a diode lies, in watt.
func (b *below) low(s *Search, diode int) float64 {
	return -float64(min(*s.result.Dark.on(diode), 0)) / float64(physic.Watt)
}

// lift sees to it that what a cell sends the wrong way is seen, by a diode that shows
// little light: the cells of another lane are moved for it.
func (p *pedestal) lift(s *Search, k int, v view) {
	*p = pedestal{lane: -1, view: v, k: k}
	t := &s.touch
	switch v.see {
	case seeTap1, seeTap2:
		d := Lanes + int(v.see-seeTap1)
		if !s.below.dark[d] {
			return
		}
		other := int(s.loop[k%Lanes])
		p.lane = other
		j := k/Lanes*Lanes + other
		turn(s, j, litPhase(j, t.lit, s.result.Setting), s.below.share(s, d, s.light(j)))
	case seeLane:
		if !s.below.dark[v.lane] {
			return
		}
		c := k - CellMatrix
		setting := s.result.Setting ^ t.flips[c]
		for _, line := range s.cfg.Matrix.through(setting, c) {
			if line.Out == v.lane {
				p.lane = line.In
			}
		}
		j := CellMZI1 + p.lane
		turn(s, j, PhaseBar, s.below.share(s, v.lane, s.light(j)))
	case seeLoop:
		p.liftLoop(s, k)
	}
	// What that heat adds is nothing that the cell has in service.
	d := s.m.Background(k, &s.u) - s.m.Background(k, &t.home)
	s.heat(k, s.u[k]-d/s.m.Cells[k].Slope)
}

// liftLoop is for an MZI1 that is external: what it leaves inside comes to one diode of
// loopback, and the lane that shares the last cell with it is turned there a little.
func (p *pedestal) liftLoop(s *Search, k int) {
	if !slices.Contains(s.below.dark[:Lanes], true) {
		return
	}
	line := s.cfg.Matrix.Lines(s.result.Setting)[k-CellMZI1]
	p.view.see, p.view.lane = seeLane, line.Out
	if !s.below.dark[line.Out] {
		return
	}
	cells := line.Cells()
	last := cells[len(cells)-1]
	for _, l := range s.cfg.Matrix.through(s.result.Setting, last) {
		if l.In != line.In {
			p.lane = l.In
		}
	}
	j := CellMZI1 + p.lane
	turn(s, j, PhaseCross, 0)
	turn(s, CellMatrix+last, s.result.Setting.Phase(last), s.below.share(s, line.Out, s.light(j)))
}

// share of a light that lifts a diode.
func (b *below) share(s *Search, diode int, light float64) float64 {
	return min(pedestalShare+(float64(pedestalZeros*b.low(s, diode))+b.rough[diode])/light, pedestalMost)
}

// turn brings a cell to where a share of its light goes the other way than in a state.
func turn(s *Search, k int, state, share float64) {
	x := math.Sqrt(share)
	s.heat(k, s.m.heat(k, state+float64(2*detmath.Atan2(x, math.Sqrt(1-share))), &s.u, s.u[k], s.max[k]))
}

// lookAt looks at a cell on a diode that is to be dark, after what lifts it.
func (p *pedestal) lookAt(s *Search, k int, what see, laser, lane int) bool {
	p.lift(s, k, view{see: what, laser: laser, lane: lane})
	if p.lane < 0 {
		return s.around(k, p.view.see, laser, p.view.lane)
	}
	p.asks = true
	s.look(k, p.view.see, p.lane, p.view.lane, s.u[k])
	return s.until(float64(nullSure*s.light(k)), max(nullLeastReadings, s.tries()), nullReadings)
}

// lifted goes on from what lifts a diode to the cell itself.
func (p *pedestal) lifted(s *Search) bool {
	if !p.asks {
		return false
	}
	p.asks, p.y = false, s.sweep.pts.y[0]
	s.around(p.k, p.view.see, p.view.laser, p.view.lane)
	s.drive.Lasers |= 1 << p.lane
	return true
}

// straying is what of a lane's light comes to the diodes that show little light: the
// lanes that belong there put some on them, without that lane's and with it.
type straying struct {
	at   int // readings taken
	base Sample
}

// read takes a reading of a lane's light in loopback, and says whether more are
// needed.
func (x *straying) read(s *Search, lane int) bool {
	sample := &s.sweep.sample
	x.at++
	switch x.at {
	case 1:
		out := s.loop[lane]
		s.result.LaneLoop[out] = sample.Lane[out]
		for o := range sample.Lane {
			s.stray[lane][o] = max(sample.Lane[o]-s.result.Dark.Lane[o], 0)
		}
		lasers := x.lift(s, lane)
		return lasers != 0 && s.once(seeLevel, ReadLanes, lasers)
	case 2:
		x.base = *sample
		return s.once(seeLevel, ReadLanes, s.drive.Lasers|1<<lane)
	}
	for j, out := range s.loop[:s.cfg.Lanes] {
		if j != lane && s.below.dark[out] {
			s.stray[lane][out] = max(sample.Lane[out]-x.base.Lane[out], 0)
		}
	}
	return false
}

// lift lets each of the other lanes whose diode shows little light put some on
// it, and says which these are.
func (x *straying) lift(s *Search, lane int) (lasers uint8) {
	for j, out := range s.loop[:s.cfg.Lanes] {
		if k := CellMZI1 + j; j != lane && s.below.dark[out] {
			turn(s, k, PhaseBar, s.below.share(s, int(out), s.light(k)))
			lasers |= 1 << j
		}
	}
	return lasers
}
