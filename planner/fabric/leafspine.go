package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ringlight/proto"
)

// Kind says what a core is made of.
type Kind string

const (
	KindPods      Kind = "pods"       // also when absent
	KindLeafSpine Kind = "leaf-spine" // [VCLOS] sec 4
)

// Queue says which of the jobs that wait is given a place next.
type Queue string

const (
	FIFO         Queue = "fifo"         // in order of arrival, the head blocks; also when absent
	Fewest       Queue = "fewest"       // fewest GPUs first
	EDF          Queue = "edf"          // earliest deadline first
	EASY         Queue = "easy"         // the head has a reservation, others start beside it
	Conservative Queue = "conservative" // each has a reservation
)

var queues = []Queue{FIFO, Fewest, EDF, EASY, Conservative}

// LeafSpine is a core of leaves and spines. A leaf has as many uplinks as GPUs
// below it. With circuit switches, each has GPUsPerLeaf/Switches ports of every
// leaf and Leaves*GPUsPerLeaf/(Spines*Switches) of every spine, and both ways
// of every link: where something sends in on side A, it receives on side B.
// Leaves come first, in order of their numbers, then spines, and behind these what
// has come later: see rowPort. Without, each leaf has GPUsPerLeaf/Spines fixed
// links to each spine.
//
// A job is alone on what it has: see planner/isolate.
type LeafSpine struct {
	Leaves      int   `json:"leaves"`
	Spines      int   `json:"spines"`
	GPUsPerLeaf int   `json:"gpus_per_leaf"`        // and uplinks of a leaf
	Switches    int   `json:"switches"`             // optical ones; 0: fixed links
	AnyToAny    bool  `json:"any_to_any,omitempty"` // a switch may also join two leaves
	Queue       Queue `json:"queue,omitempty"`      // empty: fifo
	// MoveMillis is how long a job is dark that is moved so that the head of the
	// queue finds room; only a job that may pause so long is. 0: none is.
	MoveMillis int `json:"move_ms,omitempty"`
	// FirstSpinePort is where on every switch the ports of spines begin, and
	// PortsPerSpine how many each spine has there. 0: behind all leaves, and as many
	// as all spines need for the uplinks of all leaves. A core that grows says both.
	FirstSpinePort int `json:"spine_port,omitempty"`
	PortsPerSpine  int `json:"ports_per_spine,omitempty"`
}

// DefaultLeafSpine is the geometry of the public simulator of [VCLOS]: 16
// leaves of 32 GPUs, 8 spines of 64 ports, 32 switches of 32 ports.
func DefaultLeafSpine() *Core {
	return &Core{Kind: KindLeafSpine, GPUsPerServer: 4,
		LeafSpine: &LeafSpine{Leaves: 16, Spines: 8, GPUsPerLeaf: 32, Switches: 32, AnyToAny: true, Queue: FIFO}}
}

// LeafPorts is the number of ports that every leaf has on a switch.
func (l *LeafSpine) LeafPorts() int {
	if l.Switches == 0 {
		return 0
	}
	return l.GPUsPerLeaf / l.Switches
}

// SpinePortsPerSwitch is the number of ports that every spine has on a switch.
func (l *LeafSpine) SpinePortsPerSwitch() int {
	if l.Switches == 0 || l.PortsPerSpine > 0 {
		return l.PortsPerSpine
	}
	return l.Leaves * l.GPUsPerLeaf / (l.Spines * l.Switches)
}

// firstSpine is where the ports of spines begin.
func (l *LeafSpine) firstSpine() int { return cmp.Or(l.FirstSpinePort, l.Leaves*l.LeafPorts()) }

// FixedLinks is the number of links between each leaf and each spine where
// there are no circuit switches.
func (l *LeafSpine) FixedLinks() int {
	if l.Switches > 0 {
		return 0
	}
	return l.GPUsPerLeaf / l.Spines
}

func (l *LeafSpine) ports() int {
	if l.Switches == 0 {
		return 0
	}
	return 1 + max(l.LeafPort(l.Leaves-1, l.LeafPorts()-1), l.SpinePort(l.Spines-1, l.SpinePortsPerSwitch()-1))
}

// LeafPort is the i-th port of a leaf on every switch.
func (l *LeafSpine) LeafPort(leaf, i int) int {
	return rowPort(l.firstSpine(), leaf*l.LeafPorts()+i, 0)
}

// SpinePort is the i-th port of a spine on every switch.
func (l *LeafSpine) SpinePort(spine, i int) int {
	return rowPort(l.firstSpine(), spine*l.SpinePortsPerSwitch()+i, 1)
}

// EndAt says whose port a port of a switch is: of neither, no fibre hangs there.
func (l *LeafSpine) EndAt(port int) (leaf, spine, i int) {
	switch k, second := rowOf(l.firstSpine(), port); {
	case second == 0 && k < l.Leaves*l.LeafPorts():
		return k / l.LeafPorts(), -1, k % l.LeafPorts()
	case second == 1 && k < l.Spines*l.SpinePortsPerSwitch():
		return -1, k / l.SpinePortsPerSwitch(), k % l.SpinePortsPerSwitch()
	}
	return -1, -1, 0
}

// rowPort is the k-th port of one of two rows on a switch: the second begins at a port,
// and behind as many of each they alternate. So both go on at their end.
func rowPort(first, k, second int) int {
	if k < first {
		return k + second*first
	}
	return 2*k + second
}

// rowOf is where a port is in them.
func rowOf(first, port int) (k, second int) {
	if port < 2*first {
		return port % first, port / first
	}
	return port / 2, port % 2
}

// Policy is the queue's, fifo where none is named.
func (l *LeafSpine) Policy() Queue {
	return cmp.Or(l.Queue, FIFO)
}

// Limits of a core of leaves and spines, all chosen: far above the 64 leaves
// of 32 GPUs of [VCLOS].
const (
	MaxLeaves      = 1024
	MaxLeafSpines  = 1024
	MaxGPUsPerLeaf = 1024
	MaxLeafGPUs    = 1 << 16
	maxMoveMillis  = 24 * 3600 * 1000
)

func (c *Core) validateLeafSpine() error {
	l := c.LeafSpine
	if l == nil {
		return wrong("core.leaves", fmt.Sprintf("1 to %d", MaxLeaves), "absent")
	}
	var errs []error
	for _, f := range []struct {
		field     string
		v, lo, hi int
	}{
		{"leaves", l.Leaves, 1, MaxLeaves}, {"spines", l.Spines, 1, MaxLeafSpines}, {"gpus_per_leaf", l.GPUsPerLeaf, 1, MaxGPUsPerLeaf},
		{"switches", l.Switches, 0, MaxGPUsPerLeaf}, {"gpus_per_server", c.GPUsPerServer, 1, MaxGPUsPerServer},
		{"move_ms", l.MoveMillis, 0, maxMoveMillis}, {"spine_port", l.FirstSpinePort, 0, proto.MaxCircuits},
		{"ports_per_spine", l.PortsPerSpine, 0, proto.MaxCircuits},
	} {
		if f.v < f.lo || f.v > f.hi {
			errs = append(errs, wrong("core."+f.field, fmt.Sprintf("%d to %d", f.lo, f.hi), "%d", f.v))
		}
	}
	errs = append(errs, c.onlyOfPods()...)
	if l.Queue != "" && !slices.Contains(queues, l.Queue) {
		errs = append(errs, wrong("core.queue", "fifo, fewest, edf, easy or conservative", "%q", l.Queue))
	}
	if len(errs) == 0 {
		errs = c.validateUplinks()
	}
	return errors.Join(errs...)
}

// onlyOfPods refuses what describes a core of pods in one of another kind.
func (c *Core) onlyOfPods() (errs []error) {
	for _, f := range []struct {
		field string
		v     bool
	}{
		{"pods", c.Pods != 0}, {"leaves_per_pod", c.LeavesPerPod != 0}, {"spines_per_pod", c.SpinesPerPod != 0}, {"spine_ports", c.SpinePorts != 0},
		{"leaf_links", c.LeafLinks != 0}, {"servers_per_leaf", c.ServersPerLeaf != 0},
		{"wiring", c.Wiring != ""}, {"iota_mille", c.IotaMille != 0}, {"backup", c.Backup}, {"spineless", c.Spineless},
	} {
		if f.v {
			errs = append(errs, wrong("core."+f.field, "only of kind pods", "given"))
		}
	}
	return errs
}

// validateSwitchPorts: a switch has a port for all that hangs on it.
func (c *Core) validateSwitchPorts() []error {
	if most := min(proto.MaxCircuits, 1<<16); c.SwitchPorts != 0 && (c.SwitchPorts < c.Ports() || c.SwitchPorts > most) {
		return []error{wrong("core.switch_ports", fmt.Sprintf("%d, for all fibres, to %d", c.Ports(), most), "%d", c.SwitchPorts)}
	}
	return nil
}

// validateUplinks checks what one size of leaves and spines asks of another.
func (c *Core) validateUplinks() []error {
	l := c.LeafSpine
	var errs []error
	if n := l.Leaves * l.GPUsPerLeaf; n > MaxLeafGPUs {
		errs = append(errs, wrong("core.leaves", fmt.Sprintf("at most %d GPUs in all", MaxLeafGPUs), "%d leaves of %d", l.Leaves, l.GPUsPerLeaf))
	}
	if l.GPUsPerLeaf%c.GPUsPerServer != 0 {
		errs = append(errs, wrong("core.gpus_per_leaf", fmt.Sprintf("a multiple of gpus_per_server (%d)", c.GPUsPerServer), "%d", l.GPUsPerLeaf))
	}
	switch up := l.Leaves * l.GPUsPerLeaf; {
	case l.Switches == 0:
		if l.GPUsPerLeaf%l.Spines != 0 {
			errs = append(errs, wrong("core.spines", fmt.Sprintf("a divisor of gpus_per_leaf (%d), or switches", l.GPUsPerLeaf), "%d", l.Spines))
		}
		if l.AnyToAny {
			errs = append(errs, wrong("core.any_to_any", "only with switches", "true"))
		}
		for key, n := range map[string]int{"spine_port": l.FirstSpinePort, "ports_per_spine": l.PortsPerSpine, "switch_ports": c.SwitchPorts} { // any order: joined
			if n > 0 {
				errs = append(errs, wrong("core."+key, "only with switches", "%d", n))
			}
		}
	case l.GPUsPerLeaf%l.Switches != 0:
		errs = append(errs, wrong("core.switches", fmt.Sprintf("a divisor of gpus_per_leaf (%d), so that each has ports of every leaf", l.GPUsPerLeaf), "%d", l.Switches))
	case l.PortsPerSpine == 0 && up%(l.Spines*l.Switches) != 0:
		errs = append(errs, wrong("core.spines", fmt.Sprintf("with %d switches, a divisor of the %d uplinks of each", l.Switches, up/l.Switches), "%d", l.Spines))
	case l.ports() > proto.MaxCircuits:
		errs = append(errs, wrong("core.switches", fmt.Sprintf("at most %d ports of a switch", proto.MaxCircuits), "%d switches need %d each", l.Switches, l.ports()))
	default:
		errs = append(errs, c.validateSwitchPorts()...)
	}
	return errs
}
