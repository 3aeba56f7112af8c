package wiring

import (
	"cmp"
	"fmt"
	"slices"
)

// Piece is a part of a reconfiguration that cannot be divided: cross-connects
// of one pair of switches that take each other's ports, with their mirror.
// Pieces share no port, so they may be made in any order.
type Piece struct {
	Group, Even int    // the even switch; with its odd one, switches 2*Even and 2*Even+1
	Steps       []Step // of the even switch; the odd one has them with the ends exchanged
	Change
}

// Pieces takes the reconfiguration of all groups apart and says what each
// piece moves at each leaf. The spread is the one in force with the old
// halves; its paths are taken to run over the circuits of their pods in
// order, by pair of leaves and by switch. Circuits that carry no path, such as
// a backup, count for nobody.
func (s Spread) Pieces(old, wanted []Half) ([]Piece, error) {
	if len(old) != len(s.Spine) || len(wanted) != len(s.Spine) {
		return nil, wrong("groups", fmt.Sprintf("%d, one a spine", len(s.Spine)), "%d old, %d wanted", len(old), len(wanted))
	}
	var out []Piece
	for h := range s.Spine {
		if old[h].Pods != s.Pods || wanted[h].Pods != s.Pods || old[h].Switches != wanted[h].Switches {
			return nil, wrong(fmt.Sprintf("groups[%d]", h), "halves of one size", "%d pods and %d switches, wanted %d and %d",
				old[h].Pods, old[h].Switches, wanted[h].Pods, wanted[h].Switches)
		}
		carried, err := s.carried(h, old[h])
		if err != nil {
			return nil, err
		}
		for k := range old[h].Switches {
			for _, steps := range apart(old[h].Row(k), wanted[h].Row(k)) {
				p := Piece{Group: h, Even: k, Steps: steps}
				for _, step := range steps {
					if path := carried[k*s.Pods+step.In]; !step.Create && path.Count > 0 {
						p.Moved = append(p.Moved, LeafLinks{int(path.I), 1}, LeafLinks{int(path.J), 1})
					}
				}
				p.Moved = Together([]Change{p.Change}).Moved
				out = append(out, p)
			}
		}
	}
	return out, nil
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

// apart divides the steps of one switch by the ports they share, in order of
// the first in port of each part. In a part what goes comes before what comes.
func apart(old, wanted []int32) [][]Step {
	pods := len(old)
	set := make([]int32, 2*pods) // ports joined by steps: in ports, then out ports
	for n := range set {
		set[n] = int32(n)
	}
	root := func(n int32) int32 {
		for set[n] != n {
			set[n] = set[set[n]]
			n = set[n]
		}
		return n
	}
	steps := Steps(old, wanted)
	for _, st := range steps {
		a, b := root(int32(st.In)), root(int32(pods+st.Out))
		set[max(a, b)] = min(a, b)
	}
	var out [][]Step
	part := make(map[int32]int)
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(root(int32(a.In)), root(int32(b.In))) })
	for _, st := range steps {
		r := root(int32(st.In))
		n, known := part[r]
		if !known {
			n = len(out)
			part[r] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], st)
	}
	return out
}

// Work is what one switch has to do in one stage.
type Work struct {
	Group, Switch int
	Steps         []Step
}

// Rollout is a reconfiguration in stages, each complete before the next
// begins. Moved of Of links is the largest share that any leaf has moving at
// once.
type Rollout struct {
	Stages    [][]Work // by group and switch
	Moved, Of int
}

// Rollout deals the pieces to stages such that no more than iotaMille
// thousandths of any leaf's links move at once (see Stages). At a stage's
// switch everything that goes is before anything that comes.
func (s Spread) Rollout(old, wanted []Half, iotaMille int) (Rollout, error) {
	pieces, err := s.Pieces(old, wanted)
	if err != nil {
		return Rollout{}, err
	}
	changes := make([]Change, len(pieces))
	for n, p := range pieces {
		changes[n] = p.Change
	}
	links := s.Links()
	stages, err := Stages(changes, links, iotaMille)
	if err != nil {
		return Rollout{}, err
	}
	var r Rollout
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
func gather(pieces []Piece, stage []int) []Work {
	var out []Work
	for _, n := range stage {
		p := pieces[n]
		last := len(out) - 2
		if last < 0 || out[last].Group != p.Group || out[last].Switch != 2*p.Even {
			out = append(out, Work{Group: p.Group, Switch: 2 * p.Even}, Work{Group: p.Group, Switch: 2*p.Even + 1})
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

// Links is what each leaf has in use over all spines.
func (s Spread) Links() []int {
	links := make([]int, len(s.PodOf))
	for _, t := range s.Spine {
		for leaf, n := range t.Ports() {
			links[leaf] += n
		}
	}
	return links
}
