package wiring

// Backup joins the ports that the topologies of all groups leave idle to a
// mesh over all pods ([LUMOS] Fig. 10), and gives the links to add to each
// group; Merge puts both together. Greedily: the pod with the most idle ports
// gets a link to the pod it has fewest backup links with, over all groups;
// among those to the one with the most idle ports.
func Backup(groups []Topology, spinePorts int) ([]Topology, error) {
	out := make([]Topology, len(groups))
	var mesh []int // backup links of every pair
	for n, t := range groups {
		if err := t.CheckPorts(spinePorts); err != nil {
			return nil, err
		}
		if mesh == nil {
			mesh = make([]int, t.Pods*t.Pods)
		}
		if len(mesh) != t.Pods*t.Pods {
			return nil, wrong("groups", "the same pods in each", "group %d has %d", n, t.Pods)
		}
		idle := t.Ports()
		for i := range idle {
			idle[i] = spinePorts - idle[i]
		}
		out[n] = backupGroup(t.Pods, idle, mesh)
	}
	return out, nil
}

func backupGroup(pods int, idle, mesh []int) Topology {
	var links []Link
	here := make([]int32, pods*pods)
	for {
		i, j := mostIdle(idle, -1, nil), -1
		if i >= 0 {
			j = mostIdle(idle, i, mesh[i*pods:(i+1)*pods])
		}
		if j < 0 {
			break
		}
		idle[i]--
		idle[j]--
		mesh[i*pods+j]++
		mesh[j*pods+i]++
		here[min(i, j)*pods+max(i, j)]++
	}
	for s, n := range here {
		if n > 0 {
			links = append(links, Link{int32(s / pods), int32(s % pods), n})
		}
	}
	return Topology{pods, links}
}

// mostIdle is the pod with the most idle ports, other than one; where mesh is
// given, of those with the fewest backup links. -1: none has any.
func mostIdle(idle []int, other int, mesh []int) int {
	best := -1
	for i, n := range idle {
		if n == 0 || i == other {
			continue
		}
		switch {
		case best < 0, mesh == nil && n > idle[best],
			mesh != nil && (mesh[i] < mesh[best] || mesh[i] == mesh[best] && n > idle[best]):
			best = i
		}
	}
	return best
}

// Merge adds two topologies of the same pods.
func Merge(a, b Topology) Topology {
	out := Topology{Pods: a.Pods, Links: make([]Link, 0, len(a.Links)+len(b.Links))}
	i, j := 0, 0
	for i < len(a.Links) || j < len(b.Links) {
		switch {
		case j == len(b.Links) || i < len(a.Links) && byPair(a.Links[i], b.Links[j]) < 0:
			out.Links = append(out.Links, a.Links[i])
			i++
		case i == len(a.Links) || byPair(b.Links[j], a.Links[i]) < 0:
			out.Links = append(out.Links, b.Links[j])
			j++
		default:
			sum := a.Links[i]
			sum.Count += b.Links[j].Count
			out.Links = append(out.Links, sum)
			i++
			j++
		}
	}
	return out
}
