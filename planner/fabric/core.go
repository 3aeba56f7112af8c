package fabric

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ringlight/proto"
)

// Wiring says how the ports of a spine hang on the optical switches.
type Wiring string

const (
	Interleaved Wiring = "interleaved" // ports and switches in pairs, [LUMOS] sec 3.1
	Uniform     Wiring = "uniform"     // both fibres of a port on one switch
)

// Tier is a kind of device that sends packets on.
type Tier string

const (
	TierLeaves  Tier = "leaves"
	TierSpines  Tier = "spines"
	TierServers Tier = "servers" // joined directly
)

// Confirms: a device - leaf3, pod0-spine1, spine2, server5 - must be known to hold its
// routes.
func (c *Core) Confirms(device string) bool {
	return slices.ContainsFunc(c.Routers, func(t Tier) bool {
		switch t {
		case TierLeaves:
			return strings.HasPrefix(device, "leaf")
		case TierServers:
			return strings.HasPrefix(device, "server")
		}
		return strings.HasPrefix(device, "spine") || strings.HasPrefix(device, "pod")
	})
}

// validateRouters says which of the tiers the core does not have.
func (c *Core) validateRouters() error {
	has := []Tier{TierLeaves, TierSpines}
	if c.Spineless {
		has = has[:1]
	}
	if c.Kind == KindDirect {
		has = []Tier{TierServers}
	}
	for i, t := range c.Routers {
		if !slices.Contains(has, t) || slices.Contains(c.Routers[:i], t) {
			return wrong(fmt.Sprintf("core.routers[%d]", i), fmt.Sprintf("each of %v once", has), "%.40q", string(t))
		}
	}
	return nil
}

// Core is the network above the servers, of one of three kinds.
//
// Of pods: optical switches join pods. The h-th spines of all pods hang on
// group h; a group has one switch for each port of a spine. Port p of a
// switch's side A is where pod p sends in, port p of side B where pod p
// receives; see planner/wiring for which port of the spine that is.
//
// Of leaves and spines: see LeafSpine. Of servers joined directly: see Direct.
type Core struct {
	Kind           Kind   `json:"kind,omitempty"` // empty: pods
	Pods           int    `json:"pods,omitempty"`
	LeavesPerPod   int    `json:"leaves_per_pod,omitempty"`
	SpinesPerPod   int    `json:"spines_per_pod,omitempty"` // and groups
	SpinePorts     int    `json:"spine_ports,omitempty"`    // to switches, and switches of a group
	SwitchPorts    int    `json:"switch_ports,omitempty"`   // of each side of a switch; not of pods and 0: as many as have fibres
	LeafLinks      int    `json:"leaf_links,omitempty"`     // from each leaf to each spine of its pod
	ServersPerLeaf int    `json:"servers_per_leaf,omitempty"`
	GPUsPerServer  int    `json:"gpus_per_server"`
	Wiring         Wiring `json:"wiring,omitempty"`
	// Spineless: leaves hang on the switches in place of spines ([CROSS] sec 7). A pod is
	// one leaf, and what would be a spine's ports are as many uplinks of it.
	Spineless bool `json:"spineless,omitempty"`
	IotaMille int  `json:"iota_mille,omitempty"` // of a leaf's links, at most so many thousandths move at once
	// Backup joins ports that no job needs to a mesh over all pods ([LUMOS] Fig.
	// 10). It gives way to any job.
	Backup bool `json:"backup,omitempty"`
	// Routers are who must be known to hold a job's routes before it is ready:
	// leaves and spines, or servers joined directly. None: routes are files alone.
	Routers []Tier `json:"routers,omitempty"`
	// Drain has links taken away when their routers have drained them. Nil: at once.
	Drain *Drain `json:"drain,omitempty"`

	*LeafSpine // nil: of another kind
	*Direct    // nil: of another kind
}

// Limits of a core.
const (
	MaxPods           = 1024 // chosen: near twice the ports of the largest switch on sale
	MaxLeavesPerPod   = 256
	MaxSpines         = 256
	MaxSpinePorts     = 1024
	MaxSwitches       = 16384 // chosen: one agent each, and one planner
	MaxServersPerLeaf = 256
	MaxGPUsPerServer  = 64
)

// DefaultCore is what fabric new writes for so many pods where no flag says
// otherwise.
func DefaultCore(pods int) *Core {
	return &Core{Pods: pods, LeavesPerPod: 4, SpinesPerPod: 2, SpinePorts: 8, SwitchPorts: max(pods, 8), LeafLinks: 2,
		ServersPerLeaf: 4, GPUsPerServer: 4, Wiring: Interleaved, IotaMille: 250}
}

// String is the core in a line.
func (c *Core) String() string {
	if d := c.Direct; d != nil {
		return fmt.Sprintf("%d servers x %d GPUs, %d interfaces each, %d layers", d.Servers, c.GPUsPerServer, d.Degree, d.Degree)
	}
	if l := c.LeafSpine; l != nil {
		between := fmt.Sprintf("%d switches", l.Switches)
		if l.Switches == 0 {
			between = fmt.Sprintf("%d fixed links a pair", l.FixedLinks())
		}
		return fmt.Sprintf("%d leaves x %d servers x %d GPUs, %d spines, %s, queue %s", l.Leaves, l.GPUsPerLeaf/c.GPUsPerServer, c.GPUsPerServer, l.Spines, between, c.Policy())
	}
	if c.Spineless {
		return fmt.Sprintf("%d leaves x %d servers x %d GPUs, %d groups of %d switches, %s", c.Pods, c.ServersPerLeaf, c.GPUsPerServer, c.Groups(), c.SpinePorts, c.Wiring)
	}
	return fmt.Sprintf("%d pods x %d leaves x %d servers x %d GPUs, %d groups of %d switches, %s", c.Pods, c.LeavesPerPod,
		c.ServersPerLeaf, c.GPUsPerServer, c.Groups(), c.SpinePorts, c.Wiring)
}

// Groups is the number of groups of switches.
func (c *Core) Groups() int {
	if c.Direct != nil {
		return 1
	}
	if c.LeafSpine != nil {
		return min(1, c.LeafSpine.Switches)
	}
	return c.SpinesPerPod
}

// GroupSwitches is the number of switches of a group.
func (c *Core) GroupSwitches() int {
	if c.Direct != nil {
		return c.Direct.Degree + c.Direct.Servers
	}
	if c.LeafSpine != nil {
		return c.LeafSpine.Switches
	}
	return c.SpinePorts
}

// Switches is the number of switches of all groups. Switch s is switch
// s % GroupSwitches of group s / GroupSwitches.
func (c *Core) Switches() int { return c.Groups() * c.GroupSwitches() }

// Paired: switches share a cross-connect map two by two, the odd one the other
// way round. Else each has both ways of its links, or, where servers are joined
// directly, each circuit is one way.
func (c *Core) Paired() bool { return c.Wiring == Interleaved }

// Ports is how many ports of each side of a switch have fibres.
func (c *Core) Ports() int {
	if d := c.Direct; d != nil {
		return 1 + d.Port(d.Servers-1, 1)
	}
	if c.LeafSpine != nil {
		return c.LeafSpine.ports()
	}
	return c.Pods
}

// SwitchSize is how many ports each side of a switch has.
func (c *Core) SwitchSize() int { return max(c.SwitchPorts, c.Ports()) }

// Leaves is the number of leaves of all pods. Leaf l is in pod
// l / LeavesPerPod.
func (c *Core) Leaves() int {
	if c.LeafSpine != nil {
		return c.LeafSpine.Leaves
	}
	return c.Pods * c.LeavesPerPod
}

// Servers is the number of servers under all leaves.
func (c *Core) Servers() int {
	if c.Direct != nil {
		return c.Direct.Servers
	}
	if c.LeafSpine != nil {
		return c.LeafSpine.Leaves * c.LeafServers()
	}
	return c.Leaves() * c.ServersPerLeaf
}

// LeafServers is the number of servers under each leaf; 0: there are no leaves.
// Server s of leaf l has the number l * LeafServers + s among all.
func (c *Core) LeafServers() int {
	switch {
	case c.Direct != nil:
		return 0
	case c.LeafSpine != nil:
		return c.GPUsPerLeaf / c.GPUsPerServer
	}
	return c.ServersPerLeaf
}

// GroupID is the ring number on whose topic the decisions of a group come.
func (c *Core) GroupID(group int) proto.RingID { return proto.FirstGroup + proto.RingID(group) }

// Validate joins everything that is wrong; each error is an *Error.
func (c *Core) Validate() error {
	return errors.Join(c.validateSizes(), c.validateRouters(), c.Drain.validate())
}

// validateSizes is about all that has a size.
func (c *Core) validateSizes() error {
	if c.Kind != "" && c.Kind != KindPods && c.Kind != KindLeafSpine && c.Kind != KindDirect {
		return wrong("core.kind", "pods, leaf-spine or direct", "%q", c.Kind)
	}
	if c.Direct != nil && c.Kind != KindDirect {
		return wrong("core.kind", "direct with servers or degree", "%q", c.Kind)
	}
	if c.LeafSpine != nil && c.Kind == KindDirect {
		return wrong("core.kind", "leaf-spine with leaves, spines, gpus_per_leaf, switches, any_to_any or queue", "%q", c.Kind)
	}
	if c.Kind == KindDirect {
		return c.validateDirect()
	}
	if c.Kind == KindLeafSpine {
		return c.validateLeafSpine()
	}
	if c.LeafSpine != nil {
		return wrong("core.kind", "leaf-spine with leaves, spines, gpus_per_leaf, switches, any_to_any or queue", "%q", c.Kind)
	}
	var errs []error
	ok := true
	span := func(field string, v, lo, hi int) {
		if v < lo || v > hi {
			errs = append(errs, wrong("core."+field, fmt.Sprintf("%d to %d", lo, hi), "%d", v))
			ok = false
		}
	}
	span("pods", c.Pods, 2, MaxPods)
	span("leaves_per_pod", c.LeavesPerPod, 1, MaxLeavesPerPod)
	span("spines_per_pod", c.SpinesPerPod, 1, MaxSpines)
	span("spine_ports", c.SpinePorts, 1, MaxSpinePorts)
	span("leaf_links", c.LeafLinks, 1, 2)
	span("servers_per_leaf", c.ServersPerLeaf, 1, MaxServersPerLeaf)
	span("gpus_per_server", c.GPUsPerServer, 1, MaxGPUsPerServer)
	span("iota_mille", c.IotaMille, 1, 1000)
	if c.Wiring != Interleaved && c.Wiring != Uniform {
		errs = append(errs, wrong("core.wiring", "interleaved or uniform", "%q", c.Wiring))
		ok = false
	}
	if ok {
		errs = append(errs, c.validatePorts()...)
	}
	return errors.Join(errs...)
}

// validatePorts checks what one size asks of another.
func (c *Core) validatePorts() []error {
	var errs []error
	if most := min(proto.MaxCircuits, 1<<16); c.SwitchPorts < c.Pods || c.SwitchPorts > most {
		errs = append(errs, wrong("core.switch_ports", fmt.Sprintf("%d, one a pod, to %d", c.Pods, most), "%d", c.SwitchPorts))
	}
	if c.Wiring == Interleaved && c.SpinePorts%2 != 0 {
		errs = append(errs, wrong("core.spine_ports", "an even number", "%d ports cannot be paired, and the last could not be mirrored", c.SpinePorts))
	}
	if c.Spineless && (c.LeavesPerPod != 1 || c.SpinePorts != c.LeafLinks) {
		errs = append(errs, wrong("core.spineless", "leaves_per_pod 1, and spine_ports as many as leaf_links", "%d leaves, %d ports and %d links", c.LeavesPerPod, c.SpinePorts, c.LeafLinks))
	}
	if c.Backup && c.Wiring == Uniform {
		errs = append(errs, wrong("core.backup", "interleaved wiring", "a backup mesh under uniform wiring"))
	}
	if n := c.Switches(); n > MaxSwitches {
		errs = append(errs, wrong("core.spine_ports", fmt.Sprintf("at most %d switches in all", MaxSwitches), "%d groups of %d", c.SpinesPerPod, c.SpinePorts))
	}
	if down := c.LeavesPerPod * c.LeafLinks; c.SpinePorts < down {
		errs = append(errs, wrong("core.spine_ports", fmt.Sprintf("at least leaves_per_pod * leaf_links = %d", down),
			"%d ports cannot carry what the leaves send up", c.SpinePorts))
	}
	return errs
}
