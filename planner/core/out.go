package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// What of a core is out, as an operator says or what watches it: servers, GPUs, leaves,
// spines, their links, switches, fibres. One set of facts, which every designer reads:
// nobody is given a server of them, no circuit uses a port, no path a link. A job that
// has one gets another in its place where that moves no light, else another place as a
// whole, and where there is none it keeps what is left, and is said to be short of it.

const keyOut = "out" // of the store: why, by part

// out is what is out. It is replaced, never changed. What is found out about ports and
// links has the key of the part that it is gone with.
type out struct {
	layout  layout
	why     map[string]string // by part
	servers map[int]string
	gpus    map[Place]string // one by one
	ports   map[fabric.SwitchPort]string
	links   map[fabric.LeafLink]string
	young   []fabric.SwitchPort // of side A, with what is new or gone
}

// newOut reads what is gone with parts; what the core does not have is not in it.
func newOut(fab *fabric.Core, why map[string]string) out {
	o := out{layout{fab}, map[string]string{}, map[int]string{}, map[Place]string{}, map[fabric.SwitchPort]string{}, map[fabric.LeafLink]string{}, nil}
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(why))) { // the first names what several have
		p, ok := fab.Part(key)
		if !ok {
			continue
		}
		o.why[key] = why[key]
		for face := range fab.Mirrors() {
			if fab.Direct != nil && why[key] == allDark { // a server with its fibres
				of, _ := fab.Part(fmt.Sprintf("%s/if%d", key, face))
				p.Ports = append(p.Ports, of.Ports...)
			}
		}
		for _, s := range p.Servers {
			if o.servers[s] == "" || len(p.GPUs) == 0 || ofGPU(o.servers[s]) {
				o.servers[s] = key
			}
		}
		for _, g := range p.GPUs {
			o.gpus[Place{g[0], g[1]}] = key
		}
		for _, x := range p.Ports {
			if o.ports[x] = key; (why[key] == unproven || why[key] == allDark) && x.Side == 0 {
				o.young = append(o.young, x)
			}
		}
		for _, x := range p.Links {
			o.links[x] = key
		}
	}
	return o
}

// only is what is out for a job that names its servers: all others too.
func (o out) only(s *proto.JobSpec, servers int) out {
	if s.On == nil {
		return o
	}
	all := map[int]string{}
	for x := range servers {
		if _, is := slices.BinarySearch(s.On, uint32(x)); !is {
			all[x] = "not asked for"
		}
	}
	maps.Copy(all, o.servers)
	o.servers = all
	return o
}

func (o *out) of(server int) bool { _, is := o.servers[server]; return is }

// at is the part with which a GPU is gone, "": it is there.
func (o *out) at(p Place) string {
	key := o.servers[p.Server]
	if ofGPU(key) {
		return o.gpus[p]
	}
	return key
}

func ofGPU(key string) bool { return strings.Contains(key, "/gpu") }

// named says what is out, "": nothing.
func (o *out) named() string {
	keys := slices.Sorted(maps.Keys(o.why))
	switch n := len(keys); {
	case n == 0:
		return ""
	case n > 1:
		return fmt.Sprintf("; %s and %d more are out", keys[0], n-1)
	}
	return fmt.Sprintf("; %s is out", keys[0])
}

// hits is the part with which a cross-connect is gone, "": it is there.
func (o *out) hits(of ...slot) string {
	for _, s := range of {
		if key := cmp.Or(o.ports[fabric.SwitchPort{Switch: s.sw, Port: int(s.a)}], o.ports[fabric.SwitchPort{Switch: s.sw, Side: 1, Port: int(s.b)}]); key != "" {
			return key
		}
	}
	return ""
}

// restoreOut takes what the store has of it.
func (e *evidence) restoreOut(st journal.State) error {
	why := map[string]string{}
	if there, err := st.Decode(keyOut, &why); !there || err != nil {
		return err
	}
	if e.out = newOut(e.fab, why); len(e.out.why) < len(why) {
		return fmt.Errorf("store: %s: %d of %d parts are not of this core", keyOut, len(why)-len(e.out.why), len(why))
	}
	return nil
}

// within: with one part goes all that goes with another.
func within(a, b *fabric.Part) bool {
	return (len(b.GPUs) == 0 || len(a.GPUs) > 0 && all(a.GPUs, b.GPUs)) && all(a.Servers, b.Servers) && all(a.Ports, b.Ports) && all(a.Links, b.Links)
}

func all[T comparable](of, in []T) bool {
	return !slices.ContainsFunc(of, func(x T) bool { return !slices.Contains(in, x) })
}

// TakeOut takes a part out, or by an undrain lets it in with all that goes with it, or
// says what that would do to jobs.
func (c *Circuits) TakeOut(part fabric.Part, q *proto.OpRequest, r *proto.OpReply) {
	if !c.heard || c.root.Busy() != "" {
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "the planner is looking round first"})
		return
	}
	why := maps.Clone(c.Evidence.out.why)
	if q.Noun == proto.NounUndrain {
		for key := range why { // any order: each by itself
			p, _ := c.Evidence.fab.Part(key)
			switch {
			case within(&p, &part):
				delete(why, key)
			case within(&part, &p) && c.Evidence.out.why[part.Key] == "":
				r.Refuse(&proto.Error{Code: proto.Conflict, Field: "server", Limit: "what is out by itself", Reason: fmt.Sprintf("%s is out with %s", part.Key, key)})
				return
			}
		}
	} else {
		why[part.Key] = cmp.Or(strings.TrimPrefix(q.Reason, unproven), "drained")
	}
	next := newOut(c.Evidence.fab, why)
	from := c.Evidence.standing()
	from.out = next
	d := c.designer.at(from).design(copyJobs(c.jobs.all), true)
	r.Change = &d.change
	if q.DryRun || maps.Equal(why, c.Evidence.out.why) {
		return
	}
	c.Evidence.setOut(why)
	c.j.Note(journal.Info, "parts are taken out or let in", journal.Note{Rule: "out", Node: -1, Cause: proto.CauseOperator,
		Text: proto.Clip(fmt.Sprintf("%s by %s: %s; %d are out", q.Noun, q.Author, q.Name, len(why)))})
	takeList(c, d)
}

// lost is what a job has not of what it was given: GPUs and links, and the part with
// which the first of them is gone; "": a circuit did not come up, or has no room.
func (e *evidence) lost(d designer, j *job) (gpus, links int, part string) {
	for _, p := range d.places(j) {
		if key := e.out.at(p); key != "" {
			part = cmp.Or(part, key)
			gpus++
		}
	}
	links, key := d.lost(j)
	return gpus, links, cmp.Or(part, key)
}

// ofLeaves are the paths that leaves cannot have over spines, by leaf and spine: of
// those for which there are links, and of all where no port of the spine leads on.
func (o *out) ofLeaves() []int32 {
	c := o.layout
	gone := make([]int32, c.fab.Leaves()*c.fab.SpinesPerPod)
	for x := range o.links { // any order: counted
		gone[x.Leaf*c.fab.SpinesPerPod+x.Spine] += int32(leafLoad / c.fab.LeafLinks)
	}
	ends := map[[2]int]int{}
	for end := range o.ends() { // any order: counted
		at := [2]int{int(end.from), c.groupOf(int(end.k))}
		if ends[at]++; ends[at] == c.fab.SpinePorts {
			for leaf := range c.fab.LeavesPerPod {
				gone[(at[0]*c.fab.LeavesPerPod+leaf)*c.fab.SpinesPerPod+at[1]] = leafLoad
			}
		}
	}
	return gone
}

// yield takes paths off spines over which leaves cannot have them any more.
func (o *out) yield(jobs []*job) {
	c := o.layout
	if len(o.links)+len(o.ports) == 0 {
		return
	}
	load := o.ofLeaves()
	for _, j := range jobs {
		for _, x := range slices.Clone(j.paths) {
			a, b := &load[x.A*c.fab.SpinesPerPod+x.Spine], &load[x.B*c.fab.SpinesPerPod+x.Spine]
			over := min(int32(x.Count), max(0, max(*a, *b)+int32(x.Count)-leafLoad))
			if over > 0 {
				j.drop(path{x.Spine, x.A, x.B, int(over)})
			}
			*a += int32(x.Count) - over
			*b += int32(x.Count) - over
		}
	}
}

// ofPods are the ports of each pod's spines over which no circuit goes, by pod and
// spine, but for those that no leaf could use anyway.
func (o *out) ofPods() []int32 {
	c := o.layout
	gone := make([]int32, c.fab.Pods*c.fab.SpinesPerPod)
	for end := range o.ends() { // any order: counted
		gone[int(end.from)*c.fab.SpinesPerPod+c.groupOf(int(end.k))]++
	}
	for n := range gone {
		gone[n] = max(0, gone[n]-int32(c.fab.SpinePorts-c.fab.LeavesPerPod*c.fab.LeafLinks))
	}
	return gone
}

// ends are the ports of spines over which no circuit goes: the map, the pod, and
// in place of a spine whether it sends by the odd switch.
func (o *out) ends() map[site]bool {
	c, gone := o.layout, map[site]bool{}
	for x := range o.ports { // any order: a set
		at, odd := c.mapOf(x.Switch)
		end := site{k: int32(at), from: int32(x.Port)}
		if !c.uniform() && odd != (x.Side == 1) {
			end.spine = 1
		}
		gone[end] = true
	}
	return gone
}

// held are the servers of jobs, but of one.
func (c *interleaved) held(jobs []*job, but *job) map[int]bool {
	held := map[int]bool{}
	for _, j := range jobs {
		if j != but {
			j.eachServer(c.fab, func(n, server int) { held[server] = true })
		}
	}
	return held
}

// eachServer calls f for each server of a job between pods that has its numbers.
func (j *job) eachServer(fab *fabric.Core, f func(n, server int)) {
	j.eachLeaf(fab, func(n, leaf int) {
		if n < len(j.servers) {
			f(n, leaf*fab.ServersPerLeaf+j.servers[n])
		}
	})
}

// eachLeaf calls f for the leaf of each.
func (j *job) eachLeaf(fab *fabric.Core, f func(n, leaf int)) {
	n := 0
	for _, s := range j.placed.Shares {
		for range s.Servers {
			f(n, s.Pod*fab.LeavesPerPod+s.Leaf)
			n++
		}
	}
}

// used are the GPUs of servers that jobs have, by leaf and server.
func (c *isolated) used(jobs []*job) map[[2]int]int {
	used := map[[2]int]int{}
	for _, j := range jobs {
		if j.own != nil {
			for _, s := range j.own.Servers {
				used[[2]int{s.Leaf, s.Server}] += s.GPUs
			}
		}
	}
	return used
}
