package sched

import "math/bits"

// Collective is how the replicas of a pipeline stage exchange what each has
// ([LUMOS] A.5, A.7). Mirrors move too slowly to follow the phases of a
// collective, so a job has the circuits of all its phases at once, as long as
// it runs; ranks are arranged so that phases use the same ones. The numbers are
// those of the wire.
type Collective uint8

const (
	Ring            Collective = iota
	HalvingDoubling            // hierarchical: the like-numbered GPUs of all pods
	DoubleTree                 // two binary trees over the pods, chains within
	AllToAll                   // every GPU with every other
	collectives
)

// Send is a flow between the like-numbered GPUs of two members of a data
// parallel domain.
type Send struct{ From, To, GPU int }

// Phases is what members of so many GPUs each, in these pods, send each other.
// Of all but a ring it is what crosses pods; phases that send the same, and
// those that send what an earlier one did the other way, are one.
func (c Collective) Phases(podOf []int32, gpus int) (out [][]Send) {
	n := len(podOf)
	d := domain{rows: [][]int{make([]int, n)}, podOf: podOf, rails: gpus, flows: map[int]int{}}
	for i := range n {
		d.rows[0][i] = i
	}
	var sends []Send
	d.each = func(from, to, gpu int) { sends = append(sends, Send{from, to, gpu}) }
	for phase := 0; d.phase(c, phase); phase++ {
		out = append(out, sends)
		sends = nil
	}
	return out
}

// domain is a data parallel domain: the replicas of one stage, and what they
// send to each other.
type domain struct {
	rows  [][]int     // by part of a tensor parallel domain: the leaf of each replica
	podOf []int32     // of a leaf
	rails int         // GPUs of a part
	flows map[int]int // from leaf to leaf, of the phase under way: sender * leaves + receiver
	each  func(from, to, rail int)
}

// add is a flow; whoever wants to is told of each.
func (d *domain) add(from, to, rail int) {
	d.flows[from*len(d.podOf)+to]++
	if d.each != nil {
		d.each(from, to, rail)
	}
}

// phase adds up what a phase sends at the same time. It reports false, and
// adds nothing, where the collective has no such phase.
func (d *domain) phase(c Collective, n int) bool {
	switch c {
	case HalvingDoubling:
		return d.halvingDoubling(n)
	case DoubleTree:
		return n == 0 && d.doubleTree()
	case AllToAll:
		return n == 0 && d.allToAll()
	}
	return n == 0 && d.ring()
}

// ring goes out through the pods and comes back ([LUMOS] eq. 42), even rails
// one way round and odd ones the other (eq. 43).
func (d *domain) ring() bool {
	for _, row := range d.rows {
		pods := make([]int32, len(row))
		for n, leaf := range row {
			pods[n] = d.podOf[leaf]
		}
		ring := RingOrder(pods)
		for i := range ring {
			a, b := row[ring[i]], row[ring[(i+1)%len(ring)]]
			for g := range d.rails {
				if g%2 == 0 {
					d.add(a, b, g)
				} else {
					d.add(b, a, g)
				}
			}
		}
	}
	return true
}

// pods are the replicas of the domain by pod, in the order they come in.
func (d *domain) pods() [][]int {
	var out [][]int
	at := map[int32]int{}
	for replica, leaf := range d.rows[0] {
		p := d.podOf[leaf]
		n, known := at[p]
		if !known {
			n = len(out)
			at[p] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], replica)
	}
	return out
}

// halvingDoubling is a phase between pods ([LUMOS] A.5.4). Within a pod the
// data is first divided among as many replicas as the smallest pod has, which
// then exchange with their like in the other pods.
func (d *domain) halvingDoubling(n int) bool {
	pods := d.pods()
	shards := len(pods[0])
	for _, p := range pods {
		shards = min(shards, len(p))
	}
	exchanges, ok := halvings(len(pods), shards*len(d.rows)*d.rails, n)
	for _, x := range exchanges {
		rank, of := x.gpu/d.rails, len(d.rows)
		row, shard := d.rows[rank%of], rank/of
		d.add(row[pods[x.from][shard*len(pods[x.from])/shards]], row[pods[x.to][shard*len(pods[x.to])/shards]], x.gpu%d.rails)
	}
	return ok
}

// exchange is what a GPU of a pod sends to the like-numbered one of another.
type exchange struct{ from, to, gpu int }

// halvings is a phase of a halving-doubling among pods, in each of which the
// same number of GPUs takes part; false: there is no such phase. GPU g begins
// with bit g and goes on round, so each phase uses the links of all bits at
// once and every phase the same ones: with as many GPUs as a multiple of the
// bits, a pod needs one link a GPU in all. Where all begin with bit 0 it needs
// that for every bit anew.
//
// Unlike [LUMOS], which draws powers of two, pods may be any number. Where it is
// no power of two, pods at the beginning join their neighbour in a phase of its
// own.
func halvings(pods, gpus, phase int) (out []exchange, ok bool) {
	all := bits.Len(uint(pods)) - 1
	joined := pods - 1<<all
	if joined > 0 {
		if phase == 0 {
			for p := range joined {
				for g := range gpus {
					out = append(out, exchange{2 * p, 2*p + 1, g}, exchange{2*p + 1, 2 * p, g})
				}
			}
			return out, true
		}
		phase--
	}
	if phase >= all {
		return nil, false
	}
	podOf := func(n int) int { // of those that are left
		if n < joined {
			return 2*n + 1
		}
		return n + joined
	}
	for n := range 1 << all {
		for g := range gpus {
			out = append(out, exchange{podOf(n), podOf(n ^ 1<<((phase+g)%all)), g})
		}
	}
	return out, true
}

// doubleTree is two binary trees over the pods ([LUMOS] A.5.3), which work at
// the same time and both ways. Within a pod each is a chain, so a tree may
// reach it anywhere: the at most four links of a rail begin at one replica
// after the other.
func (d *domain) doubleTree() bool {
	pods := d.pods()
	used := make([]int, len(pods))
	next := func(p int) int {
		used[p]++
		return pods[p][(used[p]-1)%len(pods[p])]
	}
	for _, parents := range trees(len(pods)) {
		for p, up := range parents {
			if up < 0 {
				continue
			}
			child, parent := next(p), next(up)
			for _, row := range d.rows {
				for g := range d.rails {
					d.add(row[child], row[parent], g)
					d.add(row[parent], row[child], g)
				}
			}
		}
	}
	return true
}

// trees are two binary trees over n members: the parent of each in either, -1
// for the root. None has children in both, so each tree carries half of the
// data at full rate, and none has more than four neighbours in all.
//
// The first is the tree of a sorted sequence: with members numbered from 1 the
// odd ones are leaves, and the height of one is the number of zeros its number
// ends in. The second is the same over the numbers in reverse, or, for odd n,
// moved on by one, so that odd and even change places.
func trees(n int) (parents [2][]int) {
	number := func(tree, member int) int {
		switch {
		case tree == 0:
			return member + 1
		case n%2 == 0:
			return n - member
		}
		return (member+1)%n + 1
	}
	for tree := range parents {
		memberOf := make([]int, n+1)
		for m := range n {
			memberOf[number(tree, m)] = m
		}
		parents[tree] = make([]int, n)
		for m := range n {
			parents[tree][m] = -1
			if up := above(number(tree, m), n); up > 0 {
				parents[tree][m] = memberOf[up]
			}
		}
	}
	return parents
}

// above is the parent of a number in the tree of 1..n: the parent in the
// endless tree, or the first further up that is not beyond n. 0: the root.
func above(i, n int) int {
	if i&(i-1) == 0 && 2*i > n {
		return 0
	}
	for {
		low := i & -i
		if i = i&^low | low<<1; i <= n {
			return i
		}
	}
}

// allToAll is a full mesh of the pods ([LUMOS] A.7). Of G GPUs those of two pods
// with n and m of them meet n*m times in G steps, so a step has need of n*m/G
// links, rounded up, and no more: steps can be arranged so that every one has
// the same share. For pods of one size eq. 44, corrected, arranges them.
//
// Which leaves of two pods meet changes from step to step, and every link
// between the pods serves all of them. Links count against leaves in proportion
// to their GPUs, one leaf after the other, so that each has few to reach.
func (d *domain) allToAll() bool {
	pods := d.pods()
	gpus, quota := make([]int, len(d.podOf)), make([]int, len(d.podOf)) // of a leaf
	leaves, size, all := make([][]int, len(pods)), make([]int, len(pods)), 0
	for p, replicas := range pods {
		for _, replica := range replicas {
			for _, row := range d.rows {
				leaf := row[replica]
				if gpus[leaf] == 0 {
					leaves[p] = append(leaves[p], leaf)
				}
				gpus[leaf] += d.rails
				size[p] += d.rails
				all += d.rails
			}
		}
	}
	links := func(p, q int) int { return (size[p]*size[q] + all - 1) / all }
	for p := range pods {
		for q := range pods {
			for n := 0; p != q && n < links(p, q); n++ {
				quota[fewest(leaves[p], quota, gpus)]++
			}
		}
	}
	next := func(p int) int {
		for quota[leaves[p][0]] == 0 {
			leaves[p] = leaves[p][1:]
		}
		quota[leaves[p][0]]--
		return leaves[p][0]
	}
	for p := range pods {
		for q := range p {
			for range links(p, q) {
				a, b := next(q), next(p)
				d.add(a, b, quota[a]%d.rails)
				d.add(b, a, quota[b]%d.rails)
			}
		}
	}
	return true
}

// fewest is the leaf that has fewest links in proportion to its GPUs.
func fewest(of, links, gpus []int) int {
	best := of[0]
	for _, leaf := range of {
		if (links[leaf]+1)*gpus[best] < (links[best]+1)*gpus[leaf] {
			best = leaf
		}
	}
	return best
}
