package fabric

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ringlight/proto"
)

// A core of leaves and spines is described as in the papers: what is written is
// what is read, and its sizes follow.
// Method: the default, one with fixed links, one written by hand.
func TestLeafSpineIsDescribed(t *testing.T) {
	fixed := DefaultLeafSpine()
	fixed.LeafSpine.Switches, fixed.AnyToAny = 0, false
	for _, c := range []struct {
		core                             *Core
		switches, ports, servers, groups int
	}{{DefaultLeafSpine(), 32, 32, 128, 1}, {fixed, 0, 0, 128, 0}} {
		f := build(t, Params{Name: "f", Core: c.core})
		back, err := Parse(f.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if string(back.Encode()) != string(f.Encode()) || *back.Core.LeafSpine != *c.core.LeafSpine {
			t.Errorf("%s\n%s", f.Encode(), back.Encode())
		}
		if k := back.Core; k.Switches() != c.switches || k.Ports() != c.ports || k.SwitchSize() != c.ports || k.Servers() != c.servers || k.Groups() != c.groups || k.Leaves() != 16 || k.Paired() {
			t.Errorf("%d switches of %d ports, %d servers, %d groups, %d leaves", k.Switches(), k.Ports(), k.Servers(), k.Groups(), k.Leaves())
		}
	}
	f, err := Parse([]byte(`{"name":"f","core":{"kind":"leaf-spine","leaves":16,"spines":8,"gpus_per_leaf":32,"gpus_per_server":4,"switches":32,"any_to_any":true,"queue":"fifo"},"fibres":[]}`))
	if err != nil || string(f.Encode()) != string(build(t, Params{Name: "f", Core: DefaultLeafSpine()}).Encode()) {
		t.Errorf("%v\n%s", err, f.Encode())
	}
	if DefaultLeafSpine().FixedLinks() != 0 || fixed.FixedLinks() != 4 {
		t.Error("fixed links")
	}
}

// Every port of every switch is one leaf's or one spine's, and says whose.
// Method: all of them there and back; each once.
func TestPortsOfLeavesAndSpines(t *testing.T) {
	l := DefaultLeafSpine().LeafSpine
	l.Switches, l.Spines = 8, 16
	seen := map[int]bool{}
	see := func(port, leaf, spine, i int) {
		t.Helper()
		a, b, c := l.EndAt(port)
		if a != leaf || b != spine || c != i || seen[port] {
			t.Errorf("port %d: leaf %d spine %d %d, want %d %d %d", port, a, b, c, leaf, spine, i)
		}
		seen[port] = true
	}
	for n := range l.Leaves {
		for i := range l.LeafPorts() {
			see(l.LeafPort(n, i), n, -1, i)
		}
	}
	for m := range l.Spines {
		for i := range l.SpinePortsPerSwitch() {
			see(l.SpinePort(m, i), -1, m, i)
		}
	}
	if len(seen) != 2*16*32/8 || l.LeafPorts() != 4 || l.SpinePortsPerSwitch() != 4 {
		t.Errorf("%d ports, %d of a leaf, %d of a spine", len(seen), l.LeafPorts(), l.SpinePortsPerSwitch())
	}
}

// What cannot be is refused by field and limit, and so is a key of the other
// kind.
// Method: one change each to a good core; descriptions as text.
func TestBadLeafSpinesAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Core)
		fields string
	}{
		{func(c *Core) {}, ""},
		{func(c *Core) { c.Kind = "clos" }, "core.kind"},
		{func(c *Core) { c.Kind = "" }, "core.kind"},
		{func(c *Core) { c.LeafSpine = nil }, "core.leaves"},
		{func(c *Core) { c.LeafSpine.Leaves, c.Spines = 0, 0 }, "core.leaves core.spines"},
		{func(c *Core) { c.LeafSpine.Leaves = -3 }, "core.leaves"},
		{func(c *Core) { c.LeafSpine.Leaves = MaxLeaves + 1 }, "core.leaves"},
		{func(c *Core) { c.GPUsPerLeaf = 0 }, "core.gpus_per_leaf"},
		{func(c *Core) { c.GPUsPerLeaf = 30 }, "core.gpus_per_leaf core.switches"},
		{func(c *Core) { c.GPUsPerServer = 0 }, "core.gpus_per_server"},
		{func(c *Core) { c.GPUsPerServer = 64 }, "core.gpus_per_leaf"},
		{func(c *Core) { c.LeafSpine.Switches = 5 }, "core.switches"},
		{func(c *Core) { c.LeafSpine.Switches = -1 }, "core.switches"},
		{func(c *Core) { c.Spines = 7 }, "core.spines"},
		{func(c *Core) { c.LeafSpine.Switches = 0 }, "core.any_to_any"},
		{func(c *Core) { c.LeafSpine.Switches, c.AnyToAny, c.Spines = 0, false, 5 }, "core.spines"},
		{func(c *Core) { c.LeafSpine.Leaves, c.GPUsPerLeaf, c.LeafSpine.Switches = 128, 1024, 32 }, "core.leaves core.switches"},
		{func(c *Core) { c.Queue = "lifo" }, "core.queue"},
		{func(c *Core) { c.Queue = "" }, ""},
		{func(c *Core) { c.MoveMillis = -1 }, "core.move_ms"},
		{func(c *Core) { c.Pods, c.Wiring = 4, Uniform }, "core.pods core.wiring"},
	} {
		core, l := *DefaultLeafSpine(), *DefaultLeafSpine().LeafSpine
		core.LeafSpine = &l
		c.change(&core)
		_, err := New(Params{Name: "f", Core: &core})
		if got := strings.Join(fields(err), " "); got != c.fields {
			t.Errorf("%v: fields %q, want %q (%v)", core, got, c.fields, err)
		}
	}
	for text, field := range map[string]string{ // any order: each by itself
		`{"name":"f","core":{"pods":4,"leaves":2},"fibres":[]}`:                     "core.kind",
		`{"name":"f","core":{"kind":"leaf-spine","gpus_per_server":4},"fibres":[]}`: "core.leaves",
		`{"name":"f","core":{"kind":"leaf-spine","leafs":4},"fibres":[]}`:           "fabric",
		`{"name":"f","core":{"kind":"leaf-spine","leaves":4.5},"fibres":[]}`:        "fabric",
	} {
		_, err := Parse([]byte(text))
		if got := fields(err); len(got) != 1 || got[0] != field {
			t.Errorf("%s: %v", text, err)
		}
	}
	if proto.MaxCircuits < DefaultLeafSpine().Ports() {
		t.Error("a switch's circuits fit no message")
	}
}

// Goal: whatever leaves, spines and servers come and go, each has its ports where they
// were, no two have the same, and each port says whose it is.
// Method: sizes drawn by seed, from the first description on.
func TestPortsStayWhereTheyAre(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0x90))
		l := LeafSpine{Leaves: 1 + r.IntN(9), Spines: 1 + r.IntN(5), GPUsPerLeaf: 8, Switches: 1 << r.IntN(4)}
		l.PortsPerSpine = l.Leaves
		d := Direct{Servers: 2 + r.IntN(9), Degree: 2}
		l.FirstSpinePort, d.SecondPort = l.firstSpine(), d.second()
		first := map[string]int{}
		for range 5 {
			for _, c := range []*Core{{Kind: KindLeafSpine, GPUsPerServer: 4, LeafSpine: &l}, {Kind: KindDirect, GPUsPerServer: 4, Direct: &d}} {
				if err := c.Validate(); err != nil {
					t.Fatal(err)
				}
				has := map[string]bool{}
				for port := range c.Ports() {
					device, name := c.EndOf(0, port)
					if device == "" {
						continue
					}
					key := device + "/" + name
					if was, known := first[key]; known && was != port || has[key] {
						t.Fatalf("seed %d: %s at %d, was at %d", seed, key, port, was)
					}
					first[key], has[key] = port, true
				}
				want := 2 * d.Servers
				if c.Direct == nil {
					want = l.Leaves*l.LeafPorts() + l.Spines*l.PortsPerSpine
				}
				if len(has) != want || !c.HasPort(0, c.Ports()-1) || c.HasPort(0, c.Ports()) {
					t.Fatalf("seed %d: %d ports of %d: %v", seed, len(has), want, c)
				}
			}
			l.Leaves, l.Spines, d.Servers = 1+r.IntN(12), 1+r.IntN(7), 2+r.IntN(12)
		}
	}
}
