package core

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"ringlight/planner/isolate"
	"ringlight/planner/journal"
	"ringlight/planner/sched"
	"ringlight/proto"
)

// Servers that an operator, or what watches them, has taken out: one set of facts that
// every designer reads. Nobody is given one. A job that has one gets another in its
// place where that moves no light, else another place as a whole, and where there is
// none it keeps what it has, and is said to be short of it.

const keyOut = "out" // of the store: why, by server

// out is why servers are out, by number through all leaves. It is replaced, never changed.
type out map[int]string

func (o out) of(server int) bool { _, is := o[server]; return is }

// restoreOut takes what the store has of it.
func restoreOut(c *Circuits, raw []byte) error {
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &c.out); err != nil {
		return fmt.Errorf("store: %s: %w", keyOut, err)
	}
	for s := range c.out { // any order: each by itself
		if s < 0 || s >= c.fab.Servers() {
			return fmt.Errorf("store: %s: no server %d", keyOut, s)
		}
	}
	return nil
}

// TakeOut takes servers out, or by an undrain lets them in, or says what that would do
// to jobs.
func TakeOut(c *Circuits, servers []int, q *proto.OpRequest, r *proto.OpReply) {
	if !c.heard || c.root.Busy() != "" {
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "the planner is looking round first"})
		return
	}
	next := out{}
	maps.Copy(next, c.out)
	for _, s := range servers {
		if q.Noun == proto.NounUndrain {
			delete(next, s)
		} else {
			next[s] = cmp.Or(q.Reason, "drained")
		}
	}
	from := standingOf(c)
	from.out = next
	d := c.designer.design(from, copyJobs(c.jobs.all), true)
	r.Change = &d.change
	if q.DryRun || maps.Equal(next, c.out) {
		return
	}
	c.out = next
	c.j.Persist(journal.Encode(keyOut, next))
	c.j.Note(journal.Info, "servers are taken out or let in", journal.Note{Rule: "out", Node: -1, Cause: proto.CauseOperator,
		Text: proto.Clip(fmt.Sprintf("%s by %s: %s; %d are out", q.Noun, q.Author, q.Name, len(next)))})
	takeList(c, d)
}

// lost are the GPUs of a job on servers that are out, and why the first of those is.
func lost(c *Circuits, j *job) (gpus, server int, why string) {
	if len(c.out) == 0 {
		return 0, 0, ""
	}
	for _, p := range c.designer.places(j) {
		if c.out.of(p.Server) {
			if gpus++; gpus == 1 {
				server, why = p.Server, c.out[p.Server]
			}
		}
	}
	return gpus, server, why
}

// held are the servers of jobs, but of one.
func (c *interleaved) held(jobs []*job, but *job) map[int]bool {
	held := map[int]bool{}
	for _, j := range jobs {
		if j != but {
			c.eachServer(j, func(n, server int) { held[server] = true })
		}
	}
	return held
}

// eachServer calls f for each server of a job that has its numbers.
func (c *interleaved) eachServer(j *job, f func(n, server int)) {
	n := 0
	for _, s := range j.placed.Shares {
		for range s.Servers {
			if n < len(j.servers) {
				f(n, (s.Pod*c.fab.LeavesPerPod+s.Leaf)*c.fab.ServersPerLeaf+j.servers[n])
			}
			n++
		}
	}
}

// reseat takes jobs off servers that are out.
func (c *interleaved) reseat(jobs []*job) {
	if len(c.out) == 0 {
		return
	}
	for _, j := range jobs {
		held, own, left := c.held(jobs, nil), slices.Clone(j.servers), 0
		c.eachServer(j, func(n, server int) {
			if !c.out.of(server) {
				return
			}
			first := server / c.fab.ServersPerLeaf * c.fab.ServersPerLeaf
			for y := first; y < first+c.fab.ServersPerLeaf; y++ {
				if !held[y] && !c.out.of(y) {
					own[n], held[y] = y-first, true
					return
				}
			}
			left++
		})
		j.servers = own
		if left == 0 {
			continue
		}
		var others []sched.Placed
		for _, x := range jobs {
			if x != j && len(x.placed.Shares) > 0 {
				others = append(others, x.placed)
			}
		}
		if placed, err := c.within(others, j.spec.Pods, c.held(jobs, j)).Admit(others, j.placed.Job); err == nil {
			j.placed, j.servers, j.paths, j.ways, j.laid = placed, nil, nil, nil, false
			c.number(jobs)
		}
	}
}

// reseat takes jobs off servers that are out: to others of the same leaf, over the same
// links, or as a whole.
func (c *isolated) reseat(jobs []*job) {
	if len(c.out) == 0 {
		return
	}
	for _, j := range jobs {
		if j.own == nil || !slices.ContainsFunc(j.own.Servers, func(s isolate.Server) bool { return c.isOut(s) }) {
			continue
		}
		used, own, left := c.used(jobs), *j.own, false
		own.Servers = slices.Clone(own.Servers)
		for n, s := range own.Servers {
			if !c.isOut(s) {
				continue
			}
			left = true
			for y := range c.fab.LeafServers() {
				x := isolate.Server{Leaf: s.Leaf, Server: y, GPUs: s.GPUs}
				if at := [2]int{x.Leaf, y}; !c.isOut(x) && used[at]+x.GPUs <= c.fab.GPUsPerServer {
					own.Servers[n], own.Which, left = x, nil, false
					used[at] += x.GPUs
					break
				}
			}
			if left {
				break
			}
		}
		if left {
			p, cause := c.queue(slices.DeleteFunc(slices.Clone(jobs), func(x *job) bool { return x == j })).State().Place(j.placed.GPUs())
			if cause != isolate.Fits {
				continue
			}
			own = seat{Placement: p, SinceMS: j.own.SinceMS}
		}
		j.own = &own
	}
}

func (c *isolated) isOut(s isolate.Server) bool {
	return c.out.of(s.Leaf*c.fab.LeafServers() + s.Server)
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
