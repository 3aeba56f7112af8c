package flow

import "time"

// job is a script under way.
type job struct {
	id      Job
	script  *Script
	stages  [][]phase
	links   []Link // that it may ever use, each once
	twice   []Link // of these, those that two phases of one stage use
	shared  int    // of links, that other jobs may use too
	version uint32 // changes when a link becomes or ceases to be its own
	stage   int
	runs    []*run // of the stage; more may lie behind
	active  int    // of runs, those not over
	done    int64
	last    time.Duration
	stopped bool

	// A job that shares no link coasts: its iterations are all alike, and one
	// event is the end of the last.
	coast     run
	from      time.Duration // when the first of them began
	period    time.Duration // of one, 0: not known
	epoch     uint32        // of the capacities with which
	flows     int64         // that end in one
	rounds    int64
	measuring bool
	met       bool // scratch of occupy
}

// Add starts a job now. The script must stay as it is until the job is gone;
// several jobs may have one script.
func (s *Sim) Add(sc *Script) (Job, error) {
	if err := sc.check(len(s.links)); err != nil {
		return 0, err
	}
	j := &job{id: Job(len(s.jobs)), script: sc, stage: -1, last: s.now, from: s.now}
	j.coast.job = j
	j.coast.next = Never
	s.jobs = append(s.jobs, j)
	s.live++
	s.compile(j)
	s.occupy(j)
	if !s.tryCoast(j) {
		s.begin(j)
	}
	return j.id, nil
}

// Remove takes a job out now, with its flows.
func (s *Sim) Remove(id Job) {
	j := s.jobs[id]
	for _, r := range j.runs {
		s.end(r)
	}
	s.end(&j.coast)
	s.vacate(j)
}

// end makes a run's event void and takes its flows off their links.
func (s *Sim) end(r *run) {
	s.takeOff(r)
	r.state = over
	r.version++
	r.next = Never
}

// vacate takes a job without flows out of the Sim.
func (s *Sim) vacate(j *job) {
	s.jobs[j.id] = nil
	s.live--
	for _, l := range j.twice {
		s.links[l].users--
	}
	for _, l := range j.links {
		k := &s.links[l]
		k.jobs--
		k.users--
		k.owner ^= int32(j.id)
		if k.jobs == 1 {
			o := s.jobs[k.owner]
			o.shared--
			o.version++ // its next rounds may fold the link
		}
	}
}

// occupy enters a job's links. Whose they were alone until now runs on links
// that are shared.
func (s *Sim) occupy(j *job) {
	var met []*job
	for _, l := range j.links {
		if k := &s.links[l]; k.jobs == 1 {
			if o := s.jobs[k.owner]; !o.met {
				o.met = true
				met = append(met, o)
			}
		}
	}
	left := make([][][]amount, len(met))
	for i, o := range met {
		o.met = false
		s.uncoast(o)
		left[i] = o.unfold(s)
	}
	for _, l := range j.twice {
		s.links[l].users++
	}
	for _, l := range j.links {
		k := &s.links[l]
		if k.jobs == 1 {
			s.jobs[k.owner].shared++
		}
		if k.jobs > 0 {
			j.shared++
		}
		k.jobs++
		k.users++
		k.owner ^= int32(j.id)
	}
	for i, o := range met {
		o.version++
		o.refold(s, left[i])
	}
}

// unfold is what the flows of a job's rounds have left, per run; nil where
// there are none, and of a stopped job, whose runs keep it.
func (j *job) unfold(s *Sim) [][]amount {
	out := make([][]amount, len(j.runs))
	for i, r := range j.runs {
		if r.state == exchanging && !j.stopped {
			out[i] = s.unfold(r)
		}
	}
	return out
}

func (j *job) refold(s *Sim, left [][]amount) {
	for i, r := range j.runs {
		if left[i] != nil {
			s.refold(r, left[i])
		}
	}
}

// change gives a link that jobs may use another capacity.
func (s *Sim) change(l Link, bitPerS int64) {
	if k := &s.links[l]; k.jobs == 1 && !s.plain {
		o := s.jobs[k.owner]
		s.uncoast(o)
		left := o.unfold(s)
		o.version++
		k.capacity, k.epoch = bitPerS, s.epoch
		o.refold(s, left)
		return
	}
	k := &s.links[l]
	var runs []*run // of whole phases, whose own pace may have changed
	var left [][]amount
	if s.sharing.whole() {
		for _, e := range k.flows {
			runs = append(runs, s.flows[e.flow].run)
			left = append(left, s.unfold(runs[len(runs)-1]))
		}
	}
	k.capacity, k.epoch = bitPerS, s.epoch
	for i, r := range runs {
		s.refold(r, left[i])
	}
	s.seeds = append(s.seeds, l)
	s.least = 0
}

// Stop holds a job where it is: it computes nothing, its flows take nothing
// of their links, until Resume.
func (s *Sim) Stop(id Job) {
	j := s.jobs[id]
	if j.stopped {
		return
	}
	s.uncoast(j)
	j.stopped = true
	for _, r := range j.runs {
		switch r.state {
		case computing:
			r.heldFor = r.next - s.now
		case exchanging:
			r.heldLeft = s.unfold(r)
			s.takeOff(r)
		}
		r.version++
		r.next = Never
	}
}

// Resume lets a stopped job go on from where it was.
func (s *Sim) Resume(id Job) {
	j := s.jobs[id]
	if !j.stopped {
		return
	}
	j.stopped = false
	for _, r := range j.runs {
		switch r.state {
		case computing:
			s.schedule(r, later(s.now, r.heldFor))
		case exchanging:
			s.refold(r, r.heldLeft)
		}
	}
}

// begin starts the next stage of a job that takes time, or ends the job.
func (s *Sim) begin(j *job) {
	for {
		if j.stage++; j.stage == len(j.stages) {
			j.stage = -1
			if j.measuring {
				j.measuring = false
				return
			}
			j.done++
			j.last = s.now
			if j.done == j.script.Iterations {
				s.finish(j)
				return
			}
			if s.tryCoast(j) {
				return
			}
			j.stage = 0
		}
		stage := j.stages[j.stage]
		for len(j.runs) < len(stage) {
			j.runs = append(j.runs, new(run))
		}
		j.active = 0
		for i := range j.runs {
			if i < len(stage) && s.startRun(j, j.runs[i], &stage[i]) {
				j.active++
			}
		}
		if j.active > 0 {
			return
		}
	}
}

func (s *Sim) finish(j *job) {
	s.ended = append(s.ended, j.id)
	s.vacate(j)
}

// tryCoast lets a job coast that is at the beginning of an iteration and
// shares no link.
func (s *Sim) tryCoast(j *job) bool {
	if j.shared > 0 || s.plain {
		return false
	}
	if j.period == 0 || j.epoch != s.epoch {
		s.measure(j)
	}
	if j.period == Never {
		return false
	}
	j.from = s.now
	j.coast.state = coasting
	end := Never
	if n := j.script.Iterations - j.done; n <= int64(Never-s.now)/int64(j.period) {
		end = s.now + time.Duration(n)*j.period
	}
	s.schedule(&j.coast, end)
	return true
}

// land ends a job that coasted to its end.
func (s *Sim) land(j *job) {
	n := j.script.Iterations - j.done
	s.count.Flows += n * j.flows
	s.count.Rounds += n * j.rounds
	j.done, j.last = j.script.Iterations, s.now
	s.finish(j)
}

// byItself runs one job, which shares no link, on a clock of its own: f starts
// it, and it goes on until a time or until f's second result says so.
func (s *Sim) byItself(from, to time.Duration, start func(), until func() bool) {
	now, heap, dirty := s.now, s.heap, s.dirty
	seeds, begun, least := s.seeds, s.begun, s.least
	s.now, s.heap, s.dirty = from, events{}, nil
	s.seeds, s.begun, s.least = nil, nil, unlimited
	start()
	s.flush()
	for !until() {
		at := s.heap.next()
		if at > to || at == Never {
			break
		}
		s.instant(at)
	}
	for s.heap.next() < Never {
		heap.Push(s.heap.Pop())
	}
	s.now, s.heap, s.dirty = now, heap, dirty
	s.seeds, s.begun, s.least = seeds, begun, least
}

// measure finds how long an iteration takes when the job shares no link.
func (s *Sim) measure(j *job) {
	before := s.count
	start := s.now
	j.measuring, j.stage = true, -1
	end := Never
	s.byItself(start, Never, func() { s.begin(j) }, func() bool {
		end = s.now
		return !j.measuring
	})
	j.period, j.epoch = end-start, s.epoch
	if j.measuring { // a link is dark
		j.measuring, j.period = false, Never
		for _, r := range j.runs {
			s.end(r)
		}
		j.stage = -1
	}
	j.flows, j.rounds = s.count.Flows-before.Flows, s.count.Rounds-before.Rounds
	s.count.Flows, s.count.Rounds = before.Flows, before.Rounds
}

// uncoast brings a coasting job to where it is now in its iteration.
func (s *Sim) uncoast(j *job) {
	if j.coast.state != coasting {
		return
	}
	s.end(&j.coast)
	k := (s.now - j.from) / j.period
	j.done += int64(k)
	s.count.Flows += int64(k) * j.flows
	s.count.Rounds += int64(k) * j.rounds
	begun := j.from + k*j.period
	if k > 0 {
		j.last = begun
	}
	j.stage = -1
	s.byItself(begun, s.now, func() { s.begin(j) }, func() bool { return false })
}
