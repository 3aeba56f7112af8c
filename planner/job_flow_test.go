package planner

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/planner/model"
	"ringlight/sim/flow"
)

// divided is what a job's answer prints of a model that was divided: nothing else of the
// planner's is known to who runs it.
type divided struct {
	Circuits struct {
		Seats    [][3]int
		Orders   []job.Order
		Strategy struct {
			Stages  int
			Share   []int
			Compute int64 `json:"compute_ns"`
			Reduce  int64 `json:"reduce_ns"`
			Send    int64 `json:"send_ns"`
			Servers []struct {
				Host        string
				Stage       int
				Layers      []int
				Part        []int
				Tables      []int
				ServerBytes int64 `json:"server_bytes"`
				GPUBytes    int64 `json:"gpu_bytes"`
			}
		}
	}
}

// sized is a layer of a model: weights, of them in experts, values that come in for a
// sample, experts that each visits, floating point operations, parts started one by one.
type sized struct{ values, experts, width, active, flop, starts int64 }

// sizes are the layers and tables (bytes, and of a row) of a model, from its file.
func sizes(m *model.Model) (layers []sized, tables [][2]int64) {
	for _, l := range m.Layers {
		in, out, k, side, h, s, e, a := int64(l.Inputs), int64(l.Outputs), int64(l.Kernel), int64(l.Side), int64(l.Hidden), int64(l.Sequence), int64(l.Experts), int64(l.Active)
		x := map[string]sized{
			model.Dense:   {in * out, 0, in, 0, 2 * in * out, 1},
			model.Conv:    {k * k * in * out, 0, in * side * side, 0, 2 * k * k * in * out * side * side, 1},
			model.Block:   {12 * h * h, 0, s * h, 0, s * h * (24*h + 4*s), 6},
			model.Experts: {4*h*h + 8*h*h*e, 8 * h * h * e, s * h, a, s * h * (8*h + 4*s + 16*h*a), 6},
		}[l.Kind]
		layers = append(layers, slices.Repeat([]sized{x}, l.Count)...)
	}
	for _, e := range m.Embeddings {
		row := int64(e.Dimension * m.BytesPerValue)
		tables = append(tables, slices.Repeat([][2]int64{{e.Rows * row, row}}, e.Count)...)
	}
	return layers, tables
}

// traffic is what servers that hold so much of a model send in an iteration: what each
// group sums up, by its members, and what one server sends another.
func (d *divided) traffic(m *model.Model, gpus int) (sums map[string]int64, groups map[string][]int, sends map[[2]int]int64) {
	sums, groups, sends = map[string]int64{}, map[string][]int{}, map[[2]int]int64{}
	layers, tables := sizes(m)
	s := d.Circuits.Strategy
	value, samples := int64(m.BytesPerValue), int64(m.BatchPerGPU*gpus*s.Stages)
	sum := func(members []int, bytes int64) {
		if len(members) > 1 && bytes > 0 {
			groups[fmt.Sprint(members)] = members
			sums[fmt.Sprint(members)] += bytes
		}
	}
	for u, x := range layers {
		t := s.Share[u]
		var all []int
		of := make([][]int, t) // by part
		for rank, h := range s.Servers {
			if k := slices.Index(h.Layers, u); k >= 0 {
				all, of[h.Part[k]] = append(all, rank), append(of[h.Part[k]], rank)
			}
		}
		shared := x.values
		if x.experts > 0 {
			shared = x.experts
			sum(all, (x.values-x.experts)*value)
		}
		for _, members := range of {
			sum(members, shared*value/int64(t))
		}
		bytes := 2 * samples * x.width * value // what comes in, and its gradient
		switch {
		case x.experts > 0: // there and back, forward and backward
			bytes = 4 * samples * x.width * x.active * value / int64(t)
		case x.starts > 1: // a block: two sums forward, two backward
			bytes = 8 * samples * x.width * value
		}
		for i, a := range all {
			for j, b := range all {
				if t > 1 && i != j && i/t == j/t { // neighbours that share
					sends[[2]int{a, b}] += bytes
				}
			}
		}
		if u > 0 && s.Servers[all[0]].Stage > 0 && !slices.Contains(s.Servers[all[0]].Layers, u-1) {
			for _, b := range all { // from the stage before, and back
				a := b - len(all)
				sends[[2]int{a, b}] += samples * x.width * value
				sends[[2]int{b, a}] += samples * x.width * value
			}
		}
	}
	for k, x := range tables {
		var all []int
		for rank, h := range s.Servers {
			if slices.Contains(h.Tables, k) {
				all = append(all, rank)
			}
		}
		if len(all) > 1 { // every server has it
			sum(all, x[0])
			continue
		}
		for b := range s.Servers {
			if a := all[0]; a != b { // rows there, gradients back
				sends[[2]int{a, b}] += int64(m.BatchPerGPU*gpus) * x[1]
				sends[[2]int{b, a}] += int64(m.BatchPerGPU*gpus) * x[1]
			}
		}
	}
	return sums, groups, sends
}

// compute is forward and backward of the slowest stage on A100s ([TOPO]'s tables), with
// what a pipeline of four micro-batches a stage waits at its ends.
func (d *divided) compute(m *model.Model) float64 {
	layers, _ := sizes(m)
	s := d.Circuits.Strategy
	micro := 1
	if s.Stages > 1 {
		micro = 4 * s.Stages
	}
	stage := make([]float64, s.Stages)
	for _, h := range s.Servers {
		ns := 0.0
		for _, u := range h.Layers {
			ns += float64(micro)*float64(layers[u].starts)*150e3 + float64(s.Stages*m.BatchPerGPU)*float64(layers[u].flop)/71e3
		}
		stage[h.Stage] = ns
	}
	return slices.Max(stage) * 2.9 * float64(micro+s.Stages-1) / float64(micro)
}

// Goal: who has the layers and tables that a job's answer prints, and sends by the routes
// that it prints over the light that is there, has the iteration that the search claimed;
// no server and no GPU has more weights than were allowed.
// Method: flows made here from the model's file and the answer alone, walked interface by
// interface, run by sim/flow. Rings must take what was claimed, but for bytes rounded up.
// All else shares links max-min: never less than the claim, which is the fullest link's
// time ([TOPO] eq. 1), and up to 0.1 % more, as a flow that is held up on one link leaves
// others idle that it crosses; by flow.Fullest, which has no such, it is the claim.
// Ten jobs, and others drawn until there are half as many as RINGLIGHT_WALKS says.
func TestDividedJobTakesAsLongAsClaimed(t *testing.T) {
	const gpus = 4
	type asked struct {
		model, more string
		server, gpu int64 // bytes, at most
		mbps        int64
	}
	worst, passedOn := 0.0, 0
	cases := []asked{
		{"dlrm", `"seed":1`, 0, 0, 100_000},
		{"dlrm", `"seed":2,"link_mbps":400000,"server_bytes":43000000000`, 43_000_000_000, 0, 400_000},
		{"dlrm", `"seed":3,"gpu_bytes":12500000000,"link_mbps":25000`, 0, 12_500_000_000, 25_000},
		{"dlrm", `"seed":4,"method":"totient"`, 0, 0, 100_000},
		{"ncf", `"seed":5`, 0, 0, 100_000},
		{"ncf", `"seed":6,"server_bytes":7600000000`, 7_600_000_000, 0, 100_000},
		{"candle", `"seed":7,"share_layers":true`, 0, 0, 100_000},
		{"vgg", `"seed":8`, 0, 0, 100_000},
		{"bert", `"seed":9`, 0, 0, 100_000},
		{"gpt-moe", `"seed":10`, 0, 0, 100_000},
	}
	for seed := range max(0, walks()/2-len(cases)) {
		cases = append(cases, asked{[]string{"dlrm", "ncf", "gpt-moe", "candle", "bert"}[seed%5], fmt.Sprintf(`"seed":%d,"share_layers":%v`, seed, seed%2 == 1), 0, 0, 100_000})
	}
	for n, c := range cases {
		servers, degree, both := 8, 4, true
		if n >= 10 { // others as they are drawn
			r := rand.New(rand.NewPCG(uint64(n), 29))
			servers, degree, both = 2+r.IntN(11), 2+2*r.IntN(3), r.IntN(4) > 0
		}
		w := startedWorld(t, &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: gpus, Direct: &fabric.Direct{Servers: 16, Degree: degree}})
		text, err := job.Divide(w.fab, fmt.Appendf(nil, `{"circuits":{"servers":%d,"topology":{"degree":%d,"bidirectional":%v,"model":%q,%s}}}`, servers, degree, both, c.model, c.more))
		if err != nil {
			t.Fatalf("%s %s: %v", c.model, c.more, err)
		}
		w.put("a", string(text))
		w.run(5 * time.Second)
		v := w.job("a")
		if v.State != job.Ready {
			t.Fatalf("%s: %+v", c.model, v)
		}
		raw, _ := json.Marshal(v)
		var d divided
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		at, m := fmt.Sprintf("%s, %d servers of degree %d, both ways %v, %s", c.model, servers, degree, both, c.more), model.Named(c.model)
		d.weigh(t, at, m, gpus, c.server, c.gpu)

		// Links are interfaces of servers by light.
		x, number, capacity := w.walker(v), map[string]flow.Link{}, []int64{}
		links := func(path []string, ok bool) (out []flow.Link) {
			if !ok {
				t.Fatalf("%s: what is sent does not arrive: %v", at, path)
			}
			for _, name := range path {
				if _, known := number[name]; !known {
					number[name] = flow.Link(len(capacity))
					capacity = append(capacity, c.mbps*1_000_000)
				}
				out = append(out, number[name])
			}
			return out
		}
		seat := func(rank int) int { return d.Circuits.Seats[rank][1] }
		address := func(server, face int) string {
			return x.addresses[slices.IndexFunc(d.Circuits.Seats, func(s [3]int) bool { return s[1] == server })*degree+face]
		}
		// over are the flows of bytes from rank to rank: by the interfaces that join them,
		// or by all where others pass it on.
		over := func(a, b int, bytes int64) (out []flow.Flow) {
			var faces []int
			for face := range degree {
				if x.overFibres(seat(a), face) == seat(b) {
					faces = append(faces, face)
				}
			}
			if faces == nil {
				passedOn++
				faces = upTo(degree)
			}
			for _, face := range faces {
				path := links(x.pass(seat(a), face, seat(b), face, address))
				out = append(out, flow.Flow{Path: path, Bytes: (bytes + int64(len(faces)) - 1) / int64(len(faces))})
			}
			return out
		}

		sums, groups, sends := d.traffic(m, gpus)
		var reduce flow.Stage
		for name, members := range groups { // any order: they run side by side
			k, rings := int64(len(members)), [][2][]int{} // of each direction: ranks, and interfaces to the next
			for _, o := range d.Circuits.Orders {
				var ranks, there, back []int
				for i, s := range o.Servers {
					ranks = append(ranks, slices.IndexFunc(d.Circuits.Seats, func(seat [3]int) bool { return seat[1] == int(s) }))
					face := int(o.Layers[i%len(o.Layers)])
					if k%2 == 1 && both {
						there, back = append(there, int(o.Layers[0])), append(back, int(o.Layers[1]))
					} else {
						there, back = append(there, face), append(back, face)
					}
				}
				if o.Group < 0 || fmt.Sprint(slices.Sorted(slices.Values(ranks))) != name {
					continue
				}
				turned, faces := []int{}, []int{}
				for i := range ranks { // from the one to the one before it
					at := (len(ranks) - i) % len(ranks)
					turned = append(turned, ranks[at])
					faces = append(faces, back[(at+len(back)-1)%len(back)])
				}
				if rings = append(rings, [2][]int{ranks, there}); both {
					rings = append(rings, [2][]int{turned, faces})
				}
			}
			n := int64(len(rings))
			for _, r := range rings {
				var round flow.Round
				for i, a := range r[0] {
					b := r[0][(i+1)%len(r[0])]
					path := links(x.pass(seat(a), r[1][i], seat(b), r[1][i], address))
					if len(path) != 1 {
						t.Errorf("%s: rank %d to %d of a ring: %v", at, a, b, path)
					}
					round.Flows = append(round.Flows, flow.Flow{Path: path, Bytes: (sums[name] + k*n - 1) / (k * n)})
				}
				round.Times = int(2 * (k - 1))
				reduce = append(reduce, flow.Phase{Rounds: []flow.Round{round}})
			}
			if n == 0 { // passed on, as a ring in the order of ranks
				var round flow.Round
				for i, a := range members {
					round.Flows = append(round.Flows, over(a, members[(i+1)%len(members)], 2*(k-1)*sums[name]/k)...)
				}
				round.Times = 1
				reduce = append(reduce, flow.Phase{Rounds: []flow.Round{round}})
			}
		}
		var send flow.Stage
		var round flow.Round
		for pair, bytes := range sends { // any order: they start together
			round.Flows = append(round.Flows, over(pair[0], pair[1], bytes)...)
		}
		if round.Times = 1; len(round.Flows) > 0 {
			send = flow.Stage{{Rounds: []flow.Round{round}}}
		}
		h := d.Circuits.Strategy
		run := func(sharing flow.Sharing, stages ...flow.Stage) float64 {
			var real []flow.Stage
			for _, s := range stages {
				if len(s) > 0 {
					real = append(real, s)
				}
			}
			if real == nil {
				return 0
			}
			s, err := flow.New(capacity, sharing)
			if err == nil {
				_, err = s.Add(&flow.Script{Stages: real, Iterations: 1})
			}
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			for s.Live() > 0 {
				s.Advance(s.Next())
			}
			return float64(s.Now())
		}
		near := func(what string, is, claimed, less, more float64) {
			if is < claimed*(1-less)-1000 || is > claimed*(1+more)+1000 { // a microsecond: bytes are whole, round by round
				t.Errorf("%s: %s takes %.0f ns, claimed are %.0f", at, what, is, claimed)
			}
		}
		compute := d.compute(m)
		near("compute", compute, float64(h.Compute), 1e-4, 1e-4)
		near("AllReduce", run(flow.Rounds, reduce), float64(h.Reduce), 1e-4, 1e-4)
		near("the rest by the fullest link", run(flow.Fullest, send), float64(h.Send), 1e-4, 1e-4)
		claimed := float64(h.Compute + h.Reduce + h.Send)
		whole := run(flow.Rounds, flow.Stage{{Compute: time.Duration(compute)}}, reduce, send)
		near("the iteration", whole, claimed, 1e-4, 1e-3)
		worst = max(worst, whole/claimed-1)
		t.Logf("%s: %.3f ms by flows, %.3f claimed (%.3f compute, %.3f AllReduce, %.3f the rest); %d flows", at, whole/1e6, claimed/1e6, float64(h.Compute)/1e6, float64(h.Reduce)/1e6, float64(h.Send)/1e6, len(round.Flows))
	}
	t.Logf("at most %.4f %% longer than claimed; %d pairs passed on by others", 100*worst, passedOn)
	if passedOn == 0 {
		t.Error("nothing was passed on")
	}
}

// weigh counts what each server holds of a model: all of it is held, in whole shares,
// and nobody has more than is printed or allowed (0: any).
func (d *divided) weigh(t *testing.T, at string, m *model.Model, gpus, server, gpu int64) {
	t.Helper()
	layers, tables := sizes(m)
	parts, held := make([][]int, len(layers)), make([]int, len(tables))
	for rank, h := range d.Circuits.Strategy.Servers {
		dense, rows := int64(0), int64(0)
		for i, u := range h.Layers {
			n := int64(d.Circuits.Strategy.Share[u])
			shared := layers[u].values
			if layers[u].experts > 0 {
				shared = layers[u].experts
			}
			dense += (layers[u].values - shared + (shared+n-1)/n) * int64(m.BytesPerValue)
			parts[u] = append(parts[u], h.Part[i])
		}
		for _, k := range h.Tables {
			rows += tables[k][0]
			held[k]++
		}
		of := dense + (rows+int64(gpus)-1)/int64(gpus)
		if h.ServerBytes != dense+rows || h.GPUBytes != of || server > 0 && dense+rows > server || gpu > 0 && of > gpu {
			t.Errorf("%s: rank %d has %d bytes, a GPU %d, printed are %d and %d, allowed %d and %d", at, rank, dense+rows, of, h.ServerBytes, h.GPUBytes, server, gpu)
		}
	}
	for u, all := range parts {
		for part := range d.Circuits.Strategy.Share[u] {
			if !slices.Contains(all, part) {
				t.Errorf("%s: nobody has part %d of layer %d", at, part, u)
			}
		}
	}
	if k := slices.Index(held, 0); k >= 0 {
		t.Errorf("%s: nobody has table %d", at, k)
	}
}
