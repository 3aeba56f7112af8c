package wear

import "math"

const (
	// every is between two points of a line. chosen: they are a mean over what a room and
	// its load do meanwhile, and a restart costs none.
	every = 4 * 60 // minutes
	// leastReadings of a point. chosen: five minutes of telemetry; a path that was in use for
	// less has its power and the one before it mixed.
	leastReadings = 30
	// fadeDays is the age at which points weigh about a third. chosen: what creeps at all does
	// over months; a laser that begins to after years is seen within weeks.
	fadeDays = 20.0
	// gapDays without a point: what the line did before says nothing any more. chosen.
	gapDays = 90.0
	// surely: the line is so many of its standard errors off level. chosen: of the lines of 10,000
	// nodes hardly one is by chance.
	surely = 5
	// leastPoints weigh so much at least, over leastSpread, which is the standard deviation of
	// their times: six days evenly. chosen: some days and nights.
	leastPoints, leastSpread = 30, 1.7
	// moved: over what was seen it goes by this share at least. chosen: a module that is some
	// degrees warmer takes as much.
	moved = 0.01
	// aStep of the share between two points is no creeping. chosen.
	aStep = 0.05
	// evenly is how long times are from end to end, in standard deviations, where they are even.
	evenly = 3.46

	minutesADay = 24 * 60
)

// line is what a laser or a heater path of a module takes.
type line struct {
	stored
	sum   float64 // of readings since the last point
	n     int32   // how many
	now   int32   // the last of them
	seq   uint32  // of the message that had it
	slope float32 // a day; 0: not for sure
}

// stored is a line in a record, and at rest: there are many.
type stored struct {
	place
	ID    uint32  // of the module, or of the calibration; 0: not known
	Last  uint32  // minute of the last point
	Begun float32 // the first point's value: what it is held against
	Was   float32 // the last one's
	// A Fit over days; Age is how long the mean of times is before the last.
	W, Age, MeanY, VarT, VarY, Both float32
}

// place is a bundle, a module and a kind.
type place struct{ Bundle, Module, Kind, _ uint8 }

// Kinds of lines: lasers, and heaters by the path that they are for.
const (
	lasers = iota
	heaters
)

func (l *stored) at() float64 { return float64(l.Last) / minutesADay }

func (l *stored) fit() Fit {
	return Fit{float64(l.W), l.at() - float64(l.Age), float64(l.MeanY), float64(l.VarT), float64(l.VarY), float64(l.Both)}
}

// read takes a reading. Of two of one message the higher counts.
func (l *line) read(id uint32, value int32, seq uint64) {
	if id != 0 && l.ID != 0 && id != l.ID {
		*l = line{stored: stored{place: l.place}}
	}
	if id != 0 {
		l.ID = id
	}
	if l.n > 0 && l.seq == uint32(seq) {
		l.sum += float64(max(0, value-l.now))
		l.now = max(l.now, value)
		return
	}
	l.sum += float64(value)
	l.n, l.now, l.seq = l.n+1, value, uint32(seq)
}

// point makes one of the readings since the last.
func (l *line) point(minute uint32) {
	n, sum := l.n, l.sum
	if l.n, l.sum = 0, 0; n < leastReadings {
		return
	}
	y, gap, f := float32(sum/float64(n)), float64(minute-l.Last)/minutesADay, l.fit()
	step := math.Abs(float64(y-l.Was)) > aStep*float64(l.Was)
	switch {
	case l.Begun == 0:
		l.Begun = y
	case step && l.ID == 0: // another module, for all that is known
		l.Begun, f = y, Fit{}
	case step || gap > gapDays:
		f = Fit{}
	default:
		f.Fade(1 / (1 + gap/fadeDays))
	}
	l.Was, l.Last = y, minute
	f.Add(l.at(), float64(y))
	l.W, l.Age, l.MeanY, l.VarT, l.VarY, l.Both = float32(f.W), float32(l.at()-f.MeanT), float32(f.MeanY), float32(f.VarT), float32(f.VarY), float32(f.Both)
	l.judge()
}

// judge finds by how much it goes a day, 0: not for sure.
func (l *line) judge() {
	f := l.fit()
	slope, spread := f.Slope(surely), math.Sqrt(f.VarT/max(1, f.W))
	if f.W < leastPoints || spread < leastSpread || math.Abs(slope)*spread*evenly < moved*float64(l.Begun) {
		slope = 0
	}
	l.slope = float32(slope)
}
