package isolate

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"ringlight/mzi/detmath"
)

// stream is jobs like those of W1 and W2 of the studies: sizes of powers of
// two, lognormal durations, Poisson arrivals.
func stream(seed uint64, jobs int, gapS float64, power float64, most int) (arrive []int64, list []Job) {
	weights := []float64{11136, 829, 1109, 4257, 400, 925, 76, 80, 13}
	sum := 0.0
	for n := range weights {
		weights[n] *= math.Pow(float64(int(1)<<n), power)
		sum += weights[n]
	}
	r := detmath.Stream(seed, 1)
	uniform := func() float64 { return (float64(r.Next()>>11) + 0.5) / (1 << 53) }
	const sigma = 1.6
	draw := func() float64 {
		z := math.Sqrt(-2*math.Log(uniform())) * math.Cos(2*math.Pi*uniform())
		return math.Exp(sigma * z)
	}
	var raw []float64
	mean := 0.0
	at := 0.0
	for n := range jobs {
		at += -gapS * math.Log(uniform())
		arrive = append(arrive, int64(at*1000))
		x, size := uniform()*sum, 0
		for x -= weights[0]; x > 0 && size+1 < len(weights); x -= weights[size] {
			size++
		}
		list = append(list, Job{ID: JobID(n + 1), GPUs: min(1<<size, most)})
		raw = append(raw, draw())
	}
	// a scale by bisection such that the clipped and rounded mean is 3,600 s
	clip := func(f, x float64) float64 { return math.Ceil(min(max(f*x, 1000), 100000)/100) * 100 }
	low, high := 1.0, 100000.0
	for range 60 {
		mid := math.Sqrt(low * high)
		mean = 0
		for _, x := range raw {
			mean += clip(mid, x)
		}
		if mean/float64(jobs) > 3600 {
			high = mid
		} else {
			low = mid
		}
	}
	for n, x := range raw {
		list[n].DurationMS = int64(clip(low, x)) * 1000
	}
	return arrive, list
}

// drive runs a stream through a queue and gives the mean time from arrival to
// end, in ms.
func drive(q *Queue, arrive []int64, list []Job) int64 {
	type end struct {
		at int64
		id JobID
	}
	var ends []end
	sum := int64(0)
	for next, now := 0, int64(0); next < len(list) || len(ends) > 0; {
		if len(ends) > 0 && (next >= len(list) || ends[0].at <= arrive[next]) {
			now = ends[0].at
			q.Finished(ends[0].id)
			sum += now - arrive[ends[0].id-1]
			ends = ends[1:]
		} else {
			now = arrive[next]
			if err := q.Submit(list[next]); err != nil {
				panic(err)
			}
			next++
		}
		for _, s := range q.Start(now) {
			e := end{now + s.Job.DurationMS, s.Job.ID}
			at, _ := slices.BinarySearchFunc(ends, e, func(a, b end) int { return int(a.at - b.at) })
			ends = slices.Insert(ends, at, e)
		}
	}
	return sum / int64(len(list))
}

func TestStream(t *testing.T) {
	jobs, _ := strconv.Atoi(os.Getenv("RINGLIGHT_STREAM"))
	if jobs == 0 {
		t.Skip("a look at how streams of jobs fare: RINGLIGHT_STREAM=5000")
	}
	best := DefaultCore()
	best.Optics = nil
	for _, w := range []struct {
		name  string
		power float64
		most  int
	}{{"W1", .53, 64}, {"W2", .37, 256}} {
		for _, gap := range []float64{100, 120, 140} {
			for _, order := range []Order{FIFO, EASY, Fewest} {
				if order != FIFO && gap != 100 {
					continue
				}
				for _, c := range []struct {
					name string
					core Core
				}{{"best", best}, {"vclos", Clos(16, 32, 4, 32)}, {"optics", DefaultCore()}} {
					out := ""
					for seed := range uint64(2) {
						arrive, list := stream(seed+1, jobs, gap, w.power, w.most)
						q := NewQueue(c.core.Empty(), Rules{Order: order})
						mean := drive(q, arrive, list)
						out += fmt.Sprintf("  %6d %d/%d", mean/1000, q.Blocked().GPU, q.Blocked().Network)
					}
					t.Logf("%s gap %v %-6s %-7s%s", w.name, gap, order, c.name, out)
				}
			}
		}
	}
}
