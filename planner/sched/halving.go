package sched

import "math/bits"

// HalvingDoubling is what the GPUs send between pods in each phase of a
// hierarchical halving-doubling AllReduce ([LUMOS] A.5.4): the like-numbered
// GPUs of all pods exchange with the pod that differs in one bit, a bit a
// phase. pods must be a power of two.
//
// The publication refers to a figure for the order. Here GPU g begins with bit
// g and goes on round, so each phase uses the links of all bits at once and
// every phase the same ones. With as many GPUs as a multiple of the bits, a
// pod needs one link a GPU in all; where all begin with bit 0 it needs that
// for every bit anew.
func HalvingDoubling(pods, n int) ([][]Flow, error) {
	if err := checkPods(pods, n); err != nil {
		return nil, err
	}
	if pods&(pods-1) != 0 {
		return nil, wrong("pods", "a power of two", "%d", pods)
	}
	phases := make([][]Flow, bits.TrailingZeros(uint(pods)))
	for t := range phases {
		for p := range pods {
			for g := range n {
				bit := (t + g) % len(phases)
				phases[t] = append(phases[t], Flow{p*n + g, (p^1<<bit)*n + g})
			}
		}
	}
	return phases, nil
}
