package study

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/wiring"
)

// Methods that configure a core, as in results.
const (
	MethodSearch    = "search"    // interleaved wiring, planner/wiring's search
	MethodPublished = "published" // interleaved wiring, [CROSS]
	MethodSplit     = "split"     // interleaved wiring, Euler walks that do not look at what is there
	MethodGreedy    = "greedy"    // uniform wiring, old links first, then the first free switch
	MethodHelios    = "helios"    // uniform wiring, a heaviest matching a switch
)

// rewireMethods is the order of rows.
var rewireMethods = []string{MethodSearch, MethodPublished, MethodSplit, MethodGreedy, MethodHelios}

// Limits of the study, all chosen: some ten times what is built.
const (
	maxRewireGroups = 1024
	maxRewireLength = 1000
	maxRewirePorts  = 1 << 21
	maxRewireSteps  = 1 << 30
	stepsPerLink    = 240 // the default budget: about 0.2 s of a core for 32k ports
)

// RewireConfig is sequences of logical topologies, one for each pair of an
// idle share and a churn.
type RewireConfig struct {
	Pods       int       `flag:"pods" usage:"pods"`
	Groups     int       `flag:"groups" usage:"spines of a pod, each the like-numbered spine's group of switches"`
	SpinePorts int       `flag:"spine-ports" usage:"ports of a spine towards its switches, even; as many switches in a group"`
	Idle       []float64 `flag:"idle" usage:"ports that stay idle"`
	Churn      []float64 `flag:"churn" usage:"links that change from one topology to the next"`
	Length     int       `flag:"length" usage:"topologies after the first in every sequence"`
	Steps      int       `flag:"steps" usage:"steps of the search for one topology, all groups; 0: 120 a link"`
	Clock      Clock     // of a method
	Drawn
}

// DefaultRewire is small enough to run in seconds.
func DefaultRewire() RewireConfig {
	return RewireConfig{Pods: 48, Groups: 4, SpinePorts: 12, Length: 4,
		Idle: []float64{0, 0.125}, Churn: []float64{0.1, 0.2, 0.3, 1}}
}

// Validate names the flag that is not acceptable and what would be.
func (c RewireConfig) Validate() error {
	if err := within(span{"pods", c.Pods, 2, wiring.MaxPods}, span{"groups", c.Groups, 1, maxRewireGroups}, span{"steps", c.Steps, 0, maxRewireSteps}); err != nil {
		return err
	}
	switch {
	case c.SpinePorts < 2 || c.SpinePorts > wiring.MaxSpinePorts || c.SpinePorts%2 != 0:
		return invalid("spine-ports", fmt.Sprintf("an even number from 2 to %d", wiring.MaxSpinePorts), "%d is not", c.SpinePorts)
	case c.Pods*c.Groups > maxRewirePorts/c.SpinePorts:
		return invalid("pods", fmt.Sprintf("pods x groups x spine-ports of at most %d", maxRewirePorts), "more than that")
	case c.Length < 1 || c.Length > maxRewireLength:
		return invalid("length", fmt.Sprintf("1 to %d topologies", maxRewireLength), "%d is out of range", c.Length)
	}
	for _, list := range []struct {
		field, limit string
		shares       []float64
		least, most  float64
	}{
		{"idle", "shares from 0 to 0.9", c.Idle, 0, 0.9}, {"churn", "shares above 0 and up to 1", c.Churn, 1e-9, 1},
	} {
		if len(list.shares) == 0 {
			return invalid(list.field, list.limit, "none given")
		}
		for _, v := range list.shares {
			if !(v >= list.least && v <= list.most) {
				return invalid(list.field, list.limit, "%v is out of range", v)
			}
		}
	}
	return nil
}

// RewireRow is one method over one sequence. Circuits are links: those of the
// even half under interleaved wiring.
type RewireRow struct {
	Idle       float64  `json:"idle"`
	Churn      float64  `json:"churn"`
	Method     string   `json:"method"`
	Steps      int      `json:"steps,omitempty" table:",omitzero"` // of the search, each topology
	LTRR       float64  `json:"ltrr" table:"6"`                    // mean over the sequence; [CROSS] eq. 15
	LTRRWorst  float64  `json:"ltrr_worst" table:"6"`
	Asked      int      `json:"links_asked"`
	Realised   int      `json:"links_realised"`
	Circuits   int      `json:"circuits_before"` // that were there before each change, in all
	Kept       int      `json:"circuits_kept"`
	UpperBound int      `json:"upper_bound"`                 // of kept: sum over pairs of min(asked, there)
	Likeness   float64  `json:"likeness" table:"6"`          // mean cosine of configurations in succession; [CROSS] eq. 16
	MeanMS     *float64 `json:"ms_mean,omitempty" table:"3"` // one core, all groups one after the other
	WorstMS    *float64 `json:"ms_worst,omitempty" table:"3"`

	keptOfBefore float64 `table:"6" column:"kept_of_before"`
	keptOfBound  float64 `table:"6" column:"kept_of_bound"`
}

// RewireResult is the study.
type RewireResult struct {
	Study      string `json:"study"`
	Seed       uint64 `json:"seed"`
	Pods       int    `json:"pods"`
	Groups     int    `json:"groups"`
	SpinePorts int    `json:"spine_ports"`
	Ports      int    `json:"ports"`
	Length     int    `json:"length"`
	rowsOf[RewireRow]
	Report
}

// Rewire configures sequences of logical topologies by every method. Each
// changes its own configuration into the next.
func Rewire(cfg RewireConfig) (*RewireResult, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	res := &RewireResult{Study: "rewire", Seed: cfg.Seed, Pods: cfg.Pods, Groups: cfg.Groups, SpinePorts: cfg.SpinePorts,
		Ports: cfg.Pods * cfg.Groups * cfg.SpinePorts, Length: cfg.Length}
	of := len(cfg.Idle) * len(cfg.Churn) * cfg.Length * len(rewireMethods)
	done := 0
	cfg.report(0, of)
	for _, idle := range cfg.Idle {
		for _, churn := range cfg.Churn {
			s := newSequence(cfg, idle, churn)
			for range cfg.Length {
				s.advance()
				for _, m := range s.methods {
					if err := s.configure(m); err != nil {
						return nil, err
					}
					done++
					cfg.report(done, of)
				}
			}
			res.Rows = append(res.Rows, each(s.methods, func(m *rewireMethod) RewireRow { return m.mean(cfg) })...)
		}
	}
	res.describe()
	return res, nil
}

// sequence is one run of topologies through all methods.
type sequence struct {
	RewireConfig
	random  *detmath.Random
	steps   int
	number  uint64
	counts  [][]int32         // of a group: links of each pair of pods
	wanted  []wiring.Topology // of a group
	methods []*rewireMethod
}

// rewireMethod is where one method stands, and what it did so far, in all.
type rewireMethod struct {
	RewireRow
	halves []wiring.Half // of a group; under uniform wiring its wiring.Matchings
	took   []time.Duration
}

func (m *rewireMethod) uniform() bool { return m.Method == MethodGreedy || m.Method == MethodHelios }

func newSequence(cfg RewireConfig, idle, churn float64) *sequence {
	s := &sequence{RewireConfig: cfg, random: detmath.Stream(cfg.Seed, streamRewire)}
	s.first(idle)
	if s.steps = cfg.Steps; s.steps == 0 {
		s.steps = stepsPerLink * sumOf(s.wanted, wiring.Topology.Circuits)
	}
	for _, name := range rewireMethods {
		m := &rewireMethod{RewireRow: RewireRow{Idle: idle, Churn: churn, Method: name, LTRRWorst: 1}}
		if name == MethodSearch {
			m.Steps = s.steps
		}
		for _, t := range s.wanted {
			m.halves = append(m.halves, s.begin(m, t))
		}
		s.methods = append(s.methods, m)
	}
	return s
}

// begin is the first configuration of one group.
func (s *sequence) begin(m *rewireMethod, t wiring.Topology) wiring.Half {
	method, switches := MethodSplit, s.SpinePorts/2
	if m.uniform() {
		method, switches = m.Method, s.SpinePorts
	}
	h, err := s.next(method, wiring.Group{Topology: t, Old: wiring.NewHalf(t.Pods, switches)}, 0)
	if err != nil {
		panic("study: invariant: a drawn topology is within its ports: " + err.Error())
	}
	return h
}

// configure lets a method change its configuration into the wanted one.
func (s *sequence) configure(m *rewireMethod) (err error) {
	halves := make([]wiring.Half, len(m.halves))
	start := s.Clock.read()
	for h, t := range s.wanted {
		if halves[h], err = s.next(m.Method, wiring.Group{Topology: t, Old: m.halves[h]}, h); err != nil {
			return err
		}
	}
	if s.Clock != nil {
		m.took = append(m.took, s.Clock.read()-start)
	}
	s.judge(m, halves)
	m.halves = halves
	return nil
}

// next is the configuration of a group by a method.
func (s *sequence) next(method string, g wiring.Group, h int) (wiring.Half, error) {
	switch method {
	case MethodPublished:
		return wiring.CrossRewire(g)
	case MethodSplit:
		return g.Split()
	case MethodGreedy:
		return wiring.Half(wiring.GreedyUniform(g.Topology, wiring.Matchings(g.Old))), nil
	case MethodHelios:
		return wiring.Half(wiring.Helios(g.Topology, g.Old.Switches)), nil
	}
	return wiring.Rewire(g, wiring.Seed(s.Seed+s.number, h), wiring.Share(s.steps, s.Groups, h))
}

// judge adds up what a change realised and kept.
func (s *sequence) judge(m *rewireMethod, halves []wiring.Half) {
	var fit wiring.Fit
	before, after, kept := 0, 0, 0
	for h, t := range s.wanted {
		was, is := m.halves[h].Links(), halves[h].Links()
		if m.uniform() {
			was, is = wiring.Matchings(m.halves[h]).Links(), wiring.Matchings(halves[h]).Links()
			kept += wiring.Matchings(halves[h]).Kept(wiring.Matchings(m.halves[h]))
		} else {
			kept += halves[h].Kept(m.halves[h])
		}
		fit.Add(t, is)
		before += count(was)
		after += count(is)
		m.UpperBound += wiring.InCommon(t.Links, was)
	}
	m.Asked += fit.Asked
	m.Realised += fit.Realised
	m.Circuits += before
	m.Kept += kept
	m.LTRR += fit.LTRR()
	m.LTRRWorst = min(m.LTRRWorst, fit.LTRR())
	if before > 0 && after > 0 {
		m.Likeness += float64(kept) / math.Sqrt(float64(before)*float64(after))
	}
}

// count is the number of links; no pod here has links to itself.
func count(links []wiring.Link) int {
	return sumOf(links, func(l wiring.Link) int { return int(l.Count) })
}

func (m *rewireMethod) mean(cfg RewireConfig) RewireRow {
	m.LTRR /= float64(cfg.Length)
	m.Likeness /= float64(cfg.Length)
	m.keptOfBefore, m.keptOfBound = share(m.Kept, max(1, m.Circuits)), share(m.Kept, max(1, m.UpperBound))
	if n := len(m.took); n > 0 {
		sum := sumOf(m.took, func(d time.Duration) time.Duration { return d })
		m.MeanMS, m.WorstMS = new(milliseconds(sum)/float64(n)), new(milliseconds(slices.Max(m.took)))
	}
	return m.RewireRow
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// first draws the first topology: in every group each pod has the same number
// of ports in use, and these are joined in pairs at random.
func (s *sequence) first(idle float64) {
	used := s.SpinePorts - int(float64(float64(s.SpinePorts)*idle)+0.5)
	for range s.Groups {
		stubs := make([]int32, 0, s.Pods*used)
		for i := range s.Pods {
			for range used {
				stubs = append(stubs, int32(i))
			}
		}
		count := make([]int32, s.Pods*s.Pods)
		s.join(stubs, count)
		s.counts = append(s.counts, count)
		s.wanted = append(s.wanted, s.topology(count))
	}
}

// advance draws the next topology: a share of the links of every group is
// taken, and their ports joined anew.
func (s *sequence) advance() {
	s.number++
	for h, count := range s.counts {
		var links [][2]int32
		for _, l := range s.wanted[h].Links {
			for range l.Count {
				links = append(links, [2]int32{l.I, l.J})
			}
		}
		change := min(len(links), int(float64(float64(len(links))*s.methods[0].Churn)+0.5))
		stubs := make([]int32, 0, 2*change)
		for n := range change {
			m := n + s.random.Below(len(links)-n)
			links[n], links[m] = links[m], links[n]
			i, j := links[n][0], links[n][1]
			stubs = append(stubs, i, j)
			count[int(i)*s.Pods+int(j)]--
		}
		s.join(stubs, count)
		s.wanted[h] = s.topology(count)
	}
}

// join shuffles ports and joins each with the next. A pod is not joined with
// itself: such a pair changes partners with another until none is left, or,
// where there seems to be no way, stays idle.
func (s *sequence) join(stubs, count []int32) {
	for n := len(stubs) - 1; n > 0; n-- {
		m := s.random.Below(n + 1)
		stubs[n], stubs[m] = stubs[m], stubs[n]
	}
	stubs = stubs[:len(stubs)&^1]
	for n := 0; n < len(stubs); n += 2 {
		for tries := 0; stubs[n] == stubs[n+1] && tries < 1000; tries++ {
			m := 2 * s.random.Below(len(stubs)/2)
			if stubs[m] != stubs[n] && stubs[m+1] != stubs[n] {
				stubs[n+1], stubs[m+1] = stubs[m+1], stubs[n+1]
			}
		}
	}
	for n := 0; n < len(stubs); n += 2 {
		if i, j := min(stubs[n], stubs[n+1]), max(stubs[n], stubs[n+1]); i != j {
			count[int(i)*s.Pods+int(j)]++
		}
	}
}

func (s *sequence) topology(count []int32) wiring.Topology {
	var links []wiring.Link
	for n, c := range count {
		if c > 0 {
			links = append(links, wiring.Link{I: int32(n / s.Pods), J: int32(n % s.Pods), Count: c})
		}
	}
	t, err := wiring.NewTopology(s.Pods, links)
	if err != nil {
		panic("study: invariant: a drawn topology is one: " + err.Error())
	}
	return t
}

// What [CROSS] sec 6.2 prints for its largest core of 128 pods with 256 ports
// each, and that core here.
const (
	crossSeconds   = 19.37
	crossUniform   = 0.701
	crossPorts     = 32768
	crossShortfall = "within 4 %"
)

func (r *RewireResult) describe() {
	r.Title = fmt.Sprintf("Rewiring of a core, %d ports", r.Ports)
	r.note("%d pods, %d groups (spines of a pod), %d ports a spine: %d ports; %d topologies after the first", r.Pods, r.Groups, r.SpinePorts, r.Ports, r.Length)
	r.note("generator: in every group each pod has the same number of ports in use, joined in pairs at random, never a pod with itself; for the next topology a share of the links (churn) is drawn, taken, and their ports joined anew; seed %d", r.Seed)
	r.note("each method changes its own configuration into the next; the first is Euler walks, or the method itself on uniform wiring; Helios does not look at what is there")
	r.note("circuits are those of the even half under interleaved wiring, links under uniform; upper_bound is the sum over pairs of min(asked, there), which nobody reaches with all ports in use")
	r.note("greedy keeps all that can stay because it does not realise all that is asked")
	r.note("LTRR is a cosine ([CROSS] eq. 15) and cannot see a proportional shortfall: read it beside links realised of links asked")
	r.note("times are of one core, all groups one after the other; the search has a budget of steps (column steps), not of time, and keeps more with more")
	var idle, churn = r.Rows[0].Idle, r.Rows[0].Churn
	search, published, greedy := r.of(idle, churn, MethodSearch), r.of(idle, churn, MethodPublished), r.of(idle, churn, MethodGreedy)
	what := fmt.Sprintf("idle %s, churn %s", percent(idle, 1), percent(churn, 0))
	r.compare("LTRR of interleaved wiring, "+what, decimals(search.LTRR, 3), "1", "the same theorem; every topology is realised exactly")
	r.compare("LTRR of uniform wiring, "+what, decimals(greedy.LTRR, 3), decimals(crossUniform, 3),
		fmt.Sprintf("the paper's is the ILP with a relaxed demand at %d ports; a greedy that puts links first realises %s of those asked", crossPorts, percent(share(greedy.Realised, greedy.Asked), 1)))
	r.compare("published method: kept of what can stay, "+what, percent(published.keptOfBound, 1), crossShortfall+" of the ILP",
		fmt.Sprintf("the paper does not state its topologies; on these the search keeps %s", percent(search.keptOfBound, 1)))
	if r.Ports == crossPorts && published.MeanMS != nil {
		r.compare(fmt.Sprintf("published method: time at %d ports, %s", crossPorts, what), decimals(*published.MeanMS, 0)+" ms", fmt.Sprintf("up to %.2f s", crossSeconds),
			"the same steps with a flow solver of our own")
	}
}

// of is the row of a method in the sequence of an idle share and a churn, both
// as given; nil: there is none.
func (r *RewireResult) of(idle, churn float64, method string) *RewireRow {
	return r.row(func(x RewireRow) bool { return x.Idle == idle && x.Churn == churn && x.Method == method })
}

// Table is a row a method and sequence.
func (r *RewireResult) Table() Table {
	return tableOf(r.Rows, "idle", "churn", "method", "ltrr", "ltrr_worst", "links_realised", "links_asked",
		"circuits_kept", "circuits_before", "kept_of_before", "upper_bound", "kept_of_bound", "likeness", "steps", "ms_mean", "ms_worst")
}

// Charts are, for every idle share, what is kept and what is realised, and
// the times if they were taken.
func (r *RewireResult) Charts() (out []Chart) {
	panel := func(title, label string, percent bool, of func(RewireRow) (float64, bool)) {
		for _, row := range r.Rows {
			v, ok := of(row)
			if !ok {
				continue
			}
			c := panelOf(&out, fmt.Sprintf("%s, %s of ports idle", title, shortPercent(row.Idle)), Chart{XLabel: "links that the next topology changes", YLabel: label, YPercent: percent, YLog: !percent})
			c.bar(shortPercent(row.Churn), row.Method, v)
		}
	}
	panel("Circuits kept", "% of the upper bound", true, func(row RewireRow) (float64, bool) { return row.keptOfBound, true })
	panel("Links realised", "% of the links asked", true, func(row RewireRow) (float64, bool) { return share(row.Realised, max(1, row.Asked)), true })
	panel("Time to change the topology", "ms, mean", false, func(row RewireRow) (float64, bool) {
		if row.MeanMS == nil {
			return 0, false
		}
		return *row.MeanMS, true
	})
	return out
}

// shortPercent has a digit only where it says something.
func shortPercent(v float64) string {
	if n := int(float64(v*1000) + 0.5); n%10 != 0 {
		return percent(v, 1)
	}
	return percent(v, 0)
}
