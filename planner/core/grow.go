package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// A core grows and shrinks at the end of its numbers while jobs run, by the edit with
// which a fabric does (planner/edit.go). What is new is out until light has proven it:
// each port of a switch is joined to itself, which goes dark for nobody, and is let in
// when both switches of the link tell of light, or where servers are joined directly the
// server at its fibre: of each interface one fibre after the other. What is to go must
// carry no job.

// unproven is why a part is out that is new, noLight that it stays so.
const unproven, noLight = "new: light has not proven its ports yet", "new, and light did not come through it"

// maxRefusals is as many reasons as an edit is refused for at once. chosen: a page.
const maxRefusals = 20

// Growth is what an edit of a core does to its circuits.
type Growth struct{ c *Circuits }

// GrowthOf is that of a core.
func GrowthOf(c *Circuits) Growth { return Growth{c} }

// Against says what keeps a core from becoming another one: who has what is to go, or
// would be known by another number, and switches that have too few ports.
func (x Growth) Against(to *fabric.Core) (refused []string) {
	c := x.c
	add := func(format string, args ...any) {
		if len(refused) < maxRefusals {
			refused = append(refused, proto.Clip(fmt.Sprintf(format, args...)))
		}
	}
	next := jobList{fab: to}
	for _, j := range c.jobs.all {
		if err := next.check([]proto.JobSpec{j.spec}, designerOf(to)); err != nil && !j.found {
			add("job %d would find no room: %s %s, at most %s: release it", j.spec.Job, err.Field, err.Reason, err.Limit)
			continue
		}
		if gone, renamed := x.goneWith(j, to); len(gone) > 0 {
			add("job %d has something of %s, which is to go: release it, or have ocsctl circuit drain take that out first", j.spec.Job, strings.Join(gone, ", "))
		} else if len(renamed) > 0 {
			add("job %d has servers of %s, which would get other numbers, and their GPUs other addresses: release it", j.spec.Job, strings.Join(renamed, ", "))
		}
	}
	moved := func(server int) bool { n := c.Evidence.fab.Renumber(to, server); return n >= 0 && n != server }
	first := func(x fabric.LeafLink) bool { return moved(x.Leaf * c.Evidence.fab.LeafServers()) }
	for _, key := range slices.Sorted(maps.Keys(c.Evidence.out.why)) {
		if p, _ := c.Evidence.fab.Part(key); slices.ContainsFunc(p.Links, first) || slices.ContainsFunc(p.Servers, moved) {
			add("%s is out, and would get another number: let it in first, with ocsctl circuit undrain", key)
		}
	}
	for s := range min(len(c.Evidence.switches), to.Switches()) {
		if has, need := int(c.Evidence.switches[s].Birth.Ports), to.PortsOf(s); has > 0 && has < need {
			add("switch %d has %d ports on each side, %d would have fibres", s, has, need)
		}
	}
	return refused
}

// goneWith are the parts of a core that a job has and another core has not, and those
// that are there under another number.
func (x Growth) goneWith(j *job, to *fabric.Core) (gone, renamed []string) {
	c := x.c
	note := func(list *[]string, part string) {
		if !slices.Contains(*list, part) {
			*list = append(*list, part)
		}
	}
	server := func(n int) {
		leaf := n / max(1, c.Evidence.fab.LeafServers())
		switch then := c.Evidence.fab.Renumber(to, n); {
		case then < 0 && c.Evidence.fab.Direct != nil:
			note(&gone, fmt.Sprintf("server %d", n))
		case then < 0 && !c.Evidence.fab.Alone() && leaf/c.Evidence.fab.LeavesPerPod >= to.Pods:
			note(&gone, fmt.Sprintf("pod%d", leaf/c.Evidence.fab.LeavesPerPod))
		case then < 0:
			note(&gone, fmt.Sprintf("leaf%d", leaf))
		case then != n:
			note(&renamed, fmt.Sprintf("leaf%d", leaf))
		}
	}
	for _, p := range c.designer.places(j) {
		server(p.Server)
	}
	for _, s := range j.placed.Shares {
		server((s.Pod*c.Evidence.fab.LeavesPerPod + s.Leaf) * c.Evidence.fab.ServersPerLeaf)
	}
	spine := func(leaf, spine int) {
		if spine >= to.SpinesPerPod {
			note(&gone, fmt.Sprintf("pod%d-spine%d", leaf/c.Evidence.fab.LeavesPerPod, spine))
		}
	}
	for _, x := range j.paths {
		spine(x.A, x.Spine)
		spine(x.B, x.Spine)
	}
	for _, w := range j.ways {
		spine(w.A, w.Spine)
		spine(w.B, w.Spine)
	}
	if len(gone) > 0 {
		return gone, renamed
	}
	for at, m := range c.Evidence.maps {
		s := c.Evidence.layout.switchesOf(at)[0]
		c.Evidence.layout.links(at, m, func(a, b int32, id proto.JobID) {
			for _, port := range [...]int32{a, b} {
				if device, name := c.Evidence.fab.EndOf(s, int(port)); id == j.spec.Job && !to.HasPort(s, int(port)) {
					note(&gone, device+" "+name)
				}
			}
		})
	}
	return gone, renamed
}

// Still: no stage is under way and none is to come, so that the core may change.
func (x Growth) Still() bool {
	c := x.c
	return c.heard && c.Stages.rests() && !c.Stages.open.active() && len(c.Stages.todo) == 0
}

// NewPorts is how many ports of switches light has to prove in another core.
func (x Growth) NewPorts(to *fabric.Core) uint32 {
	next := newOut(to, x.withNew(nil, to))
	return uint32(len(next.young))
}

// withNew adds to what is out the parts that another core has more: none of a core of
// leaves with fixed links, which are no circuits.
func (x Growth) withNew(why map[string]string, to *fabric.Core) map[string]string {
	was, out := x.c.Evidence.fab, []string{}
	if was.LeafSpine != nil && was.Switches() > 0 {
		for n := was.Leaves(); n < to.Leaves(); n++ {
			out = append(out, fmt.Sprintf("leaf%d", n))
		}
		for n := was.Spines; n < to.Spines; n++ {
			out = append(out, fmt.Sprintf("spine%d", n))
		}
	}
	for s := was.Servers(); was.Direct != nil && s < to.Servers(); s++ {
		for face := range to.Degree {
			out = append(out, fmt.Sprintf("%d/if%d", s, face))
		}
		out = append(out, fmt.Sprint(s))
	}
	for p := was.Pods; p < to.Pods; p++ {
		out = append(out, fmt.Sprintf("pod%d", p))
	}
	for h := was.SpinesPerPod; h < to.SpinesPerPod; h++ {
		for p := range min(was.Pods, to.Pods) {
			out = append(out, fmt.Sprintf("pod%d-spine%d", p, h))
		}
	}
	if !was.Alone() && was.SpinesPerPod == to.SpinesPerPod {
		for s := was.Switches(); s < to.Switches(); s++ {
			out = append(out, fmt.Sprintf("switch%d", s))
		}
	}
	all := map[string]string{}
	maps.Copy(all, why)
	for _, key := range out {
		all[key] = unproven
	}
	return all
}

// Refit plans for another core from now on, and says what the store is to know of
// that. It is called when Still, and Against has nothing.
func (x Growth) Refit(to *fabric.Core) (records []journal.Record) {
	c, why := x.c, x.withNew(x.c.Evidence.out.why, to)
	if !x.Still() {
		panic("core: invariant: a core is edited when it is still")
	}
	for s := to.Switches(); s < len(c.Evidence.switches); s++ {
		d := c.Evidence.switches[s].Device
		records = append(records, d.Forget(), d.ForgetEvents())
	}
	was := c.Evidence.maps
	c.Table.Resize(to.Switches())
	c.Evidence.fit(to, c.Table, why)
	c.jobs.fab, c.designer, c.Stages.Txn.Parts = to, designerOf(to), nil
	for at := range max(len(was), len(c.Evidence.maps)) {
		if at >= len(c.Evidence.maps) {
			records = append(records, journal.Record{Key: mapKey(at)})
			continue
		}
		if at >= len(was) {
			continue
		}
		less := false
		for i, j := range was[at].to {
			if s := c.Evidence.layout.switchesOf(at)[0]; to.HasPort(s, i) && to.HasPort(s, int(j)) {
				c.Evidence.maps[at].to[i], c.Evidence.maps[at].job[i] = j, was[at].job[i]
			} else if j >= 0 {
				less = true // nobody's: of a backup, or of what was being proven
			}
		}
		if less {
			records = append(records, journal.Encode(mapKey(at), recordOf(c.Evidence.maps[at])))
			for _, s := range c.Evidence.layout.switchesOf(at) {
				c.Evidence.switches[s].Unassigned = true
			}
		}
	}
	gone := func(s slot) bool { return !to.HasPort(s.sw, int(s.a)) || !to.HasPort(s.sw, int(s.b)) }
	maps.DeleteFunc(c.Evidence.tried, func(s slot, _ proto.Generation) bool { return gone(s) })
	maps.DeleteFunc(c.Evidence.bad, func(s slot, _ proto.Session) bool { return gone(s) })
	c.Evidence.lapses++
	c.agenda.unreported = true
	c.Table.SweepNow()
	c.agenda.replan(0)
	return append(records, badRecords(c.Evidence.bad), journal.Encode(keyOut, c.Evidence.out.why))
}

// isNew: some port of a switch, or fibre of a server, is not proven yet.
func (o *out) isNew(s int) bool {
	if server, is := o.layout.fab.ServerOf(s); is {
		return o.youngAt(server)
	}
	return slices.ContainsFunc(o.young, func(x fabric.SwitchPort) bool { return x.Switch == s })
}

// loops joins ports that are new or dark to themselves, and has interfaces of servers listen
// there, to one fibre after the other.
func (o *out) loops(able []bool, maps []crossMap) {
	c := o.layout
	for _, x := range o.young {
		at, odd := c.mapOf(x.Switch)
		i, j := int32(x.Port), int32(x.Port)
		switch to := maps[at].to; { // the port's other end may have a link: then with another's
		case !c.fab.Paired():
		case !odd && to[i] < 0:
			for slices.Contains(to, j) {
				j = (j + 1) % int32(len(to))
			}
		case odd && !slices.Contains(to, j):
			for to[i] >= 0 {
				i = (i + 1) % int32(len(to))
			}
		}
		if !able[at] || maps[at].to[i] >= 0 || slices.Contains(maps[at].to, j) {
			continue
		}
		if c.fab.Direct != nil {
			end := c.pathSlot(x.Switch, i)
			if !able[end.sw] || !c.free(maps[end.sw], int32(end.a), int32(end.b)) {
				continue
			}
			c.put(maps[end.sw], int32(end.a), int32(end.b), 0)
		}
		c.put(maps[at], i, j, 0)
	}
}

// youngAt: some fibre of a server is not proven yet.
func (o *out) youngAt(server int) bool {
	return slices.ContainsFunc(o.young, func(x fabric.SwitchPort) bool { s, _ := o.layout.fab.PortEnd(x.Port); return s == server })
}

// awaited: a new port is told to show its light, or is told next.
func (s *standing) awaited(of []slot) bool {
	at, _ := s.out.layout.mapOf(of[0].sw)
	if s.out.layout.fab.Direct == nil || !s.able[at] {
		return s.able[at]
	}
	listens := s.maps[of[1].sw].to[of[1].a]
	return s.able[of[1].sw] && (listens < 0 || listens == int32(of[1].b))
}

// prove lets in what is new when its ports have shown light on the way to themselves.
// One that has shown none stays out by name, and so does one whose switch cannot be
// told, until it can. It reports whether there was anything.
func (e *evidence) prove() bool {
	if !slices.Contains(slices.Collect(maps.Values(e.out.why)), unproven) {
		return false
	}
	why, from := maps.Clone(e.out.why), e.standing()
	proven, dark := 0, 0
	for _, key := range slices.Sorted(maps.Keys(e.out.why)) {
		if e.out.why[key] != unproven {
			continue
		}
		p, _ := e.fab.Part(key)
		rest, lit, waits := map[string]string{}, 0, len(p.Ports) == 0 && e.out.youngAt(p.Servers[0])
		for _, x := range p.Ports {
			at, _ := e.layout.mapOf(x.Switch)
			name := fmt.Sprintf("switch%d/%c%d", x.Switch, "ab"[x.Side], x.Port)
			of := e.layout.slots(at, int32(x.Port), int32(x.Port))
			switch {
			case slices.ContainsFunc(of, func(s slot) bool { return e.bad[s] != 0 }):
				rest[name] = noLight
			case !slices.ContainsFunc(of, func(s slot) bool { return !e.stateOf(s.sw, proto.Circuit{A: s.a, B: s.b}).Lit() }):
				lit++
			case from.awaited(of):
				waits = true
			default:
				rest[name] = unproven
			}
		}
		if waits || len(rest) > 0 && lit == 0 && !slices.Contains(slices.Collect(maps.Values(rest)), noLight) {
			continue
		}
		delete(why, key)
		maps.Copy(why, rest)
		proven, dark = proven+lit, dark+len(rest)
	}
	if maps.Equal(why, e.out.why) {
		return false
	}
	for s := range e.bad { // any order: each by itself
		at, port := s.sw, int(s.a)
		if server, is := e.fab.ServerOf(at); is {
			at, port = port, e.fab.Port(server, int(s.b)/e.fab.Degree)
		}
		if why[fmt.Sprintf("switch%d/a%d", at, port)] == noLight {
			e.setBad(s, false)
		}
	}
	level := journal.Info
	if dark > 0 {
		level = journal.Warn
	}
	e.j.Note(level, "new ports are looked at by light", journal.Note{Rule: "grow", Node: -1, Text: fmt.Sprintf("%d ends of fibres let in, %d not", proven, dark)})
	e.setOut(why)
	return true
}

// setOut makes it so that other parts are out.
func (e *evidence) setOut(why map[string]string) {
	e.out = newOut(e.fab, why)
	e.lapses++
	e.j.Persist(journal.Encode(keyOut, why))
}
