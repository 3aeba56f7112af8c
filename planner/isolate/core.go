package isolate

import (
	"fmt"
	"slices"
)

// Error is an input that cannot be accepted, in the caller's terms.
type Error struct {
	Field  string // the part of the input, such as leaf[3][0]
	Limit  string // what would have been right
	Reason string
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason + ": want " + e.Limit }

func wrong(field, limit, format string, args ...any) error {
	return &Error{field, limit, fmt.Sprintf(format, args...)}
}

// The sizes that are accepted, all chosen: several times the largest core of
// the literature (64 leaves of 32 GPUs).
const (
	MaxLeaves   = 1024
	MaxSpines   = 1024
	MaxSwitches = 1024
	MaxServer   = 1024    // GPUs of a server
	MaxPorts    = 1024    // of one leaf or spine at one switch, or links of a pair
	MaxServers  = 1 << 16 // of all leaves
	MaxUnits    = 1 << 20 // ports or links in all
)

// Core is the shape of a leaf-spine core. It has Links or Optics; with neither
// no job owns links: the network is one that all share, or is never short.
type Core struct {
	GPUsPerServer int
	Servers       []int   // of each leaf
	Links         [][]int // of each leaf and spine, without optics
	Optics        *Optics
}

// Optics is optical switches between leaves and spines: how many ports of each
// leaf and of each spine every switch has.
type Optics struct {
	AnyToAny bool    // a switch may also join two leaves
	Leaf     [][]int // by leaf and switch
	Spine    [][]int // by spine and switch
}

// Clos is a core without optics: every leaf has as many uplinks as GPUs, assigned
// evenly to the spines.
func Clos(leaves, gpusPerLeaf, gpusPerServer, spines int) Core {
	c := regular(leaves, gpusPerLeaf, gpusPerServer)
	c.Links = fill(leaves, spines, gpusPerLeaf/spines)
	return c
}

// Optical is a core with optics: every switch has as many ports of every leaf,
// and of every spine.
func Optical(leaves, gpusPerLeaf, gpusPerServer, spines, switches int) Core {
	c := regular(leaves, gpusPerLeaf, gpusPerServer)
	c.Optics = &Optics{
		AnyToAny: true,
		Leaf:     fill(leaves, switches, gpusPerLeaf/switches),
		Spine:    fill(spines, switches, leaves*gpusPerLeaf/(spines*switches)),
	}
	return c
}

func regular(leaves, gpusPerLeaf, gpusPerServer int) Core {
	return Core{GPUsPerServer: gpusPerServer, Servers: slices.Repeat([]int{gpusPerLeaf / gpusPerServer}, leaves)}
}

func fill(rows, columns, value int) [][]int {
	m := make([][]int, rows)
	for r := range m {
		m[r] = slices.Repeat([]int{value}, columns)
	}
	return m
}

// Leaves is the number of leaves.
func (c Core) Leaves() int { return len(c.Servers) }

// Spines is the number of spines.
func (c Core) Spines() int {
	switch {
	case c.Optics != nil:
		return len(c.Optics.Spine)
	case len(c.Links) > 0:
		return len(c.Links[0])
	}
	return 0
}

// Switches is the number of optical switches.
func (c Core) Switches() int {
	if c.Optics == nil || len(c.Optics.Leaf) == 0 {
		return 0
	}
	return len(c.Optics.Leaf[0])
}

// Validate checks the shape.
func (c Core) Validate() error {
	if c.GPUsPerServer < 1 || c.GPUsPerServer > MaxServer {
		return wrong("gpus_per_server", fmt.Sprintf("1 to %d", MaxServer), "%d", c.GPUsPerServer)
	}
	if len(c.Servers) < 1 || len(c.Servers) > MaxLeaves {
		return wrong("servers", fmt.Sprintf("1 to %d leaves", MaxLeaves), "%d leaves", len(c.Servers))
	}
	all := 0
	for n, s := range c.Servers {
		if s < 0 || s > MaxServers-all {
			return wrong(fmt.Sprintf("servers[%d]", n), fmt.Sprintf("0 or more, of all leaves at most %d", MaxServers), "%d", s)
		}
		all += s
	}
	if c.Links != nil && c.Optics != nil {
		return wrong("free_links", "links or optical switches", "both are there")
	}
	if c.Links != nil {
		return matrix("free_links", "leaf", c.Links, c.Leaves(), "spine", c.Spines(), MaxSpines)
	}
	if c.Optics == nil {
		return nil
	}
	if len(c.Optics.Spine) < 1 || len(c.Optics.Spine) > MaxSpines {
		return wrong("ocs.spine", fmt.Sprintf("1 to %d spines", MaxSpines), "%d spines", len(c.Optics.Spine))
	}
	if err := matrix("ocs.leaf", "leaf", c.Optics.Leaf, c.Leaves(), "switch", c.Switches(), MaxSwitches); err != nil {
		return err
	}
	return matrix("ocs.spine", "spine", c.Optics.Spine, c.Spines(), "switch", c.Switches(), MaxSwitches)
}

// matrix checks a matrix of ports or links.
func matrix(field, row string, m [][]int, rows int, column string, columns, most int) error {
	if columns < 1 || columns > most {
		return wrong(field+"[0]", fmt.Sprintf("numbers for 1 to %d of a %s", most, column), "%d", columns)
	}
	if len(m) > rows {
		return wrong(fmt.Sprintf("%s[%d]", field, rows), fmt.Sprintf("%d rows, one a %s", rows, row), "unknown %s", row)
	}
	if len(m) < rows {
		return wrong(field, fmt.Sprintf("%d rows, one a %s", rows, row), "%d rows", len(m))
	}
	units := 0
	for r, list := range m {
		if len(list) != columns {
			return wrong(fmt.Sprintf("%s[%d]", field, r), fmt.Sprintf("%d numbers, one a %s", columns, column), "asymmetric: %d numbers", len(list))
		}
		for c, n := range list {
			if n < 0 || n > min(MaxPorts, MaxUnits-units) {
				return wrong(fmt.Sprintf("%s[%d][%d]", field, r, c), fmt.Sprintf("0 to %d, at most %d in all", MaxPorts, MaxUnits), "%d", n)
			}
			units += n
		}
	}
	return nil
}

// servers is how many whole servers a job of more than a server's GPUs gets.
func (c Core) servers(gpus int) int { return (gpus + c.GPUsPerServer - 1) / c.GPUsPerServer }

// Check says whether some l x s makes a job of so many GPUs on this core, were
// it empty.
func (c Core) Check(gpus int) error {
	if gpus < 1 || gpus > MaxServers*MaxServer {
		return wrong("gpus_total", fmt.Sprintf("1 to %d", MaxServers*MaxServer), "%d", gpus)
	}
	need := c.servers(gpus)
	if gpus <= c.GPUsPerServer || c.Links == nil {
		return nil
	}
	for _, n := range c.Servers {
		if need <= n {
			return nil
		}
	}
	if len(c.shapes(need*c.GPUsPerServer)) == 0 {
		most := c.Leaves() * (c.Spines() / c.GPUsPerServer)
		next := min(need+1, most)
		for next < most && len(c.shapes(next*c.GPUsPerServer)) == 0 {
			next++
		}
		return wrong("gpus_total", fmt.Sprintf("the servers of one leaf, or l x s GPUs of l <= %d leaves and s <= %d spines, s a multiple of %d, as %d", c.Leaves(), c.Spines(), c.GPUsPerServer, next*c.GPUsPerServer), "no virtual Clos has %d GPUs", need*c.GPUsPerServer)
	}
	return nil
}

// shape is a size of a virtual Clos.
type shape struct{ l, s int }

// shapes gives every virtual Clos of so many GPUs, fewest leaves first: T
// divides s. Without optics a leaf holds one virtual leaf at most and a spine
// one virtual spine.
func (c Core) shapes(gpus int) []shape {
	var out []shape
	for s := gpus / 2 / c.GPUsPerServer * c.GPUsPerServer; s > 0; s -= c.GPUsPerServer {
		if gpus%s != 0 || c.Links != nil && (s > c.Spines() || gpus/s > c.Leaves()) {
			continue
		}
		out = append(out, shape{gpus / s, s})
	}
	return out
}
