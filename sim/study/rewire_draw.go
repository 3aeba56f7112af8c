package study

import (
	"ringlight/planner/wiring"
)

// rewire_draw.go is the generator of logical topologies.

// first draws the first topology: in every group each pod has the same number
// of ports in use, and these are joined in pairs at random.
func (s *sequence) first(idle float64) {
	used := s.SpinePorts - int(float64(float64(s.SpinePorts)*idle)+0.5)
	for range s.Groups {
		stubs := make([]int32, 0, s.Pods*used)
		for i := range s.Pods {
			for range used {
				stubs = append(stubs, int32(i))
			}
		}
		count := make([]int32, s.Pods*s.Pods)
		s.join(stubs, count)
		s.counts = append(s.counts, count)
		s.wanted = append(s.wanted, s.topology(count))
	}
}

// advance draws the next topology: a share of the links of every group is
// taken, and their ports joined anew.
func (s *sequence) advance() {
	s.number++
	for h, count := range s.counts {
		var links [][2]int32
		for _, l := range s.wanted[h].Links {
			for range l.Count {
				links = append(links, [2]int32{l.I, l.J})
			}
		}
		change := min(len(links), int(float64(float64(len(links))*s.methods[0].Churn)+0.5))
		stubs := make([]int32, 0, 2*change)
		for n := range change {
			m := n + s.random.Below(len(links)-n)
			links[n], links[m] = links[m], links[n]
			i, j := links[n][0], links[n][1]
			stubs = append(stubs, i, j)
			count[int(i)*s.Pods+int(j)]--
		}
		s.join(stubs, count)
		s.wanted[h] = s.topology(count)
	}
}

// join shuffles ports and joins each with the next. A pod is not joined with
// itself: such a pair changes partners with another until none is left, or,
// where there seems to be no way, stays idle.
func (s *sequence) join(stubs, count []int32) {
	for n := len(stubs) - 1; n > 0; n-- {
		m := s.random.Below(n + 1)
		stubs[n], stubs[m] = stubs[m], stubs[n]
	}
	stubs = stubs[:len(stubs)&^1]
	for n := 0; n < len(stubs); n += 2 {
		for tries := 0; stubs[n] == stubs[n+1] && tries < 1000; tries++ {
			m := 2 * s.random.Below(len(stubs)/2)
			if stubs[m] != stubs[n] && stubs[m+1] != stubs[n] {
				stubs[n+1], stubs[m+1] = stubs[m+1], stubs[n+1]
			}
		}
	}
	for n := 0; n < len(stubs); n += 2 {
		if i, j := min(stubs[n], stubs[n+1]), max(stubs[n], stubs[n+1]); i != j {
			count[int(i)*s.Pods+int(j)]++
		}
	}
}

func (s *sequence) topology(count []int32) wiring.Topology {
	var links []wiring.Link
	for n, c := range count {
		if c > 0 {
			links = append(links, wiring.Link{I: int32(n / s.Pods), J: int32(n % s.Pods), Count: c})
		}
	}
	t, err := wiring.NewTopology(s.Pods, links)
	if err != nil {
		panic("study: invariant: a drawn topology is one: " + err.Error())
	}
	return t
}
