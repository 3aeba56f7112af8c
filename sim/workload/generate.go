package workload

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// Limits, chosen: ten times the largest published trace, and a century.
const (
	MaxJobs     = 20_000_000
	MaxGap      = 366 * 24 * time.Hour
	MaxEstimate = 900 // thousandths by which a declared duration may be wrong
)

// Config is what a generator draws.
type Config struct {
	Kind          string        // one of Kinds
	Jobs          int           `flag:"jobs" usage:"jobs that the generator draws"`
	Gap           time.Duration // mean between arrivals, which are Poisson
	EstimateError int           // a declared duration is off by up to so many thousandths, either way
	Seed          uint64
}

// kind is one family of jobs: both sides may look at the same draw, u, where
// the published trace ties size and duration.
type kind struct {
	name     string
	duration func(g *generator) time.Duration
	gpus     func(g *generator) int
}

// The sizes of a Helios sample of 18,825 jobs in the public simulator of
// [VCLOS], in powers of two.
var heliosSizes = []float64{11136, 829, 1109, 4257, 400, 925, 76, 80, 13}

var kinds = []kind{
	// The workload of jobs of [VCLOS]: the sample tilted towards large jobs
	// until the cluster of 512 is as busy as the paper's, cut to 64 GPUs.
	{name: "w1", duration: clipped, gpus: powers(tilted(heliosSizes, 0.53), 64)},
	// The same with jobs of up to half of the cluster.
	{name: "w2", duration: clipped, gpus: powers(tilted(heliosSizes, 0.37), 256)},
	// Helios (Hu et al., SC'21): the sample tilted to its mean of 3.716 GPUs.
	{name: "helios", duration: heliosDuration, gpus: powers(tilted(heliosSizes, heliosTilt), 256)},
	// Philly (Jeon et al., ATC'19), the 82,247 jobs of the public list.
	{name: "philly", duration: byKnots(phillyKnots), gpus: phillyGPUs},
	// Sizes as in Google's cluster of TPUv4, which [VCLOS] Table 7 takes, cut
	// to 512; durations as in w1.
	{name: "tpuv4", duration: clipped, gpus: tpuv4GPUs},
	// The jobs that [LUMOS] sec 6.2 calls Helios': durations of Helios, sizes
	// of TPUv4. Drawn apart: its load of .655 is the product of the two means.
	{name: "lumos", duration: byKnots(lumosKnots), gpus: lumosGPUs},
}

// Kinds are the names of the generators.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Validate names the field that is not acceptable and what would be.
func (c Config) Validate() error {
	refuse := func(field, limit, format string, args ...any) error {
		return &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !slices.Contains(Kinds(), c.Kind):
		return refuse("workload", fmt.Sprint("one of ", Kinds()), "%q is not", c.Kind)
	case c.Jobs < 1 || c.Jobs > MaxJobs:
		return refuse("jobs", fmt.Sprintf("1 to %d", MaxJobs), "%d is out of range", c.Jobs)
	case c.Gap < time.Millisecond || c.Gap > MaxGap:
		return refuse("lambda", fmt.Sprintf("%v to %v", time.Millisecond, MaxGap), "%v is out of range", c.Gap)
	case c.EstimateError < 0 || c.EstimateError > MaxEstimate:
		return refuse("estimate-error", "0 to 0.9 of the duration", "%v is out of range", float64(c.EstimateError)/thousandth)
	}
	return nil
}

// Purposes of the streams of chance.
const (
	drawGap = iota + 1
	drawSize
	drawDuration
	drawModel
	drawVolume
	drawSlack
	drawEstimate
)

// generator is where the drawing of jobs stands.
type generator struct {
	cfg     Config
	kind    kind
	arrival float64                           // ms
	u       float64                           // of this job's duration, for kinds that tie size to it
	draw    [drawEstimate + 1]*detmath.Random // by purpose
}

// Draw draws all jobs of a valid configuration.
func Draw(c Config) []Job {
	g, jobs := &generator{cfg: c, kind: kinds[slices.Index(Kinds(), c.Kind)]}, make([]Job, c.Jobs)
	for purpose := range g.draw {
		g.draw[purpose] = detmath.Stream(c.Seed, uint64(purpose))
	}
	for i := range jobs {
		jobs[i] = g.next()
	}
	return jobs
}

// next draws a job.
func (g *generator) next() Job {
	g.arrival += float64(-detmath.Log(uniform(g.draw[drawGap])) * float64(g.cfg.Gap.Milliseconds()))
	j := Job{Arrival: time.Duration(g.arrival) * time.Millisecond}
	j.Duration = g.kind.duration(g) // before the size, which may look at it
	j.GPUs = int32(g.kind.gpus(g))
	j.Model, j.Pattern = drawTalk(g.draw[drawModel], j.GPUs)
	j.Volume, j.Slack = drawVolumeSlack(g.draw[drawVolume], g.draw[drawSlack])
	j.Estimate = uint16(thousandth - g.cfg.EstimateError + g.draw[drawEstimate].Below(2*g.cfg.EstimateError+1))
	return j
}

// drawTalk draws what a job trains and how it meets: half of the jobs by
// halving-doubling where their size is a power of two, a fifth and the rest of
// those by ring, three in ten mixtures of experts ([VCLOS], its simulator).
func drawTalk(r *detmath.Random, gpus int32) (uint8, Pattern) {
	tenth, dense := r.Below(10), uint8(r.Below(denseModels))
	switch {
	case gpus == 1:
		return dense, Alone
	case tenth < 5 && gpus&(gpus-1) == 0:
		return dense, HalvingDoubling
	case tenth < 7 || gpus&(gpus-1) != 0:
		return dense, Ring
	}
	return moeModel, AllToAll
}

// drawVolumeSlack draws a volume of half to one and a half times the model's
// ([VCLOS], its simulator) and a deadline 0 to 4 durations later than at once
// (chosen; the paper gives none).
func drawVolumeSlack(volume, slack *detmath.Random) (uint16, uint16) {
	return uint16(thousandth/2 + volume.Below(thousandth+1)), uint16(slack.Below(4*thousandth + 1))
}

// uniform draws from above 0 up to 1.
func uniform(r *detmath.Random) float64 { return float64(r.Next()>>11+1) / (1 << 53) }

// normal draws by the method of Box and Muller.
func normal(r *detmath.Random) float64 {
	const turn = 6.283185307179586
	far := math.Sqrt(float64(-2 * detmath.Log(uniform(r))))
	return float64(far * detmath.Cos(float64(turn*uniform(r))))
}

// lognormal draws around a median, both sides kept within bounds, in seconds.
func lognormal(r *detmath.Random, logMedian, sigma, least, most float64) float64 {
	return min(max(detmath.Exp(logMedian+float64(sigma*normal(r))), least), most)
}

// wholeSeconds rounds to multiples of a number of seconds.
func wholeSeconds(v, of float64) time.Duration {
	return time.Duration(math.Floor(v/of+0.5)*of) * time.Second
}

// clipped is the durations of w1 and w2: hundreds of seconds, mean 3,600 s
// after clipping, for which the median before it is 954.7 s.
func clipped(g *generator) time.Duration {
	return wholeSeconds(lognormal(g.draw[drawDuration], 6.8614031, 1.6, 1000, 100_000), 100)
}

// Helios: median 206 s; the spread at which the mean is 6,652 s when no job
// runs for more than 50 days (chosen).
const (
	heliosLogMedian = 5.327876168789581
	heliosSigma     = 2.6709616
	heliosLongest   = 50 * 24 * 3600
	heliosTilt      = -0.234008 // power of the size that gives the published mean
)

func heliosDuration(g *generator) time.Duration {
	return wholeSeconds(lognormal(g.draw[drawDuration], heliosLogMedian, heliosSigma, 1, heliosLongest), 1)
}
