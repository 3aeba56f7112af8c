package study

import (
	"time"

	"ringlight/mzi/detmath"
	"ringlight/sim/agenda"
)

// Failures of GPUs. [LUMOS] sec 6.5 has soft ones, by software, and hard ones, by
// hardware, at rates and times to repair of its own operation that it does not print.
const (
	// gpuFaults is how many of 1,000 GPUs fail in a year: 419 on 16,384 in 54 days, of
	// which 78 % by hardware (Llama Team, "The Llama 3 Herd of Models", 2024, sec 3.3.4).
	gpuFaults    = 173
	hardMille    = 780
	maxGPUFaults = 2000 // chosen: a job of half of 4,096 GPUs loses one every two hours

	reload = 10 * time.Minute // chosen: of a job, from its last iteration
	repair = 24 * time.Hour   // chosen: of a server whose GPU failed hard
)

// gpuFailures strike a run: of a soft one a job begins anew where there is room, which is
// where it was; of a hard one its server is out meanwhile.
type gpuFailures struct {
	*lumosRun
	rng  *detmath.Random
	mean float64 // nanoseconds between two
	at   time.Duration
	back agenda.Queue[int] // servers that will be in order
	out  map[int]bool
}

func newGPUFailures(r *lumosRun, cell LumosCell) *gpuFailures {
	const stream = 0x464c54
	f := &gpuFailures{lumosRun: r, rng: detmath.Stream(cell.Seed, stream), out: map[int]bool{},
		mean: float64(365*24*time.Hour) * 1000 / float64(cell.GPUs*cell.Faults)}
	f.draw()
	return f
}

func (f *gpuFailures) draw() {
	f.at += time.Duration(f.mean * -detmath.Log(float64(f.rng.Next()>>11+1)/(1<<53)))
}

func (f *gpuFailures) next() time.Duration {
	if f.back.Len() > 0 {
		first, _ := f.back.First()
		return min(f.at, first)
	}
	return f.at
}

func (f *gpuFailures) strike(now time.Duration) error {
	for f.next() <= now {
		if f.at > now {
			_, server := f.back.Pop()
			delete(f.out, server)
			f.line.withhold(server, false)
			continue
		}
		server, hard := f.rng.Below(f.net.gpus)/f.perServer, f.rng.Below(1000) < hardMille
		if f.draw(); f.out[server] {
			continue // it is out already
		}
		f.Restarts += f.lose(server)
		if hard {
			f.Hard++
			f.out[server] = true
			f.line.withhold(server, true)
			f.back.Push(now+repair, server)
		} else {
			f.Soft++
		}
	}
	return nil
}
