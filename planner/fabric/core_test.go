package fabric

import (
	"reflect"
	"strings"
	"testing"

	"ringlight/proto"
)

// A fabric may have a core, with or without nodes, and a description without
// one is what it was before.
// Method: build, encode, parse and encode again.
func TestCoreIsDescribed(t *testing.T) {
	for _, p := range []Params{
		{Name: "f", Core: DefaultCore(4)},
		{Name: "f", Nodes: 16, GPUsPerNode: 4, K: 2, TP: 16, Core: DefaultCore(12)},
	} {
		f := build(t, p)
		back, err := Parse(f.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if string(back.Encode()) != string(f.Encode()) || !reflect.DeepEqual(back.Core, f.Core) {
			t.Errorf("%s\n%s", f.Encode(), back.Encode())
		}
		if f.Nodes == 0 && (f.TargetRings() != 0 || f.GroupNodes() != 0) {
			t.Error("rings without nodes")
		}
	}
	for tiers, ok := range map[Tier]bool{TierLeaves: true, TierSpines: true, TierServers: false, "hosts": false} { // any order
		c := DefaultCore(4)
		c.Routers = []Tier{tiers}
		if err := c.Validate(); (err == nil) != ok {
			t.Errorf("routers %v: %v", c.Routers, err)
		}
	}
	if strings.Contains(string(Default().Encode()), "core") {
		t.Error("a fabric without a core mentions it")
	}
}

// Servers of a core have names, and without them their place; two cannot have the same,
// nor can there be more than servers, or any without a core.
// Method: there and back through the file; one change each.
func TestServersHaveNames(t *testing.T) {
	f := build(t, Params{Name: "f", Core: DefaultCore(2), ServerNames: []string{"r1/u01", ""}})
	back, err := Parse(f.Encode())
	if err != nil || back.ServerName(0) != "r1/u01" || back.ServerName(1) != "leaf0-server1" || back.ServerName(6) != "leaf1-server2" {
		t.Errorf("%v, %+v", err, back)
	}
	if f := build(t, Params{Name: "f", Core: DefaultDirect()}); f.ServerName(5) != "server5" {
		t.Error(f.ServerName(5))
	}
	for field, p := range map[string]Params{ // any order: each by itself
		"server_names[1]": {Name: "f", Core: DefaultCore(2), ServerNames: []string{"a", "a"}},
		"server_names[0]": {Name: "f", Core: DefaultCore(2), ServerNames: []string{"7"}},
		"server_names":    {Name: "f", Core: DefaultDirect(), ServerNames: make([]string, 33)},
	} {
		if _, err := New(p); strings.Join(fields(err), " ") != field {
			t.Errorf("%v, want %s", err, field)
		}
	}
}

// What cannot be is refused by field and limit, all of it at once.
// Method: one change each to a good core.
func TestBadCoresAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Core)
		fields string
	}{
		{func(c *Core) {}, ""},
		{func(c *Core) { c.Pods = 1 }, "core.pods"},
		{func(c *Core) { c.Pods = MaxPods + 1 }, "core.pods"},
		{func(c *Core) { c.LeavesPerPod, c.SpinesPerPod = 0, 0 }, "core.leaves_per_pod core.spines_per_pod"},
		{func(c *Core) { c.SpinePorts = 9 }, "core.spine_ports"},
		{func(c *Core) { c.SpinePorts, c.Wiring = 9, Uniform }, ""},
		{func(c *Core) { c.SpinePorts = 6 }, "core.spine_ports"},
		{func(c *Core) { c.SpinePorts, c.SpinesPerPod = 1024, 256 }, "core.spine_ports"},
		{func(c *Core) { c.SwitchPorts = 3 }, "core.switch_ports"},
		{func(c *Core) { c.SwitchPorts = proto.MaxCircuits + 1 }, "core.switch_ports"},
		{func(c *Core) { c.LeafLinks = 3 }, "core.leaf_links"},
		{func(c *Core) { c.ServersPerLeaf = 0 }, "core.servers_per_leaf"},
		{func(c *Core) { c.GPUsPerServer = 65 }, "core.gpus_per_server"},
		{func(c *Core) { c.Wiring = "crossed" }, "core.wiring"},
		{func(c *Core) { c.Backup = true }, ""},
		{func(c *Core) { c.Drain = &Drain{WithinMillis: 100} }, ""},
		{func(c *Core) { c.Drain = &Drain{WithinMillis: 600_000, Silent: SilentStay} }, ""},
		{func(c *Core) { c.Drain = &Drain{WithinMillis: 99} }, "core.drain.within_ms"},
		{func(c *Core) { c.Drain = &Drain{WithinMillis: 600_001} }, "core.drain.within_ms"},
		{func(c *Core) { c.Drain = &Drain{WithinMillis: 1000, Silent: "wait"} }, "core.drain.silent"},
		{func(c *Core) { c.Backup, c.Wiring = true, Uniform }, "core.backup"},
		{func(c *Core) { c.IotaMille = 0 }, "core.iota_mille"},
		{func(c *Core) { c.IotaMille = 1001 }, "core.iota_mille"},
	} {
		core := *DefaultCore(4)
		c.change(&core)
		_, err := New(Params{Name: "f", Core: &core})
		if got := strings.Join(fields(err), " "); got != c.fields {
			t.Errorf("%+v: fields %q, want %q (%v)", core, got, c.fields, err)
		}
	}
	if _, err := New(Params{Name: "f"}); err == nil {
		t.Error("neither nodes nor a core: accepted")
	}
	text := string(build(t, Params{Name: "f", Core: DefaultCore(4)}).Encode())
	if _, err := Parse([]byte(strings.Replace(text, `"pods"`, `"puds"`, 1))); err == nil {
		t.Error("an unknown key of the core: accepted")
	}
	if _, err := Parse([]byte(strings.Replace(text, `"fibres": [`, `"fibres": [{"a":"0/0/external1","b":"1/0/external1"}`, 1))); err == nil {
		t.Error("a fibre between nodes that there are not: accepted")
	}
}
