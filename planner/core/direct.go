package core

import (
	"errors"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// Servers joined directly: a job gets whole servers, and circuits between them
// on every layer, as planner/topo finds them. A job that is next to another is
// provisioned on the other fibre of the same servers while that one runs, and
// starts with a flip of their transceivers.

// direct designs a core of servers joined directly.
type direct struct {
	fab    *fabric.Core
	layout layout
	from   standing
}

// shard is what a job owns, and since when. Servers are numbered by rank in
// rings and layers.
type shard struct {
	Servers []int   // by rank
	Path    []uint8 // by rank: the fibre that its interfaces use, 0 or 1
	wires
	Active  bool // false: it stands by
	SinceMS int64
	Phases  []wires `json:",omitempty"` // of a job that has several, or goes to links for measured traffic
	Phase   int     `json:",omitempty"` // the one that it is in
	Ahead   int     `json:",omitempty"` // the one that the other fibres are joined for
	// Measured is traffic of phases that nobody asked for.
	Measured []proto.JobTopology `json:",omitempty"`
}

// wires are what a job's servers are joined by.
type wires struct {
	Layers [][]int // by layer and rank: the rank that it is joined to, -1: none
	Rings  []topo.Ring
}

// standsBy: provisioned beside the job that has its servers.
func (j *job) standsBy() bool { return j.shard != nil && !j.shard.Active }

// links are the circuits of the layers.
func (s *shard) links() (n int) {
	for l := range s.Layers {
		for range s.joined(l) {
			n++
		}
	}
	return n
}

// joined are the ranks that a layer joins: from and to.
func (s *shard) joined(layer int) func(func(a, b int) bool) {
	return func(yield func(a, b int) bool) {
		for a, b := range s.Layers[layer] {
			if b >= 0 && !yield(a, b) {
				return
			}
		}
	}
}

// topology is the traffic of the phase that a job is in, or of all of it.
func (j *job) topology() *proto.JobTopology {
	if j.shard != nil && len(j.shard.Measured) > 0 {
		return &j.shard.Measured[j.shard.Phase]
	}
	if j.shard != nil && len(j.spec.Phases) > 0 {
		return &j.spec.Phases[j.shard.Phase].Topology
	}
	return j.spec.Topology
}

// traffic is what a job sends that does not say it.
func (c direct) traffic(t *proto.JobTopology) *proto.JobTopology {
	if t != nil {
		return t
	}
	return &proto.JobTopology{Degree: uint32(c.fab.Degree), Bidirectional: c.fab.Degree%2 == 0}
}

// request is a job's traffic as planner/topo asks for it.
func (c direct) request(t *proto.JobTopology, servers int) topo.Request {
	t = c.traffic(t)
	r := topo.Request{Servers: servers, Degree: int(t.Degree), Bidirectional: t.Bidirectional, Seed: t.Seed,
		Method: [...]topo.Method{topo.Auto, topo.Random, topo.Totient}[min(t.Method, proto.MethodTotient)]}
	for _, g := range t.AllReduce {
		group := topo.Group{Bytes: int64(g.Bytes)}
		for _, x := range g.Servers {
			group.Servers = append(group.Servers, int(x))
		}
		r.AllReduce = append(r.AllReduce, group)
	}
	for _, d := range t.MP {
		r.MP = append(r.MP, topo.Demand{From: int(d.From), To: int(d.To), Bytes: int64(d.Bytes)})
	}
	if len(r.AllReduce)+len(r.MP) == 0 {
		all := topo.Group{Bytes: 1}
		for x := range servers {
			all.Servers = append(all.Servers, x)
		}
		r.AllReduce = []topo.Group{all}
	}
	return r
}

// servers is how many a job takes.
func (c direct) servers(j *job) int {
	return (j.placed.GPUs() + c.fab.GPUsPerServer - 1) / c.fab.GPUsPerServer
}

func (c direct) check(s *proto.JobSpec, bad wrongJob) *proto.Error {
	switch {
	case len(s.Pods) > 0:
		return bad("pods", "none: servers are joined directly", "%d pods", len(s.Pods))
	case s.Collective != proto.CollectiveRing:
		return bad("collective", "ring: other traffic is topology.mp", "%s", s.Collective)
	case s.Next != 0 && s.On != nil:
		return bad("next", "none with nodes", "%d", s.Next)
	case s.Next == s.Job:
		return bad("next", "another job", "%d", s.Next)
	case s.DurationMillis > 0 || s.DeadlineMillis > 0 || s.MayPauseMillis > 0:
		return bad("duration_ms", "a leaf-spine core, as deadline_ms and may_pause_ms", "given, and this one is direct")
	}
	j := job{spec: *s}
	j.placed.Job = (&jobList{fab: c.fab}).domains(s)
	n := c.servers(&j)
	if len(s.Phases) == 0 {
		if n < 2 && s.Topology == nil {
			return nil // it needs no link
		}
		return c.checkTopology(s.Topology, n, "topology", bad)
	}
	switch names := s.PhaseNames(); {
	case s.Topology != nil:
		return bad("topology", "none beside phases: each has its own", "given")
	case len(s.Phases) < 2:
		return bad("phases", "2 and up", "%d", len(s.Phases))
	default:
		for i, name := range names {
			if name == "" || len(name) > 64 || slices.Contains(names[:i], name) {
				return bad(fmt.Sprintf("phases[%d].name", i), "1 to 64 characters, each once", "%.80q", name)
			}
			if err := c.checkTopology(&s.Phases[i].Topology, n, fmt.Sprintf("phases[%d].topology", i), bad); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkTopology says what is wrong with traffic between so many servers, if anything.
func (c direct) checkTopology(t *proto.JobTopology, servers int, field string, bad wrongJob) *proto.Error {
	if t != nil && int(t.Degree) > c.fab.Degree {
		return bad(field+".degree", fmt.Sprintf("1 to %d, the interfaces of a server", c.fab.Degree), "%d", t.Degree)
	}
	if t != nil && t.Method > proto.MethodTotient {
		return bad(field+".method", "auto, random or totient", "%s", t.Method)
	}
	r := c.request(t, servers)
	var wrong *topo.Error
	switch err := r.Check(); {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return bad(field, "", "%v", err)
	case wrong.Field == "servers":
		return bad("servers", wrong.Limit, "%s", wrong.Reason)
	}
	return bad(field+"."+wrong.Field, wrong.Limit, "%s", wrong.Reason)
}

// design lets jobs start whose servers are idle, and those that stand by when
// they are. Nothing of one that runs is touched.
func (c direct) design(jobs []*job, list bool) design {
	c.admit(jobs, list)
	d := design{jobs: jobs, maps: c.carry(jobs)}
	c.from.out.loops(c.from.able, d.maps)
	turn, turns := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return !turning(j, c.layout, c.from.maps) }), map[int]bool{}
	c.hold(turn, d.maps)
	first := c.beforehand(turn, d.maps)
	for _, j := range turn {
		for _, x := range j.shard.Servers {
			turns[c.fab.ServerSwitch(x)] = true
		}
	}
	d.stages = append(c.inOrder(c.from.maps, first, turns), c.inOrder(first, d.maps, turns)...)
	d.accountAlone(&c.from)
	return d
}

func (c direct) at(from standing) designer {
	c.from = from
	return c
}

func (c direct) start(jobs []*job) { c.admit(jobs, true) }

// admit lets jobs start whose servers are idle.
func (c *direct) admit(jobs []*job, list bool) {
	c.followed(jobs)
	if list {
		arrive(jobs, c.from.nowMS)
	}
	c.place(jobs)
}

// inOrder is a stage of flips, if there are any, before all that mirrors have to
// do: a job that starts waits for nothing else.
func (c *direct) inOrder(was, is []crossMap, turns map[int]bool) (stages [][]mapSet) {
	var flips, rest []mapSet
	for _, set := range changedMaps(was, is) {
		if c.flipsOnly(was, is, set, turns[set.at]) {
			flips = append(flips, set)
		} else {
			rest = append(rest, set)
		}
	}
	for _, sets := range [][]mapSet{flips, rest} {
		if len(sets) > 0 {
			stages = append(stages, sets)
		}
	}
	return stages
}

// flipsOnly: a server takes other fibres whose circuits the layers have; one of a job that
// turns may take none.
func (c *direct) flipsOnly(was, is []crossMap, set mapSet, turns bool) bool {
	server, ok := c.fab.ServerOf(set.at)
	if !ok {
		return false
	}
	any := turns
	for face := range c.fab.Degree {
		to := set.to[face]
		if to < 0 {
			continue
		}
		port := c.fab.Port(server, int(to)/c.fab.Degree)
		if m := was[face]; m.to[port] < 0 || m.job[port] != set.job[face] || m.to[port] != is[face].to[port] {
			return false
		}
		any = true
	}
	return any
}

// carry is what maps are to hold: the circuits of jobs, those that nobody knows
// more of than that they are there, and on layers what ended jobs left where
// nobody needs the ports. Transceivers of no job take their light inside. What
// cannot be told keeps what it has; what did not come up is not made again.
func (c *direct) carry(jobs []*job) []crossMap {
	out := cloneMaps(c.from.maps)
	for at := range out {
		if c.from.able[at] {
			out[at] = c.layout.bare(at)
		}
	}
	put := func(s slot, id proto.JobID) {
		if c.from.able[s.sw] && (c.from.bad[s] == 0 || c.from.maps[s.sw].to[s.a] == int32(s.b)) {
			c.layout.put(out[s.sw], int32(s.a), int32(s.b), id)
		}
	}
	found := map[proto.JobID]bool{}
	for _, j := range jobs {
		found[j.spec.Job] = j.found
		for s := range j.shard.lights() {
			deaf := map[slot]bool{} // interfaces to which nothing leads; they may send
			for layer := range s.Layers {
				for a, b := range s.joined(layer) {
					way := c.layout.slots(layer, c.end(s, a), c.end(s, b))
					if c.from.out.hits(way[:1]...) != "" {
						deaf[way[2]] = true
					}
				}
				for a, b := range s.joined(layer) {
					way := c.layout.slots(layer, c.end(s, a), c.end(s, b))
					if deaf[way[2]] {
						continue
					}
					put(way[0], j.spec.Job)
					for _, end := range way[1:] {
						switch free := s.Active && c.from.out.hits(end) == "" && c.layout.free(out[end.sw], int32(end.a), int32(end.b)); {
						case free && deaf[end] && c.from.able[end.sw]:
							c.layout.put(out[end.sw], int32(end.a), int32(end.b), j.spec.Job)
						case free:
							put(end, j.spec.Job)
						}
					}
				}
			}
		}
	}
	for at, m := range c.from.maps {
		_, server := c.fab.ServerOf(at)
		for i, j := range m.to {
			id := m.job[i]
			if j < 0 || int32(i) == j && !server || !c.from.able[at] || server && !found[id] || c.from.failed([]slot{{at, uint16(i), uint16(j)}}) || !c.layout.free(out[at], int32(i), j) {
				continue
			}
			if !found[id] {
				id = 0
			}
			c.layout.put(out[at], int32(i), j, id)
		}
	}
	return out
}

// end is the port of a layer at which a rank's fibre ends.
func (c direct) end(s *shard, rank int) int32 {
	return int32(c.fab.Port(s.Servers[rank], int(s.Path[rank])))
}

// describe adds rings. A job of more than fit a message has none.
func (c direct) describe(j *job, s *proto.JobStatus) {
	const most = 4096 // members of all rings, and servers
	if j.shard == nil || len(j.shard.Servers)*(1+len(j.shard.Rings)) > most {
		return
	}
	for _, r := range j.shard.Rings {
		ring := proto.Ring{Group: int16(r.Group)}
		for _, x := range r.Order {
			ring.Servers = append(ring.Servers, uint16(j.shard.Servers[x]))
		}
		for _, l := range r.Layers {
			ring.Layers = append(ring.Layers, uint16(l))
		}
		s.Rings = append(s.Rings, ring)
	}
}

// flip lets a job start that stands by: those that have its servers end.
func flip(c *Circuits, q *proto.OpRequest, r *proto.OpReply) {
	j := c.jobs.find(q.Job)
	switch {
	case c.Evidence.fab.Direct != nil && j != nil && len(q.Jobs) > 0:
		followTraffic(j, c, q, r)
		return
	case c.Evidence.fab.Direct != nil && j != nil && q.Name != "":
		enterPhase(j, c, q, r)
		return
	case c.Evidence.fab.Direct == nil:
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "fabric", Limit: "a direct core", Reason: "elsewhere no job stands by"})
		return
	case j == nil:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "job", Limit: c.jobs.limit(), Reason: fmt.Sprintf("no job %d", q.Job)})
		return
	case !j.standsBy():
		r.Refuse(&proto.Error{Code: proto.Invalid, Field: "job", Limit: "one that stands by", Reason: fmt.Sprintf("job %d does not", q.Job)})
		return
	}
	ends := func(x *job) bool {
		return x.shard != nil && x.shard.Active && slices.ContainsFunc(x.shard.Servers, func(s int) bool { return slices.Contains(j.shard.Servers, s) })
	}
	if at := slices.IndexFunc(c.jobs.all, func(x *job) bool { return x.owner != "" && ends(x) }); at >= 0 {
		r.Refuse(&proto.Error{Code: proto.Conflict, Field: "job", Limit: "one whose servers a list's job has", Reason: fmt.Sprintf("job %s has them, which was asked for by name: release it", c.jobs.all[at].owner)})
		return
	}
	list := slices.DeleteFunc(copyJobs(c.jobs.all), ends)
	takeJobs(c, list, q, r)
}

// checkShards keeps damaged records from giving two jobs the same.
func (l *jobList) checkShards() error {
	type fibre struct {
		server int
		path   uint8
	}
	fibres, active := map[fibre]bool{}, map[int]bool{}
	for _, j := range l.all {
		s := j.shard
		switch {
		case len(j.placed.Shares) > 0 || len(j.paths) > 0:
			return fmt.Errorf("%s: of a core of pods", jobKey(j.spec.Job))
		case j.turn.Came == 0 && !j.found:
			return fmt.Errorf("%s: it never came", jobKey(j.spec.Job))
		case j.turn.AtMS < 0 || j.turn.AtMS > proto.MaxCount:
			return fmt.Errorf("%s: came at %d", jobKey(j.spec.Job), j.turn.AtMS)
		case s == nil:
			continue
		case len(s.Phases) != len(j.spec.Phases) && len(s.Phases) != len(s.Measured) || len(s.Measured) > 2 || len(s.Measured) == 1 && len(s.Phases) > 0 || max(s.Phase, s.Ahead) >= max(1, len(s.Phases)) || min(s.Phase, s.Ahead) < 0:
			return fmt.Errorf("%s: phase %d, then %d, of %d, %d", jobKey(j.spec.Job), s.Phase, s.Ahead, len(s.Phases), len(j.spec.Phases))
		}
		for s := range s.lights() {
			if !s.whole(l.fab.Direct.Servers, l.fab.Degree) {
				return fmt.Errorf("%s: %d servers, %d paths, %d layers, %d rings, since %d", jobKey(j.spec.Job), len(s.Servers), len(s.Path), len(s.Layers), len(s.Rings), s.SinceMS)
			}
			for rank, x := range s.Servers {
				if f := (fibre{x, s.Path[rank]}); fibres[f] || s.Active && active[x] {
					return fmt.Errorf("%s: server %d is another job's", jobKey(j.spec.Job), x)
				} else {
					fibres[f] = true
				}
				active[x] = active[x] || s.Active
			}
		}
	}
	return nil
}

// whole: a shard's parts fit each other and the fabric.
func (s *shard) whole(servers, degree int) bool {
	n := len(s.Servers)
	if n == 0 || len(s.Path) != n || len(s.Layers) > degree || s.SinceMS < 0 || s.SinceMS > proto.MaxCount {
		return false
	}
	for rank, x := range s.Servers {
		if x < 0 || x >= servers || s.Path[rank] > 1 || slices.Contains(s.Servers[:rank], x) {
			return false
		}
	}
	for _, to := range s.Layers {
		in := make([]bool, n)
		for a, b := range to {
			if b == a || b >= n || b < -1 || b >= 0 && in[b] {
				return false
			}
			if b >= 0 {
				in[b] = true
			}
		}
		if len(to) != n || slices.ContainsFunc(to, func(b int) bool { return b >= 0 && to[b] < 0 }) {
			return false // an interface has both fibres: who hears is also heard
		}
	}
	for _, r := range s.Rings {
		if r.Group < -1 || r.Group > proto.MaxCircuits || slices.ContainsFunc(r.Order, func(x int) bool { return x < 0 || x >= n }) ||
			slices.ContainsFunc(r.Layers, func(x int) bool { return x < 0 || x >= degree }) {
			return false
		}
	}
	return true
}
