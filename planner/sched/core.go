package sched

import (
	"errors"
	"fmt"

	"ringlight/planner/wiring"
)

// Core is what jobs run on: the leaves, and the servers below each.
type Core struct {
	wiring.Leaves
	GPUsPerServer int
	Servers       []int // of each leaf
	Gone          []int // of each leaf: links to spines that it has not any more; nil: none
}

// Validate checks the description.
func (c Core) Validate() error {
	if err := c.Leaves.Validate(); err != nil {
		return err
	}
	if len(c.Servers) != len(c.PodOf) {
		return wrong("servers", fmt.Sprintf("one entry a leaf, %d", len(c.PodOf)), "%d entries", len(c.Servers))
	}
	return c.idle(nil).Validate()
}

// Placed is a job with its servers and with its links between leaves.
type Placed struct {
	Job
	Shares []Share // by pod and leaf; leaves are numbered within the pod
	Wants  []Want
	Links  []int // what each want gets
}

// idle is what jobs leave of the core, by pod and leaf of the pod.
func (c Core) idle(running []Placed) Cluster {
	idle := Cluster{GPUsPerServer: c.GPUsPerServer, Idle: make([][]int, c.Pods)}
	for leaf, p := range c.PodOf {
		idle.Idle[p] = append(idle.Idle[p], c.Servers[leaf])
	}
	for _, job := range running {
		for _, s := range job.Shares {
			idle.Idle[s.Pod][s.Leaf] -= s.Servers
		}
	}
	return idle
}

// LeafNumbers gives the number of every leaf of a pod: element n is the leaf
// that Share.Leaf calls n.
func (c Core) LeafNumbers() [][]int {
	out := make([][]int, c.Pods)
	for leaf, p := range c.PodOf {
		out[p] = append(out[p], leaf)
	}
	return out
}

// Need is the paths that all jobs together have between leaves: what
// wiring.Leaves.SpreadNeed and Respread take.
func (c Core) Need(jobs []Placed) (wiring.Topology, error) {
	var links []wiring.Link
	for _, job := range jobs {
		for n, w := range job.Wants {
			links = append(links, wiring.Link{I: int32(w.A), J: int32(w.B), Count: int32(job.Links[n])})
		}
	}
	need, err := wiring.Sum(len(c.PodOf), links)
	if err != nil {
		return need, err
	}
	return need, c.CheckNeed(need)
}

// Admit finds servers and links for a job beside those that run ([LUMOS] 4.2,
// A.12). Where a leaf cannot carry the job's links even shared, the job is
// placed again without that leaf. ErrNoRoom: it has to wait.
func (c Core) Admit(running []Placed, j Job) (Placed, error) {
	if err := errors.Join(c.Validate(), j.Validate()); err != nil {
		return Placed{}, err
	}
	need, err := c.Need(running)
	if err != nil {
		return Placed{}, err
	}
	used := need.Ports()
	for leaf, n := range c.Gone {
		used[leaf] += n
	}
	idle := c.idle(running)
	numbers := c.LeafNumbers()
	for {
		shares, err := Place(idle, j)
		if err != nil {
			return Placed{}, err
		}
		wants, err := c.Wants(j, shares)
		if err != nil {
			return Placed{}, err
		}
		links, err := Fit(wants, used, c.Ports())
		if err == nil {
			return Placed{j, shares, wants, links}, nil
		}
		var full *fullLeaf
		if !errors.As(err, &full) {
			return Placed{}, err
		}
		for _, s := range shares {
			if numbers[s.Pod][s.Leaf] == full.Leaf {
				idle.Idle[s.Pod][s.Leaf] = 0
			}
		}
	}
}

// Wants is the links that a job at these servers wants between leaves of
// different pods: Elements, then Need. Of domains of several servers each
// server sends to its like.
func (c Core) Wants(j Job, shares []Share) ([]Want, error) {
	leafOf, err := c.Elements(j, shares)
	if err != nil {
		return nil, err
	}
	return needOf(j.Collective, leafOf, c.PodOf, min(j.TP, c.GPUsPerServer))
}

// Seat is where a part of a tensor parallel domain is: a server, counted from 0
// in the order of the shares, and the first of its GPUs.
type Seat struct{ Leaf, Server, GPU int }

// Elements gives the leaf of each part of the domains, as Seats has them.
func (c Core) Elements(j Job, shares []Share) ([][][]int, error) {
	seats, err := c.Seats(j, shares)
	if err != nil {
		return nil, err
	}
	out := make([][][]int, len(seats))
	for k, part := range seats {
		for _, row := range part {
			leaves := make([]int, len(row))
			for n, s := range row {
				leaves[n] = s.Leaf
			}
			out[k] = append(out[k], leaves)
		}
	}
	return out, nil
}

// Seats arranges a job's tensor parallel domains at these servers ([LUMOS]
// A.6): by part of the domain, pipeline stage and replica. A domain has one
// part, within a server, or is of several servers, each a part. Domains take the
// servers of their pod in order of leaves. Where there is one stage, replicas
// come in the order of its ring (eq. 42), so that a launcher which numbers them so has the
// ring in the order of ranks; no collective wants other links by that.
func (c Core) Seats(j Job, shares []Share) ([][][]Seat, error) {
	perServer, parts := 1, 1
	switch {
	case j.TP < 1 || c.GPUsPerServer%j.TP != 0 && j.TP%c.GPUsPerServer != 0:
		return nil, wrong("tp", fmt.Sprintf("a divisor or a multiple of the %d GPUs of a server", c.GPUsPerServer), "%d", j.TP)
	case j.TP <= c.GPUsPerServer:
		perServer = c.GPUsPerServer / j.TP
	default:
		parts = j.TP / c.GPUsPerServer
	}
	numbers := c.LeafNumbers()
	at := make([][]Seat, c.Pods) // of a pod: its servers, each as often as it has domains
	elements := make([]int, c.Pods)
	server := 0
	for n, s := range shares {
		if s.Pod < 0 || s.Pod >= c.Pods || s.Leaf < 0 || s.Leaf >= len(numbers[s.Pod]) || s.Servers < 1 || s.Servers > maxServers {
			return nil, wrong(fmt.Sprintf("shares[%d]", n), "a known leaf and servers", "%+v", s)
		}
		for i := range s.Servers * perServer {
			at[s.Pod] = append(at[s.Pod], Seat{numbers[s.Pod][s.Leaf], server + i/perServer, i % perServer * j.TP})
		}
		server += s.Servers
		elements[s.Pod] = len(at[s.Pod]) / parts
	}
	trim(elements, j.PP*j.DP)
	matrix, err := arrange(elements, j.PP, j.DP)
	if err != nil {
		return nil, err
	}
	out := make([][][]Seat, parts)
	for k := range out {
		out[k] = make([][]Seat, j.PP)
	}
	for r, row := range matrix {
		for _, p := range row {
			for k := range parts {
				out[k][r] = append(out[k][r], at[p][k])
			}
			at[p] = at[p][parts:]
		}
	}
	if j.PP == 1 {
		ring := c.RingOf(out[0][0])
		for k := range out {
			row := make([]Seat, len(ring))
			for n, from := range ring {
				row[n] = out[k][0][from]
			}
			out[k][0] = row
		}
	}
	return out, nil
}

// RingOf is the order in which replicas at these seats form a ring: out through
// the pods and back ([LUMOS] eq. 42).
func (c Core) RingOf(row []Seat) []int {
	pods := make([]int32, len(row))
	for n, s := range row {
		pods[n] = c.PodOf[s.Leaf]
	}
	return RingOrder(pods)
}

// trim takes what is more than so many from the largest: servers are whole,
// so some domains may be over.
func trim(elements []int, all int) {
	for over := sum(elements) - all; over > 0; {
		most := 0
		for p, n := range elements {
			if n > elements[most] {
				most = p
			}
		}
		less := min(over, elements[most])
		elements[most] -= less
		over -= less
	}
}
