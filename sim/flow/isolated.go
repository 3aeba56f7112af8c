package flow

import "fmt"

// In the model Isolated each job has a Sim of its own with the links that it
// uses; its only event is the next one of that.

func (s *Sim) addAlone(j *job) {
	narrow, links := renumbered(j.script.Stages)
	j.links = links
	used := make([]int64, len(links))
	for i, l := range links {
		used[i] = s.links[l].capacity
		s.links[l].jobs++
	}
	own, err := New(used, Rounds)
	if err == nil {
		_, err = own.Add(&Script{Stages: narrow, Iterations: j.script.Iterations})
	}
	if err != nil {
		panic(fmt.Sprintf("flow: a script that was checked is refused: %v", err))
	}
	j.own, j.from = own, s.now
	j.coast.state = coasting
	s.schedule(&j.coast, later(j.from, own.Next()))
}

// dueAlone goes on with a job whose Sim has something now.
func (s *Sim) dueAlone(j *job) {
	before := j.own.count
	over := len(j.own.Advance(s.now-j.from)) > 0
	s.count.Flows += j.own.count.Flows - before.Flows
	s.count.Rounds += j.own.count.Rounds - before.Rounds
	s.count.Solved += j.own.count.Solved - before.Solved
	if over {
		s.finish(j)
		return
	}
	s.scheduleAlone(j)
}

func (s *Sim) scheduleAlone(j *job) {
	next := Never
	if !j.stopped {
		next = later(j.from, j.own.Next())
	}
	s.schedule(&j.coast, next)
}

func (s *Sim) changeAlone(l Link, bitPerS int64) {
	for _, j := range s.jobs {
		if j == nil {
			continue
		}
		for i, k := range j.links {
			if k == l {
				j.sync(s)
				if err := j.own.SetCapacity(Link(i), bitPerS); err != nil {
					panic(fmt.Sprintf("flow: a capacity that was checked is refused: %v", err))
				}
				s.scheduleAlone(j)
			}
		}
	}
}

// sync brings the job's own clock to now; a stopped one's stands still.
func (j *job) sync(s *Sim) {
	if !j.stopped {
		j.own.Advance(s.now - j.from)
	}
}
