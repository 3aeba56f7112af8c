package sched

// AllToAllSteps arranges an all-to-all among GPUs, given the pod of each, in as
// many steps as there are GPUs: element s is to whom each sends in step s. Every
// step is a permutation, every pair meets once, and of G GPUs those of two pods
// with n and m of them never send more than n*m/G flows at once, rounded up: what
// allToAll counts links for.
//
// Unlike [LUMOS] eq. 44, which is printed for pods of one size and is a permutation
// only where they have as many GPUs as there are pods, pods may have any sizes. What
// pods send is divided into steps first, then the sends of a pod among its GPUs, then
// those to a pod among its GPUs: each time a matrix of counts is cut into matrices
// whose rows, columns and elements are its share, rounded up or down, which always
// exist (Hilton's amalgamations of Latin squares).
func AllToAllSteps(podOf []int32) [][]int {
	var members [][]int
	number := map[int32]int{}
	for g, p := range podOf {
		n, known := number[p]
		if !known {
			n = len(members)
			number[p] = n
			members = append(members, nil)
		}
		members[n] = append(members[n], g)
	}
	gpus, pods := len(podOf), len(members)
	all := matrix(pods, pods)
	for p := range pods {
		for q := range pods {
			all[p][q] = len(members[p]) * len(members[q])
		}
	}
	steps := cut(all, gpus) // by step: from pod, to pod
	dest := matrix(gpus, gpus)
	for p := range pods { // by step and pod sent to, cut among the GPUs of p
		of := matrix(gpus, pods)
		for s := range steps {
			copy(of[s], steps[s][p])
		}
		for i, own := range cut(of, len(members[p])) {
			for s := range own {
				for q, n := range own[s] {
					if n > 0 {
						dest[s][members[p][i]] = q
					}
				}
			}
		}
	}
	out := matrix(gpus, gpus)
	for q := range pods { // by step and sender, cut among the GPUs of q
		of := matrix(gpus, gpus)
		for s := range dest {
			for g, to := range dest[s] {
				if to == q {
					of[s][g] = 1
				}
			}
		}
		for i, own := range cut(of, len(members[q])) {
			for s := range own {
				for g, n := range own[s] {
					if n > 0 {
						out[s][g] = members[q][i]
					}
				}
			}
		}
	}
	return out
}

func matrix(rows, columns int) [][]int {
	out := make([][]int, rows)
	for i := range out {
		out[i] = make([]int, columns)
	}
	return out
}

// cut divides a matrix of counts, whose rows and columns are multiples of parts,
// into parts: of each row, column and element every part has its share, of elements
// rounded up or down.
func cut(m [][]int, parts int) (out [][][]int) {
	for left := parts; left > 0; left-- {
		one := share(m, left)
		for i := range m {
			for j := range m[i] {
				m[i][j] -= one[i][j]
			}
		}
		out = append(out, one)
	}
	return out
}

// share takes one of so many parts: each element's share rounded down, and one more
// of some, so that rows and columns come out even. Who gets one more is a flow from
// rows to columns, found way by way.
func share(m [][]int, parts int) [][]int {
	rows, columns := len(m), len(m[0])
	out := matrix(rows, columns)
	rest, lack := make([]int, rows), make([]int, columns)
	for i := range m {
		for j, n := range m[i] {
			out[i][j] = n / parts
			rest[i] += n
			lack[j] += n
		}
	}
	for i := range rest {
		rest[i] /= parts
		for j := range lack {
			if i == 0 {
				lack[j] /= parts
			}
			rest[i] -= out[i][j]
			lack[j] -= out[i][j]
		}
	}
	more := matrix(rows, columns)
	seen := make([]int, columns)
	turn := 0
	var give func(i int) bool
	give = func(i int) bool {
		for j := range columns {
			if seen[j] == turn || more[i][j] > 0 || m[i][j]%parts == 0 {
				continue
			}
			seen[j] = turn
			take := lack[j] > 0
			for k := 0; k < rows && !take; k++ {
				if more[k][j] > 0 && give(k) {
					more[k][j] = 0
					lack[j]++
					take = true
				}
			}
			if take {
				lack[j]--
				more[i][j] = 1
				return true
			}
		}
		return false
	}
	for i := range rows {
		for ; rest[i] > 0; rest[i]-- {
			if turn++; !give(i) {
				panic("sched: invariant: a matrix of counts has a share of whole numbers")
			}
		}
	}
	for i := range more {
		for j, n := range more[i] {
			out[i][j] += n
		}
	}
	return out
}
