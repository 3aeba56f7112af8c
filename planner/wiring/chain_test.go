package wiring

import (
	"cmp"
	"slices"
)

// From a spread to cross-connects in stages, as [LUMOS] has it: what the tests
// of the parts need of one another. The planner goes the same way by its jobs.

// groups is the topology of each group ([LUMOS] eq. 7): the paths of a spine
// by pods.
func (s Spread) groups() []Topology {
	var out []Topology
	for _, t := range s.Spine {
		count := make([]int32, s.Pods*s.Pods)
		for _, l := range t.Links {
			i, j := s.PodOf[l.I], s.PodOf[l.J]
			count[int(min(i, j))*s.Pods+int(max(i, j))] += l.Count
		}
		out = append(out, fromCounts(s.Pods, count))
	}
	return out
}

// matrix reads a whole symmetric matrix.
func matrix(c [][]int) (Topology, error) {
	var links []Link
	for i, row := range c {
		for j := i; j < len(row); j++ {
			links = append(links, Link{int32(i), int32(j), int32(row[j])})
		}
	}
	return NewTopology(len(c), links)
}

// circuits counts those of a half.
func (h Half) circuits() int { return h.Kept(h) }

// pieces are the Pieces of a reconfiguration and what each moves at each leaf.
// The spread is the one in force with the old halves; its paths are taken to
// run over the circuits of their pods in order, by pair of leaves and by
// switch. Circuits that carry no path, such as a backup, count for nobody.
func (s Spread) pieces(old, wanted []Half) ([]Piece, []Change, error) {
	pieces, err := Pieces(old, wanted)
	if err != nil {
		return nil, nil, err
	}
	changes := make([]Change, len(pieces))
	for n, p := range pieces {
		carried, err := s.carried(p.Group, old[p.Group])
		if err != nil {
			return nil, nil, err
		}
		for _, step := range p.Steps {
			if path := carried[p.Even*s.Pods+step.In]; !step.Create && path.Count > 0 {
				changes[n].Moved = append(changes[n].Moved, LeafLinks{int(path.I), 1}, LeafLinks{int(path.J), 1})
			}
		}
		changes[n] = Together(changes[n : n+1])
	}
	return pieces, changes, nil
}

// carried is, for every circuit of a half, the path of spine h that runs over
// it; Count 0: none does.
func (s Spread) carried(h int, old Half) ([]Link, error) {
	type pair struct{ i, j int32 }
	paths := map[pair][]Link{}
	between := func(l Link) pair {
		i, j := s.PodOf[l.I], s.PodOf[l.J]
		return pair{min(i, j), max(i, j)}
	}
	for _, l := range s.Spine[h].Links {
		paths[between(l)] = append(paths[between(l)], l)
	}
	out := make([]Link, len(old.To))
	for n, j := range old.To {
		if j < 0 {
			continue
		}
		i := int32(n % old.Pods)
		key := pair{min(i, j), max(i, j)}
		rest := paths[key]
		if len(rest) == 0 {
			continue
		}
		out[n] = Link{rest[0].I, rest[0].J, 1}
		if rest[0].Count--; rest[0].Count == 0 {
			paths[key] = rest[1:]
		}
	}
	for _, l := range s.Spine[h].Links {
		if len(paths[between(l)]) > 0 {
			return nil, wrong("spread", "no more paths than circuits",
				"pods %d and %d have more paths on spine %d than circuits", s.PodOf[l.I], s.PodOf[l.J], h)
		}
	}
	return out, nil
}

// work is what one switch has to do in one stage.
type work struct {
	Group, Switch int
	Steps         []Step
}

// rollout is a reconfiguration in stages, each complete before the next
// begins. Moved of Of links is the largest share that any leaf has moving at
// once.
type rollout struct {
	Stages    [][]work // by group and switch
	Moved, Of int
}

// rollout assigns the pieces to stages such that no more than iotaMille
// thousandths of any leaf's links move at once (see Stages). At a stage's
// switch everything that goes is before anything that comes.
func (s Spread) rollout(old, wanted []Half, iotaMille int) (rollout, error) {
	pieces, changes, err := s.pieces(old, wanted)
	if err != nil {
		return rollout{}, err
	}
	links := s.links()
	stages, err := Stages(changes, links, iotaMille)
	if err != nil {
		return rollout{}, err
	}
	var r rollout
	r.Moved, r.Of = Worst(changes, links, stages)
	for _, stage := range stages {
		if len(stage) == 0 {
			continue
		}
		slices.Sort(stage)
		r.Stages = append(r.Stages, gather(pieces, stage))
	}
	return r, nil
}

// gather puts the pieces of a stage together by switch.
func gather(pieces []Piece, stage []int) []work {
	var out []work
	for _, n := range stage {
		p := pieces[n]
		last := len(out) - 2
		if last < 0 || out[last].Group != p.Group || out[last].Switch != 2*p.Even {
			out = append(out, work{Group: p.Group, Switch: 2 * p.Even}, work{Group: p.Group, Switch: 2*p.Even + 1})
			last += 2
		}
		for _, st := range p.Steps {
			out[last].Steps = append(out[last].Steps, st)
			out[last+1].Steps = append(out[last+1].Steps, Step{st.Create, st.Out, st.In})
		}
	}
	for _, w := range out {
		slices.SortStableFunc(w.Steps, func(a, b Step) int {
			if a.Create != b.Create {
				return cmp.Compare(order(a), order(b))
			}
			return cmp.Compare(a.In, b.In)
		})
	}
	return out
}

// order puts what goes before what comes.
func order(s Step) int {
	if s.Create {
		return 1
	}
	return 0
}

// links is what each leaf has in use over all spines.
func (s Spread) links() []int {
	links := make([]int, len(s.PodOf))
	for _, t := range s.Spine {
		for leaf, n := range t.Ports() {
			links[leaf] += n
		}
	}
	return links
}
