package study

import (
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/sim/flow"
)

// What a job does on a network: rounds of flows between its GPUs.

// seat is where a job is: the server of each element of its domains.
type seat struct {
	placed  sched.Placed
	part    int     // GPUs, of one server; 0: whole servers
	servers []int   // of the cluster, by leaf
	of      [][]int // of the servers: by stage and replica
	circuit map[[2]int][]lane
	next    map[[2]int]int // flows from leaf to leaf so far
	paths   [][]flow.Link
}

// lane is one link between two leaves of different pods: through which spine,
// and the circuit of its direction.
type lane struct {
	spine   int
	circuit flow.Link
}

// elements gives each element of a job a server at its leaf.
func (n *net) elements(s *seat) error {
	leaves, err := n.core.Elements(s.placed.Job, s.placed.Shares)
	if err != nil {
		return err
	}
	at := map[int][]int{}
	for _, server := range s.servers {
		leaf := server / n.leafServer
		at[leaf] = append(at[leaf], server)
	}
	s.of = make([][]int, s.placed.PP)
	for stage, row := range leaves[0] {
		for _, leaf := range row {
			s.of[stage] = append(s.of[stage], at[leaf][0])
			at[leaf] = at[leaf][1:]
		}
	}
	return nil
}

// path is the links of a connection of a job.
func (n *net) path(s *seat, job, from, to int) []flow.Link {
	path := n.near(from, to)
	switch a, b := n.leaf(from), n.leaf(to); {
	case path != nil:
	case n.network != LumosCore, a/n.leaves == b/n.leaves && n.counts: // several servers a leaf
		path = n.clos(from, to, job)
	case a/n.leaves == b/n.leaves: // GPU g by spine g: nobody else's
		path = n.within(from, from%n.perServer%n.spines, to)
	default:
		l := n.lane(s, a, b)
		if n.pooled {
			l = n.any(a, b, detmath.Hash(n.seed, uint64(from), uint64(to), uint64(job)))
		}
		path = n.counted([]flow.Link{flow.Link(from), n.up(a, l.spine), l.circuit, n.down(b, l.spine), flow.Link(n.gpus + to)})
	}
	s.paths = append(s.paths, path)
	return path
}

// lane is the next of a job's links from leaf to leaf. Leaves that have none
// take those of others of their pods: a circuit joins spines. Where a leaf has
// several servers so does an all-to-all, whose links serve all leaves of two
// pods.
func (n *net) lane(s *seat, a, b int) lane {
	key := [2]int{a, b}
	if n.counts && s.placed.Collective == sched.AllToAll || len(s.circuit[key]) == 0 {
		from, to := a/n.leaves, b/n.leaves
		key = [2]int{-1 - from, -1 - to}
		if s.circuit[key] == nil {
			for _, w := range s.placed.Wants {
				for _, x := range [][2]int{{w.A, w.B}, {w.B, w.A}} {
					if x[0]/n.leaves == from && x[1]/n.leaves == to {
						s.circuit[key] = append(s.circuit[key], s.circuit[x]...)
					}
				}
			}
		}
	}
	lanes := s.circuit[key]
	l := lanes[s.next[key]%len(lanes)]
	s.next[key]++
	return l
}

// any is a circuit between the pods of two leaves, whosever: by hash a spine that has
// some, and one of these; or the one on whose way the fullest link has fewest connections.
func (n *net) any(a, b int, hash uint64) (best lane) {
	lanes := n.between[[2]int{a / n.leaves, b / n.leaves}]
	if n.ecmp {
		spines := each(lanes, func(l lane) int { return l.spine })
		slices.Sort(spines)
		spines = slices.Compact(spines)
		at := spines[hash%uint64(len(spines))]
		lanes = slices.DeleteFunc(slices.Clone(lanes), func(l lane) bool { return l.spine != at })
		return lanes[hash>>32%uint64(len(lanes))]
	}
	least := [2]int32{1<<31 - 1}
	for _, l := range lanes {
		up, circuit, down := n.load[n.up(a, l.spine)], n.load[l.circuit], n.load[n.down(b, l.spine)]
		if full := [2]int32{max(up, circuit, down), up + circuit + down}; slices.Compare(full[:], least[:]) < 0 {
			best, least = l, full
		}
	}
	return best
}

// rails is what the like-numbered GPUs of two servers send.
func (n *net) rails(out []flow.Flow, s *seat, job, from, to int, bytes int64) []flow.Flow {
	for g := range n.perServer {
		out = append(out, flow.Flow{Path: n.path(s, job, from*n.perServer+g, to*n.perServer+g), Bytes: bytes})
	}
	return out
}

// stages are what a job does: it computes, exchanges between experts, forwards
// between stages and reduces gradients, none hidden behind another, in so many
// iterations. On the ideal network it takes as long as it says.
func (n *net) stages(s *seat, job int, j *lumosJob, steps int) []flow.Stage {
	each := j.Duration / time.Duration(steps)
	talk := time.Duration(j.reduce+j.exchange+j.forward) * (each / 10_000)
	// Of a GPU at the fast rate: nanoseconds times bits of a nanosecond.
	bytes := func(share int64) int64 {
		return share * int64(each/10_000) * fastGbps / (8 * int64(time.Second) / unit)
	}
	stages := []flow.Stage{{{Compute: each - talk}}}
	for _, part := range []struct {
		share  int64
		rounds func(bytes int64) []flow.Round
	}{
		{j.exchange, func(b int64) []flow.Round { return []flow.Round{{Flows: n.exchange(s, job, j, b), Times: 1}} }},
		{j.forward, func(b int64) []flow.Round { return []flow.Round{{Flows: n.forward(s, job, b), Times: 1}} }},
		{j.reduce, func(b int64) []flow.Round { return n.reduce(s, job, j.collective, b) }},
	} {
		if part.share > 0 {
			stages = append(stages, flow.Stage{{Rounds: part.rounds(bytes(part.share))}})
		}
	}
	return stages
}

// exchange is an all-to-all in domains of servers of one pod: the round in which
// each sends to the one half a domain away, for all of them.
func (n *net) exchange(s *seat, job int, j *lumosJob, bytes int64) (out []flow.Flow) {
	byPod := make([][]int, n.pods)
	for _, server := range slices.Concat(s.of...) {
		p := server / n.leafServer / n.leaves
		byPod[p] = append(byPod[p], server)
	}
	for _, servers := range byPod {
		for domain := range slices.Chunk(servers, j.ep) {
			if len(domain) < 2 {
				continue
			}
			for i, from := range domain {
				out = n.rails(out, s, job, from, domain[(i+len(domain)/2)%len(domain)], bytes)
			}
		}
	}
	return out
}

// forward is what stages send to the next.
func (n *net) forward(s *seat, job int, bytes int64) (out []flow.Flow) {
	for stage := 1; stage < len(s.of); stage++ {
		for replica, from := range s.of[stage-1] {
			out = n.rails(out, s, job, from, s.of[stage][replica], bytes)
		}
	}
	return out
}

// reduce is the collective of the replicas of each stage, all stages at once.
// A phase of a halving sends half of what the one before does; what the busiest
// GPU sends or gets is a share of the bytes, so that the ideal network takes as
// long for each collective. Where all replicas are in one pod they form a ring.
func (n *net) reduce(s *seat, job int, of sched.Collective, bytes int64) (rounds []flow.Round) {
	for _, row := range s.of {
		pods := each(row, func(server int) int32 { return int32(server / n.leafServer / n.leaves) })
		phases := of.Phases(pods, n.perServer)
		if slices.Min(pods) == slices.Max(pods) {
			phases = sched.Ring.Phases(pods, n.perServer)
		}
		left := int64(1)<<len(phases) - 1
		for at, sends := range phases {
			if at == len(rounds) {
				rounds = append(rounds, flow.Round{Times: 1})
			}
			gpus := len(row) * n.perServer
			load := make([]int64, 2*gpus) // of a GPU: what it sends, and what it gets
			for _, x := range sends {
				load[x.From*n.perServer+x.GPU]++
				load[gpus+x.To*n.perServer+x.GPU]++
			}
			part := bytes * (left + 1) / 2 / (int64(1)<<len(phases) - 1) / max(1, slices.Max(load))
			left /= 2
			for _, x := range sends {
				path := n.path(s, job, row[x.From]*n.perServer+x.GPU, row[x.To]*n.perServer+x.GPU)
				rounds[at].Flows = append(rounds[at].Flows, flow.Flow{Path: path, Bytes: part})
			}
		}
	}
	return rounds
}

// lay gives the links of a new job spines and circuits, by a spread that has
// them; it takes none of another job, which stays on the spines that it has.
func (r *pods) lay(s *seat, spread wiring.Spread) {
	s.circuit, s.next = map[[2]int][]lane{}, map[[2]int]int{}
	granted, others := map[[2]int]int{}, map[[2]int][]int{}
	for n, w := range s.placed.Wants {
		pair := [2]int{w.A, w.B}
		granted[pair], others[pair] = s.placed.Links[n], make([]int, r.spines)
		for _, o := range r.seats { // any order: a sum
			for _, l := range o.circuit[pair] {
				others[pair][l.spine]++
			}
		}
	}
	take := func() flow.Link {
		l := r.spare[len(r.spare)-1]
		r.spare = r.spare[:len(r.spare)-1]
		return l
	}
	for h, t := range spread.Spine {
		for _, link := range t.Links {
			pair := [2]int{int(link.I), int(link.J)}
			for range link.Count {
				if granted[pair] == 0 {
					continue
				}
				if others[pair][h] > 0 {
					others[pair][h]--
					continue
				}
				granted[pair]--
				back := [2]int{pair[1], pair[0]}
				for _, x := range [][2]int{pair, back} {
					l, pods := lane{h, take()}, [2]int{x[0] / r.leaves, x[1] / r.leaves}
					s.circuit[x], r.between[pods] = append(s.circuit[x], l), append(r.between[pods], l)
				}
			}
		}
	}
	r.reserve(s, 1)
}

// reserve counts the links of a job between pods as connections of their
// leaves, so that what stays in a pod goes around them.
func (n *net) reserve(s *seat, by int32) {
	if n.pooled {
		return // flows are counted where they are
	}
	for pair, lanes := range s.circuit { // any order: sums
		for _, l := range lanes {
			if pair[0] >= 0 {
				n.load[n.up(pair[0], l.spine)] += by
				n.load[n.down(pair[1], l.spine)] += by
			}
		}
	}
}

// lift gives a job's circuits back.
func (n *net) lift(s *seat) {
	n.reserve(s, -1)
	for _, w := range s.placed.Wants {
		for _, pair := range [][2]int{{w.A, w.B}, {w.B, w.A}} {
			pods := [2]int{pair[0] / n.leaves, pair[1] / n.leaves}
			for _, l := range s.circuit[pair] {
				n.between[pods] = slices.DeleteFunc(n.between[pods], func(x lane) bool { return x == l })
				if n.pooled && n.load[l.circuit] > 0 {
					n.lifted[l.circuit] = true
					continue
				}
				n.spare = append(n.spare, l.circuit)
			}
		}
	}
}
