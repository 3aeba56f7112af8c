package sched

import (
	"errors"
	"fmt"
	"math"

	"ringlight/planner/wiring"
)

// ErrNoRoom says that the idle servers cannot take the job.
var ErrNoRoom = errors.New("sched: no room")

// Limits of what is placed, all chosen: several times the largest clusters of
// today.
const (
	maxServers       = 1 << 16
	maxGPUsPerServer = 64
	maxDomain        = 1 << 20
)

// Job is the parallelism of a training job: GPUs in a tensor, expert,
// pipeline and data parallel domain, and what the last of these does.
type Job struct {
	TP, EP, PP, DP int
	Collective     Collective
}

// GPUs is the size of the job. Unlike [LUMOS] eq. 37, which leaves TP out.
func (j Job) GPUs() int { return j.TP * j.PP * j.DP }

// Validate checks the domains.
func (j Job) Validate() error {
	for _, d := range []struct {
		field string
		n     int
	}{{"tp", j.TP}, {"ep", j.EP}, {"pp", j.PP}, {"dp", j.DP}} {
		if d.n < 1 || d.n > maxDomain {
			return wrong(d.field, fmt.Sprintf("1..%d", maxDomain), "%d", d.n)
		}
	}
	if j.PP > maxDomain/j.TP || j.DP > maxDomain/(j.TP*j.PP) {
		return wrong("dp", fmt.Sprintf("tp * pp * dp of at most %d", maxDomain), "more than that")
	}
	if j.Collective >= collectives {
		return wrong("collective", fmt.Sprintf("0..%d", collectives-1), "%d", j.Collective)
	}
	return nil
}

func wrong(field, limit, format string, args ...any) error {
	return &wiring.Error{Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
}

// Cluster is what is idle: servers by pod and leaf.
type Cluster struct {
	GPUsPerServer int
	Idle          [][]int
}

// Validate checks the cluster.
func (c Cluster) Validate() error {
	if c.GPUsPerServer < 1 || c.GPUsPerServer > maxGPUsPerServer {
		return wrong("gpus_per_server", fmt.Sprintf("1..%d", maxGPUsPerServer), "%d", c.GPUsPerServer)
	}
	all := 0
	for p, pod := range c.Idle {
		for l, n := range pod {
			if n < 0 || n > maxServers-all {
				return wrong(fmt.Sprintf("idle[%d][%d]", p, l), fmt.Sprintf("0 and up, %d in all", maxServers), "%d", n)
			}
			all += n
		}
	}
	return nil
}

// Share is a number of servers at one leaf.
type Share struct{ Pod, Leaf, Servers int }

// domainServers is the number of servers that must be together in a pod:
// tensor and expert parallel domains are not cut ([LUMOS] eq. 39, 40).
//
// Unlike [LUMOS], which asks for no fewer servers of a pod than that, what a
// pod gives is a multiple of it: a rest would be a domain cut in two.
func (c Cluster) domainServers(j Job) int {
	gpus := (max(j.TP, j.EP) + j.TP - 1) / j.TP * j.TP
	return (gpus + c.GPUsPerServer - 1) / c.GPUsPerServer
}

// servers is the number of servers of the job: whole ones, and whole domains.
func (c Cluster) servers(j Job) int {
	n := (j.GPUs() + c.GPUsPerServer - 1) / c.GPUsPerServer
	d := c.domainServers(j)
	return (n + d - 1) / d * d
}

// Place chooses servers, locality first ([LUMOS] principle 1): in the one
// leaf that fits with the fewest idle servers, else in the one pod that does,
// else in the pods whose idle servers are fewest together (eq. 41), by a
// dynamic programme over pods and need. Within a pod leaves are chosen the
// same way. Shares come by pod and leaf.
func Place(c Cluster, j Job) ([]Share, error) {
	if err := errors.Join(c.Validate(), j.Validate()); err != nil {
		return nil, err
	}
	need, domain := c.servers(j), c.domainServers(j)
	if pod, leaf := c.tightestLeaf(need); pod >= 0 {
		return []Share{{pod, leaf, need}}, nil
	}
	idle := make([]int, len(c.Idle))
	for p, leaves := range c.Idle {
		for _, n := range leaves {
			idle[p] += n
		}
	}
	taken := make([]int, len(c.Idle))
	if p := tightest(idle, need); p >= 0 {
		taken[p] = need
	} else {
		room := make([]int, len(idle))
		for p, n := range idle {
			room[p] = n / domain
		}
		picked, ok := cover(room, idle, need/domain)
		if !ok {
			return nil, fmt.Errorf("%w: %d servers in domains of %d, pods can give %d", ErrNoRoom, need, domain, sum(room)*domain)
		}
		fill(taken, picked, room, need/domain)
		for p := range taken {
			taken[p] *= domain
		}
	}
	var out []Share
	for p, n := range taken {
		if n > 0 {
			out = append(out, c.inPod(p, n)...)
		}
	}
	return out, nil
}

func sum(of []int) int {
	n := 0
	for _, x := range of {
		n += x
	}
	return n
}

func (c Cluster) tightestLeaf(need int) (pod, leaf int) {
	pod, leaf = -1, -1
	for p, leaves := range c.Idle {
		if l := tightest(leaves, need); l >= 0 && (pod < 0 || leaves[l] < c.Idle[pod][leaf]) {
			pod, leaf = p, l
		}
	}
	return pod, leaf
}

// tightest is the first of those with the least room that is enough, or -1.
func tightest(room []int, need int) int {
	best := -1
	for n, r := range room {
		if r >= need && (best < 0 || r < room[best]) {
			best = n
		}
	}
	return best
}

// inPod assigns servers to the leaves of a pod.
func (c Cluster) inPod(p, need int) []Share {
	leaves := c.Idle[p]
	taken := make([]int, len(leaves))
	if l := tightest(leaves, need); l >= 0 {
		taken[l] = need
	} else {
		picked, _ := cover(leaves, leaves, need) // the pod has room, so has some choice
		fill(taken, picked, leaves, need)
	}
	var out []Share
	for l, n := range taken {
		if n > 0 {
			out = append(out, Share{p, l, n})
		}
	}
	return out
}

// cover is the knapsack: of all choices with room for the need, one of least
// cost in all, and of those one with the fewest parts.
func cover(room, cost []int, need int) (picked []bool, ok bool) {
	if sum(room) < need {
		return nil, false
	}
	type best struct{ cost, parts int }
	const none = math.MaxInt
	at := make([]best, need+1) // at[n]: the best choice with room for n
	for n := 1; n <= need; n++ {
		at[n] = best{none, none}
	}
	took := make([][]uint64, len(room)) // bit n: the best choice for n took this part
	for p, r := range room {
		took[p] = make([]uint64, need/64+1)
		if r == 0 {
			continue
		}
		for n := need; n > 0; n-- {
			from := at[max(0, n-r)]
			if from.cost == none {
				continue
			}
			if with := (best{from.cost + cost[p], from.parts + 1}); with.cost < at[n].cost || with.cost == at[n].cost && with.parts < at[n].parts {
				at[n] = with
				took[p][n/64] |= 1 << (n % 64)
			}
		}
	}
	picked = make([]bool, len(room))
	for p, n := len(room)-1, need; p >= 0 && n > 0; p-- {
		if took[p][n/64]>>(n%64)&1 != 0 {
			picked[p] = true
			n = max(0, n-room[p])
		}
	}
	return picked, true
}

// fill takes the need from the chosen ones, all that the smaller ones have and
// the rest from the largest, so that one at most stays half used. No choice
// of least cost has a part it could do without, so each gives something.
func fill(taken []int, picked []bool, room []int, need int) {
	largest := -1
	for p, is := range picked {
		if is && (largest < 0 || room[p] > room[largest]) {
			largest = p
		}
	}
	for p, is := range picked {
		if is && p != largest {
			taken[p] = room[p]
			need -= room[p]
		}
	}
	taken[largest] = need
}
