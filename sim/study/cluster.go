package study

import (
	"fmt"
	"slices"
	"strings"

	"ringlight/proto"
)

// Model names an architecture as the interface does.
type Model string

const (
	BigSwitch Model = "big-switch"
	IHBDK2    Model = "infinitehbd-k2"
	IHBDK3    Model = "infinitehbd-k3"       // the paper's reading: any node may use -3 and +3 at once
	IHBDK3W   Model = "infinitehbd-k3-wired" // -3 and +3 of a node share a bundle
	NVL36     Model = "nvl-36"
	NVL72     Model = "nvl-72"
	NVL576    Model = "nvl-576"
	TPUv4     Model = "tpuv4"
	SiPRing   Model = "sip-ring"
)

// Models are all architectures, in the order of every table.
var Models = []Model{BigSwitch, IHBDK2, IHBDK3, IHBDK3W, NVL36, NVL72, NVL576, TPUv4, SiPRing}

// cubeGPUs is the static unit of TPUv4, 4 x 4 x 4 ([IHBD] sec 6.1).
const cubeGPUs = 64

// Limits of a cluster; chosen: ten times the largest study of the paper.
const (
	maxNodes       = 1_000_000
	maxGPUsPerNode = 64
	maxTP          = 65_536
)

// Size is a cluster and the group sizes looked at.
type Size struct {
	Nodes       int   `json:"nodes" flag:"nodes" usage:"nodes"`
	GPUsPerNode int   `json:"gpus_per_node" flag:"gpus" usage:"GPUs of a node"`
	Ring        bool  `json:"ring"` // the last node is a neighbour of the first
	TPs         []int `json:"tps" flag:"tp" usage:"GPUs of a group"`
}

// GPUsTotal of the cluster.
func (s Size) GPUsTotal() int { return s.Nodes * s.GPUsPerNode }

func invalid(field, limit, format string, args ...any) error {
	return &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
}

// span is what the value of a flag may be.
type span struct {
	flag          string
	value, lo, hi int
}

// within refuses the first flag that is out of its span.
func within(spans ...span) error {
	for _, s := range spans {
		if s.value < s.lo || s.value > s.hi {
			return invalid(s.flag, fmt.Sprintf("%d to %d", s.lo, s.hi), "%d is out of range", s.value)
		}
	}
	return nil
}

// someOf refuses what is none of all, or there twice.
func someOf(flag string, some, all []string) error {
	for i, s := range some {
		if !slices.Contains(all, s) || slices.Contains(some[:i], s) {
			return invalid(flag, "each of "+strings.Join(all, ",")+" at most once", "%q is not", s)
		}
	}
	return nil
}

// Validate names the flag that is not acceptable and what would be.
func (s Size) Validate() error {
	if err := within(span{"nodes", s.Nodes, 1, maxNodes}, span{"gpus", s.GPUsPerNode, 1, maxGPUsPerNode}); err != nil {
		return err
	}
	if len(s.TPs) == 0 {
		return invalid("tp", "at least one group size", "none given")
	}
	for i, tp := range s.TPs {
		switch {
		case tp < 1 || tp > maxTP || tp%s.GPUsPerNode != 0:
			return invalid("tp", fmt.Sprintf("a multiple of gpus (%d) up to %d", s.GPUsPerNode, maxTP), "%d does not fill whole nodes", tp)
		case slices.Contains(s.TPs[:i], tp):
			return invalid("tp", "each group size once", "%d is there twice", tp)
		}
	}
	return nil
}

// cluster is which nodes are faulty and how many groups each architecture
// still carries, kept up to date as nodes fail and come back.
type cluster struct {
	Size
	down   []bool
	place  []int // of each node in HBD order
	faulty []int // places, sorted
	arches []arch
}

// arch keeps the groups of one architecture.
type arch interface {
	turn(gpu, count int, down bool) // GPUs gpu .. gpu+count-1, of one node, fail or come back
	groups(tp int) int              // by index into TPs
}

func newCluster(s Size) *cluster {
	c := &cluster{Size: s, down: make([]bool, s.Nodes), place: packed(s.Nodes)}
	hop := func(k int, shared bool) arch {
		return &hopArch{khop: khop{nodes: s.Nodes, k: k, wrap: s.Ring, shared: shared}, cluster: c, stale: true}
	}
	total := s.GPUsTotal()
	c.arches = []arch{ // as Models
		newPool(total, total, s.TPs), hop(2, false), hop(3, false), hop(3, true),
		newPool(total, 36, s.TPs), newPool(total, 72, s.TPs), newPool(total, 576, s.TPs),
		newBlocks(total, cubeGPUs, s.TPs), newBlocks(total, 0, s.TPs),
	}
	return c
}

// flip turns a healthy node faulty or a faulty one healthy.
func (c *cluster) flip(node int) {
	place := c.place[node]
	at, found := slices.BinarySearch(c.faulty, place)
	if found {
		c.faulty = slices.Delete(c.faulty, at, at+1)
	} else {
		c.faulty = slices.Insert(c.faulty, at, place)
	}
	c.down[node] = !found
	for _, a := range c.arches {
		a.turn(node*c.GPUsPerNode, c.GPUsPerNode, !found)
	}
}

// groups of a model (by index into Models) and a TP (by index into TPs).
func (c *cluster) groups(model, tp int) int { return c.arches[model].groups(tp) }

// usable is the number of GPUs in whole groups.
func (c *cluster) usable(model, tp int) int { return c.groups(model, tp) * c.TPs[tp] }

// healthy is the number of GPUs of nodes that are not faulty.
func (c *cluster) healthy() int { return (c.Nodes - len(c.faulty)) * c.GPUsPerNode }

// wasted is the number of healthy GPUs in no group.
func (c *cluster) wasted(model, tp int) int { return c.healthy() - c.usable(model, tp) }

type hopArch struct {
	khop
	cluster *cluster
	stale   bool // a node has turned since the last walk
}

func (h *hopArch) turn(int, int, bool) { h.stale = true }

func (h *hopArch) groups(tp int) int {
	if h.stale {
		h.walk(h.cluster.faulty)
		h.stale = false
	}
	return h.khop.groups(h.cluster.TPs[tp] / h.cluster.GPUsPerNode)
}

// pool is units of some GPUs, any of which may form a group within a unit:
// NVL-x, and with one unit the big switch. The last unit may be smaller.
type pool struct {
	unit    int
	tps     []int
	healthy []int // of each unit
	count   []int // groups by TP
}

func newPool(total, unit int, tps []int) *pool {
	p := &pool{unit: unit, tps: tps, count: make([]int, len(tps))}
	for from := 0; from < total; from += unit {
		h := min(unit, total-from)
		p.healthy = append(p.healthy, h)
		for t, tp := range tps {
			p.count[t] += h / tp
		}
	}
	return p
}

// turn takes a node apart where it lies across two units.
func (p *pool) turn(gpu, count int, down bool) {
	for count > 0 {
		u := gpu / p.unit
		n := min(count, (u+1)*p.unit-gpu)
		before := p.healthy[u]
		if down {
			p.healthy[u] -= n
		} else {
			p.healthy[u] += n
		}
		for t, tp := range p.tps {
			p.count[t] += p.healthy[u]/tp - before/tp
		}
		gpu, count = gpu+n, count-n
	}
}

func (p *pool) groups(tp int) int { return p.count[tp] }

// blocks is groups at fixed places, each lost with any of its GPUs: SiP-Ring,
// whose places follow each other, and TPUv4, whose places do not leave a cube.
// Unlike the machine, this TPUv4 forms no group larger than a cube.
type blocks struct {
	cube  int // 0: as large as the group
	tps   []int
	hurt  [][]int // by TP and block: faulty GPUs
	count []int
}

func newBlocks(total, cube int, tps []int) *blocks {
	b := &blocks{cube: cube, tps: tps, hurt: make([][]int, len(tps)), count: make([]int, len(tps))}
	for t, tp := range tps {
		cube := b.size(t)
		per := cube / tp
		n := total/cube*per + total%cube/tp
		b.hurt[t] = make([]int, n)
		b.count[t] = n
	}
	return b
}

func (b *blocks) size(t int) int {
	if b.cube == 0 {
		return b.tps[t]
	}
	return b.cube
}

// block is the block that holds a GPU, or -1 where the cube has a rest.
func (b *blocks) block(t, gpu int) int {
	cube, tp := b.size(t), b.tps[t]
	per := cube / tp
	in := gpu % cube / tp
	n := gpu/cube*per + in
	if in >= per || n >= len(b.hurt[t]) {
		return -1
	}
	return n
}

func (b *blocks) turn(gpu, count int, down bool) {
	for t := range b.tps {
		for g := gpu; g < gpu+count; g++ {
			n := b.block(t, g)
			switch {
			case n < 0:
			case down:
				if b.hurt[t][n]++; b.hurt[t][n] == 1 {
					b.count[t]--
				}
			default:
				if b.hurt[t][n]--; b.hurt[t][n] == 0 {
					b.count[t]++
				}
			}
		}
	}
}

func (b *blocks) groups(tp int) int { return b.count[tp] }

// Waste is the healthy GPUs that one model leaves in no group.
type Waste struct {
	WastedGPUs int `json:"wasted_gpus"`
}

// WasteOf a given set of faulty nodes for the one group size of s, by model.
func WasteOf(s Size, faulty []int) (map[Model]Waste, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(s.TPs) != 1 {
		return nil, invalid("tp", "one group size", "%d given", len(s.TPs))
	}
	c := newCluster(s)
	for i, n := range faulty {
		if n < 0 || n >= s.Nodes {
			return nil, invalid(fmt.Sprintf("faulty[%d]", i), fmt.Sprintf("0 to %d", s.Nodes-1), "there is no node %d", n)
		}
		if c.down[n] {
			return nil, invalid(fmt.Sprintf("faulty[%d]", i), "each node once", "node %d is there twice", n)
		}
		c.flip(n)
	}
	out := map[Model]Waste{}
	for i, m := range Models {
		out[m] = Waste{c.wasted(i, 0)}
	}
	return out, nil
}
