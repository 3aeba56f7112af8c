package fabric

import (
	"fmt"
	"slices"

	"ringlight/proto"
)

// GPU is what a host calls the GPU at one place of its node, counted as light
// goes through it.
type GPU struct {
	Index  int    `json:"index"`
	PCI    string `json:"pci,omitempty"`    // its address, 0000:9b:00.0
	Switch string `json:"switch,omitempty"` // of the PCI switch above it; absent: it hangs at the root
	NUMA   *int   `json:"numa,omitempty"`   // node of the CPU above that
}

// maxGPUIndex of a host. chosen: more than any takes.
const maxGPUIndex = 255

// GPUsOf are the GPUs of a node, left to right; nil: they are numbered so, and
// nothing more is known of them.
func (f *Fabric) GPUsOf(id proto.NodeID) []GPU {
	switch {
	case len(f.GPUTable) == 1:
		return f.GPUTable[0]
	case int(id) < len(f.GPUTable):
		return f.GPUTable[id]
	}
	return nil
}

// GPUIndex is what a host calls a GPU of a node.
func (f *Fabric) GPUIndex(id proto.NodeID, place int) int {
	if row := f.GPUsOf(id); place < len(row) {
		return row[place].Index
	}
	return place
}

// validateGPUs checks that each GPU of a host is there once.
func (f *Fabric) validateGPUs() (errs []error) {
	if n := len(f.GPUTable); n > 1 && n != f.Nodes {
		return []error{wrong("gpu_table", fmt.Sprintf("one row for every node, or %d rows", f.Nodes), "%d", n)}
	}
	for i, row := range f.GPUTable {
		if len(row) != 0 && len(row) != f.GPUsPerNode {
			errs = append(errs, wrong(fmt.Sprintf("gpu_table[%d]", i), fmt.Sprintf("gpus_per_node (%d) GPUs, or none: numbered as light goes", f.GPUsPerNode), "%d", len(row)))
		}
		for k, g := range row {
			bad := func(key, limit, format string, args ...any) {
				errs = append(errs, wrong(fmt.Sprintf("gpu_table[%d][%d].%s", i, k, key), limit, format, args...))
			}
			switch before := row[:k]; {
			case g.Index < 0 || g.Index > maxGPUIndex:
				bad("index", fmt.Sprintf("0 to %d", maxGPUIndex), "%d", g.Index)
			case slices.ContainsFunc(before, func(o GPU) bool { return o.Index == g.Index }):
				bad("index", "each index of a host once", "%d", g.Index)
			case g.PCI != "" && !isBusID(g.PCI):
				bad("pci", "an address such as 0000:9b:00.0", "%.40q", g.PCI)
			case g.PCI != "" && slices.ContainsFunc(before, func(o GPU) bool { return o.PCI == g.PCI }):
				bad("pci", "each address of a host once", "%s", g.PCI)
			case g.Switch != "" && !isBusID(g.Switch):
				bad("switch", "an address such as 0000:98:00.0", "%.40q", g.Switch)
			case g.NUMA != nil && (*g.NUMA < 0 || *g.NUMA > 1023):
				bad("numa", "0 to 1023", "%d", *g.NUMA)
			}
		}
		if len(errs) >= maxErrors {
			break
		}
	}
	return errs
}

// isBusID: domain, bus, device and function of PCI, in lower case.
func isBusID(s string) bool {
	if len(s) != len("0000:00:00.0") {
		return false
	}
	for i, c := range []byte(s) {
		switch i {
		case 4, 7:
			if c != ':' {
				return false
			}
		case 10:
			if c != '.' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}
