package flow

import (
	"fmt"
	"testing"
	"time"

	"ringlight/mzi/detmath"
)

// deed is what the owner of a Sim does at a time.
type deed struct {
	at   time.Duration
	what string
	job  Job
	sc   *Script
	link Link
	rate int64
}

// drawScript draws a script on some links, of which the first may be its own.
func drawScript(r *detmath.Random, links, own int) *Script {
	sc := &Script{Iterations: 1 + int64(r.Below(1+r.Below(12)))}
	alone := own >= 0 && r.Below(3) == 0
	path := func() []Link {
		var p []Link
		if own >= 0 && r.Below(2) == 0 {
			p = append(p, Link(own+r.Below(2)))
		}
		for len(p) == 0 || r.Below(2) == 0 && len(p) < 4 {
			l := Link(r.Below(links))
			if alone {
				l = Link(own + r.Below(4))
			}
			dup := false
			for _, q := range p {
				dup = dup || q == l
			}
			if !dup {
				p = append(p, l)
			}
		}
		return p
	}
	for range 1 + r.Below(3) {
		var stage Stage
		for range 1 + r.Below(3) {
			if r.Below(3) == 0 {
				stage = append(stage, Phase{Compute: time.Duration(r.Below(5000))})
				continue
			}
			var p Phase
			for range 1 + r.Below(3) {
				round := Round{Times: 1 + r.Below(1+r.Below(9))}
				bytes := int64(1 + r.Below(3000))
				var last []Link
				for range r.Below(6) {
					if last == nil || r.Below(2) == 0 {
						last = path()
					}
					b := bytes
					if r.Below(3) == 0 {
						b = int64(r.Below(3000))
					}
					round.Flows = append(round.Flows, Flow{last, b})
				}
				p.Rounds = append(p.Rounds, round)
			}
			stage = append(stage, p)
		}
		sc.Stages = append(sc.Stages, stage)
	}
	sc.Stages = append(sc.Stages, Stage{{Compute: time.Duration(1 + r.Below(100))}})
	return sc
}

// drawCase draws links and what is done on them.
func drawCase(r *detmath.Random, size int) (capacity []int64, deeds []deed) {
	links, jobs := 1+r.Below(size), 1+r.Below(size)
	rate := func() int64 { return gbit * int64(1+r.Below(16)) / int64(1+r.Below(3)) }
	for range links + 4*jobs { // four of each job's own, which others rarely meet
		capacity = append(capacity, rate())
	}
	at := time.Duration(0)
	for j := range jobs {
		sc := drawScript(r, links, links+4*j)
		if r.Below(4) == 0 {
			sc = drawScript(r, len(capacity), -1)
		}
		deeds = append(deeds, deed{at: at, what: "add", sc: sc})
		at += time.Duration(r.Below(6000))
		for r.Below(2) == 0 {
			d := deed{at: at, job: Job(r.Below(j + 1)), link: Link(r.Below(len(capacity))), rate: rate()}
			d.what = []string{"remove", "stop", "resume", "resume", "capacity", "dark"}[r.Below(6)]
			deeds = append(deeds, d)
			if r.Below(2) == 0 {
				at += time.Duration(r.Below(20000))
			}
		}
	}
	at += time.Duration(r.Below(20000))
	for l := range capacity { // in the end everything goes on
		deeds = append(deeds, deed{at: at, what: "capacity", link: Link(l), rate: rate()})
	}
	for j := range jobs {
		deeds = append(deeds, deed{at: at, what: "resume", job: Job(j)})
	}
	if r.Below(3) == 0 {
		coarsen(capacity, deeds)
	}
	return capacity, deeds
}

// coarsen makes all times multiples, so that much happens at one instant.
func coarsen(capacity []int64, deeds []deed) {
	up := func(v, of int64) int64 { return (v + of - 1) / of * of }
	for l := range capacity {
		capacity[l] = min(16*gbit, up(capacity[l], 8*gbit))
	}
	for i := range deeds {
		d := &deeds[i]
		d.at, d.rate = time.Duration(up(int64(d.at), 500)), min(16*gbit, up(d.rate, 8*gbit))
		if d.sc == nil {
			continue
		}
		for _, stage := range d.sc.Stages {
			for k := range stage {
				stage[k].Compute = time.Duration(up(int64(stage[k].Compute), 500))
				for _, round := range stage[k].Rounds {
					for f := range round.Flows {
						round.Flows[f].Bytes = up(round.Flows[f].Bytes, 1000)
					}
				}
			}
		}
	}
}

// world is what both simulators can do.
type world interface {
	Add(*Script) (Job, error)
	Remove(Job)
	Stop(Job)
	Resume(Job)
	SetCapacity(Link, int64) error
	Next() time.Duration
	Advance(time.Duration) []Job
	Now() time.Duration
	alive(Job) bool
}

func (s *Sim) alive(j Job) bool { return s.jobs[j] != nil }

// play does the deeds and tells when each job ended.
func play(t *testing.T, w world, deeds []deed, after func()) string {
	t.Helper()
	out := ""
	until := func(to time.Duration) {
		for {
			ended := w.Advance(to)
			for _, j := range ended {
				out += fmt.Sprintf("job %d ends at %d\n", j, w.Now())
			}
			after()
			if len(ended) == 0 {
				return
			}
		}
	}
	for _, d := range deeds {
		until(d.at)
		var err error
		switch {
		case d.what == "add":
			_, err = w.Add(d.sc)
		case d.what == "capacity":
			err = w.SetCapacity(d.link, d.rate)
		case d.what == "dark":
			err = w.SetCapacity(d.link, 0)
		case !w.alive(d.job):
		case d.what == "remove":
			w.Remove(d.job)
		case d.what == "stop":
			w.Stop(d.job)
		case d.what == "resume":
			w.Resume(d.job)
		}
		if err != nil {
			t.Fatal(err)
		}
		after()
	}
	until(Never - 1)
	return out
}

// Goal: the engine that skips, merges and solves parts gives the times of one
// that does everything anew at every event, to the nanosecond.
// Method: 1,000 drawn cases of up to 6 jobs, some of up to 20, with overlap, repeats, stops,
// removals, dark links; links of a job's own and shared ones. The certificate
// of max-min rates is checked after every deed.
func TestRoundsAgreeWithTheReference(t *testing.T) {
	for sharing, seeds := range map[Sharing]uint64{Rounds: 1000, Equal: 300} {
		for seed := range seeds {
			size := 6
			if seed%50 == 0 {
				size = 20
			}
			capacity, deeds := drawCase(detmath.Stream(seed, 1), size)
			ref := newNaive(t, capacity, sharing)
			want := play(t, ref, deeds, func() {})
			for _, plain := range []bool{false, true} {
				s := mustSim(t, sharing, capacity...)
				s.plain = plain
				got := play(t, s, deeds, func() {
					if sharing == Rounds {
						certify(t, s)
					}
				})
				if got != want {
					t.Fatalf("%v, seed %d, unabridged %v:\n%swant\n%s", sharing, seed, plain, got, want)
				}
			}
		}
	}
}

// certify checks that each flow has a link on which it is the fastest and which
// gives out all it has, but for what rounding leaves, or its own limit.
func certify(t *testing.T, s *Sim) {
	t.Helper()
	s.flush()
	for id := range s.flows {
		f := &s.flows[id]
		if !f.on || f.end <= s.now {
			continue
		}
		ok := f.rate == f.cap
		for _, sl := range f.slots {
			l := &s.links[sl.link]
			given, fastest := int64(0), true
			for _, e := range l.flows {
				if o := &s.flows[e.flow]; o.end > s.now || o.run.steady > 0 {
					given += o.rate * o.slots[e.slot].weight
					fastest = fastest && o.rate <= f.rate
				}
			}
			spare := l.capacity<<weightBits - given
			if spare < 0 {
				t.Fatalf("link %d gives %d more than it has", sl.link, -spare)
			}
			ok = ok || fastest && spare < l.load
		}
		if !ok {
			t.Fatalf("flow %d has no link that holds it at %d bit/s", id, f.rate)
		}
	}
}
