package model

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ringlight/mzi/detmath"
	"ringlight/planner/topo"
)

var testCluster = Cluster{Servers: 16, GPUsPerServer: 4}

// Goal: the shipped models are read, are the paper's six and one more, and have
// the weights they are known for.
// Method: sums of the layers, in millions.
func TestShippedModels(t *testing.T) {
	want := map[string]int64{"bert": 166, "candle": 6442, "dlrm": 301, "gpt-moe": 26575, "ncf": 134, "resnet50": 25, "vgg": 138}
	if !slices.Equal(Names(), []string{"bert", "candle", "dlrm", "gpt-moe", "ncf", "resnet50", "vgg"}) {
		t.Error(Names())
	}
	for _, name := range Names() {
		sum := int64(0)
		for _, u := range Named(name).units() {
			sum += u.values
		}
		if sum/1e6 != want[name] {
			t.Errorf("%s: %d million weights, want %d", name, sum/1e6, want[name])
		}
	}
	if Named("none") != nil {
		t.Error("a model that is not there")
	}
}

// Goal: a model that is not acceptable is refused by field and limit.
// Method: one defect each.
func TestBadModelsNameFieldAndLimit(t *testing.T) {
	const good = `{"name":"x","batch_per_gpu":8,"bytes_per_value":4,"layers":[{"kind":"dense","count":1,"inputs":4,"outputs":4}],"embeddings":[{"count":1,"rows":5,"dimension":6}]}`
	if _, err := Read([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, with, field, limit string }{
		{`[{"kind":"dense","count":1,"inputs":4,"outputs":4}]`, `[]`, "layers", "one layer"},
		{`"batch_per_gpu":8`, `"batch_per_gpu":0`, "batch_per_gpu", "1 to"},
		{`"batch_per_gpu":8`, `"batch_per_gpu":"8"`, "batch_per_gpu", "a number"},
		{`"batch_per_gpu"`, `"batch"`, "model", "batch_per_gpu"},
		{`"bytes_per_value":4`, `"bytes_per_value":9`, "bytes_per_value", "1 to 8"},
		{`"dense"`, `"lstm"`, "layers[0].kind", "dense, conv"},
		{`"inputs":4,`, ``, "layers[0].inputs", "1 to"},
		{`"outputs":4`, `"outputs":4,"hidden":4`, "layers[0].hidden", "only inputs, outputs"},
		{`"count":1,"inputs"`, `"count":5000,"inputs"`, "layers[0].count", "1 to 4096"},
		{`"rows":5`, `"rows":-1`, "embeddings[0].rows", "1 to"},
		{`{"kind":"dense","count":1,"inputs":4,"outputs":4}`, `{"kind":"experts","count":1,"hidden":4,"sequence":4,"experts":2,"active":3}`, "layers[0].active", "experts, 2"},
		{`}]}`, `}]} x`, "model", "one JSON object"},
	} {
		_, err := Read([]byte(strings.Replace(good, tt.old, tt.with, 1)))
		var refused *Error
		if !errors.As(err, &refused) || refused.Field != tt.field || !strings.Contains(refused.Limit, tt.limit) {
			t.Errorf("%s: %v, want %s: %s", tt.with, err, tt.field, tt.limit)
		}
	}
}

// strategies draws strategies of every sort.
func strategies(j *job, rnd *detmath.Random, n int) []Strategy {
	var out []Strategy
	for len(out) < n {
		s := j.m.dataParallel(j.Servers)
		if len(j.size) == 0 {
			s.Stages = 1 << rnd.Below(3)
		}
		for u := range s.Share {
			s.Share[u] = 1 << rnd.Below(3)
		}
		for k := range s.Table {
			s.Table[k] = rnd.Below(j.Servers+1) - 1
		}
		if j.check(s) == nil {
			out = append(out, s)
		}
	}
	return out
}

// Goal: the cost that a search sees, changed step by step, is the cost from
// nothing, and what the traffic's own lists say.
// Method: random changes on a switch and on direct links; then the loads of a
// switch summed from the groups and pairs.
func TestIncrementalCostIsTheWholeCost(t *testing.T) {
	rnd := detmath.Random(2)
	for _, name := range []string{"dlrm", "bert", "gpt-moe"} {
		j := newJob(Named(name), testCluster)
		top, err := topo.Find(topo.Request{Servers: 16, Degree: 4, Bidirectional: true, AllReduce: []topo.Group{{Servers: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Bytes: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, net := range []Network{Switch{16}, newDirect(top)} {
			for _, s := range strategies(j, &rnd, 5) {
				st := j.on(net, 1e11, s)
				for range 30 {
					u, to, _ := st.propose(&rnd)
					if u < len(j.units) && (st.Servers/st.s.Stages%to != 0 || !j.units[u].shares(to)) {
						continue
					}
					st.change(u, to)
				}
				if got, want := st.time(), j.on(net, 1e11, st.s).time(); got != want {
					t.Fatalf("%s: %+v step by step, %+v from nothing", name, got, want)
				}
				if _, is := net.(Switch); !is {
					continue
				}
				groups, demands := j.traffic(st.s)
				out, in := make([]int64, 16), make([]int64, 16)
				for _, g := range groups {
					for _, s := range g.Servers {
						out[s] += g.Bytes / int64(len(g.Servers))
					}
				}
				if got, want := st.time().Reduce, transfer(slices.Max(out), 1e11); got != want {
					t.Errorf("%s: AllReduce %d, of the groups %d", name, got, want)
				}
				clear(out)
				for _, d := range demands {
					out[d.From] += d.Bytes
					in[d.To] += d.Bytes
				}
				if got, want := st.time().Send, transfer(max(slices.Max(out), slices.Max(in)), 1e11); got != want {
					t.Errorf("%s: pairs %d, of the list %d", name, got, want)
				}
			}
		}
	}
}

// Goal: a search is never worse than dividing by hand, and finds the best of a
// small space.
// Method: three tables on four servers with one dense layer: all 5^3 placements.
func TestSearchFindsTheBestPlacement(t *testing.T) {
	m := &Model{Name: "small", BatchPerGPU: 4096, BytesPerValue: 4, Layers: []Layer{{Kind: Dense, Count: 1, Inputs: 64, Outputs: 64}},
		Embeddings: []Embedding{{1, 100, 64}, {1, 30000, 512}, {1, 1000000, 128}}}
	c := Cluster{Servers: 4, GPUsPerServer: 2}
	best := int64(1) << 60
	for a := range 125 {
		s := m.dataParallel(4)
		s.Table = []int{a%5 - 1, a/5%5 - 1, a/25 - 1}
		got, err := Evaluate(m, c, s, Switch{4}, 1e11)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, got.Total())
	}
	_, got, err := Search(m, c, Switch{4}, 1e11, 1)
	if err != nil || got.Total() != best {
		t.Errorf("%d, possible %d (%v)", got.Total(), best, err)
	}
}

// Goal: alternating gains or stays, and its time is that of its topology.
// Method: every shipped model on 16 servers.
func TestAlternatingGainsOrStays(t *testing.T) {
	w := Wiring{Degree: 4, Bidirectional: true, Bits: 1e11, Seed: 1}
	for _, name := range Names() {
		m := Named(name)
		j := newJob(m, testCluster)
		s, err := j.start()
		if err != nil {
			t.Fatal(err)
		}
		byHand, err := Wire(m, testCluster, s, w)
		if err != nil {
			t.Fatal(name, err)
		}
		p, err := Alternate(m, testCluster, w)
		if err != nil {
			t.Fatal(name, err)
		}
		again, err := Wire(m, testCluster, p.Strategy, w)
		if err != nil || p.Time.Total() > byHand.Time.Total() || again.Time != p.Time {
			t.Errorf("%s: %+v, by hand %+v, wired again %+v (%v)", name, p.Time, byHand.Time, again.Time, err)
		}
	}
}

// Goal: a search finds the number of stages.
// Method: BERT on slow links against each number of stages by itself.
func TestSearchFindsThePipeline(t *testing.T) {
	m := Named("bert")
	best := int64(1) << 60
	for _, stages := range []int{1, 2, 4, 8} {
		s := m.dataParallel(16)
		s.Stages = stages
		got, err := Evaluate(m, testCluster, s, Switch{16}, 1e10)
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, got.Total())
	}
	_, got, err := Search(m, testCluster, Switch{16}, 1e10, 1)
	if err != nil || got.Total() > best {
		t.Errorf("%d, possible %d (%v)", got.Total(), best, err)
	}
}

// The phases of an iteration send what the strategy does, and compute as long.
func TestPhasesAreTheWholeIteration(t *testing.T) {
	on := Cluster{Servers: 16, GPUsPerServer: 4}
	for _, name := range Names() {
		for _, stages := range []int{1, 4} {
			m := Named(name)
			s, err := Start(m, on)
			if err != nil {
				t.Fatal(err)
			}
			if stages > 1 && len(s.Table) > 0 {
				continue
			}
			s.Stages = stages
			for u := range s.Share {
				s.Share[u] = min(s.Share[u], on.Servers/stages)
			}
			phases, steps, err := m.Phases(on, s)
			if err != nil {
				t.Fatal(name, err)
			}
			groups, demands, err := m.Traffic(on, s)
			if err != nil {
				t.Fatal(name, err)
			}
			want, got, compute, seen := int64(0), int64(0), int64(0), map[int]int64{}
			for _, g := range groups {
				want += g.Bytes
			}
			for _, d := range demands {
				want += d.Bytes
			}
			for _, step := range steps {
				compute += step.Gap
				seen[step.Phase]++
			}
			slots := int64(1)
			if stages > 1 {
				slots = microPerStage*int64(stages) + int64(stages) - 1
			}
			for at, p := range phases {
				bytes := int64(0)
				for _, g := range p.Groups {
					bytes += g.Bytes
				}
				for _, d := range p.Demands {
					bytes += d.Bytes
				}
				if last := p.Name == "allreduce"; seen[at] != slots && !last || last && seen[at] != 1 {
					t.Errorf("%s, %d stages: %s comes %d times", name, stages, p.Name, seen[at])
				}
				if p.Name != "allreduce" && stages > 1 { // a pipeline fills and empties
					bytes *= microPerStage * int64(stages)
				}
				got += bytes
			}
			if got < want || got-want > want/1000 {
				t.Errorf("%s, %d stages: phases send %d bytes, the strategy %d", name, stages, got, want)
			}
			if all := newJob(m, on).compute(s); compute > all || all-compute > all/1000 {
				t.Errorf("%s, %d stages: %d ns of compute, want %d", name, stages, compute, all)
			}
		}
	}
}
