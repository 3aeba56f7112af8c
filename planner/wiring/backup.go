package wiring

// FillIdle adds backup circuits to configurations of all groups where ports
// are idle, a mesh over all pods ([LUMOS] Fig. 10), and touches nothing else. Circuits that were there and still find
// their ports free come first, so a backup moves only where it is in the way;
// then in every switch free ports are joined, those of the pairs of pods that
// have the fewest backup links over all groups. Two idle ports of one pod in a
// switch stay idle. It never costs a job a circuit.
func FillIdle(groups, old []Half) ([]Half, error) {
	if len(groups) != len(old) {
		return nil, wrong("groups", "as many as there were", "%d, there were %d", len(groups), len(old))
	}
	out := make([]Half, len(groups))
	var mesh []int
	for n, g := range groups {
		if g.Pods != groups[0].Pods || g.Pods != old[n].Pods || g.Switches != old[n].Switches {
			return nil, wrong("groups", "halves of one size", "group %d has %d pods and %d switches, there were %d and %d",
				n, g.Pods, g.Switches, old[n].Pods, old[n].Switches)
		}
		out[n] = g.Clone()
		if mesh == nil {
			mesh = make([]int, g.Pods*g.Pods)
		}
	}
	for n := range out {
		for k := range out[n].Switches {
			f := newFiller(out[n].Row(k), mesh)
			for i, j := range old[n].Row(k) {
				if j >= 0 && int(j) != i && f.row[i] < 0 && !f.taken[j] {
					f.join(i, int(j))
				}
			}
		}
	}
	for n := range out {
		for k := range out[n].Switches {
			newFiller(out[n].Row(k), mesh).fill()
		}
	}
	return out, nil
}

// filler joins the free ports of one switch.
type filler struct {
	row   []int32
	taken []bool // of an out port
	mesh  []int  // backup links of every pair, over all groups
}

func newFiller(row []int32, mesh []int) *filler {
	f := &filler{row, make([]bool, len(row)), mesh}
	for _, j := range row {
		if j >= 0 {
			f.taken[j] = true
		}
	}
	return f
}

func (f *filler) join(i, j int) {
	f.row[i], f.taken[j] = int32(j), true
	f.mesh[i*len(f.row)+j]++
	f.mesh[j*len(f.row)+i]++
}

func (f *filler) fill() {
	for i, to := range f.row {
		if to >= 0 {
			continue
		}
		best := -1
		for j, taken := range f.taken {
			if taken || i == j {
				continue
			}
			if best < 0 || f.mesh[i*len(f.row)+j] < f.mesh[i*len(f.row)+best] {
				best = j
			}
		}
		if best >= 0 {
			f.join(i, best)
		}
	}
}
