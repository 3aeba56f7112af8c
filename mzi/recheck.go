package mzi

import (
	"fmt"
	"math"

	"periph.io/x/conn/v3/physic"
)

// recheck looks at the light itself before a search fails for what light says of a cell: a
// supply that dipped has reset chips, a bus garbles what it carries, a laser is not steady,
// a diode shows much in the dark. What it finds is said beside the cause, since either may
// be so.
type recheck struct {
	err   *CellError // nil: the search goes on
	at    int
	lit   float64            // watt, the most that any diode showed with no laser on
	heats [2][diodes]showing // with MZI1 of all lanes cold, and warm
	odd   int                // readings that stand alone
}

// showing is what a diode shows of all lasers again and again.
type showing struct {
	last      [2]float64 // the two readings before
	sum       float64    // of this block
	low, high float64    // means of blocks
}

const (
	// chosen: of a byte in 10,000 that is wrong, eight or more of a reading's, one is seen
	// nine times in ten; some seconds of board time.
	recheckReadings = 4096
	recheckBlock    = 128
	// A reading stands alone that differs from those before and after, which agree ten times
	// better. chosen: by more than fifty steps of a lane's converter.
	recheckAlone = 25e-6
	recheckAgree = 0.1
	// chosen: what a laser may change by within seconds and no stage minds.
	recheckSteady = 0.015
	// oddDark is what a lane's diode shows in the dark, or its zero lies below its
	// converter's, for it to be doubted, watt; a tap, whose range is as much wider, tapSteps
	// times that. chosen: fifty steps; modules with forty are found.
	oddDark  = 25e-6
	tapSteps = 4
)

// next takes a reading and asks for the next one, the first with no laser on and then with
// all, while heaters go to and fro; at the end the search fails.
func (r *recheck) next(s *Search) bool {
	for d := range diodes {
		y := float64(*s.sweep.sample.on(d)) / float64(physic.Watt)
		switch {
		case r.at == 0:
			r.lit = max(r.lit, y-float64(max(*s.result.Dark.on(d), 0))/float64(physic.Watt))
		case r.at > 0 && r.heats[r.at%2][d].take(r.at/2, y):
			r.odd++
		}
	}
	if r.at++; r.at <= recheckReadings {
		lasers := uint8(1<<s.cfg.Lanes - 1)
		if r.at == 0 {
			lasers = 0
		}
		for k := range s.cfg.Lanes {
			s.heat(CellMZI1+k, float64(s.max[CellMZI1+k]/2)*float64(r.at%2))
		}
		s.pause = s.cfg.MostSettle
		return s.once(seeLevel, ReadAll, lasers)
	}
	s.err, r.err = r.err, nil
	s.err.(*CellError).Figure += r.doubts(s)
	return false
}

// take takes the n-th reading, and says whether the one before stands alone.
func (x *showing) take(n int, y float64) (alone bool) {
	before, was := x.last[0], x.last[1]
	x.last = [2]float64{was, y}
	apart := min(math.Abs(was-before), math.Abs(was-y))
	x.sum += y
	if n%recheckBlock == 0 {
		mean := x.sum / recheckBlock
		x.sum = 0
		switch n / recheckBlock {
		case 0, 1: // what is slow is on its way still
		case 2:
			x.low, x.high = mean, mean
		default:
			x.low, x.high = min(x.low, mean), max(x.high, mean)
		}
	}
	return n > 2 && apart > recheckAlone && math.Abs(y-before) < float64(recheckAgree*apart)
}

// doubts is what else may be the cause, "" for nothing.
func (r *recheck) doubts(s *Search) (text string) {
	most, change, dark, odd := 0.0, 0.0, oddDark, -1
	for d := range diodes {
		for i := range r.heats {
			x := &r.heats[i][d]
			if most = max(most, x.high); x.high > 40*oddDark {
				change = max(change, (x.high-x.low)/x.high)
			}
		}
		shows := math.Abs(float64(*s.result.Dark.on(d)) / float64(physic.Watt))
		if d >= Lanes {
			shows /= tapSteps
		}
		if shows > dark {
			dark, odd = shows, d
		}
	}
	switch {
	case most < 4*oddDark:
		text = "; or a supply that dipped: no diode shows the light of all lasers any more"
	case r.lit > 4*oddDark:
		text = fmt.Sprintf("; or a supply that dipped, and chips that were reset: %.2f mW of light with no laser on", 1000*r.lit)
	}
	if r.odd > 0 {
		text += fmt.Sprintf("; or data errors of a bus: of %d readings of all diodes %d stand alone", recheckReadings, r.odd)
	}
	if change > recheckSteady && r.odd == 0 {
		text += fmt.Sprintf("; or lasers that are not steady: %.1f %% within seconds", 100*change)
	}
	if odd >= Lanes {
		text += fmt.Sprintf("; or Tx tap %d, that shows %v in the dark", odd-Lanes+1, *s.result.Dark.on(odd))
	} else if odd >= 0 {
		text += fmt.Sprintf("; or the diode of lane %d, that shows %v in the dark", odd, *s.result.Dark.on(odd))
	}
	return text
}
