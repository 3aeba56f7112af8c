package flow

import "math/bits"

// compile brings a script into the form of the model of sharing.
func (s *Sim) compile(j *job) {
	j.stages = make([][]phase, len(j.script.Stages))
	for i, stage := range j.script.Stages {
		j.stages[i] = make([]phase, len(stage))
		var here [][]Link
		for k := range stage {
			p := &j.stages[i][k]
			p.script = &stage[k]
			links := s.linksOf(p.script)
			if len(links) > 0 {
				here = append(here, links)
			}
			if s.sharing.whole() {
				p.rounds = p.script.volumes(s, links)
				p.epoch = s.epoch
				continue
			}
			for x := range p.script.Rounds {
				r := &p.script.Rounds[x]
				rd := round{flows: r.Flows, limit: MaxCapacity, times: r.Times}
				for f := range r.Flows {
					if r.Flows[f].Bytes > 0 {
						rd.count++
					}
				}
				rd.takesTime = rd.count > 0
				p.rounds = append(p.rounds, rd)
			}
		}
		j.meets(s, here)
	}
	for _, l := range j.links {
		s.links[l].used = 0
	}
}

// linksOf are the links of a phase, each once.
func (t *traffic) linksOf(p *Phase) []Link {
	t.mark++
	var out []Link
	for i := range p.Rounds {
		for k := range p.Rounds[i].Flows {
			for _, l := range p.Rounds[i].Flows[k].Path {
				if lk := &t.links[l]; lk.mark != t.mark {
					lk.mark = t.mark
					out = append(out, l)
				}
			}
		}
	}
	return out
}

// meets enters the links of the phases of one stage. The scratch of a link is
// 1 when the job has it and 2 when two phases of a stage do.
func (j *job) meets(s *Sim, phases [][]Link) {
	s.mark++
	for _, links := range phases {
		for _, l := range links {
			lk := &s.links[l]
			if lk.used == 0 {
				lk.used = 1
				j.links = append(j.links, l)
			}
			if lk.mark == s.mark && lk.used == 1 {
				lk.used = 2
				j.twice = append(j.twice, l)
			}
			lk.mark = s.mark
		}
	}
}

// volumes is a phase as one round of one flow. Its unit is what a single flow
// would carry that were the largest in every round; on a link it counts as the
// flows that it has there in the mean, by volume: so a link that is shared by
// phases gives each flow what it would have in rounds.
func (p *Phase) volumes(s *Sim, links []Link) []round {
	if len(links) == 0 {
		return nil
	}
	sum := make([]int64, len(links))
	for i, l := range links {
		s.links[l].left = int64(i) // scratch
	}
	rd := round{times: 1, takesTime: true}
	var unit int64
	for i := range p.Rounds {
		r := &p.Rounds[i]
		var most int64
		for k := range r.Flows {
			f := &r.Flows[k]
			if f.Bytes == 0 {
				continue
			}
			most = max(most, f.Bytes)
			rd.count += int64(r.Times)
			for _, l := range f.Path {
				sum[s.links[l].left] += f.Bytes * int64(r.Times)
			}
		}
		unit += most * int64(r.Times)
	}
	if unit == 0 {
		return nil
	}
	path := make([]Link, 0, len(links))
	for i, l := range links {
		if sum[i] > 0 {
			hi, lo := bits.Mul64(uint64(sum[i]), uint64(weightOne))
			q, rest := bits.Div64(hi, lo, uint64(unit))
			if rest > 0 {
				q++
			}
			path = append(path, l)
			rd.weights = append(rd.weights, int64(q))
		}
	}
	rd.flows = []Flow{{path, unit}}
	rd.limit = p.paceAlone(s, unit)
	return []round{rd}
}

// paceAlone is the rate at which a phase would carry its unit alone: its
// barriers, if it has any, hold it back however much its links give it.
func (p *Phase) paceAlone(s *Sim, unit int64) int64 {
	if s.sharing == Fullest {
		return MaxCapacity
	}
	t, err := takes(func(l Link) int64 { return s.links[l].capacity }, []Stage{{*p}})
	if err != nil || t == Never {
		return 0
	}
	a := amountOf(unit)
	if a.hi >= uint64(t) {
		return MaxCapacity
	}
	q, _ := bits.Div64(a.hi, a.lo, uint64(t))
	return int64(min(q, uint64(MaxCapacity)))
}

// limitPhase finds the pace of a phase anew if one of its links has changed.
func (s *Sim) limitPhase(p *phase) {
	if p.epoch == s.epoch || len(p.rounds) == 0 {
		return
	}
	rd := &p.rounds[0]
	for _, l := range rd.flows[0].Path {
		if s.links[l].epoch > p.epoch {
			rd.limit = p.script.paceAlone(s, rd.flows[0].Bytes)
			rd.folded = nil
			break
		}
	}
	p.epoch = s.epoch
}
