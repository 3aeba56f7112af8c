package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ringlight/planner/topo"
)

// Cluster is what a job has.
type Cluster struct {
	Servers       int
	GPUsPerServer int
	ServerBytes   int64 // that weights of a server may take, each once, 0: no limit
	GPUBytes      int64 // and of each GPU, which has the server's layers, and its part of the tables
	// ShareLayers lets a search share dense layers and blocks among 2 or 4
	// servers. Without, they are shared inside a server at most, which no
	// network sees.
	ShareLayers bool
}

// Everywhere is where a table is that every server has a copy of.
const Everywhere = -1

// Strategy divides a model. Servers are in their order, stage by stage, and in
// a stage neighbours share.
type Strategy struct {
	Stages int   // of the pipeline; 1: none
	Share  []int // by layer: how many neighbours share it (tensor parallel; of experts, expert parallel)
	Table  []int // by table: its server, or Everywhere
}

// dataParallel gives every server all layers and shares the tables out, evenly
// over all servers.
func (m *Model) dataParallel(servers int) Strategy {
	s := Strategy{Stages: 1, Share: slices.Repeat([]int{1}, len(m.units()))}
	size, _ := m.tables()
	for k := range size {
		s.Table = append(s.Table, k*servers/len(size)%servers)
	}
	return s
}

func (s Strategy) clone() Strategy {
	s.Share, s.Table = slices.Clone(s.Share), slices.Clone(s.Table)
	return s
}

// Costs of compute on an A100, as [TOPO]'s published tables have them within
// 30 %.
const (
	startNS       = 150_000    // of a dense layer, forward
	flopPerUS     = 71_000_000 // 71e12 a second
	forwardAndX   = 29         // forward and backward, in tenths of forward
	microPerStage = 4          // chosen: micro-batches for each stage of a pipeline
)

// job is a model on a cluster, ready to be divided.
type job struct {
	Cluster
	m     *Model
	units []unit
	size  []int64 // of tables
	row   []int64
	batch int64 // samples of a server
}

func newJob(m *Model, c Cluster) *job {
	j := &job{Cluster: c, m: m, units: m.units(), batch: int64(m.BatchPerGPU) * int64(c.GPUsPerServer)}
	j.size, j.row = m.tables()
	return j
}

// check returns the first fault of a strategy.
func (j *job) check(s Strategy) error {
	if s.Stages < 1 || j.Servers%s.Stages != 0 || s.Stages > len(j.units) || s.Stages > 1 && len(j.size) > 0 {
		return wrong("stages", "a divisor of the servers, at most the layers, 1 with tables", "%d", s.Stages)
	}
	if len(s.Share) != len(j.units) || len(s.Table) != len(j.size) {
		return wrong("share", fmt.Sprintf("%d layers and %d tables", len(j.units), len(j.size)), "%d and %d", len(s.Share), len(s.Table))
	}
	for u, t := range s.Share {
		if t < 1 || j.Servers/s.Stages%t != 0 || !j.units[u].shares(t) {
			return wrong(fmt.Sprintf("share[%d]", u), "a divisor of the servers of a stage, of experts at most their number", "%d", t)
		}
	}
	for k, at := range s.Table {
		if at != Everywhere && (at < 0 || at >= j.Servers) {
			return wrong(fmt.Sprintf("table[%d]", k), fmt.Sprintf("a server, 0 to %d, or %d", j.Servers-1, Everywhere), "%d", at)
		}
	}
	layers, tables := j.memory(s)
	for at := range j.Servers {
		server, gpu := j.weights(layers[at], tables[at])
		if j.ServerBytes > 0 && server > j.ServerBytes {
			return wrong("server_bytes", fmt.Sprintf("weights of at most %d bytes on a server", j.ServerBytes), "%d on server %d", server, at)
		}
		if j.GPUBytes > 0 && gpu > j.GPUBytes {
			return wrong("gpu_bytes", fmt.Sprintf("weights of at most %d bytes on a GPU", j.GPUBytes), "%d on those of server %d", gpu, at)
		}
	}
	return nil
}

func (j *job) over(s Strategy) bool {
	return (j.ServerBytes > 0 || j.GPUBytes > 0) && j.check(s) != nil
}

func (u unit) shares(t int) bool {
	if u.experts > 0 {
		return int64(t) <= u.experts
	}
	return u.kind != Conv || t == 1
}

// memory is what layers and tables take on each server.
func (j *job) memory(s Strategy) (layers, tables []int64) {
	layers, tables = make([]int64, j.Servers), make([]int64, j.Servers)
	stage := make([]int64, s.Stages)
	for u, x := range j.units {
		shared := x.values
		if x.experts > 0 {
			shared = x.experts
		}
		stage[j.stage(s, u)] += (x.values - shared + (shared+int64(s.Share[u])-1)/int64(s.Share[u])) * int64(j.m.BytesPerValue)
	}
	every := int64(0)
	for k, at := range s.Table {
		if at == Everywhere {
			every += j.size[k]
		} else {
			tables[at] += j.size[k]
		}
	}
	for at := range layers {
		layers[at] = stage[at*s.Stages/j.Servers]
		tables[at] += every
	}
	return layers, tables
}

// weights is what a server has of layers and tables, each once, and each of its
// GPUs: all of the layers, and its part of the tables.
func (j *job) weights(layers, tables int64) (server, gpu int64) {
	n := int64(max(1, j.GPUsPerServer))
	return layers + tables, layers + (tables+n-1)/n
}

// Holding is what one server has of a model.
type Holding struct {
	Stage  int   // of the pipeline
	Layers []int // by number
	Part   []int // of each layer: which of Share parts; 0 where it is not shared
	Tables []int
	// Bytes of weights, on the server and on each of its GPUs.
	ServerBytes, GPUBytes int64
}

// Holdings say what each server has of a model that is divided so.
func Holdings(m *Model, c Cluster, s Strategy) ([]Holding, error) {
	j := newJob(m, c)
	if err := j.check(s); err != nil {
		return nil, err
	}
	layers, tables := j.memory(s)
	out := make([]Holding, c.Servers)
	for at := range out {
		h := &out[at]
		h.Stage = at * s.Stages / c.Servers
		h.ServerBytes, h.GPUBytes = j.weights(layers[at], tables[at])
		for u := range j.units {
			if j.stage(s, u) == h.Stage {
				h.Layers, h.Part = append(h.Layers, u), append(h.Part, at%(c.Servers/s.Stages)%s.Share[u])
			}
		}
		for k, of := range s.Table {
			if of == Everywhere || of == at {
				h.Tables = append(h.Tables, k)
			}
		}
	}
	return out, nil
}

func (j *job) stage(s Strategy, u int) int { return u * s.Stages / len(j.units) }

// compute is the time of forward and backward of the slowest stage, with what
// the pipeline waits at its ends.
func (j *job) compute(s Strategy) int64 {
	time := make([]int64, s.Stages)
	micro := int64(1)
	if s.Stages > 1 {
		micro = int64(microPerStage * s.Stages)
	}
	for u, x := range j.units {
		time[j.stage(s, u)] += micro*x.parts*startNS + int64(s.Stages*j.m.BatchPerGPU)*x.flop/(flopPerUS/1000)
	}
	return slices.Max(time) * forwardAndX / 10 * (micro + int64(s.Stages) - 1) / micro
}

// pattern is who sends to whom, for any number of bytes.
type pattern struct {
	kind             patternKind
	stages, stage, t int // of a pipeline which stage, and how many neighbours share
	host             int
}

type patternKind uint8

const (
	classes patternKind = iota // rings of those servers of a stage that have the same share
	sharing                    // neighbours that share, each to each
	onwards                    // servers of a stage to those of the next
	back                       // and back
	scatter                    // a host to all others
	gather                     // all others to a host
)

// rings are the rings of a pattern of classes.
func (p pattern) rings(servers int) [][]int {
	n := servers / p.stages
	var out [][]int
	for r := range p.t {
		var ring []int
		for s := r; s < n; s += p.t {
			ring = append(ring, p.stage*n+s)
		}
		if len(ring) > 1 {
			out = append(out, ring)
		}
	}
	return out
}

// pairs calls f with the pairs of any other pattern.
func (p pattern) pairs(servers int, f func(from, to int)) {
	n := servers / p.stages
	switch p.kind {
	case sharing:
		for s := p.stage * n; s < (p.stage+1)*n; s++ {
			first := s - (s-p.stage*n)%p.t
			for other := first; other < first+p.t; other++ {
				if other != s {
					f(s, other)
				}
			}
		}
	case onwards, back:
		for s := p.stage * n; s < (p.stage+1)*n; s++ {
			if p.kind == onwards {
				f(s, s+n)
			} else {
				f(s+n, s)
			}
		}
	case scatter, gather:
		for s := range servers {
			switch {
			case s == p.host:
			case p.kind == scatter:
				f(p.host, s)
			default:
				f(s, p.host)
			}
		}
	}
}

// part is so many bytes from each sender of a pattern to its receiver.
type part struct {
	pattern
	bytes int64
}

// reduce is a ring of AllReduce for so many bytes on each server.
func (j *job) reduce(out []part, stages, stage, t int, bytes int64) []part {
	k := int64(j.Servers / stages / t)
	if k < 2 || bytes == 0 {
		return out
	}
	return append(out, part{pattern{kind: classes, stages: stages, stage: stage, t: t}, 2 * (k - 1) * bytes / k})
}

// layer is what one layer sends.
func (j *job) layer(out []part, s Strategy, u int) []part {
	x, t, stage, value := j.units[u], s.Share[u], j.stage(s, u), int64(j.m.BytesPerValue)
	samples := j.batch * int64(s.Stages)
	if x.experts == 0 {
		out = j.reduce(out, s.Stages, stage, t, x.values*value/int64(t))
	} else {
		out = j.reduce(out, s.Stages, stage, 1, (x.values-x.experts)*value)
		out = j.reduce(out, s.Stages, stage, t, x.experts*value/int64(t))
	}
	if t > 1 {
		var bytes int64
		switch {
		case x.experts > 0: // there and back, forward and backward
			bytes = 4 * samples * x.width * x.active * value / int64(t)
		case x.kind == Block: // two AllReduces forward and two backward
			bytes = 8 * samples * x.width * value
		default: // what comes in, and its gradient
			bytes = 2 * samples * x.width * value
		}
		out = append(out, part{pattern{kind: sharing, stages: s.Stages, stage: stage, t: t}, bytes})
	}
	if stage > 0 && j.stage(s, u-1) < stage {
		bytes := samples * x.width * value
		out = append(out, part{pattern{kind: onwards, stages: s.Stages, stage: stage - 1}, bytes}, part{pattern{kind: back, stages: s.Stages, stage: stage - 1}, bytes})
	}
	return out
}

// table is what one table sends.
func (j *job) table(out []part, s Strategy, k int) []part {
	if s.Table[k] == Everywhere {
		return j.reduce(out, 1, 0, 1, j.size[k])
	}
	bytes := j.batch * j.row[k]
	return append(out, part{pattern{kind: scatter, stages: 1, host: s.Table[k]}, bytes}, part{pattern{kind: gather, stages: 1, host: s.Table[k]}, bytes})
}

func (j *job) parts(s Strategy) []part {
	var out []part
	for u := range j.units {
		out = j.layer(out, s, u)
	}
	for k := range j.size {
		out = j.table(out, s, k)
	}
	return out
}

// Traffic is what a strategy sends in one iteration, for topo.Find.
func (m *Model) Traffic(c Cluster, s Strategy) ([]topo.Group, []topo.Demand, error) {
	j := newJob(m, c)
	if err := j.check(s); err != nil {
		return nil, nil, err
	}
	groups, demands := j.traffic(s)
	return groups, demands, nil
}

func (j *job) traffic(s Strategy) ([]topo.Group, []topo.Demand) { return j.sum(j.parts(s)) }

// sum is parts as groups and pairs.
func (j *job) sum(parts []part) ([]topo.Group, []topo.Demand) {
	sum := map[pattern]int64{}
	for _, p := range parts {
		sum[p.pattern] += p.bytes
	}
	patterns := slices.SortedFunc(maps.Keys(sum), func(a, b pattern) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), a.t-b.t, a.stage-b.stage, a.host-b.host)
	})
	var groups []topo.Group
	pair := make([]int64, j.Servers*j.Servers)
	for _, p := range patterns {
		if p.kind == classes {
			for _, ring := range p.rings(j.Servers) {
				groups = append(groups, topo.Group{Servers: ring, Bytes: sum[p] * int64(len(ring))})
			}
			continue
		}
		p.pairs(j.Servers, func(from, to int) { pair[from*j.Servers+to] += sum[p] })
	}
	var demands []topo.Demand
	for k, bytes := range pair {
		if bytes > 0 {
			demands = append(demands, topo.Demand{From: k / j.Servers, To: k % j.Servers, Bytes: bytes})
		}
	}
	return groups, demands
}

// Phase is what a job sends at one time of its iteration.
type Phase struct {
	Name    string
	Groups  []topo.Group
	Demands []topo.Demand
}

// Phases are the times of an iteration of a strategy, and its steps through them:
// forward and backward of each micro-batch, all stages of a pipeline at once, then
// AllReduce. Nothing is sent while GPUs compute.
func (m *Model) Phases(c Cluster, s Strategy) (phases []Phase, steps []topo.Step, err error) {
	j := newJob(m, c)
	if err := j.check(s); err != nil {
		return nil, nil, err
	}
	micro := int64(1)
	if s.Stages > 1 {
		micro = int64(microPerStage * s.Stages)
	}
	slots := micro + int64(s.Stages) - 1
	compute, all := j.compute(s)/slots, j.parts(s)
	forward := compute * 10 / forwardAndX
	backward := compute - forward
	var slot []topo.Step
	gap := int64(0)
	for _, x := range []struct {
		name  string
		kind  patternKind
		times int64 // that its bytes are sent in
		gap   int64
	}{
		{"tables forward", scatter, 1, 0}, {"layers forward", sharing, 2 * micro, forward}, {"pipeline forward", onwards, micro, 0},
		{"layers backward", sharing, 2 * micro, backward}, {"pipeline backward", back, micro, 0}, {"tables backward", gather, 1, 0}, {"allreduce", classes, 1, 0},
	} {
		if x.kind == classes { // after all micro-batches
			for range slots {
				steps = append(steps, slot...)
			}
			slot = nil
		}
		gap += x.gap
		var parts []part
		for _, p := range all {
			if p.kind == x.kind {
				p.bytes = (p.bytes + x.times - 1) / x.times
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 {
			continue
		}
		groups, demands := j.sum(parts)
		slot = append(slot, topo.Step{Gap: gap, Phase: len(phases)})
		phases = append(phases, Phase{x.name, groups, demands})
		gap = 0
	}
	return phases, append(steps, slot...), nil
}
