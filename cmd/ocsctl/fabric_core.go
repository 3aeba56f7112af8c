package main

import (
	"flag"

	"ringlight/planner/fabric"
)

// coreSize is what the flags of fabric new say about the core; 0 stands for
// what DefaultCore has.
type coreSize struct {
	fabric.Core
	wiring string
}

func coreFlags(fs *flag.FlagSet) *coreSize {
	c := new(coreSize)
	fs.IntVar(&c.Pods, "pods", 0, "pods joined by optical switches; 0: no such switches")
	fs.IntVar(&c.LeavesPerPod, "leaves", 0, "leaf switches of a pod, with -pods (default 4)")
	fs.IntVar(&c.SpinesPerPod, "spines", 0, "spine switches of a pod, and groups of optical switches, with -pods (default 2)")
	fs.IntVar(&c.SpinePorts, "spine-ports", 0, "ports of a spine to optical switches, and switches of a group, with -pods (default leaves * leaf-links)")
	fs.IntVar(&c.SwitchPorts, "switch-ports", 0, "ports on each side of an optical switch, with -pods (default pods, at least 8)")
	fs.IntVar(&c.LeafLinks, "leaf-links", 0, "links from each leaf to each spine, 1 or 2, with -pods (default 2)")
	fs.IntVar(&c.ServersPerLeaf, "servers", 0, "servers under a leaf, with -pods (default 4)")
	fs.IntVar(&c.GPUsPerServer, "gpus-per-server", 0, "GPUs of such a server, with -pods (default 4)")
	fs.StringVar(&c.wiring, "wiring", string(fabric.Interleaved), "interleaved or uniform, with -pods")
	fs.IntVar(&c.IotaMille, "iota-mille", 0, "thousandths of a leaf's links that may move at once, with -pods (default 250)")
	fs.BoolVar(&c.Backup, "backup", false, "join ports that no job needs to a mesh over all pods, with -pods")
	return c
}

// of is the core that the flags describe; nil: none. A flag of a core without
// -pods is an error.
func (c *coreSize) of(fs *flag.FlagSet) (*fabric.Core, error) {
	if !given(fs, "pods") {
		for _, name := range []string{"leaves", "spines", "spine-ports", "switch-ports", "leaf-links", "servers", "gpus-per-server", "wiring", "iota-mille", "backup"} {
			if given(fs, name) {
				return nil, wrongUsage(name, "with -pods", "-%s describes what is between pods", name)
			}
		}
		return nil, nil
	}
	out := fabric.DefaultCore(c.Pods)
	out.Wiring, out.Backup = fabric.Wiring(c.wiring), c.Backup
	for _, f := range []struct {
		name     string
		from, to *int
	}{
		{"leaves", &c.LeavesPerPod, &out.LeavesPerPod}, {"spines", &c.SpinesPerPod, &out.SpinesPerPod},
		{"switch-ports", &c.SwitchPorts, &out.SwitchPorts}, {"leaf-links", &c.LeafLinks, &out.LeafLinks},
		{"servers", &c.ServersPerLeaf, &out.ServersPerLeaf}, {"gpus-per-server", &c.GPUsPerServer, &out.GPUsPerServer},
		{"iota-mille", &c.IotaMille, &out.IotaMille},
	} {
		if given(fs, f.name) {
			*f.to = *f.from
		}
	}
	out.SpinePorts = out.LeavesPerPod * out.LeafLinks
	if out.Wiring == fabric.Interleaved {
		out.SpinePorts += out.SpinePorts % 2
	}
	if given(fs, "spine-ports") {
		out.SpinePorts = c.SpinePorts
	}
	return out, nil
}

// given reports whether a flag stands on the command line.
func given(fs *flag.FlagSet, name string) bool {
	found := false
	fs.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
