package study

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
)

// pods is the place of each job in a network of pods, and its links.
type pods struct {
	*net
	LumosLinks
	seats  map[int]*seat
	spread wiring.Spread
	idle   []int       // servers of a leaf
	slots  [][]int     // of a leaf: idle servers
	shared map[int]int // server with small jobs: GPUs left
}

func newPods(n *net) *pods {
	r := &pods{net: n, seats: map[int]*seat{}, shared: map[int]int{}}
	r.spread = wiring.Spread{Leaves: r.core.Leaves, Spine: make([]wiring.Topology, r.spines)}
	for h := range r.spread.Spine {
		r.spread.Spine[h].Pods = len(r.core.PodOf)
	}
	for leaf, servers := range r.core.Servers {
		r.idle = append(r.idle, servers)
		var slots []int
		for i := range servers {
			slots = append(slots, leaf*servers+servers-1-i)
		}
		r.slots = append(r.slots, slots)
	}
	return r
}

// errNoPorts: servers are idle, and their links find no way.
var errNoPorts = errors.New("no links")

// place finds servers, and links between them.
func (r *pods) place(job int, j *lumosJob) (s *seat, err error) {
	if j.servers == 0 {
		s, err = r.part(int(j.GPUs))
	} else {
		s, err = r.whole(j.sched(r.perServer))
	}
	if err == nil {
		r.seats[job] = s
	}
	return s, err
}

func (r *pods) whole(j sched.Job) (*seat, error) {
	s := &seat{placed: sched.Placed{Job: j}}
	cluster := sched.Cluster{GPUsPerServer: r.perServer, Idle: make([][]int, r.net.pods)}
	for p := range r.net.pods {
		cluster.Idle[p] = r.idle[p*r.leaves : (p+1)*r.leaves]
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
		leaf := x.Pod*r.leaves + x.Leaf
		r.take(s, leaf, x.Servers)
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
	r.idle[leaf] -= servers
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
	r.spread = next
	r.lay(s, next)
	return nil
}

// kept adds up the paths of jobs that run and stay on their spines, and those
// that do not.
func (r *pods) kept(running wiring.Topology, next wiring.Spread) {
	all, kept := 0, 0
	for _, l := range running.Links {
		all += int(l.Count)
	}
	of := map[[2]int32]bool{}
	for _, l := range running.Links {
		of[[2]int32{l.I, l.J}] = true
	}
	for h, t := range r.spread.Spine {
		was := map[[2]int32]int32{}
		for _, l := range t.Links {
			was[[2]int32{l.I, l.J}] = l.Count
		}
		for _, l := range next.Spine[h].Links {
			if pair := [2]int32{l.I, l.J}; of[pair] {
				kept += int(min(l.Count, was[pair]))
			}
		}
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
		for leaf, idle := range r.idle {
			if idle > 0 && (best < 0 || idle < r.idle[best]) {
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

// leave frees what a job has.
func (r *pods) leave(job int) {
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
		r.idle[leaf]++
	}
	r.release(s.paths)
	r.lift(s)
}
