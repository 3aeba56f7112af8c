package fabric

import (
	"errors"
	"fmt"

	"ringlight/proto"
)

// Wiring says how the ports of a spine hang on the optical switches.
type Wiring string

const (
	Interleaved Wiring = "interleaved" // ports and switches in pairs, [LUMOS] sec 3.1
	Uniform     Wiring = "uniform"     // both fibres of a port on one switch
)

// Core is the optical layer between pods. The h-th spines of all pods hang on
// group h; a group has one switch for each port of a spine. Port p of a
// switch's side A is where pod p sends in, port p of side B where pod p
// receives; see planner/wiring for which port of the spine that is.
type Core struct {
	Pods           int    `json:"pods"`
	LeavesPerPod   int    `json:"leaves_per_pod"`
	SpinesPerPod   int    `json:"spines_per_pod"` // and groups
	SpinePorts     int    `json:"spine_ports"`    // to switches, and switches of a group
	SwitchPorts    int    `json:"switch_ports"`   // of each side of a switch
	LeafLinks      int    `json:"leaf_links"`     // from each leaf to each spine of its pod
	ServersPerLeaf int    `json:"servers_per_leaf"`
	GPUsPerServer  int    `json:"gpus_per_server"`
	Wiring         Wiring `json:"wiring"`
	IotaMille      int    `json:"iota_mille"` // of a leaf's links, at most so many thousandths move at once
	// Backup joins ports that no job needs to a mesh over all pods ([LUMOS] Fig.
	// 10). It gives way to any job.
	Backup bool `json:"backup,omitempty"`
}

// Limits of a core.
const (
	MaxPods           = 1024 // chosen: three times the ports of the largest switch on sale
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

// Groups is the number of groups of switches.
func (c *Core) Groups() int { return c.SpinesPerPod }

// Switches is the number of switches of all groups. Switch s is switch
// s % SpinePorts of group s / SpinePorts.
func (c *Core) Switches() int { return c.SpinesPerPod * c.SpinePorts }

// Leaves is the number of leaves of all pods. Leaf l is in pod
// l / LeavesPerPod.
func (c *Core) Leaves() int { return c.Pods * c.LeavesPerPod }

// SwitchID is the number under which a switch's agent speaks.
func (c *Core) SwitchID(group, k int) proto.NodeID {
	return proto.FirstSwitch + proto.NodeID(group*c.SpinePorts+k)
}

// GroupID is the ring number on whose topic the decisions of a group come.
func (c *Core) GroupID(group int) proto.RingID { return proto.FirstGroup + proto.RingID(group) }

// SwitchOf says which switch of which group a number is.
func (c *Core) SwitchOf(id proto.NodeID) (group, k int, ok bool) {
	if !id.IsSwitch() || int(id-proto.FirstSwitch) >= c.Switches() {
		return 0, 0, false
	}
	s := int(id - proto.FirstSwitch)
	return s / c.SpinePorts, s % c.SpinePorts, true
}

// Validate joins everything that is wrong; each error is an *Error.
func (c *Core) Validate() error {
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
