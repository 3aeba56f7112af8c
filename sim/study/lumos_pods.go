package study

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ringlight/planner/isolate"
	"ringlight/planner/sched"
	"ringlight/planner/wiring"
)

// pods is the place of each job in a network of pods, and its links.
type pods struct {
	*net
	LumosLinks
	seats  map[int]*seat
	spread wiring.Spread
	halves []wiring.Half // of a spine's group
	slots  [][]int       // of a leaf: idle servers
	shared map[int]int   // server with small jobs: GPUs left
}

func newPods(n *net) *pods {
	r := &pods{net: n, seats: map[int]*seat{}, shared: map[int]int{}}
	r.spread = wiring.Spread{Leaves: r.core.Leaves, Spine: make([]wiring.Topology, r.spines)}
	for h := range r.spread.Spine {
		r.spread.Spine[h].Pods = len(r.core.PodOf)
	}
	for leaf, servers := range r.core.Servers {
		slots := make([]int, servers)
		for i := range slots {
			slots[i] = (leaf+1)*servers - 1 - i
		}
		r.slots = append(r.slots, slots)
	}
	return r
}

// errNoPorts: servers are idle, and their links find no way.
var errNoPorts = errors.New("no links")

// lodge finds servers, and links between them, for a house.
func (r *pods) lodge(job int, j *lumosJob) (servers []int, why isolate.Cause, err error) {
	var s *seat
	if j.servers == 0 {
		s, err = r.part(int(j.GPUs))
	} else {
		s, err = r.whole(sched.Job{TP: r.perServer, EP: j.ep * r.perServer, PP: j.pp, DP: j.dp, Collective: j.collective})
	}
	switch {
	case errors.Is(err, sched.ErrNoRoom):
		return nil, isolate.ByGPU, nil
	case errors.Is(err, errNoPorts):
		return nil, isolate.ByNetwork, nil
	case err != nil:
		return nil, 0, err
	}
	r.seats[job] = s
	return s.servers, isolate.Fits, nil
}

// circuits says whether a job has links between pods.
func (r *pods) circuits(job int) bool { return len(r.seats[job].placed.Wants) > 0 }

func (r *pods) whole(j sched.Job) (*seat, error) {
	s := &seat{placed: sched.Placed{Job: j}}
	cluster := sched.Cluster{GPUsPerServer: r.perServer, Idle: make([][]int, r.net.pods)}
	for p := range r.net.pods {
		cluster.Idle[p] = each(r.slots[p*r.leaves:(p+1)*r.leaves], func(slots []int) int { return len(slots) })
	}
	var err error
	if s.placed.Shares, err = sched.Place(cluster, s.placed.Job); err != nil {
		return nil, err
	}
	if r.network == LumosCore {
		if err := r.links(s); err != nil {
			return nil, err
		}
	}
	for _, x := range s.placed.Shares {
		r.take(s, x.Pod*r.leaves+x.Leaf, x.Servers)
	}
	if len(s.placed.Shares) > 0 && s.placed.Shares[0].Pod != s.placed.Shares[len(s.placed.Shares)-1].Pod {
		r.Across++
	}
	return s, nil
}

func (r *pods) take(s *seat, leaf, servers int) {
	slots := r.slots[leaf]
	s.servers = append(s.servers, slots[len(slots)-servers:]...)
	r.slots[leaf] = slots[:len(slots)-servers]
}

// links finds a job's links as the planner does: as many as its collective
// wants and its leaves' ports allow, over spines that have ports left.
func (r *pods) links(s *seat) error {
	var running []sched.Placed
	for _, job := range slices.Sorted(maps.Keys(r.seats)) {
		if o := r.seats[job]; len(o.placed.Wants) > 0 {
			running = append(running, o.placed)
		}
	}
	before, err := r.core.Need(running)
	if err != nil {
		return err
	}
	if s.placed.Wants, err = r.core.Wants(s.placed.Job, s.placed.Shares); err != nil || len(s.placed.Wants) == 0 {
		return err
	}
	if r.byRails {
		s.placed.Wants = r.byRail(s.placed.Wants)
	}
	if s.placed.Links, err = sched.Fit(s.placed.Wants, before.Ports(), r.core.Ports()); err != nil {
		return fmt.Errorf("%w: %v", errNoPorts, err)
	}
	need, err := r.core.Need(append(running, s.placed))
	if err != nil {
		return err
	}
	next, err := r.core.Respread(need, r.spread)
	if err != nil {
		return fmt.Errorf("%w: %v", errNoPorts, err)
	}
	for n, w := range s.placed.Wants {
		r.Asked += w.Links()
		r.Granted += s.placed.Links[n]
	}
	r.kept(before, next)
	if err := r.turn(next); err != nil {
		return err
	}
	r.spread = next
	r.lay(s, next)
	return nil
}

// turn has the circuits of each spine's group found as the planner finds them, and counts
// those that were there and are wanted on, and of these those that go elsewhere.
func (r *pods) turn(next wiring.Spread) error {
	for h, t := range next.Spine {
		links := each(t.Links, func(l wiring.Link) wiring.Link {
			return wiring.Link{I: next.PodOf[l.I], J: next.PodOf[l.J], Count: l.Count}
		})
		between, err := wiring.Sum(r.net.pods, links)
		if err != nil {
			return err
		}
		if len(r.halves) == h {
			r.halves = append(r.halves, wiring.NewHalf(r.net.pods, (r.leaves+1)/2))
		}
		g := wiring.Group{Topology: between, Old: r.halves[h]}
		half, err := g.First()
		if err != nil {
			return err
		}
		r.Placed += g.UpperBound()
		r.Turned += g.UpperBound() - half.Kept(g.Old)
		r.halves[h] = half
	}
	return nil
}

// byRail is what leaves want that have a GPU of each server: of the flows between two
// pods each like-numbered pair its own.
func (r *pods) byRail(wants []sched.Want) (out []sched.Want) {
	of := map[[2]int]sched.Want{}
	for _, w := range wants {
		pods := [2]int{w.A / r.leaves, w.B / r.leaves}
		of[pods] = sched.Want{DP: of[pods].DP + w.DP, PP: of[pods].PP + w.PP}
	}
	for _, pods := range slices.SortedFunc(maps.Keys(of), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		w := of[pods]
		for g := range r.perServer {
			out = append(out, sched.Want{A: pods[0]*r.leaves + g, B: pods[1]*r.leaves + g, DP: (w.DP + r.perServer - 1) / r.perServer, PP: (w.PP + r.perServer - 1) / r.perServer})
		}
	}
	return out
}

// withhold keeps a server that nobody is on from all jobs, or gives it back.
func (r *pods) withhold(server int, out bool) {
	leaf := server / r.leafServer
	if !out {
		r.slots[leaf] = append(r.slots[leaf], server)
		return
	}
	r.slots[leaf] = slices.DeleteFunc(r.slots[leaf], func(s int) bool { return s == server })
}

// kept adds up the paths of jobs that run and stay on their spines, and those
// that do not.
func (r *pods) kept(running wiring.Topology, next wiring.Spread) {
	all, kept := count(running.Links), 0
	of := map[[2]int32]bool{}
	for _, l := range running.Links {
		of[[2]int32{l.I, l.J}] = true
	}
	for h, t := range r.spread.Spine {
		wanted := slices.DeleteFunc(slices.Clone(next.Spine[h].Links), func(l wiring.Link) bool { return !of[[2]int32{l.I, l.J}] })
		kept += wiring.InCommon(wanted, t.Links)
	}
	r.Kept += kept
	r.Moved += all - kept
}

// part finds room in a server for a job that does not fill one: in the fullest
// that it fits, else in an idle one.
func (r *pods) part(gpus int) (*seat, error) {
	best := -1
	for server, left := range r.shared { // any order: the fullest, of those the first
		if left >= gpus && (best < 0 || left < r.shared[best] || left == r.shared[best] && server < best) {
			best = server
		}
	}
	s := &seat{part: gpus}
	if best < 0 {
		for leaf, idle := range r.slots {
			if len(idle) > 0 && (best < 0 || len(idle) < len(r.slots[best])) {
				best = leaf
			}
		}
		if best < 0 {
			return nil, sched.ErrNoRoom
		}
		r.take(s, best, 1)
		best = s.servers[0]
		r.shared[best] = r.perServer
	}
	s.servers = []int{best}
	r.shared[best] -= gpus
	return s, nil
}

// free takes all from a job.
func (r *pods) free(job int) {
	s := r.seats[job]
	delete(r.seats, job)
	if s.part > 0 {
		server := s.servers[0]
		if r.shared[server] += s.part; r.shared[server] < r.perServer {
			return
		}
		delete(r.shared, server)
	}
	for _, server := range s.servers {
		leaf := server / r.leafServer
		r.slots[leaf] = append(r.slots[leaf], server)
	}
	r.release(s.paths)
	r.lift(s)
}
