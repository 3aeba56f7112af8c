package topo

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// lasts is an iteration link by link, over two of them: when each link that is new
// may begin to move, and when all are there.
func lasts(steps []Step, options []*Option, plan []int, dark int64) int64 {
	now, begun, ends := int64(0), int64(0), []int64{}
	n := len(steps)
	for k := range 2 * n {
		i, before := k%n, (k+n-1)%n
		o, old := options[plan[i]], options[plan[before]]
		start := now + steps[i].Gap
		if k > 0 {
			for at, count := range old.links {
				switch from := now; {
				case o.links[at] >= count:
				case old.busy[steps[before].Phase][at]:
					start = max(start, from+dark)
				default:
					start = max(start, begun+dark)
				}
			}
		}
		begun, now = start, start+o.takes[steps[i].Phase]
		if i == n-1 {
			ends = append(ends, now)
		}
	}
	return ends[1] - ends[0]
}

func TestScheduleIsTheShortestOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	moved, stayed, hidden := 0, 0, 0
	for range 300 {
		const servers, degree = 5, 2
		var phases [][]Demand
		for range 1 + r.IntN(3) {
			var demands []Demand
			for range 1 + r.IntN(6) {
				from := r.IntN(servers)
				demands = append(demands, Demand{from, (from + 1 + r.IntN(servers-1)) % servers, 1 + r.Int64N(1000)})
			}
			phases = append(phases, demands)
		}
		nanos := func(bytes int64) int64 { return bytes }
		var options []*Option
		for _, demands := range phases {
			options = append(options, NewOption(servers, Reconfigure(servers, degree, demands), phases, nanos))
		}
		options = append(options, NewOption(servers, Reconfigure(servers, degree, slices.Concat(phases...)), phases, nanos))
		var steps []Step
		for range 1 + r.IntN(4) {
			steps = append(steps, Step{r.Int64N(400), r.IntN(len(phases))})
		}
		dark := []int64{0, 50, 300, 3000}[r.IntN(4)]
		got, ok := Schedule(steps, options, dark)
		if !ok {
			t.Fatal("links that Reconfigure makes reach all")
		}
		best, one := int64(-1), int64(-1)
		plan := make([]int, len(steps))
		for code := range pow(len(options), len(steps)) {
			for i := range plan {
				plan[i] = code % len(options)
				code /= len(options)
			}
			took := lasts(steps, options, plan, dark)
			if best < 0 || took < best {
				best = took
			}
			if slices.Min(plan) == slices.Max(plan) && (one < 0 || took < one) {
				one = took
			}
		}
		if claimed := lasts(steps, options, got.Option, dark); got.Nanos != best || claimed != best {
			t.Fatalf("%v dark %d: plan %v takes %d, said %d; the shortest is %d", steps, dark, got.Option, claimed, got.Nanos, best)
		}
		if got.Nanos > one {
			t.Fatalf("%d, one topology %d", got.Nanos, one)
		}
		switch {
		case got.Changes == 0:
			stayed++
		case got.Dark < int64(got.Changes)*dark:
			hidden++
			fallthrough
		default:
			moved++
		}
	}
	if moved < 30 || stayed < 30 || hidden < 30 {
		t.Fatalf("%d moved, %d of them behind something, %d stayed: the draw shows too little", moved, hidden, stayed)
	}
}

func pow(n, k int) int {
	p := 1
	for range k {
		p *= n
	}
	return p
}

// Demands of any shape are as many matchings as a server has peers at most: they
// are coloured here, by chains, and the turns of InTurns hold them.
func TestTurnsHoldAllPairs(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		n, degree := 3+r.IntN(20), 1+r.IntN(6)
		var demands []Demand
		for a := range n {
			for b := range n {
				if a != b && r.IntN(3) > 0 {
					demands = append(demands, Demand{a, b, 7})
				}
			}
		}
		o := InTurns(n, degree, [][]Demand{demands}, func(b int64) int64 { return b }, 100)
		colours := o.turns[0] * degree
		out, in := table(n, colours), table(n, colours)
		for _, d := range demands {
			a, b := slices.Index(out[d.From], -1), slices.Index(in[d.To], -1)
			if a < 0 || b < 0 {
				t.Fatalf("%d servers: %d turns of %d links do not hold what %d sends", n, o.turns[0], degree, d.From)
			}
			// The chain of both colours from the receiver on changes them; a is free there then.
			var chain [][3]int
			for to := d.To; in[to][a] >= 0; {
				from := in[to][a]
				chain = append(chain, [3]int{from, to, a})
				if to = out[from][b]; to < 0 {
					break
				}
				chain = append(chain, [3]int{from, to, b})
			}
			for _, x := range chain {
				out[x[0]][x[2]], in[x[1]][x[2]] = -1, -1
			}
			for _, x := range chain {
				c := a + b - x[2]
				out[x[0]][c], in[x[1]][c] = x[1], x[0]
			}
			out[d.From][a], in[d.To][a] = d.To, d.From
		}
		if want := int64(o.turns[0]) * (7 + 100); o.takes[0] != want {
			t.Fatalf("takes %d, want %d", o.takes[0], want)
		}
	}
}

func table(n, k int) [][]int {
	out := make([][]int, n)
	for i := range out {
		out[i] = slices.Repeat([]int{-1}, k)
	}
	return out
}
