package job

import (
	"cmp"
	"fmt"

	"ringlight/planner/fabric"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// Circuits is what somebody asks for of a core: servers, and all links between
// them that the traffic of the job takes. What of it a core knows depends on its
// kind: pods, leaves and spines, or servers joined directly.
type Circuits struct {
	GPUsTotal  *uint32  `json:"gpus_total,omitempty"` // in place of tp, pp, dp and servers
	TP         *uint32  `json:"tp,omitempty"`         // GPUs of a tensor parallel domain; absent: 1, as the next two
	EP         *uint32  `json:"ep,omitempty"`
	PP         *uint32  `json:"pp,omitempty"`
	DP         uint32   `json:"dp,omitempty"`         // replicas; absent: as many as servers hold
	Servers    uint32   `json:"servers,omitempty"`    // absent: as many as the domains need
	Collective string   `json:"collective,omitempty"` // of the replicas; absent: ring
	Pods       []uint16 `json:"pods,omitempty"`       // where it may be; absent: anywhere
	// These three are for leaves and spines.
	DurationMS uint64 `json:"duration_ms,omitempty"`
	DeadlineMS uint64 `json:"deadline_ms,omitempty"`
	MayPauseMS uint64 `json:"may_pause_ms,omitempty"`
	// These three are for servers joined directly.
	Topology *Traffic `json:"topology,omitempty"` // absent: one AllReduce of all, over all interfaces
	Phases   []Phase  `json:"phases,omitempty"`   // in place of topology, in the order in which they come
	Next     string   `json:"next,omitempty"`     // the job whose servers it gets when that is released

	on []uint32 // the wish's nodes
}

// Phase is a part of an iteration that has links of its own.
type Phase struct {
	Name     string  `json:"name"`
	Topology Traffic `json:"topology"`
}

// Traffic is what a job sends in one iteration, and over what. Servers are
// numbered by rank.
type Traffic struct {
	Degree        uint32      `json:"degree"`
	Bidirectional bool        `json:"bidirectional,omitempty"`
	AllReduce     []Reduce    `json:"allreduce,omitempty"`
	MP            [][3]uint64 `json:"mp,omitempty"` // from, to, bytes
	Method        string      `json:"method,omitempty"`
	Seed          uint64      `json:"seed,omitempty"`
	Divided                   // in place of allreduce and mp
}

// Reduce is a group that reduces among itself.
type Reduce struct {
	Servers []uint16 `json:"servers"`
	Bytes   uint64   `json:"bytes"`
}

// Spec is what is asked for in the core's words; whose servers it gets next is
// left to package core, which knows the jobs.
func (c *Circuits) Spec() (s proto.JobSpec, err *proto.Error) {
	bad := func(field, limit, format string, args ...any) (proto.JobSpec, *proto.Error) {
		return s, &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
	}
	collective, err := proto.ParseCollective(c.Collective)
	if err != nil {
		return s, err
	}
	s = proto.JobSpec{TP: 1, EP: 1, PP: 1, DP: c.DP, Servers: c.Servers, Pods: c.Pods, Collective: collective, On: c.on}
	for _, d := range []struct {
		name string
		from *uint32
		to   *uint32
	}{{"tp", c.TP, &s.TP}, {"ep", c.EP, &s.EP}, {"pp", c.PP, &s.PP}} {
		if d.from == nil {
			continue
		}
		if *d.from == 0 {
			return bad(d.name, "1 and up", "0")
		}
		*d.to = *d.from
	}
	if c.GPUsTotal != nil {
		if c.TP != nil || c.PP != nil || c.DP != 0 || c.Servers != 0 {
			return bad("gpus_total", "alone, without tp, pp, dp and servers", "%d beside them", *c.GPUsTotal)
		}
		if *c.GPUsTotal == 0 {
			return bad("gpus_total", "1 and up", "0")
		}
		s.DP = *c.GPUsTotal
	}
	if s.DP == 0 && s.Servers == 0 {
		return bad("servers", "servers, dp, or gpus_total", "neither is given")
	}
	for _, d := range []struct {
		name string
		n    uint64
		to   *uint64
	}{{"duration_ms", c.DurationMS, &s.DurationMillis}, {"deadline_ms", c.DeadlineMS, &s.DeadlineMillis}, {"may_pause_ms", c.MayPauseMS, &s.MayPauseMillis}} {
		if d.n > proto.MaxCount {
			return bad(d.name, fmt.Sprintf("at most %d", uint64(proto.MaxCount)), "%d", d.n)
		}
		*d.to = d.n
	}
	if c.Topology != nil {
		if s.Servers == 0 {
			return bad("servers", "servers, with topology", "absent")
		}
		if s.Topology, err = c.Topology.Spec(); err != nil {
			err.Field = "topology." + err.Field
			return s, err
		}
	}
	for i := range c.Phases {
		p := &c.Phases[i]
		if p.Topology.Model != nil {
			return bad(fmt.Sprintf("phases[%d].topology.model", i), "none: allreduce and mp say what a phase sends", "given")
		}
		t, err := p.Topology.Spec()
		if err != nil {
			err.Field = fmt.Sprintf("phases[%d].topology.%s", i, err.Field)
			return s, err
		}
		s.Phases = append(s.Phases, proto.JobPhase{Name: p.Name, Topology: *t})
	}
	return s, nil
}

// Spec is the traffic in the core's words.
func (t *Traffic) Spec() (*proto.JobTopology, *proto.Error) {
	const most = 1<<16 - 1 // servers by rank
	method, err := proto.ParseMethod(t.Method)
	if err != nil {
		return nil, err
	}
	if t.Model != nil && t.groups == nil && t.demands == nil {
		return nil, &proto.Error{Code: proto.Invalid, Field: "model", Limit: "with strategy, as the job API writes it down", Reason: "not divided"}
	}
	if n := len(t.AllReduce) + len(t.groups); n > 256 {
		return nil, &proto.Error{Code: proto.Invalid, Field: "allreduce", Limit: "at most 256 groups", Reason: fmt.Sprint(n)}
	}
	if n := len(t.MP) + len(t.demands); n > 4096 {
		return nil, &proto.Error{Code: proto.Invalid, Field: "mp", Limit: "at most 4096 pairs", Reason: fmt.Sprint(n)}
	}
	out := &proto.JobTopology{Degree: t.Degree, Bidirectional: t.Bidirectional, Method: method, Seed: t.Seed}
	for _, g := range t.AllReduce {
		out.AllReduce = append(out.AllReduce, proto.Reduce{Servers: g.Servers, Bytes: g.Bytes})
	}
	for i, d := range t.MP {
		if d[0] > most || d[1] > most {
			return nil, &proto.Error{Code: proto.Invalid, Field: fmt.Sprintf("mp[%d]", i), Limit: "servers by rank", Reason: fmt.Sprint(d)}
		}
		out.MP = append(out.MP, proto.Demand{From: uint16(d[0]), To: uint16(d[1]), Bytes: d[2]})
	}
	AddTraffic(out, t.groups, t.demands)
	return out, nil
}

// AddTraffic adds to a topology what a request of planner/topo has.
func AddTraffic(to *proto.JobTopology, groups []topo.Group, demands []topo.Demand) {
	for _, g := range groups {
		r := proto.Reduce{Bytes: uint64(g.Bytes)}
		for _, s := range g.Servers {
			r.Servers = append(r.Servers, uint16(s))
		}
		to.AllReduce = append(to.AllReduce, r)
	}
	for _, d := range demands {
		to.MP = append(to.MP, proto.Demand{From: uint16(d.From), To: uint16(d.To), Bytes: uint64(d.Bytes)})
	}
}

// checkCircuits says what is wrong with a wish for circuits, but for what the
// core knows.
func (w *Wish) checkCircuits(f *fabric.Fabric) error {
	switch {
	case f.Core == nil:
		return proto.Wrong("circuits", "a fabric with a core", "this one has no optical switches between servers")
	case w.Nodes != nil && len(w.Nodes) == 0:
		return proto.Wrong("nodes", "servers, or absent: any", "none")
	case w.Policy == Shrink:
		return proto.Wrong("policy", "wait or fail, with circuits", "%s", w.Policy)
	case w.Circuits.Next != "" && CheckID(w.Circuits.Next) != nil:
		return proto.Wrong("circuits.next", "a job's name", "%.80q", w.Circuits.Next)
	}
	for field, is := range map[string]bool{"tp": w.TP != 0, "rings": w.Rings != 0, "spares": w.Spares != 0, "exclude": w.Exclude != nil, "ring": w.Ring != 0, "prefer": w.Prefer != ""} { // any order: each by itself
		if is {
			return proto.Wrong(field, "none beside circuits: they are of rings", "given")
		}
	}
	c := w.Circuits
	var err error
	if c.on, err = findAll("nodes", "server", w.Nodes, f.Core.Servers(), f.FindServer); err != nil {
		return err
	}
	if c.DP == 0 && c.GPUsTotal == nil {
		c.Servers = cmp.Or(c.Servers, uint32(len(c.on)))
	}
	if t := c.Topology; t != nil {
		if err := t.fill(int(c.Servers), f.Core.GPUsPerServer); err != nil {
			return err
		}
	}
	if _, err := c.Spec(); err != nil {
		return inCircuits(err)
	}
	return nil
}

// inCircuits names the field of an error as one of circuits.
func inCircuits(err *proto.Error) error {
	if err.Field != "nodes" {
		err.Field = "circuits." + err.Field
	}
	return err
}
