package fabric

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ringlight/proto"
)

func named(t *testing.T) *Fabric {
	names := make([]string, 9)
	for i := range names {
		names[i] = fmt.Sprintf("r01/u%02d", i)
	}
	f := build(t, Params{Nodes: 9, GPUsPerNode: 4, K: 2, TP: 16, Topology: Ring, NodeNames: names})
	f.Fibres = f.AllFibres()
	for i := range f.Fibres {
		f.Fibres[i].ID = fmt.Sprintf("F-%03d", i)
	}
	return f
}

// A sheet holds all that a description says of its fibres, and is read from
// either end of each, in any order of columns and lines.
// Method: written and read again; columns turned round, every fibre listed
// twice, as spreadsheets and two people do.
func TestCablingIsReadAsItIsWritten(t *testing.T) {
	f := named(t)
	sheet := f.Cabling()
	g, err := f.Recable(sheet)
	if err != nil || string(g.Encode()) != string(f.Encode()) {
		t.Fatalf("%v\n%s", err, sheet)
	}
	if x := f.Fibres[len(f.Fibres)-1]; !x.Crossed || !strings.Contains(string(sheet), "r01/u08,1,2,r01/u01,0,2,F-017,yes") {
		t.Errorf("%v: %s", x, sheet)
	}
	var other bytes.Buffer
	other.WriteString("\ufeffCrossed, peer_port,peer_bundle,peer,port,bundle,node,fibre\r\n# from the racks\r\n")
	for line := range strings.Lines(string(sheet)) {
		c := strings.Split(strings.TrimSpace(line), ",")
		if c[0] == "node" {
			continue
		}
		fmt.Fprintf(&other, "%s,%s,%s,%s,external%s,%s,%s,%s\r\n", c[7], c[5], c[4], c[3], c[2], c[1], c[0], c[6])
		fmt.Fprintf(&other, "%s,%s,%s,%s,%s,%s,%s,%s\r\n", c[7], c[2], c[1], c[0], c[5], c[4], c[3], c[6])
	}
	if g, err = f.Recable(other.Bytes()); err != nil || string(g.Encode()) != string(f.Encode()) {
		t.Errorf("%v\n%s", err, other.String())
	}
}

// Every wrong line is named by its number and column, several at once.
func TestWrongCablingIsNamedByLineAndColumn(t *testing.T) {
	const head = "node,bundle,port,peer,peer_bundle,peer_port,fibre,crossed\n"
	f := named(t)
	good := strings.TrimPrefix(string(f.Cabling()), head)
	for _, c := range []struct{ sheet, fields string }{
		{"", "cabling"},
		{"node,bundle\n", "cabling line 1"},
		{"node,node,bundle,port,peer,peer_bundle,peer_port\n", "cabling line 1"},
		{"node,bundle,port,peer,peer_bundle,peer_port,colour\n", "cabling line 1"},
		{head + "\n# c\nr09/u00,0,1,1,1,1,,\n", "cabling line 4 node"},
		{head + "9,5,3,r01/u99,-1,,bad label,maybe\n", "cabling line 2 node|cabling line 2 bundle|cabling line 2 port|cabling line 2 peer|cabling line 2 peer_bundle|cabling line 2 peer_port|cabling line 2 fibre|cabling line 2 crossed"},
		{head + "0,0,1,0,1,1,,\n1,0,1,2\n", "cabling line 2 peer|cabling line 3 columns"},
		{head + good + "0,1,1,5,0,1,X,\n", "cabling line 20 port|cabling line 20 peer_port"},
		{head + good + "r01/u00,1,1,r01/u01,0,1,F-000,\n", "cabling line 20 port|cabling line 20 peer_port"}, // the same end twice
		{head + good + "r01/u01,0,1,r01/u00,1,1,F-000,yes\n", "cabling line 20 port|cabling line 20 peer_port"},
		{head + "0,0,1,\"1\n", "cabling"},
		{head + strings.Replace(good, "r01/u03,1,1,r01/u04,0,1,F-006,\n", "", 1), "fibres"}, // none between 3 and 4
	} {
		_, err := f.Recable([]byte(c.sheet))
		var got []string
		for _, e := range unjoin(err) {
			var x *Error
			if !errors.As(e, &x) || x.Limit == "" {
				t.Errorf("%q: %v", c.sheet, e)
				continue
			}
			got = append(got, x.Field)
		}
		if strings.Join(got, "|") != c.fields {
			t.Errorf("%.200q: %v, want %s", c.sheet, err, c.fields)
		}
	}
}

func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, unjoin(e)...)
		}
		return out
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Names are found and are one node's alone; a number stays a number.
func TestNodeNames(t *testing.T) {
	f := named(t)
	if id, ok := f.FindNode("r01/u04"); !ok || id != 4 || f.NodeName(4) != "r01/u04" || f.NodeName(99) != "" {
		t.Error(id, ok)
	}
	for text, want := range map[string]proto.NodeID{"0": 0, "8": 8} { // any order: each is judged by itself
		if id, ok := f.FindNode(text); !ok || id != want {
			t.Error(text, id, ok)
		}
	}
	for _, text := range []string{"9", "-1", "", "r01/u09"} {
		if _, ok := f.FindNode(text); ok {
			t.Error(text, "is found")
		}
	}
	for _, c := range []struct {
		names []string
		field string
	}{{make([]string, 10), "node_names"}, {[]string{"a", "b", "a"}, "node_names[2]"}, {[]string{"a b"}, "node_names[0]"}, {[]string{"", "12"}, "node_names[1]"}} {
		_, err := New(Params{Name: "f", Nodes: 9, GPUsPerNode: 4, K: 2, TP: 16, NodeNames: c.names})
		var x *Error
		if !errors.As(err, &x) || x.Field != c.field {
			t.Errorf("%v: %v", c.names, err)
		}
	}
	if got := ParseNames([]byte("a\r\n\r\nb \n\n")); strings.Join(got, "|") != "a||b" {
		t.Errorf("%q", got)
	}
}

// Goal: a table of GPUs has each GPU of a host once, and errors name the place.
func TestGPUTable(t *testing.T) {
	row := func(index ...int) (out []GPU) {
		for _, i := range index {
			out = append(out, GPU{Index: i})
		}
		return out
	}
	three := -1
	for _, c := range []struct {
		table [][]GPU
		field string
	}{
		{[][]GPU{row(3, 2, 1, 0)}, ""}, {[][]GPU{row(0, 1, 2, 7), nil, row(1, 0, 3, 2)}, ""},
		{[][]GPU{row(0, 1)}, "gpu_table[0]"}, {[][]GPU{nil, nil}, "gpu_table"}, {[][]GPU{row(0, 1, 1, 2)}, "gpu_table[0][2].index"}, {[][]GPU{row(0, -1, 1, 2)}, "gpu_table[0][1].index"},
		{[][]GPU{{{Index: 0, PCI: "9b:00.0"}, {Index: 1}, {Index: 2}, {Index: 3}}}, "gpu_table[0][0].pci"}, {[][]GPU{{{Index: 0, PCI: "0000:9b:00.0"}, {Index: 1, PCI: "0000:9b:00.0"}, {Index: 2}, {Index: 3}}}, "gpu_table[0][1].pci"},
		{[][]GPU{{{Index: 0, Switch: "x"}, {Index: 1}, {Index: 2}, {Index: 3}}}, "gpu_table[0][0].switch"}, {[][]GPU{{{Index: 0, NUMA: &three}, {Index: 1}, {Index: 2}, {Index: 3}}}, "gpu_table[0][0].numa"},
	} {
		f, err := New(Params{Name: "f", Nodes: 3, GPUsPerNode: 4, K: 1, TP: 8, GPUTable: c.table})
		if c.field == "" {
			if err != nil || f.GPUIndex(0, 3) != c.table[0][3].Index || len(c.table) == 1 && f.GPUIndex(2, 0) != 3 || len(c.table) == 3 && f.GPUIndex(1, 2) != 2 {
				t.Errorf("%v: %v", c.table, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.field+":") {
			t.Errorf("%v: %v, want %s", c.table, err, c.field)
		}
	}
}

// Goal: a core's sheet has each port of each switch once, and each label once; two
// ports whose pods a map joins talk to each other over it, both ways; and what is to
// be laid for an edit is what comes beside what is there.
func TestCoreCabling(t *testing.T) {
	pods := &Core{Pods: 4, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: Interleaved, IotaMille: 250}
	uniform, grown := *pods, *pods
	uniform.Wiring, grown.Pods, grown.SpinesPerPod = Uniform, 6, 3
	bare := *pods // an uplink of a leaf is all that hangs at its fibres
	bare.LeavesPerPod, bare.SpinePorts, bare.Spineless = 1, 2, true
	bareUniform := bare
	bareUniform.Wiring = Uniform
	for _, c := range []*Core{&bare, &bareUniform} {
		of := map[string][]SwitchPort{}
		for _, x := range c.CoreFibres() {
			of[x.Device+"/"+x.Port] = append(of[x.Device+"/"+x.Port], x.At)
		}
		for leaf := range c.Leaves() {
			for up := range c.Uplinks() {
				name := fmt.Sprintf("leaf%d/up%d", leaf, up)
				p, ok := c.Part(name)
				for _, at := range of[name] {
					if ok = ok && slices.Contains(p.Ports, at); !ok {
						t.Errorf("%s, %s: %+v is not among %+v", c.Wiring, name, at, p.Ports)
					}
				}
				if !ok || len(of[name]) != 2 || len(p.Ports) != 2 || len(p.Links) != 0 {
					t.Errorf("%s, %s: %+v, fibres %+v", c.Wiring, name, p, of[name])
				}
			}
		}
		if _, ok := c.Part("pod0-spine0"); ok || len(of) != c.Leaves()*c.Uplinks() || c.Validate() != nil {
			t.Errorf("a spine, or %d uplinks, or %v", len(of), c.Validate())
		}
		two := *c
		if two.LeavesPerPod = 2; two.Validate() == nil {
			t.Error("two leaves of a pod cannot hang there")
		}
		if two = *c; c.Wiring == Interleaved {
			two.Routers = []Tier{TierSpines}
			if two.Validate() == nil {
				t.Error("there are no spines that could hold routes")
			}
		}
	}
	for _, c := range []*Core{pods, &uniform, &bare, &bareUniform, DefaultLeafSpine(), DefaultDirect()} {
		labels, ports := map[string]bool{}, map[SwitchPort]bool{}
		for _, x := range c.CoreFibres() {
			if labels[x.Label()] || ports[x.At] {
				t.Fatalf("%+v twice", x)
			}
			labels[x.Label()], ports[x.At] = true, true
		}
		if want := 2 * c.Mirrors() * c.Ports(); len(ports) != want {
			t.Errorf("%v: %d ports, want %d", c, len(ports), want)
		}
	}
	at := map[SwitchPort]CoreFibre{}
	for _, x := range pods.CoreFibres() {
		at[x.At] = x
	}
	for s := 0; s < pods.Switches(); s += 2 { // pod 1 to 3 by the even switch, back by the odd one
		there, back := [2]CoreFibre{at[SwitchPort{s, 0, 1}], at[SwitchPort{s, 1, 3}]}, [2]CoreFibre{at[SwitchPort{s + 1, 0, 3}], at[SwitchPort{s + 1, 1, 1}]}
		if there[0].Device != back[1].Device || there[0].Port != back[1].Port || there[1].Device != back[0].Device || there[1].Port != back[0].Port {
			t.Errorf("switches %d and %d: %+v, back %+v", s, s+1, there, back)
		}
	}
	all, more, less := bytes.Count(grown.CoreCabling(nil), []byte("\n")), bytes.Count(grown.CoreCabling(pods), []byte("\n")), bytes.Count(pods.CoreCabling(nil), []byte("\n"))
	if all-1 != (more-1)+(less-1) || all-1 != 2*12*6 {
		t.Errorf("%d fibres, %d beside %d", all-1, more-1, less-1)
	}
	if first, _, _ := strings.Cut(string(pods.CoreCabling(nil)), "\n"); first != "device,port,way,switch,side,switch_port,label,bundle" {
		t.Error(first)
	}
}

// Goal: what cannot change under a core that runs is refused by its field with the
// reason; what is at the end of its numbers may.
func TestCoresMayGrow(t *testing.T) {
	pods := func(change func(*Core)) *Fabric {
		c := *DefaultCore(4)
		change(&c)
		return &Fabric{Name: "f", Core: &c}
	}
	for _, c := range []struct {
		from, to *Fabric
		field    string
	}{
		{pods(func(c *Core) {}), pods(func(c *Core) { c.Pods, c.SpinesPerPod, c.SwitchPorts, c.IotaMille, c.Backup = 8, 4, 16, 500, true }), ""},
		{pods(func(c *Core) {}), pods(func(c *Core) { c.LeavesPerPod, c.ServersPerLeaf = 2, 8 }), ""},
		{pods(func(c *Core) {}), pods(func(c *Core) { c.SpinePorts = 16 }), "core.spine_ports"},
		{pods(func(c *Core) { c.SpinesPerPod = 1 }), pods(func(c *Core) { c.SpinesPerPod, c.SpinePorts = 1, 16 }), ""},
		{pods(func(c *Core) {}), pods(func(c *Core) { c.Wiring = Uniform }), "core.wiring"},
		{pods(func(c *Core) {}), pods(func(c *Core) { c.GPUsPerServer = 8 }), "core.gpus_per_server"},
		{pods(func(c *Core) {}), pods(func(c *Core) { c.LeafLinks = 1 }), "core.leaf_links"},
		{pods(func(c *Core) {}), &Fabric{Name: "f", Core: DefaultDirect()}, "core.kind"},
		{pods(func(c *Core) {}), &Fabric{Name: "f"}, "core"},
		{&Fabric{Name: "f", Core: DefaultDirect()}, &Fabric{Name: "f", Core: &Core{Kind: KindDirect, GPUsPerServer: 4, Direct: &Direct{Servers: 33, Degree: 4}}}, "core.second_port"},
		{&Fabric{Name: "f", Core: DefaultDirect()}, &Fabric{Name: "f", Core: &Core{Kind: KindDirect, GPUsPerServer: 4, Direct: &Direct{Servers: 33, Degree: 4, SecondPort: 32}}}, ""},
		{&Fabric{Name: "f", Core: DefaultDirect()}, &Fabric{Name: "f", Core: &Core{Kind: KindDirect, GPUsPerServer: 4, Direct: &Direct{Servers: 32, Degree: 5}}}, "core.degree"},
		{&Fabric{Name: "f", Core: DefaultLeafSpine()}, &Fabric{Name: "f", Core: &Core{Kind: KindLeafSpine, GPUsPerServer: 4,
			LeafSpine: &LeafSpine{Leaves: 32, Spines: 8, GPUsPerLeaf: 32, Switches: 32, AnyToAny: true, Queue: FIFO}}}, "core.ports_per_spine"},
		{&Fabric{Name: "f", Core: DefaultLeafSpine()}, &Fabric{Name: "f", Core: &Core{Kind: KindLeafSpine, GPUsPerServer: 4,
			LeafSpine: &LeafSpine{Leaves: 32, Spines: 16, GPUsPerLeaf: 32, Switches: 32, AnyToAny: true, Queue: EASY}}}, "core.spine_port"},
		{&Fabric{Name: "f", Core: DefaultLeafSpine()}, &Fabric{Name: "f", Core: &Core{Kind: KindLeafSpine, GPUsPerServer: 4,
			LeafSpine: &LeafSpine{Leaves: 32, Spines: 16, GPUsPerLeaf: 32, Switches: 32, AnyToAny: true, Queue: EASY, FirstSpinePort: 16}}}, ""},
	} {
		var e *Error
		if err := c.from.MayBecome(c.to); c.field == "" && err != nil || c.field != "" && (!errors.As(err, &e) || e.Field != c.field) {
			t.Errorf("%v to %v: %v, want %q", c.from.Core, c.to.Core, err, c.field)
		}
	}
}
