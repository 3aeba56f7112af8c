package main

import (
	"flag"
	"slices"
	"strings"

	"ringlight/planner/fabric"
)

// coreSize is what the flags of fabric new say about the core; what is not
// given is as DefaultCore or DefaultLeafSpine has it.
type coreSize struct {
	kind, wiring, queue string
	pods                fabric.Core
	leaves              fabric.LeafSpine
	direct              fabric.Direct
}

// Flags of a core, by the kinds of it.
var (
	podFlags    = []string{"spine-ports", "switch-ports", "leaf-links", "wiring", "iota-mille", "backup"}
	leafFlags   = []string{"gpus-per-leaf", "switches", "any-to-any", "queue", "move-ms"}
	directFlags = []string{"degree"}
	packetFlags = []string{"leaves", "spines"} // of pods, and of leaves and spines
	serverFlags = []string{"servers"}          // of pods, and of servers joined directly
)

// otherFlags are those that a kind has not.
var otherFlags = map[fabric.Kind][]string{
	"":                   slices.Concat(podFlags, leafFlags, directFlags, packetFlags, serverFlags, []string{"gpus-per-server"}),
	fabric.KindPods:      slices.Concat(leafFlags, directFlags),
	fabric.KindLeafSpine: slices.Concat(podFlags, directFlags, serverFlags, []string{"pods"}),
	fabric.KindDirect:    slices.Concat(podFlags, leafFlags, packetFlags, []string{"pods"}),
}

func coreFlags(fs *flag.FlagSet) *coreSize {
	c := new(coreSize)
	p, l := &c.pods, &c.leaves
	fs.StringVar(&c.kind, "core", "", "kind of core: pods, as with -pods; leaf-spine, where each job is alone on its links; or direct, servers joined without packet switches")
	fs.IntVar(&p.Pods, "pods", 0, "pods joined by optical switches; 0: no such switches")
	fs.IntVar(&p.LeavesPerPod, "leaves", 0, "leaf switches of a pod, with -pods (default 4), or of a leaf-spine core (default 16)")
	fs.IntVar(&p.SpinesPerPod, "spines", 0, "spine switches of a pod, and groups of optical switches, with -pods (default 2), or of a leaf-spine core (default 8)")
	fs.IntVar(&p.SpinePorts, "spine-ports", 0, "ports of a spine to optical switches, and switches of a group, with -pods (default leaves * leaf-links)")
	fs.IntVar(&p.SwitchPorts, "switch-ports", 0, "ports on each side of an optical switch, with -pods (default pods, at least 8)")
	fs.IntVar(&p.LeafLinks, "leaf-links", 0, "links from each leaf to each spine, 1 or 2, with -pods (default 2)")
	fs.IntVar(&p.ServersPerLeaf, "servers", 0, "servers under a leaf, with -pods (default 4), or all with -core direct (default 32)")
	fs.IntVar(&c.direct.Degree, "degree", 0, "interfaces of a server, each on an optical switch of its own, with -core direct (default 4)")
	fs.IntVar(&p.GPUsPerServer, "gpus-per-server", 0, "GPUs of such a server (default 4)")
	fs.StringVar(&c.wiring, "wiring", string(fabric.Interleaved), "interleaved or uniform, with -pods")
	fs.IntVar(&p.IotaMille, "iota-mille", 0, "thousandths of a leaf's links that may move at once, with -pods (default 250)")
	fs.BoolVar(&p.Backup, "backup", false, "join ports that no job needs to a mesh over all pods, with -pods")
	fs.IntVar(&l.GPUsPerLeaf, "gpus-per-leaf", 0, "GPUs under a leaf, and its uplinks, with -core leaf-spine (default 32)")
	fs.IntVar(&l.Switches, "switches", 0, "optical switches, each with ports of every leaf and spine, with -core leaf-spine (default 32); 0: fixed links")
	fs.BoolVar(&l.AnyToAny, "any-to-any", true, "such a switch may also join two leaves, with -core leaf-spine")
	fs.StringVar(&c.queue, "queue", string(fabric.FIFO), "which waiting job is next: fifo, fewest, edf, easy or conservative, with -core leaf-spine")
	fs.IntVar(&l.MoveMillis, "move-ms", 0, "how long a job is dark that is moved so that another finds room, with -core leaf-spine; 0: none is moved")
	return c
}

// of is the core that the flags describe; nil: none. A flag of a core without
// its kind is an error.
func (c *coreSize) of(fs *flag.FlagSet) (*fabric.Core, error) {
	kind := fabric.Kind(c.kind)
	if otherFlags[kind] == nil {
		return nil, wrongUsage("core", "pods, leaf-spine or direct", "%q", c.kind)
	}
	if kind == "" && given(fs, "pods") {
		kind = fabric.KindPods
	}
	if kind == fabric.KindPods && !given(fs, "pods") {
		return nil, wrongUsage("pods", "2 and up, with -core pods", "absent")
	}
	for _, name := range otherFlags[kind] {
		if given(fs, name) {
			return nil, wrongUsage(name, "with "+kindsOf(name), "-%s describes another core", name)
		}
	}
	switch kind {
	case fabric.KindPods:
		return c.ofPods(fs), nil
	case fabric.KindLeafSpine:
		return c.ofLeaves(fs), nil
	case fabric.KindDirect:
		out := fabric.DefaultDirect()
		override(fs, []set{{"servers", &c.pods.ServersPerLeaf, &out.Direct.Servers}, {"degree", &c.direct.Degree, &out.Degree},
			{"gpus-per-server", &c.pods.GPUsPerServer, &out.GPUsPerServer}})
		return out, nil
	}
	return nil, nil
}

// kindsOf are the flags of the kinds of core that have a flag.
func kindsOf(name string) string {
	var out []string
	for _, k := range []fabric.Kind{fabric.KindPods, fabric.KindLeafSpine, fabric.KindDirect} {
		if !slices.Contains(otherFlags[k], name) {
			out = append(out, "-core "+string(k))
		}
	}
	return strings.Join(out, " or ")
}

// set is a size and the flag that overrides it.
type set struct {
	name     string
	from, to *int
}

func override(fs *flag.FlagSet, sizes []set) {
	for _, f := range sizes {
		if given(fs, f.name) {
			*f.to = *f.from
		}
	}
}

func (c *coreSize) ofPods(fs *flag.FlagSet) *fabric.Core {
	p, out := &c.pods, fabric.DefaultCore(c.pods.Pods)
	out.Wiring, out.Backup = fabric.Wiring(c.wiring), p.Backup
	override(fs, []set{
		{"leaves", &p.LeavesPerPod, &out.LeavesPerPod}, {"spines", &p.SpinesPerPod, &out.SpinesPerPod},
		{"switch-ports", &p.SwitchPorts, &out.SwitchPorts}, {"leaf-links", &p.LeafLinks, &out.LeafLinks},
		{"servers", &p.ServersPerLeaf, &out.ServersPerLeaf}, {"gpus-per-server", &p.GPUsPerServer, &out.GPUsPerServer},
		{"iota-mille", &p.IotaMille, &out.IotaMille},
	})
	out.SpinePorts = out.LeavesPerPod * out.LeafLinks
	if out.Wiring == fabric.Interleaved {
		out.SpinePorts += out.SpinePorts % 2
	}
	override(fs, []set{{"spine-ports", &p.SpinePorts, &out.SpinePorts}})
	return out
}

func (c *coreSize) ofLeaves(fs *flag.FlagSet) *fabric.Core {
	out := fabric.DefaultLeafSpine()
	override(fs, []set{
		{"leaves", &c.pods.LeavesPerPod, &out.LeafSpine.Leaves}, {"spines", &c.pods.SpinesPerPod, &out.Spines},
		{"gpus-per-server", &c.pods.GPUsPerServer, &out.GPUsPerServer}, {"gpus-per-leaf", &c.leaves.GPUsPerLeaf, &out.GPUsPerLeaf},
		{"switches", &c.leaves.Switches, &out.LeafSpine.Switches}, {"move-ms", &c.leaves.MoveMillis, &out.MoveMillis},
	})
	out.Queue = fabric.Queue(c.queue)
	out.AnyToAny = c.leaves.AnyToAny && (out.LeafSpine.Switches > 0 || given(fs, "any-to-any"))
	return out
}

// given reports whether a flag stands on the command line.
func given(fs *flag.FlagSet, name string) bool {
	found := false
	fs.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
