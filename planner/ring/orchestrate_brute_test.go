package ring

import (
	"slices"
	"testing"

	"ringlight/proto"
)

// bestCut is the definition of the exact method: the most groups of the ToRs
// from i on with at most u unaligned, over every way to cut them into aligned
// and free segments.
func bestCut(j Job, ok []bool, from, end, u int, memo map[[2]int]int) int {
	if from == end {
		return 0
	}
	if b, seen := memo[[2]int{from, u}]; seen {
		return b
	}
	best := 0
	for to := from + 1; to <= end; to++ {
		aligned, free := 0, 0
		whole := func(n proto.NodeID) bool {
			for s := range j.PerToR {
				if !ok[s*j.ToRs()+int(n)] {
					return false
				}
			}
			return true
		}
		count := func(usable func(proto.NodeID) bool) int {
			return len(Place(Problem{Order: Order{Nodes: j.ToRs(), K: j.K, Shared: j.Shared}, Size: j.Size, Want: -1,
				Usable: func(n proto.NodeID) bool { return int(n) >= from && int(n) < to && usable(n) }}))
		}
		aligned = j.PerToR * count(whole)
		for s := range j.PerToR {
			free += count(func(n proto.NodeID) bool { return ok[s*j.ToRs()+int(n)] })
		}
		best = max(best, aligned+bestCut(j, ok, to, end, u, memo))
		for take := 1; take <= min(free, u); take++ {
			best = max(best, take+bestCut(j, ok, to, end, u-take, memo))
		}
	}
	memo[[2]int{from, u}] = best
	return best
}

// The program over segments and the knapsack over domains find the fewest
// unaligned groups that any cut allows, for every number of groups.
// Every fault pattern on two sub-lines of six ToRs in one or two domains, and
// samples of three sub-lines.
func TestOrchestrateIsExact(t *testing.T) {
	check := func(perToR, tors, domainToRs, k, size int, shared bool, mask uint32) {
		j := Job{Deployment: Deployment{perToR * tors, perToR}, PerDomain: perToR * domainToRs, K: k, Shared: shared, Size: size,
			Faulty: func(n proto.NodeID) bool { return mask>>n&1 == 1 }}
		ok := j.usable()
		// fewest[g]: unaligned groups needed for g groups within domains.
		most := j.Nodes / size
		fewest := make([]int, most+1)
		for g := range fewest {
			fewest[g] = -1
		}
		var share func(domain, u, groups int)
		memos := make([]map[[2]int]int, (tors+domainToRs-1)/domainToRs)
		for i := range memos {
			memos[i] = map[[2]int]int{}
		}
		share = func(domain, u, groups int) {
			if domain == len(memos) {
				for g := 0; g <= groups; g++ {
					if fewest[g] < 0 || u < fewest[g] {
						fewest[g] = u
					}
				}
				return
			}
			from := domain * domainToRs
			for v := 0; v <= most; v++ {
				share(domain+1, u+v, groups+bestCut(j, ok, from, min(tors, from+domainToRs), v, memos[domain]))
			}
		}
		share(0, 0, 0)
		for j.Want = 1; j.Want <= most; j.Want++ {
			o := Orchestrate(j)
			if o.OK() {
				soundOrchestration(t, "exact", j, o)
			}
			if within := o.Rule == RuleWithinDomains; within != (fewest[j.Want] >= 0) {
				t.Fatalf("%+v mask %b: rule %s, want within domains: %v", j, mask, o.Rule, !within)
			} else if within && o.Unaligned > fewest[j.Want] {
				t.Fatalf("p %d ToRs %d d %d K %d size %d mask %b want %d: %d unaligned %v, a cut does with %d", perToR, tors, domainToRs, k, size, mask, j.Want, o.Unaligned, o.Groups, fewest[j.Want])
			} else if within && o.Crossing > 0 {
				t.Fatalf("mask %b want %d: %v leaves its domain", mask, j.Want, o.Groups)
			}
		}
	}
	for mask := uint32(0); mask < 1<<12; mask += 3 {
		check(2, 6, 6, 1+int(mask%3), 2+int(mask/3%2), mask%2 == 1, mask)
		check(2, 6, 3, 1+int(mask%3), 2, mask%2 == 1, mask)
	}
	for mask := uint32(0); mask < 1<<15; mask += 97 {
		check(3, 5, 5, 2, 2, false, mask)
		check(3, 5, 3, 1, 2, false, mask)
	}
}

// What the cut into segments gives away: groups of an aligned set and of a
// free segment could also lie between each other. In one of fifty cases of
// two sub-lines of six ToRs that would need fewer unaligned groups; it is
// never the other way round.
func TestSegmentsAreNearlyBest(t *testing.T) {
	beaten, cases := 0, 0
	for mask := uint32(0); mask < 1<<12; mask += 5 {
		for _, k := range []int{2, 3} {
			for _, size := range []int{2, 3} {
				j := Job{Deployment: Deployment{12, 2}, PerDomain: 12, K: k, Size: size,
					Faulty: func(n proto.NodeID) bool { return mask>>n&1 == 1 }}
				for want, u := range fewestUnaligned(j) {
					if j.Want = want + 1; u < 0 {
						continue
					}
					o := Orchestrate(j)
					if cases++; o.Unaligned > u {
						beaten++
					} else if o.Unaligned < u {
						t.Fatalf("%+v mask %b: %d unaligned, exhaustion finds %d", j, mask, o.Unaligned, u)
					}
				}
			}
		}
	}
	if beaten*25 > cases {
		t.Errorf("beaten in %d of %d cases", beaten, cases)
	}
}

// fewestUnaligned is, for 1 group, 2 groups and so on, the fewest unaligned
// ones of any set of disjoint lines on two sub-lines that are one domain; -1:
// so many do not fit.
func fewestUnaligned(j Job) []int {
	all := lines(Order{Nodes: j.ToRs(), K: j.K}, j.Size)
	ok := j.usable()
	var packings [2][][]uint32
	for s := range packings {
		var grow func(i int, free uint32, has []uint32)
		grow = func(i int, free uint32, has []uint32) {
			if i == len(all) {
				packings[s] = append(packings[s], slices.Clone(has))
				return
			}
			grow(i+1, free, has)
			if all[i]&^free == 0 {
				grow(i+1, free&^all[i], append(has, all[i]))
			}
		}
		free := uint32(0)
		for tor := range j.ToRs() {
			if ok[s*j.ToRs()+tor] {
				free |= 1 << tor
			}
		}
		grow(0, free, nil)
	}
	out := make([]int, j.Nodes/j.Size)
	for i := range out {
		out[i] = -1
	}
	for _, a := range packings[0] {
		for _, b := range packings[1] {
			u := len(a) + len(b)
			for _, l := range a {
				if slices.Contains(b, l) {
					u -= 2
				}
			}
			for g := len(a) + len(b); g > 0; g-- {
				if out[g-1] < 0 || u < out[g-1] {
					out[g-1] = u
				}
				u = max(0, u-1)
			}
		}
	}
	return out
}
