package ring

import (
	"math/bits"
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

// With two nodes under a ToR no placement within domains has fewer cross-ToR flows
// than the bound, and nearly always one is found that has no more than the best.
// Every set of lines one behind the other on two sub-lines of seven ToRs, joined in
// every way, for a sample of the fault patterns.
func TestPairsMeetAsOftenAsTheyCan(t *testing.T) {
	cases, worse := 0, 0
	for mask := uint32(0); mask < 1<<14; mask += 37 {
		for _, tc := range []struct {
			k, size int
			shared  bool
		}{{1, 2, false}, {2, 2, false}, {2, 3, false}, {3, 2, true}, {3, 3, true}} {
			j := Job{Deployment: Deployment{14, 2}, PerDomain: 14, K: tc.k, Shared: tc.shared, Size: tc.size,
				Faulty: func(n proto.NodeID) bool { return mask>>n&1 == 1 }}
			best := mostMeetings(j)
			for want, meets := range best {
				if j.Want = want; want == 0 || meets < 0 {
					continue
				}
				least := 2 * (j.Size*(want/2) - meets)
				o := Orchestrate(j)
				soundOrchestration(t, "exact", j, o)
				cases++
				switch {
				case o.Rule != RuleWithinDomains || o.CrossToR < least || o.Least > least:
					t.Fatalf("%+v mask %b: rule %s, %d flows, bound %d, exhaustion finds %d", j, mask, o.Rule, o.CrossToR, o.Least, least)
				case o.CrossToR > least:
					worse++
				}
			}
		}
	}
	if cases < 4000 || worse*200 > cases {
		t.Errorf("more flows than needed in %d of %d cases", worse, cases)
	}
	t.Logf("more flows than needed in %d of %d cases", worse, cases)
}

// mostMeetings is, by number of groups, in how many ranks pairs of them can meet at
// most; -1: so many do not fit.
func mostMeetings(j Job) []int {
	all := lines(Order{Nodes: j.ToRs(), K: j.K, Shared: j.Shared}, j.Size)
	ok := j.usable()
	var packings [2][][]uint32
	for s := range packings {
		free := uint32(0)
		for tor := range j.ToRs() {
			if ok[s*j.ToRs()+tor] {
				free |= 1 << tor
			}
		}
		var grow func(from uint32, has []uint32)
		grow = func(from uint32, has []uint32) {
			packings[s] = append(packings[s], slices.Clone(has))
			for _, l := range all {
				if l&^(free&^(from-1)) == 0 {
					grow(1<<bits.Len32(l), append(has, l))
				}
			}
		}
		grow(1, nil)
	}
	meet := func(a, b uint32) (n int) {
		x, y := members(a), members(b)
		for r := range x {
			if x[r] == y[r] {
				n++
			}
		}
		return n
	}
	var join func(a, b []uint32) int
	join = func(a, b []uint32) (most int) {
		if len(a) == 0 {
			return 0
		}
		most = join(a[1:], b)
		for i := range b {
			rest := append(slices.Clone(b[:i]), b[i+1:]...)
			most = max(most, meet(a[0], b[i])+join(a[1:], rest))
		}
		return most
	}
	out := make([]int, j.Nodes/j.Size+1)
	for i := range out {
		out[i] = -1
	}
	for _, a := range packings[0] {
		for _, b := range packings[1] {
			if n := len(a) + len(b); n > 0 {
				out[n] = max(out[n], join(a, b))
			}
		}
	}
	return out
}
