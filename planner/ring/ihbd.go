package ring

import "ringlight/mzi/detmath"

// placeFatTree is [IHBD] Alg. 4 with a number of constraints applied: first
// one sub-line part after the other is cut off and placed for itself, then
// one domain after the other is aligned, each fault taking its whole ToR.
// Indices start at 0; faults are copied, not changed.
func (j Job) placeFatTree(ok []bool, constraints int) []placed {
	pieces := j.PerToR * j.domains()
	usable := append([]bool(nil), ok...)
	tors := j.ToRs()
	for tor := range min(tors, max(0, constraints-pieces)*j.domainToRs()) {
		for s := range j.PerToR {
			if !ok[s*tors+tor] {
				for q := range j.PerToR {
					usable[q*tors+tor] = false
				}
			}
		}
	}
	var out []placed
	start := 0
	for piece := range min(pieces, constraints) {
		end := piece/j.domains()*tors + min(tors, (piece%j.domains()+1)*j.domainToRs())
		out = append(out, j.placePart(usable, start, end)...)
		start = end
	}
	if start == 0 {
		return j.placeAll(usable)
	}
	return append(out, j.placePart(usable, start, j.Nodes)...)
}

// placePart is [IHBD] Alg. 2 on a part of the HBD order, as a line.
func (j Job) placePart(usable []bool, start, end int) []placed {
	l := newLine(usable[start:end], j.K, j.Size, j.Shared)
	var out []placed
	for at := l.next(0); at != noEnd; at = l.next(at) {
		g := placed{at: make([]int32, j.Size)}
		for r, e := j.Size-1, at; r >= 0; r-- {
			e--
			for !l.ok[e] {
				e--
			}
			g.at[r] = int32(start) + e
		}
		out = append(out, g)
	}
	return out
}

// OrchestratePaper is [IHBD] Alg. 1 and 5: a binary search for the most
// constraints, alignments last, with which the job fits.
//
// Unlike [IHBD], which returns its last try and so finds nothing in a third
// of the cases where there is something, it keeps the best that fits.
func OrchestratePaper(j Job) Orchestration {
	j = j.laid()
	ok := j.usable()
	var best []placed
	held := 0
	low, high := 0, j.domains()+j.PerToR*j.domains()
	for low <= high {
		mid := (low + high) / 2
		if groups := j.placeFatTree(ok, mid); len(groups) >= j.Want {
			best, low, held = groups, mid+1, mid
			if best == nil {
				best = []placed{}
			}
		} else {
			high = mid - 1
		}
	}
	most := len(j.placeAll(ok))
	if best == nil {
		return Orchestration{Most: most}
	}
	o := j.finish(best, most)
	o.Rule, o.Held = RuleConstraints, held
	return o
}

// OrchestrateBaseline is the comparison of [IHBD] sec. 6.4: groups of Alg. 2
// in an order drawn from the seed, the first that do.
func OrchestrateBaseline(j Job, seed uint64) Orchestration {
	j = j.laid()
	groups := j.placeAll(j.usable())
	if len(groups) < j.Want {
		return Orchestration{Most: len(groups)}
	}
	r := detmath.Random(seed)
	r.Shuffle(len(groups), func(i, k int) { groups[i], groups[k] = groups[k], groups[i] })
	return j.count(groups[:j.Want], nil, len(groups))
}
