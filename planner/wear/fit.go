package wear

import "math"

// Fit is a line through weighted points, by least squares.
type Fit struct {
	W, MeanT, MeanY  float64 // sum of weights, weighted means
	VarT, VarY, Both float64 // weighted sums of squares about the means
}

// Add takes one more point.
func (f *Fit) Add(t, y float64) {
	f.W++
	dt, dy := t-f.MeanT, y-f.MeanY
	f.MeanT += dt / f.W
	f.MeanY += dy / f.W
	f.VarT += float64(dt * (t - f.MeanT))
	f.VarY += float64(dy * (y - f.MeanY))
	f.Both += float64(dt * (y - f.MeanY))
}

// Fade has all points so far weigh less.
func (f *Fit) Fade(by float64) {
	f.W *= by
	f.VarT *= by
	f.VarY *= by
	f.Both *= by
}

// At is the value of the line.
func (f *Fit) At(t float64) float64 { return f.MeanY + float64(f.Both/f.VarT*(t-f.MeanT)) }

// Slope is by how much y grows with t; 0: not by so many standard errors.
func (f *Fit) Slope(surely float64) float64 {
	if f.W <= 2 || f.VarT <= 0 {
		return 0
	}
	slope := f.Both / f.VarT
	rest := max(0, f.VarY-float64(slope*f.Both)) / (f.W - 2)
	if math.Abs(slope) <= surely*math.Sqrt(rest/f.VarT) {
		return 0
	}
	return slope
}
