package main

import (
	"flag"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Flags that describe a core of one kind only.
var (
	podFlags    = []string{"pods", "spine-ports", "iota-mille", "wiring", "backup"}
	leafFlags   = []string{"gpus-per-leaf", "switches", "any-to-any", "queue", "move-ms"}
	directFlags = []string{"degree"}
	packetFlags = []string{"leaves", "spines"} // of pods, and of leaves and spines
	serverFlags = []string{"servers"}          // of pods, and of servers joined directly
)

// othersFlags are those that a kind has not.
var othersFlags = map[fabric.Kind][]string{
	fabric.KindPods:      slices.Concat(leafFlags, directFlags),
	fabric.KindLeafSpine: slices.Concat(podFlags, directFlags, serverFlags),
	fabric.KindDirect:    slices.Concat(podFlags, leafFlags, packetFlags),
}

// coreFlags describe a layer of optical switches; after they are parsed, the
// result is what they say: nil for pods of which there are none. k and ls are
// what there is of pods, and of leaves and spines, without flags.
func coreFlags(fs *flag.FlagSet, k, ls *fabric.Core) func() (*fabric.Core, error) {
	d := fabric.DefaultDirect()
	kind := fs.String("kind", string(fabric.KindPods), "of the core: pods; leaf-spine, where each job is alone on its links; or direct, servers joined without packet switches")
	fs.IntVar(&k.Pods, "pods", k.Pods, "pods of a layer of optical switches")
	fs.IntVar(&k.LeavesPerPod, "leaves", k.LeavesPerPod, fmt.Sprintf("leaf switches of a pod; of a leaf-spine core %d", ls.LeafSpine.Leaves))
	fs.IntVar(&k.SpinesPerPod, "spines", k.SpinesPerPod, fmt.Sprintf("spine switches of a pod, and groups of optical switches; of a leaf-spine core %d", ls.Spines))
	fs.IntVar(&k.SpinePorts, "spine-ports", 0, "ports of a spine, and optical switches of a group; 0: as many as leaves ask for")
	fs.IntVar(&k.ServersPerLeaf, "servers", k.ServersPerLeaf, fmt.Sprintf("servers under a leaf; of a direct core all, %d", d.Direct.Servers))
	fs.IntVar(&k.GPUsPerServer, "gpus-per-server", k.GPUsPerServer, fmt.Sprintf("GPUs of a server; of a leaf-spine core %d, of a direct one %d", ls.GPUsPerServer, d.GPUsPerServer))
	fs.IntVar(&d.Degree, "degree", d.Degree, "interfaces of a server, each on an optical switch of its own; of a direct core")
	fs.IntVar(&k.IotaMille, "iota-mille", k.IotaMille, "thousandths of a leaf's links that may move at once")
	wiring := fs.String("wiring", string(k.Wiring), "interleaved or uniform")
	fs.BoolVar(&k.Backup, "backup", false, "join ports that no job needs to a mesh over all pods")
	fs.IntVar(&ls.GPUsPerLeaf, "gpus-per-leaf", ls.GPUsPerLeaf, "GPUs under a leaf, and its uplinks; of a leaf-spine core")
	fs.IntVar(&ls.LeafSpine.Switches, "switches", ls.LeafSpine.Switches, "optical switches between leaves and spines, each with ports of all of them; 0: fixed links")
	fs.BoolVar(&ls.AnyToAny, "any-to-any", ls.AnyToAny, "a switch may also join two leaves; of a leaf-spine core")
	queue := fs.String("queue", string(ls.Queue), "which waiting job is next: fifo, fewest, edf, easy or conservative; of a leaf-spine core")
	fs.IntVar(&ls.MoveMillis, "move-ms", 0, "how long a job is dark that is moved so that another finds room; of a leaf-spine core; 0: none is moved")
	return func() (*fabric.Core, error) {
		others, ok := othersFlags[fabric.Kind(*kind)]
		if !ok {
			return nil, &proto.Error{Code: proto.Invalid, Field: "kind", Limit: "pods, leaf-spine or direct", Reason: fmt.Sprintf("%q", *kind)}
		}
		given := map[string]bool{}
		var err error
		fs.Visit(func(f *flag.Flag) {
			given[f.Name] = true
			if slices.Contains(others, f.Name) && err == nil {
				err = &proto.Error{Code: proto.Invalid, Field: f.Name, Limit: "a core of another kind", Reason: "not of kind " + *kind}
			}
		})
		override := func(name string, to *int, from int) {
			if given[name] {
				*to = from
			}
		}
		switch {
		case err != nil:
			return nil, err
		case *kind == string(fabric.KindPods):
			return podsOf(k, fabric.Wiring(*wiring)), nil
		case *kind == string(fabric.KindDirect):
			override("servers", &d.Direct.Servers, k.ServersPerLeaf)
			override("gpus-per-server", &d.GPUsPerServer, k.GPUsPerServer)
			return d, nil
		}
		override("leaves", &ls.LeafSpine.Leaves, k.LeavesPerPod)
		override("spines", &ls.Spines, k.SpinesPerPod)
		override("gpus-per-server", &ls.GPUsPerServer, k.GPUsPerServer)
		ls.Queue = fabric.Queue(*queue)
		if ls.LeafSpine.Switches == 0 && !given["any-to-any"] {
			ls.AnyToAny = false
		}
		return ls, nil
	}
}

func podsOf(k *fabric.Core, wiring fabric.Wiring) *fabric.Core {
	if k.Pods == 0 {
		return nil
	}
	k.Wiring, k.SwitchPorts = wiring, max(k.Pods, k.SwitchPorts)
	if k.SpinePorts == 0 {
		k.SpinePorts = k.LeavesPerPod * k.LeafLinks
	}
	return k
}
