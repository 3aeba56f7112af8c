package workload

import (
	"time"

	"ringlight/mzi/detmath"
)

// tilted multiplies weights of powers of two by a power of the size.
func tilted(weights []float64, power float64) []float64 {
	const ln2 = 0.6931471805599453
	out := make([]float64, len(weights))
	for i, w := range weights {
		out[i] = float64(w * detmath.Exp(float64(power*ln2)*float64(i)))
	}
	return out
}

// powers draws powers of two by weight; larger than most is cut to it.
func powers(weights []float64, most int) func(*generator) int {
	choose := chooser(weights)
	return func(g *generator) int { return min(1<<choose(uniform(g.draw[drawSize])), most) }
}

// chooser gives the index that a uniform draw falls on.
func chooser(weights []float64) func(u float64) int {
	sums, total := make([]float64, len(weights)), 0.0
	for i, w := range weights {
		total += w
		sums[i] = total
	}
	return func(u float64) int {
		i := 0
		for i < len(sums)-1 && float64(u*total) > sums[i] {
			i++
		}
		return i
	}
}

// knot is a published point of a distribution: so many of the jobs are no
// longer than so many seconds.
type knot struct{ share, seconds float64 }

// phillyKnots: quartiles, p90 and p99 are published; the shortest is chosen,
// and the longest such that the mean is 13,136 s. Between them the logarithm
// of the duration is linear.
var phillyKnots = []knot{{0, 5}, {0.25, 115}, {0.5, 1144}, {0.75, 2932}, {0.9, 11266}, {0.99, 254_884}, {1, 748_456}}

// byKnots draws durations from such a distribution.
func byKnots(knots []knot) func(*generator) time.Duration {
	return func(g *generator) time.Duration {
		g.u = uniform(g.draw[drawDuration])
		i := 1
		for g.u > knots[i].share {
			i++
		}
		a, b := knots[i-1], knots[i]
		along := (g.u - a.share) / (b.share - a.share)
		return wholeSeconds(float64(a.seconds*detmath.Exp(float64(along*detmath.Log(b.seconds/a.seconds)))), 1)
	}
}

// Philly: 5 to 8 GPUs are 2.0 % of the jobs and 48 % of the GPU time, so they
// are the long ones: 13.3 % of the jobs beyond p90, .74 % of the others. The
// rest is 93.2 % of one GPU and otherwise chosen for a mean of 1.304.
const (
	phillyLong       = 0.9
	phillyEightLong  = 0.133316
	phillyEightOther = 0.0074093
)

var phillyRest = chooser([]float64{932, 26, 16, 6}) // of 1, 2, 4, 16 GPUs

func phillyGPUs(g *generator) int {
	eight := phillyEightOther
	if g.u > phillyLong {
		eight = phillyEightLong
	}
	if uniform(g.draw[drawSize]) <= eight {
		return 8
	}
	return []int{1, 2, 4, 16}[phillyRest(uniform(g.draw[drawSize]))]
}

// tpuv4 is cumulative: how many of a hundred jobs have at most so many chips.
// From 64 on as in the public simulator of [VCLOS]; the paper prints none,
// and the simulator's figures below 64 fall where they must rise, so those
// are chosen to meet its 43 % at 64 less the 14 % of 64 itself.
var (
	tpuv4Sizes = []int{4, 8, 16, 32, 64, 128, 192, 256, 384, 512}
	tpuv4      = chooser([]float64{5, 5, 8, 11, 14, 17.5, 0.7, 11.7, 0.1, 27})
)

func tpuv4GPUs(g *generator) int { return tpuv4Sizes[tpuv4(uniform(g.draw[drawSize]))] }

// lumosKnots are the running times that the public logs of [LUMOS] have for its
// 1,000 jobs on an ideal network: Helios jobs of 10 minutes and more, mean
// 21,679 s. A tenth of them is longer than 12 hours and has 80 % of the time.
var lumosKnots = []knot{{0, 414}, {0.05, 694}, {0.1, 770}, {0.2, 924}, {0.3, 1181}, {0.4, 1785}, {0.5, 2109}, {0.55, 2257}, {0.6, 3360},
	{0.65, 5508}, {0.7, 7571}, {0.8, 12590}, {0.85, 16652}, {0.87, 27117}, {0.88, 32763}, {0.89, 36843}, {0.9, 44147}, {0.92, 71227},
	{0.94, 99943}, {0.95, 120373}, {0.96, 144176}, {0.97, 158892}, {0.98, 196386}, {0.99, 436300}, {1, 679649}}

// lumosSizes are those of its public simulator: the TPUv4 cluster's, from 32
// on, cut to powers of two.
var lumosSizes = chooser([]float64{29, 14, 18.2, 11.8, 22.6, 3.9, 0.5})

func lumosGPUs(g *generator) int { return 32 << lumosSizes(uniform(g.draw[drawSize])) }
