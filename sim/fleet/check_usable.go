package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner"
	"ringlight/planner/ring"
	"ringlight/proto"
	"ringlight/sim"
)

// Invariant 9, usable and out: at rest no node that is alive, lit and reachable is
// out of service, and no ring is smaller than the nodes at hand allow, unless the
// planner's status names the cause and when it is tried again. A node that is usable and
// which fibres are whole is read from the world and from what the script did; what
// they allow is a placement of its own, from nothing that the planner believes but
// which rings there are.

// Times of it. chosen: a broken board is tried again for remedies after it is
// whole, and the planner has a minute more; a change under way has its patience.
const (
	restAfter = remedies + time.Minute
	restGrace = 30 * time.Second
	restAgain = 10 * time.Minute
	// excusedFor is for how long a cause and a next try excuse anybody: a try that
	// comes again and again and never helps is no excuse. chosen: twice the longest
	// wait between two tries that a planner has.
	excusedFor = 10 * time.Minute
)

// out is a node that is usable and out, or a ring that could have more members.
type out struct {
	node proto.NodeID
	ring proto.RingID // 0: the node is meant
	text string
}

// disturbed is told of every line of the script: a while later all must be in use.
func (a *audit) disturbed() {
	a.disturbances++
	a.disturbedAt = a.r.now
	a.r.agenda.Push(a.r.now+restAfter, task{kind: taskRest, n: a.disturbances})
}

// rest looks at a fabric to which nothing happens: disturbance is the last that did.
func (a *audit) rest(disturbance int) {
	if disturbance != a.disturbances || !a.on || a.ended {
		return
	}
	next := restAgain
	if list, ok := a.out(); len(list) > 0 && a.restless < restGrace {
		next = time.Second
		a.restless += next
	} else {
		if a.restless = 0; ok {
			a.rested(list)
		}
	}
	a.r.agenda.Push(a.r.now+next, task{kind: taskRest, n: disturbance})
}

// rested is the end of a look at a fabric at rest.
func (a *audit) rested(list []out) {
	if len(list) == 0 {
		a.rests++
	}
	for _, o := range list {
		a.violate(o.node, "usable and out", o.text)
	}
}

// judge is what the looks at one moment share.
type judge struct {
	audit  *audit
	r      *Run
	p      *planner.Planner
	says   []proto.NodeStatus // of the planner, by node
	strips []planner.Strip
	member map[proto.NodeID]int // of strips, from 1
	named  []string             // what the status says with a next try
}

// out lists nodes that are usable and out; ok: there is a planner that could have done
// better.
func (a *audit) out() (list []out, ok bool) {
	r := a.r
	b := r.planners[0]
	if len(r.nodes) == 0 || !r.net.up || b.host == nil || b.paused || b.cut || !b.up || r.planners[1].host != nil || !r.edits.settled() {
		return nil, false
	}
	j := &judge{audit: a, r: r, p: b.host.Planner(), member: map[proto.NodeID]int{}}
	for n := range r.cfg.Fabric.Nodes {
		j.says = append(j.says, j.p.Rings.Placed.Shown(proto.NodeID(n))...)
	}
	j.strips = planner.Look(j.p, true).Strips
	for i, s := range j.strips {
		for _, id := range s.Nodes {
			j.member[id] = i + 1
		}
	}
	for n := range j.says {
		if id := proto.NodeID(n); j.well(id) && !j.says[n].Usable {
			list = append(list, out{node: id, text: fmt.Sprintf("is alive, lit and reachable (%s by its own word), and the planner leaves it out: %s", j.audit.reportOf(j.r.nodes[id]).Mode, j.says[n].Reason)})
		}
	}
	for i := range j.strips {
		if text := j.apart(&j.strips[i]); text != "" {
			list = append(list, out{node: j.strips[i].Nodes[0], ring: j.strips[i].Ring, text: text})
		}
	}
	if len(list) == 0 {
		list = j.smaller()
	}
	return slices.DeleteFunc(list, j.excused), true
}

// well: a node is alive, lit and reachable, and nobody has taken it out: no operator,
// and not its host, whose last report it keeps when it has no power.
func (j *judge) well(id proto.NodeID) bool {
	st := j.r.nodes[id]
	if !j.lit(id) || st.host == nil || !st.up || st.session != st.conn || st.cut {
		return false
	}
	mode := j.audit.reportOf(st).Mode
	return mode != proto.ModeDrained && mode != proto.ModeHostDown
}

// lit: its light is as good as ever, whatever its agent does.
func (j *judge) lit(id proto.NodeID) bool {
	st := j.r.nodes[id]
	return st.well() && !j.odd(id) && j.says[id].Drain == nil
}

// odd: nobody can say from outside whether it can be used: its board is broken, or
// somebody holds one of its sides.
func (j *judge) odd(id proto.NodeID) bool {
	st := j.r.nodes[id]
	return st.lame(j.r.now-j.r.round()) || st.host != nil && slices.ContainsFunc(j.audit.reportOf(st).Sides, func(s proto.SideReport) bool {
		return s.Request >= proto.ForcedSwitch || s.Request == proto.ManualSwitch
	})
}

// round is how long a node takes to read all of its modules, as it must before it
// finds that one is well again.
func (r *Run) round() time.Duration {
	modules := r.cfg.Modules * r.cfg.Fabric.Bundles
	return r.cfg.Health * time.Duration(modules) / time.Duration(cmp.Or(r.cfg.HealthModules, modules))
}

// apart says that the nodes of a ring that have light do not lie in one cycle, or
// that a ring which is whole is not in service.
func (j *judge) apart(s *planner.Strip) string {
	var in []proto.NodeID
	for _, id := range s.Nodes {
		if j.odd(id) {
			return ""
		}
		if j.lit(id) {
			in = append(in, id)
		}
	}
	if len(in) < 2 || s.Step > 0 && s.State == proto.RingInService && j.r.flips.holds(s.Nodes, s.Step) {
		return ""
	}
	if j.r.measure.holds(in) {
		if len(in) == s.Size && s.State != proto.RingInService {
			return fmt.Sprintf("ring %d of %v is whole and one cycle of light, and the planner says %s", s.Ring, s.Nodes, s.State)
		}
		return ""
	}
	strand, closed := j.r.world.Strand(sim.GPU{Board: j.r.stations[in[0]].board}, nil)
	return fmt.Sprintf("ring %d of %v has light at %v, which do not lie in one cycle: from node %d it goes through %d GPUs, closed %t",
		s.Ring, s.Nodes, in, in[0], len(strand), closed)
}

// smaller places anew on the nodes and fibres that are whole: the rings that run
// keep their names and what they have.
func (j *judge) smaller() (list []out) {
	f := j.r.cfg.Fabric
	m := ring.Mend{Order: ring.OrderOf(f), Sizes: ring.DemandsOf(f), Moves: ring.MovesOf(f.Moves), Broken: j.broken,
		Usable: func(id proto.NodeID) bool { return j.lit(id) || j.odd(id) && j.says[id].Usable },
		Free:   func(id proto.NodeID) bool { return j.well(id) && j.says[id].Usable }}
	running := make([]ring.Group, len(j.strips))
	for i, s := range j.strips {
		running[i] = ring.Group{ID: s.Ring, Nodes: s.Nodes, Size: s.Size, Frozen: slices.ContainsFunc(s.Nodes, j.odd)}
	}
	wholeIs, nodesIs := count(&m, running)
	might := m.Replace(running).Groups
	whole, nodes := count(&m, might)
	if whole < wholeIs || whole == wholeIs && nodes <= nodesIs {
		return nil
	}
	for _, g := range might {
		was := []proto.NodeID{}
		if at := slices.IndexFunc(running, func(o ring.Group) bool { return o.ID == g.ID }); at >= 0 {
			was = running[at].Nodes
		}
		if len(g.Nodes) > len(slices.DeleteFunc(slices.Clone(was), func(id proto.NodeID) bool { return !m.Usable(id) })) {
			list = append(list, out{node: g.Nodes[0], ring: g.ID, text: fmt.Sprintf("ring %d is %v, and the nodes at hand allow %v", g.ID, was, g.Nodes)})
		}
	}
	return list
}

// count counts whole groups and the usable nodes in all.
func count(m *ring.Mend, groups []ring.Group) (whole, nodes int) {
	for _, g := range groups {
		usable := 0
		for i, id := range g.Nodes {
			if m.Usable(id) && (i == 0 || !m.Broken(g.Nodes[i-1], id)) {
				usable++
			}
		}
		if nodes += usable; usable == g.Size {
			whole++
		}
	}
	return whole, nodes
}

// broken: no ring can use the fibre between two nodes, or the planner says when it
// tries it. Of one that ends at a board that is broken nobody knows.
func (j *judge) broken(a, b proto.NodeID) bool {
	f := j.r.cfg.Fabric
	link, ok := f.Link(a, b)
	if !ok || slices.Contains(j.r.inject.cuts, link.Local) {
		return true
	}
	if (j.odd(a) || j.odd(b)) && (j.member[a] == 0 || j.member[a] != j.member[b]) {
		return true
	}
	return j.tried("fibre " + cmp.Or(f.Label(link), fmt.Sprintf("%d-%d", min(a, b), max(a, b))))
}

// excused: the planner says why somebody is out, and when it is tried again.
func (j *judge) excused(o out) bool {
	if o.ring != 0 {
		return j.tried(fmt.Sprintf("ring %d", o.ring))
	}
	return j.tried(fmt.Sprintf("node %d", o.node))
}

// tried: the planner's status names something, and says when it tries it again.
func (j *judge) tried(name string) bool {
	if j.r.now > j.audit.disturbedAt+excusedFor {
		return false
	}
	if j.named == nil {
		s := j.p.Status()
		j.named = append([]string{}, s.Waiting...)
		for _, al := range j.p.Alarms.List() {
			text := al.What + ": " + al.Why
			if al.Node != nil {
				text = fmt.Sprintf("node %d: %s", *al.Node, text)
			}
			j.named = append(j.named, text)
		}
		j.named = slices.DeleteFunc(j.named, func(text string) bool {
			return !strings.Contains(text, "again in ") && !strings.Contains(text, "next try ")
		})
	}
	return slices.ContainsFunc(j.named, func(text string) bool {
		_, after, found := strings.Cut(text, name)
		return found && (after == "" || after[0] < '0' || after[0] > '9')
	})
}
