package sched

// The collectives of [LUMOS] A.5 and A.7 GPU by GPU, as paper_test.go judges
// them and what jobs get by them.

// Flow is a stream from one GPU to another; GPU n of pod p has the number
// p*N + n where pods have N GPUs.
type Flow struct{ From, To int }

// ringRanks is the rank of every GPU in a ring through pods of n GPUs each
// ([LUMOS] eq. 42): the first half of each pod on the way there, the second
// on the way back. Every link between pods then carries one flow each way,
// and none is needed from the last pod to the first. n must be even.
func ringRanks(pods, n int) ([]int, error) {
	if err := checkPods(pods, n); err != nil {
		return nil, err
	}
	if n%2 != 0 {
		return nil, wrong("gpus", "an even number a pod", "%d cannot be halved", n)
	}
	rank := make([]int, pods*n)
	for p := range pods {
		for g := range n {
			if g < n/2 {
				rank[p*n+g] = p*n/2 + g
			} else {
				rank[p*n+g] = pods*n - 1 - (p*n/2 + g - n/2)
			}
		}
	}
	return rank, nil
}

func checkPods(pods, n int) error {
	if pods < 1 || n < 1 || n > maxDomain/pods {
		return wrong("pods", "pods of at least one GPU", "%d pods of %d", pods, n)
	}
	return nil
}

// RingFlows is what every phase of a ring AllReduce sends: each rank to the
// next.
func RingFlows(rank []int) []Flow {
	gpu := make([]int, len(rank))
	for g, r := range rank {
		gpu[r] = g
	}
	flows := make([]Flow, len(rank))
	for r := range gpu {
		flows[r] = Flow{gpu[r], gpu[(r+1)%len(gpu)]}
	}
	return flows
}

// HierarchicalRing is the place of every GPU in the ring that the like-numbered
// GPUs of all pods form ([LUMOS] eq. 43): even ones go round one way, odd ones
// the other, so that the two share links.
//
// Unlike eq. 43 as printed, the place is taken modulo the pods; without that
// pod 0 of the odd rings would have place P.
func HierarchicalRing(pods, n int) ([]int, error) {
	if err := checkPods(pods, n); err != nil {
		return nil, err
	}
	place := make([]int, pods*n)
	for p := range pods {
		for g := range n {
			if g%2 == 0 {
				place[p*n+g] = p
			} else {
				place[p*n+g] = (pods - p) % pods
			}
		}
	}
	return place, nil
}

// HierarchicalFlows is what every phase sends between pods: each GPU to the
// next in its ring.
func HierarchicalFlows(place []int, pods int) []Flow {
	n := len(place) / pods
	at := make([]int, len(place)) // of ring and place: the GPU
	for g, p := range place {
		at[g%n*pods+p] = g
	}
	var flows []Flow
	for g, p := range place {
		if to := at[g%n*pods+(p+1)%pods]; to != g {
			flows = append(flows, Flow{g, to})
		}
	}
	return flows
}

// PodLinks is how many links each pair of pods needs for phases that follow
// each other and share links: in every phase as many as there are flows in
// the busier direction, over all phases the most. Element i*pods+j, i < j.
func PodLinks(phases [][]Flow, pods, n int) []int {
	links := make([]int, pods*pods)
	for _, flows := range phases {
		count := PodFlows(flows, pods, n)
		for i := range pods {
			for j := i + 1; j < pods; j++ {
				links[i*pods+j] = max(links[i*pods+j], count[i*pods+j], count[j*pods+i])
			}
		}
	}
	return links
}

// PodFlows counts flows from pod to pod, those within a pod left out.
func PodFlows(flows []Flow, pods, n int) []int {
	count := make([]int, pods*pods)
	for _, f := range flows {
		if f.From/n != f.To/n {
			count[f.From/n*pods+f.To/n]++
		}
	}
	return count
}

// allToAllStep is where GPU g of pod p sends in step t of an all-to-all among pods
// of n GPUs, t from 1 to pods*n ([LUMOS] A.7). Every step is a permutation,
// every pair meets once, and no pod sends more than ceil(n/pods) flows to
// another in a step.
//
// Unlike eq. 44 as printed, which is a permutation only for n = pods.
func allToAllStep(pods, n, p, g, t int) (pod, gpu int) {
	a, b := (t-1)/n, (t-1)%n
	return (p + g + a) % pods, (g + b) % n
}
