package sched

// AllToAll is where GPU g of pod p sends in step t of an all-to-all among pods
// of n GPUs, t from 1 to pods*n ([LUMOS] A.7). Every step is a permutation,
// every pair meets once, and no pod sends more than ceil(n/pods) flows to
// another in a step.
//
// Unlike eq. 44 as printed, which is a permutation only for n = pods.
func AllToAll(pods, n, p, g, t int) (pod, gpu int) {
	a, b := (t-1)/n, (t-1)%n
	return (p + g + a) % pods, (g + b) % n
}
