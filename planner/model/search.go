package model

import (
	"cmp"
	"math/bits"
	"slices"

	"ringlight/mzi/detmath"
	"ringlight/planner/topo"
)

// Time is that of one iteration, in nanoseconds.
type Time struct {
	Compute, Reduce, Send int64 // none overlaps another ([TOPO] eq. 1)
}

// Total is their sum.
func (t Time) Total() int64 { return t.Compute + t.Reduce + t.Send }

// proposals of one search ([TOPO] lets FlexFlow's run some thousand); chosen.
const proposals = 4000

// state is a strategy on a network, with what every link carries.
type state struct {
	*job
	net          Network
	bits         int64 // per second, of a link
	s            Strategy
	reduce, send []int64
	patterns     map[pattern][]int64 // loads of one byte
	scratch      []part
}

func (j *job) on(net Network, bitsPerSecond int64, s Strategy) *state {
	st := &state{job: j, net: net, bits: bitsPerSecond, s: s.clone(), patterns: map[pattern][]int64{}}
	st.fill()
	return st
}

func (st *state) fill() {
	st.reduce, st.send = make([]int64, st.net.Links()), make([]int64, st.net.Links())
	for _, p := range st.parts(st.s) {
		st.put(p, 1)
	}
}

func (st *state) put(p part, sign int64) {
	one := st.patterns[p.pattern]
	if one == nil {
		one = make([]int64, st.net.Links())
		if p.kind == classes {
			for _, ring := range p.rings(st.Servers) {
				st.net.Ring(ring, one)
			}
		} else {
			p.pairs(st.Servers, func(from, to int) { st.net.Send(from, to, one) })
		}
		st.patterns[p.pattern] = one
	}
	load := st.send
	if p.kind == classes {
		load = st.reduce
	}
	for k, units := range one {
		load[k] += sign * units * p.bytes
	}
}

func (st *state) time() Time {
	return Time{st.compute(st.s), transfer(most(st.reduce)/unitLoad, st.bits), transfer(most(st.send)/unitLoad, st.bits)}
}

func most(load []int64) int64 {
	m := int64(0)
	for _, l := range load {
		m = max(m, l)
	}
	return m
}

// transfer is the time of so many bytes on a link, rounded up.
func transfer(bytes, bitsPerSecond int64) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 8_000_000_000)
	q, r := bits.Div64(hi, lo, uint64(bitsPerSecond))
	if r > 0 {
		q++
	}
	return int64(q)
}

// change sets layer u's share or, beyond the layers, a table's server.
func (st *state) change(u, to int) {
	swap := func(sign int64) {
		st.scratch = st.scratch[:0]
		if u < len(st.units) {
			st.scratch = st.layer(st.scratch, st.s, u)
		} else {
			st.scratch = st.table(st.scratch, st.s, u-len(st.units))
		}
		for _, p := range st.scratch {
			st.put(p, sign)
		}
	}
	swap(-1)
	if u < len(st.units) {
		st.s.Share[u] = to
	} else {
		st.s.Table[u-len(st.units)] = to
	}
	swap(1)
}

// propose draws one change: what, and to what.
func (st *state) propose(rnd *detmath.Random) (u, to, was int) {
	u = rnd.Below(len(st.units) + len(st.size))
	if k := u - len(st.units); k >= 0 {
		if to = rnd.Below(st.Servers); rnd.Below(16) == 0 {
			to = Everywhere
		}
		return u, to, st.s.Table[k]
	}
	// Layers and their neighbours: 1, 2 or 4; experts as many as there are.
	to = 1 << rnd.Below(3)
	if st.units[u].experts > 0 {
		to = 1 << rnd.Below(bits.Len(uint(st.Servers)))
	}
	return u, to, st.s.Share[u]
}

// allowed says whether a search may share layer u so; a table may be anywhere.
func (st *state) allowed(u, to int) bool {
	if u < len(st.units) && st.units[u].experts == 0 && to > 1 && !st.ShareLayers {
		return false
	}
	return u >= len(st.units) || st.Servers/st.s.Stages%to == 0 && st.units[u].shares(to)
}

// anneal searches from the state's strategy and gives the best found.
func (st *state) anneal(seed uint64) (Strategy, Time) {
	rnd := detmath.Stream(seed, 0x6d6f64656c)
	best, least := st.s.clone(), st.time()
	now := least.Total()
	for k := range proposals {
		// From 3 % of the time down to a hundredth of that.
		heat := now * int64(proposals-k) * int64(proposals-k) / (proposals * proposals) * 3 / 100
		if k%(proposals/16) == proposals/32 && st.staged() {
			st.restage(1 << rnd.Below(5))
			t := st.time()
			if now = t.Total(); now < least.Total() {
				best, least = st.s.clone(), t
			}
		}
		u, to, was := st.propose(rnd)
		if to == was || !st.allowed(u, to) {
			continue
		}
		st.change(u, to)
		t := st.time()
		// A draw of 64 bits begins with k zeros in one of 2^k cases.
		if worse := t.Total() - now; st.over(st.s) || worse > 0 && worse > heat*int64(bits.LeadingZeros64(rnd.Next())) {
			st.change(u, was)
			continue
		}
		if now = t.Total(); now < least.Total() {
			best, least = st.s.clone(), t
		}
	}
	return best, least
}

// staged says whether a pipeline is looked for: of transformers without tables.
func (j *job) staged() bool {
	return len(j.size) == 0 && slices.ContainsFunc(j.units, func(u unit) bool { return u.kind == Block || u.kind == Experts })
}

// restage goes on with another number of stages.
func (st *state) restage(stages int) {
	if st.Servers%stages != 0 || stages > len(st.units) {
		return
	}
	s := st.s.clone()
	s.Stages = stages
	for u := range s.Share {
		for st.Servers/stages%s.Share[u] != 0 {
			s.Share[u] /= 2
		}
	}
	if st.check(s) == nil {
		st.s = s
		st.fill()
	}
}

// Search finds how to divide a model on a network whose links have a rate.
func Search(m *Model, c Cluster, net Network, bitsPerSecond int64, seed uint64) (Strategy, Time, error) {
	j := newJob(m, c)
	start, err := j.start()
	if err != nil {
		return Strategy{}, Time{}, err
	}
	s, t := j.on(net, bitsPerSecond, start).anneal(seed)
	return s, t, nil
}

// Start is how a model is divided by hand: data parallel, with tables shared out
// evenly and experts among as many servers as there are of them.
func Start(m *Model, c Cluster) (Strategy, error) { return newJob(m, c).start() }

func (j *job) start() (Strategy, error) {
	s := j.m.dataParallel(j.Servers)
	var first error
	for stages := 1; ; stages *= 2 {
		s.Stages = stages
		for u, x := range j.units {
			for t := 1; x.experts > 0 && x.shares(t) && j.Servers/stages%t == 0; t *= 2 {
				s.Share[u] = t
			}
		}
		err := j.check(s)
		if err != nil && j.over(s) && stages == 1 { // by number they are shared out, not by size
			j.level(s.Table)
			err = j.check(s)
		}
		if err == nil {
			return s, nil
		}
		if first == nil {
			first = err
		}
		if !j.staged() || j.Servers%(2*stages) != 0 || 2*stages > len(j.units) {
			s.Stages = 1
			return s, first
		}
		for u := range s.Share {
			s.Share[u] = 1
		}
	}
}

// level gives each table, the largest first, to the server that has least.
func (j *job) level(table []int) {
	order, held := make([]int, len(table)), make([]int64, j.Servers)
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(j.size[b], j.size[a]) })
	for _, k := range order {
		at := 0
		for s, n := range held {
			if n < held[at] {
				at = s
			}
		}
		table[k] = at
		held[at] += j.size[k]
	}
}

// Evaluate is the time of a strategy on a network.
func Evaluate(m *Model, c Cluster, s Strategy, net Network, bitsPerSecond int64) (Time, error) {
	j := newJob(m, c)
	if err := j.check(s); err != nil {
		return Time{}, err
	}
	return j.on(net, bitsPerSecond, s).time(), nil
}

// Wiring is what a job's direct links may be.
type Wiring struct {
	Degree        int
	Bidirectional bool
	Method        topo.Method
	Bits          int64 // per second, of an interface
	Seed          uint64
}

// Plan is a strategy and the topology for it.
type Plan struct {
	Strategy Strategy
	Topology *topo.Topology
	Time     Time
}

// Wire finds the topology of a strategy's traffic, and its time.
func Wire(m *Model, c Cluster, s Strategy, w Wiring) (*Plan, error) {
	j := newJob(m, c)
	if err := j.check(s); err != nil {
		return nil, err
	}
	return j.wire(s, w)
}

func (j *job) wire(s Strategy, w Wiring) (*Plan, error) {
	groups, demands := j.traffic(s)
	t, err := topo.Find(topo.Request{Servers: j.Servers, Degree: w.Degree, Bidirectional: w.Bidirectional, AllReduce: groups, MP: demands, Method: w.Method, Seed: w.Seed})
	if err != nil {
		return nil, err
	}
	p := &Plan{Strategy: s, Topology: t, Time: Time{Compute: j.compute(s)}}
	p.Time = p.At(w.Bits)
	return p, nil
}

// At is the plan's time with links of another rate.
func (p *Plan) At(bitsPerSecond int64) Time {
	return Time{p.Time.Compute, transfer(p.Topology.FullestReduce, bitsPerSecond), transfer(p.Topology.FullestSend, bitsPerSecond)}
}

// alternations at most ([TOPO] sec 4.1 leaves the number open); chosen.
const alternations = 10

// Alternate searches a strategy for the topology there is and a topology for
// the strategy found, in turn, until two rounds in a row gain nothing. A round
// begins from the topology last found, better or not, as a search that begins
// where the last one did finds the same.
func Alternate(m *Model, c Cluster, w Wiring) (*Plan, error) {
	j := newJob(m, c)
	s, err := j.start()
	if err != nil {
		return nil, err
	}
	best, err := j.wire(s, w)
	if err != nil {
		return nil, err
	}
	now, idle := best, 0
	for round := 1; round <= alternations && idle < 2; round++ {
		s, _ := j.on(newDirect(now.Topology), w.Bits, now.Strategy).anneal(w.Seed + uint64(round))
		if now, err = j.wire(s, w); err != nil {
			return nil, err
		}
		if idle++; now.Time.Total() < best.Time.Total() {
			best, idle = now, 0
		}
	}
	return best, nil
}
