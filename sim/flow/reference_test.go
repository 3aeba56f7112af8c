package flow

import (
	"math/big"
	"testing"
	"time"
)

// naive is the reference: every rate is given out anew at every event, from
// all flows there are, and nothing is skipped, merged or kept.
type naive struct {
	sharing  Sharing
	capacity []int64
	now      time.Duration
	jobs     []*naiveJob
	ended    []Job
}

func newNaive(t *testing.T, capacity []int64, sharing Sharing) *naive {
	t.Helper()
	return &naive{sharing: sharing, capacity: append([]int64{}, capacity...)}
}

// naiveJob is a script under way.
type naiveJob struct {
	script  *Script
	stage   int
	phases  []naiveRun // of the stage
	done    int64
	last    time.Duration
	stopped bool
}

// naiveRun is a phase under way.
type naiveRun struct {
	phase *Phase
	left  time.Duration // of compute
	round int
	times int // of the round, the one under way included
	flows []naiveFlow
	over  bool
}

// naiveFlow is a flow under way.
type naiveFlow struct {
	*Flow
	left *big.Int // 1e-9 bits
	rate int64
}

// Add starts a job now. The script must stay as it is until the job is gone;
// several jobs may have one script.
func (s *naive) Add(sc *Script) (Job, error) {
	if err := sc.check(len(s.capacity)); err != nil {
		return 0, err
	}
	j := &naiveJob{script: sc, stage: -1, last: s.now}
	s.jobs = append(s.jobs, j)
	s.settle(j)
	return Job(len(s.jobs) - 1), nil
}

// Remove takes a job out now, with its flows.
func (s *naive) Remove(j Job) { s.jobs[j] = nil }

// Stop holds a job where it is: it computes nothing, its flows take nothing
// of their links, until Resume.
func (s *naive) Stop(j Job) { s.jobs[j].stopped = true }

// Resume lets a stopped job go on from where it was.
func (s *naive) Resume(j Job) { s.jobs[j].stopped = false }

// Next is when something ends next by itself, Never if nothing does; not all
// of it need be the end of a job.
func (s *naive) Next() time.Duration {
	s.rates()
	next := Never
	for _, j := range s.jobs {
		if j == nil || j.stopped {
			continue
		}
		for i := range j.phases {
			r := &j.phases[i]
			if r.over {
				continue
			}
			if len(r.flows) == 0 {
				next = min(next, later(s.now, r.left))
			}
			for k := range r.flows {
				if f := &r.flows[k]; f.left.Sign() > 0 && f.rate > 0 {
					rate := big.NewInt(f.rate)
					up := new(big.Int).Add(f.left, new(big.Int).Sub(rate, big.NewInt(1)))
					if t := up.Div(up, rate); t.IsInt64() && t.Int64() < int64(Never-s.now) {
						next = min(next, s.now+time.Duration(t.Int64()))
					}
				}
			}
		}
	}
	return next
}

// Advance goes on to a time, or to the first instant before it at which jobs
// end, and returns those, by number. They are gone from the Sim.
func (s *naive) Advance(to time.Duration) []Job {
	s.ended = s.ended[:0]
	for len(s.ended) == 0 {
		next := s.Next() // which also gives the rates until then
		step := min(next, to) - s.now
		if step < 0 {
			break
		}
		s.pass(step)
		if next > to {
			break
		}
		for i, j := range s.jobs {
			if j != nil && !j.stopped && s.settle(j) {
				s.ended = append(s.ended, Job(i))
				s.jobs[i] = nil
			}
		}
	}
	return s.ended
}

// pass lets time go by at the rates there are.
func (s *naive) pass(dt time.Duration) {
	for _, j := range s.jobs {
		if j == nil || j.stopped {
			continue
		}
		for i := range j.phases {
			r := &j.phases[i]
			if len(r.flows) == 0 && !r.over {
				r.left -= dt
			}
			for k := range r.flows {
				f := &r.flows[k]
				f.left.Sub(f.left, new(big.Int).Mul(big.NewInt(max(f.rate, 0)), big.NewInt(int64(dt))))
			}
		}
	}
	s.now += dt
}

// settle goes on with what has ended of a job; it tells whether all has.
func (s *naive) settle(j *naiveJob) bool {
	for {
		all := true
		for i := range j.phases {
			if r := &j.phases[i]; !r.over {
				s.settleRun(r)
				all = all && r.over
			}
		}
		if !all {
			return false
		}
		if s.begin(j); j.done == j.script.Iterations {
			return true
		}
	}
}

// settleRun goes on with a phase as far as it can go without time.
func (s *naive) settleRun(r *naiveRun) {
	kept, waits := r.flows[:0], false
	for _, f := range r.flows {
		waits = waits || f.left.Sign() > 0
	}
	for _, f := range r.flows {
		if f.left.Sign() > 0 || waits && s.sharing == Equal {
			kept = append(kept, f)
		}
	}
	if r.flows = kept; len(kept) > 0 || r.left > 0 {
		return
	}
	for len(r.flows) == 0 {
		if r.times--; r.times <= 0 {
			if r.round++; r.round >= len(r.phase.Rounds) {
				r.over = true
				return
			}
			r.times = r.phase.Rounds[r.round].Times
		}
		flows := r.phase.Rounds[r.round].Flows
		for i := range flows {
			if flows[i].Bytes > 0 {
				r.flows = append(r.flows, naiveFlow{Flow: &flows[i], left: new(big.Int).Mul(big.NewInt(flows[i].Bytes), big.NewInt(8e9))})
			}
		}
	}
}

// begin starts the next stage of a job.
func (s *naive) begin(j *naiveJob) {
	if j.stage++; j.stage == len(j.script.Stages) {
		j.stage = 0
		j.done++
		j.last = s.now
	}
	j.phases = j.phases[:0]
	stage := j.script.Stages[j.stage]
	for i := range stage {
		j.phases = append(j.phases, naiveRun{phase: &stage[i], left: stage[i].Compute, round: -1})
	}
	for i := range j.phases {
		s.settleRun(&j.phases[i])
	}
}

// rates gives each flow its rate.
func (s *naive) rates() {
	var all []*naiveFlow
	for _, j := range s.jobs {
		if j == nil || j.stopped {
			continue
		}
		var own []*naiveFlow
		for i := range j.phases {
			for k := range j.phases[i].flows {
				own = append(own, &j.phases[i].flows[k])
			}
		}
		all = append(all, own...)
	}
	switch s.sharing {
	case Rounds:
		s.fill(all)
	case Equal:
		n := map[Link]int64{}
		for _, f := range all {
			for _, l := range f.Path {
				n[l]++
			}
		}
		for _, f := range all {
			f.rate = MaxCapacity
			for _, l := range f.Path {
				f.rate = min(f.rate, s.capacity[l]/n[l])
			}
		}
	}
}

// fill is water filling in levels, as the package says.
func (s *naive) fill(flows []*naiveFlow) {
	left := append([]int64{}, s.capacity...)
	for _, f := range flows {
		f.rate = -1
	}
	for {
		n := make([]int64, len(left))
		for _, f := range flows {
			if f.rate < 0 {
				for _, l := range f.Path {
					n[l]++
				}
			}
		}
		level := int64(-1)
		for l, k := range n {
			if k > 0 && (level < 0 || left[l]/k < level) {
				level = left[l] / k
			}
		}
		if level < 0 {
			return
		}
		lowest := make([]bool, len(left))
		for l, k := range n {
			lowest[l] = k > 0 && left[l]/k == level
		}
		for _, f := range flows {
			for _, l := range f.Path {
				if f.rate < 0 && lowest[l] {
					f.rate = level
				}
			}
		}
		copy(left, s.capacity)
		for _, f := range flows {
			for _, l := range f.Path {
				left[l] -= max(f.rate, 0)
			}
		}
	}
}

func (s *naive) Now() time.Duration { return s.now }

func (s *naive) alive(j Job) bool { return s.jobs[j] != nil }

func (s *naive) SetCapacity(l Link, rate int64) error {
	s.capacity[l] = rate
	return nil
}
