package sched

import (
	"cmp"
	"slices"
)

// arrange says in which pod each element of a job is ([LUMOS] A.6): an element
// is one tensor parallel domain, a row one pipeline stage with its replicas
// (a data parallel domain), a column one replica through all stages (a
// pipeline domain). elements is what each pod has of them, pp*dp in all.
//
// Pods are taken by size, the smallest first, and fill the matrix row by row.
// So no more rows than pods less one lie in more than one pod, and the links
// of a row's ring serve the pipelines at other times.
func arrange(elements []int, pp, dp int) ([][]int, error) {
	if pp < 1 || dp < 1 || pp > maxDomain/dp {
		return nil, wrong("pp", "domains of at least one", "pp %d, dp %d", pp, dp)
	}
	order := make([]int, 0, len(elements))
	all := 0
	for p, n := range elements {
		if n < 0 || n > pp*dp {
			return nil, wrong("elements", "0..pp*dp a pod", "pod %d has %d", p, n)
		}
		if n > 0 {
			order = append(order, p)
		}
		all += n
	}
	if all != pp*dp {
		return nil, wrong("elements", "pp*dp in all", "%d of %d", all, pp*dp)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(elements[a], elements[b]) })
	matrix := make([][]int, pp)
	at, left := 0, 0
	for r := range matrix {
		matrix[r] = make([]int, dp)
		for c := range matrix[r] {
			for left == 0 {
				left = elements[order[at]]
				at++
			}
			matrix[r][c] = order[at-1]
			left--
		}
	}
	return matrix, nil
}
