package fabric

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// flagsOf are the flags of each kind of core; gpus-per-server is of all.
var flagsOf = map[Kind][]string{
	KindPods:      {"pods", "leaves", "spines", "servers", "spine-ports", "switch-ports", "leaf-links", "wiring", "spineless", "iota-mille", "backup"},
	KindLeafSpine: {"leaves", "spines", "gpus-per-leaf", "switches", "any-to-any", "queue", "move-ms"},
	KindDirect:    {"servers", "degree"},
}

// CoreFlags describe a core, its kind by the flag that is named; after they are parsed,
// the result is what they say: nil for pods of which there are none. k and ls are what
// there is of pods, and of leaves and spines, without flags.
func CoreFlags(fs *flag.FlagSet, named string, k, ls *Core) func() (*Core, error) {
	d := DefaultDirect()
	kind := fs.String(named, string(KindPods), "kind of core: pods; leaf-spine, where each job is alone on its links; or direct, servers joined without packet switches")
	fs.IntVar(&k.Pods, "pods", k.Pods, "pods joined by optical switches; 0: no such switches")
	fs.IntVar(&k.LeavesPerPod, "leaves", k.LeavesPerPod, fmt.Sprintf("leaf switches of a pod; of a leaf-spine core %d", ls.LeafSpine.Leaves))
	fs.IntVar(&k.SpinesPerPod, "spines", k.SpinesPerPod, fmt.Sprintf("spine switches of a pod, and groups of optical switches; of a leaf-spine core %d", ls.Spines))
	fs.IntVar(&k.SpinePorts, "spine-ports", 0, "ports of a spine, and optical switches of a group; 0: as many as leaves ask for")
	fs.IntVar(&k.SwitchPorts, "switch-ports", 0, "ports on each side of an optical switch between pods; 0: as many as pods, and 8 at least")
	fs.IntVar(&k.LeafLinks, "leaf-links", k.LeafLinks, "links from each leaf of a pod to each spine, 1 or 2")
	fs.IntVar(&k.ServersPerLeaf, "servers", k.ServersPerLeaf, fmt.Sprintf("servers under a leaf; of a direct core all, %d", d.Direct.Servers))
	fs.IntVar(&k.GPUsPerServer, "gpus-per-server", k.GPUsPerServer, fmt.Sprintf("GPUs of a server; of a leaf-spine core %d, of a direct one %d", ls.GPUsPerServer, d.GPUsPerServer))
	fs.IntVar(&d.Degree, "degree", d.Degree, "interfaces of a server, each on an optical switch of its own; of a direct core")
	fs.IntVar(&k.IotaMille, "iota-mille", k.IotaMille, "thousandths of a leaf's links that may move at once, between pods")
	wiring := fs.String("wiring", string(k.Wiring), "interleaved or uniform, between pods")
	fs.BoolVar(&k.Spineless, "spineless", k.Spineless, "leaves hang on the optical switches in place of spines, each a pod of its own: -leaves 1")
	fs.BoolVar(&k.Backup, "backup", false, "join ports that no job needs to a mesh over all pods")
	fs.IntVar(&ls.GPUsPerLeaf, "gpus-per-leaf", ls.GPUsPerLeaf, "GPUs under a leaf, and its uplinks; of a leaf-spine core")
	fs.IntVar(&ls.LeafSpine.Switches, "switches", ls.LeafSpine.Switches, "optical switches between leaves and spines, each with ports of all of them; 0: fixed links")
	fs.BoolVar(&ls.AnyToAny, "any-to-any", ls.AnyToAny, "such a switch may also join two leaves; of a leaf-spine core")
	queue := fs.String("queue", string(ls.Queue), "which waiting job is next: fifo, fewest, edf, easy or conservative; of a leaf-spine core")
	fs.IntVar(&ls.MoveMillis, "move-ms", 0, "how long a job is dark that is moved so that another finds room; of a leaf-spine core; 0: none is moved")
	return func() (*Core, error) {
		given := map[string]bool{}
		fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if flagsOf[Kind(*kind)] == nil {
			return nil, wrong(named, "pods, leaf-spine or direct", "%q", *kind)
		}
		override := func(name string, to *int, from int) {
			if given[name] {
				*to = from
			}
		}
		switch err := strangeFlag(named, Kind(*kind), k.Pods, given); {
		case err != nil:
			return nil, err
		case *kind == string(KindPods):
			k.Wiring = Wiring(*wiring)
			return podsOf(k), nil
		case *kind == string(KindDirect):
			override("servers", &d.Direct.Servers, k.ServersPerLeaf)
			override("gpus-per-server", &d.GPUsPerServer, k.GPUsPerServer)
			return d, nil
		}
		override("leaves", &ls.LeafSpine.Leaves, k.LeavesPerPod)
		override("spines", &ls.Spines, k.SpinesPerPod)
		override("gpus-per-server", &ls.GPUsPerServer, k.GPUsPerServer)
		ls.Queue = Queue(*queue)
		ls.AnyToAny = ls.AnyToAny && (ls.LeafSpine.Switches > 0 || given["any-to-any"])
		return ls, nil
	}
}

// strangeFlag is an error about a flag that is given and describes another core, or pods
// where there are none.
func strangeFlag(named string, kind Kind, pods int, given map[string]bool) error {
	if kind == KindPods && pods == 0 && given[named] {
		return wrong("pods", "2 and up, with -"+named+" pods", "absent or 0")
	}
	for _, other := range []Kind{KindPods, KindLeafSpine, KindDirect} {
		for _, name := range append(slices.Clone(flagsOf[other]), "gpus-per-server") {
			own := name == "gpus-per-server" || slices.Contains(flagsOf[kind], name)
			if given[name] && (!own || kind == KindPods && pods == 0 && name != "pods") {
				return wrong(name, "with "+kindsOf(named, name), "-%s describes another core", name)
			}
		}
	}
	return nil
}

// kindsOf are the kinds of core that have a flag, as flags.
func kindsOf(named, name string) string {
	var out []string
	for _, k := range []Kind{KindPods, KindLeafSpine, KindDirect} {
		if name == "gpus-per-server" || slices.Contains(flagsOf[k], name) {
			out = append(out, "-"+named+" "+string(k))
		}
	}
	return strings.Join(out, " or ")
}

// podsOf fills in what goes by other sizes of a core of pods; nil: there are none.
func podsOf(k *Core) *Core {
	if k.Pods == 0 {
		return nil
	}
	k.SwitchPorts = cmp.Or(k.SwitchPorts, max(k.Pods, 8))
	if k.SpinePorts == 0 {
		k.SpinePorts = k.LeavesPerPod * k.LeafLinks
		if k.Wiring == Interleaved {
			k.SpinePorts += k.SpinePorts % 2
		}
	}
	return k
}
