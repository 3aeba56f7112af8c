package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// drawn is the figures of a list that papers publish.
type drawn struct {
	gpus, seconds, span    float64 // means; span: of the gaps
	quantile               func(share float64) float64
	one, eight, eightTime  float64 // shares: of one GPU, of 5 to 8, and of the GPU time
	sizes                  map[int32]int
	shortest, longest, odd time.Duration // odd: what is left of whole hundreds of seconds
}

func measure(t *testing.T, c Config) drawn {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	jobs := Draw(c)
	d := drawn{sizes: map[int32]int{}, shortest: jobs[0].Duration}
	lengths := make([]time.Duration, len(jobs))
	n, busy, eightBusy, last := float64(len(jobs)), 0.0, 0.0, time.Duration(0)
	for i, j := range jobs {
		if j.Arrival < last {
			t.Fatalf("job %d arrives at %v, the one before at %v", i, j.Arrival, last)
		}
		last = j.Arrival
		lengths[i] = j.Duration
		d.gpus += float64(j.GPUs) / n
		d.seconds += j.Duration.Seconds() / n
		d.sizes[j.GPUs]++
		work := float64(j.GPUs) * j.Duration.Seconds()
		busy += work
		if j.GPUs == 1 {
			d.one += 1 / n
		}
		if j.GPUs >= 5 && j.GPUs <= 8 {
			d.eight += 1 / n
			eightBusy += work
		}
		d.shortest, d.longest = min(d.shortest, j.Duration), max(d.longest, j.Duration)
		d.odd = max(d.odd, j.Duration%(100*time.Second))
	}
	d.eightTime, d.span = eightBusy/busy, last.Seconds()/n
	slices.Sort(lengths)
	d.quantile = func(share float64) float64 { return lengths[int(share*n)].Seconds() }
	return d
}

func within(t *testing.T, what string, got, want float64) {
	t.Helper()
	t.Logf("%-28s %12.3f, published %12.3f (%+.1f %%)", what, got, want, 100*(got/want-1))
	if math.Abs(got/want-1) > 0.05 {
		t.Errorf("%s: %.4g is not within 5 %% of %.4g", what, got, want)
	}
}

// The jobs of Helios: sizes and durations.
// Reference: Hu et al., SC'21, 1,580,464 GPU jobs, as [VCLOS] sec 9.2 takes them
func TestHelios(t *testing.T) {
	d := measure(t, Config{Kind: "helios", Jobs: 1_580_464, Gap: time.Second, Seed: 1})
	within(t, "mean GPUs", d.gpus, 3.716)
	within(t, "mean duration, s", d.seconds, 6652)
	within(t, "median duration, s", d.quantile(0.5), 206)
	within(t, "mean gap, s", d.span, 1)
}

// The jobs of Philly: almost all have one GPU, and the few of 5 to 8 take
// half of the time.
// Reference: Jeon et al., ATC'19; the 82,247 jobs of the public list, for [VCLOS] sec 9
func TestPhilly(t *testing.T) {
	d := measure(t, Config{Kind: "philly", Jobs: 82_247, Gap: time.Minute, Seed: 1})
	within(t, "mean GPUs", d.gpus, 1.304)
	within(t, "one GPU", d.one, 0.932)
	within(t, "mean duration, s", d.seconds, 13136)
	within(t, "first quartile, s", d.quantile(0.25), 115)
	within(t, "median, s", d.quantile(0.5), 1144)
	within(t, "third quartile, s", d.quantile(0.75), 2932)
	within(t, "p90, s", d.quantile(0.9), 11266)
	within(t, "p99, s", d.quantile(0.99), 254_884)
	within(t, "5 to 8 GPUs, jobs", d.eight, 0.02)
	within(t, "5 to 8 GPUs, GPU time", d.eightTime, 0.48)
}

// The jobs of the large simulations: sizes of TPUv4 from 32 on, durations of
// which a tenth has most of the time, and with the published mean gap of
// 1,923 s a load of .655 on 4,096 GPUs.
// Reference: [LUMOS] sec 6.2, eq. 9, its public simulator and logs
func TestLumosJobs(t *testing.T) {
	d := measure(t, Config{Kind: "lumos", Jobs: 400_000, Gap: 1923 * time.Second, Seed: 1})
	within(t, "mean duration, s", d.seconds, 21679)
	within(t, "median, s", d.quantile(0.5), 2109)
	within(t, "p99, s", d.quantile(0.99), 442_528)
	within(t, "load", d.gpus*d.seconds/d.span/4096, 0.655)
	within(t, "share of 512 GPUs", float64(d.sizes[512])/400_000, 0.226)
	for size := range d.sizes {
		if size < 32 || size > 2048 || size&(size-1) != 0 {
			t.Errorf("a job of %d GPUs", size)
		}
	}
}

// The two workloads of the isolated core: hundreds of seconds between 1,000
// and 100,000 with a mean of an hour, sizes in the weights of the sample.
// Reference: [VCLOS] sec 9.2 and its public simulator
func TestSampledWorkloads(t *testing.T) {
	for _, c := range []struct {
		kind    string
		largest int32
		gpus    float64
		sizes   map[int32]float64 // weight times size^.53 or ^.37, over their sum
	}{
		{"w1", 64, 12.591, map[int32]float64{1: 0.3011, 2: 0.0324, 4: 0.0625, 8: 0.3465, 16: 0.0470, 32: 0.1570, 64: 0.0186 + 0.0283 + 0.0066}},
		{"w2", 256, 11.488, map[int32]float64{1: 0.3889, 8: 0.3209, 32: 0.1165, 64: 0.01237, 128: 0.01682, 256: 0.00353}},
	} {
		d := measure(t, Config{Kind: c.kind, Jobs: 400_000, Gap: 2 * time.Minute, Seed: 3})
		within(t, c.kind+" mean duration, s", d.seconds, 3600)
		within(t, c.kind+" mean GPUs", d.gpus, c.gpus)
		within(t, c.kind+" mean gap, s", d.span, 120)
		if d.shortest != 1000*time.Second || d.longest != 100_000*time.Second || d.odd != 0 {
			t.Errorf("%s: durations from %v to %v, %v beside hundreds of seconds", c.kind, d.shortest, d.longest, d.odd)
		}
		for size, share := range c.sizes {
			within(t, c.kind+" share of a size", float64(d.sizes[size])/400_000, share)
		}
		for size := range d.sizes {
			if size&(size-1) != 0 || size > c.largest {
				t.Errorf("%s: a job of %d GPUs", c.kind, size)
			}
		}
	}
}

// Half of the jobs that talk do so by halving-doubling, a fifth by ring, three
// in ten as mixtures of experts; volumes are half to one and a half times the
// model's, deadlines 1 to 5 durations after arrival.
// Reference: [VCLOS] sec 4.2, 9.2 and its public simulator
func TestModelsOfJobs(t *testing.T) {
	jobs := Draw(Config{Kind: "w1", Jobs: 200_000, Gap: time.Minute, EstimateError: 200, Seed: 5})
	var pattern [4]float64
	var talking, volume, slack, dense, moe, estimate float64
	for _, j := range jobs {
		estimate += j.Declared().Seconds() / j.Duration.Seconds()
		late := (j.Deadline() - j.Arrival).Seconds() / j.Duration.Seconds()
		slack += late
		if e := j.Declared().Seconds() / j.Duration.Seconds(); e < 0.799 || e > 1.201 || late < 1 || late > 5 || j.Volume < 500 || j.Volume > 1500 {
			t.Fatalf("%+v", j)
		}
		if j.GPUs == 1 {
			if j.Pattern != Alone {
				t.Fatalf("%+v", j)
			}
			continue
		}
		talking++
		pattern[j.Pattern]++
		volume += float64(j.Volume)
		if j.Pattern == AllToAll {
			moe += float64(j.AllToAll())
		} else {
			dense += float64(j.AllReduce())
		}
	}
	n := float64(len(jobs))
	within(t, "halving-doubling", pattern[HalvingDoubling]/talking, 0.5)
	within(t, "ring", pattern[Ring]/talking, 0.2)
	within(t, "all-to-all", pattern[AllToAll]/talking, 0.3)
	within(t, "mean volume", volume/talking, 1000)
	within(t, "mean time to the deadline", slack/n, 3)
	within(t, "mean declared", estimate/n, 1)
	within(t, "all-to-all share of experts", moe/pattern[AllToAll]/Shares, 0.258)
	// Mean of the 17 dense models' shares.
	within(t, "AllReduce share", dense/(talking-pattern[AllToAll])/Shares, (0.85+0.18+0.16+0.2)/17)
}
