package core

import "ringlight/proto"

// Between pods: the links of chains, read from paths and circuits, and written
// back to them.

// sameLinks are links that serve each other's paths.
type sameLinks struct {
	job         proto.JobID
	spine, i, j int32
	pods        bool // i and j are pods, else leaves
}

// readPaths makes the links of all paths, and of what has none.
func (s *chains) readPaths(jobs []*job) map[sameLinks][]int32 {
	of := map[sameLinks][]int32{}
	add := func(j *job, a, b, spine, n int) {
		l := link{job: j.spec.Job, leaf: [2]int32{int32(a), int32(b)}, pod: [2]int32{s.core.sched.PodOf[a], s.core.sched.PodOf[b]}, at: nowhere}
		for range n {
			e := int32(len(s.links))
			s.links = append(s.links, l)
			if spine >= 0 {
				s.move(e, site{int32(spine), -1, -1})
				for _, k := range l.same(int32(spine)) {
					of[k] = append(of[k], e)
				}
			}
		}
	}
	for _, j := range jobs {
		for _, x := range j.paths {
			add(j, x.A, x.B, x.Spine, x.Count)
		}
		for n, w := range j.placed.Wants {
			add(j, w.A, w.B, -1, j.placed.Links[n]-j.between(w.A, w.B))
		}
	}
	return of
}

func (l *link) same(spine int32) [2]sameLinks {
	return [2]sameLinks{{l.job, spine, l.leaf[0], l.leaf[1], false}, {l.job, spine, min(l.pod[0], l.pod[1]), max(l.pod[0], l.pod[1]), true}}
}

// readCircuits gives pinned circuits to the links they serve: those with light
// to whom they have it from, then the rest to the others.
func (s *chains) readCircuits(t *staging, of map[sameLinks][]int32) {
	for _, lit := range [2]bool{true, false} {
		for at := range s.core.from.maps {
			h := s.core.layout.groupOf(at)
			k := int32(at % s.core.layout.groupMaps())
			s.core.layout.links(at, t.groups[h].pinned[k], func(i, j int32, id proto.JobID) {
				was := t.ends[at][i]
				if was.ok != lit {
					return
				}
				same := sameLinks{id, int32(h), min(i, j), max(i, j), true}
				if lit {
					same = sameLinks{id, int32(h), int32(was.a), int32(was.b), false}
				}
				here := site{int32(h), k, i}
				left := of[same]
				for len(left) > 0 && s.links[left[0]].at.k >= 0 {
					left = left[1:]
				}
				if len(left) == 0 { // known by its circuits, or its switches cannot be told
					s.pod[s.of(i, here.spine)]++
					s.pod[s.of(j, here.spine)]++
					for side := range 2 {
						s.ports[s.port(&link{pod: [2]int32{i, j}}, here, side)] = someones
					}
					return
				}
				of[same] = left[1:]
				s.move(left[0], here)
				s.links[left[0]].lit = lit
			})
		}
	}
}

// write gives jobs their paths, and groups their circuits, as they came to be.
func (s *chains) write(jobs []*job, groups []groupPlan) {
	byJob := map[proto.JobID]*job{}
	for _, j := range jobs {
		byJob[j.spec.Job] = j
	}
	for h := range groups {
		groups[h].missing = 0
	}
	for e := range s.links {
		l := &s.links[e]
		if l.at.spine >= 0 && l.at.k < 0 {
			groups[l.at.spine].missing++
		}
		if l.at.spine != l.first.spine {
			j := byJob[l.job]
			j.drop(path{int(l.first.spine), int(l.leaf[0]), int(l.leaf[1]), 1})
			j.add(path{int(l.at.spine), int(l.leaf[0]), int(l.leaf[1]), 1})
		}
	}
	for _, old := range [2]bool{true, false} {
		for e := range s.links {
			l := &s.links[e]
			switch {
			case l.at == l.first:
			case old && l.first.k >= 0:
				s.core.layout.drop(groups[l.first.spine].pinned[l.first.k], l.first.from)
				groups[l.first.spine].shifts = groups[l.first.spine].shifts || l.lit
			case !old && l.at.k >= 0:
				s.core.layout.put(groups[l.at.spine].pinned[l.at.k], l.at.from, l.pod[0]+l.pod[1]-l.at.from, l.job)
			}
		}
	}
}
