package fabric

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ringlight/proto"
)

func build(t *testing.T, p Params) *Fabric {
	t.Helper()
	if p.Name == "" {
		p.Name = "f"
	}
	f, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The default wiring of each K: bundle and path by offset.
// Reference: [IHBD] sec 4.2; the pairs of offsets are ours, docs/board.md.
func TestDefaultWiring(t *testing.T) {
	type port struct {
		bundle proto.BundleID
		path   proto.Path
	}
	e1, e2 := proto.External1, proto.External2
	for k, want := range map[int]map[int]port{
		1: {-1: {0, e1}, 1: {1, e1}},
		2: {-1: {0, e1}, -2: {0, e2}, 1: {1, e1}, 2: {1, e2}},
		3: {-1: {0, e1}, -2: {0, e2}, 1: {1, e1}, 2: {1, e2}, -3: {2, e1}, 3: {2, e2}},
		4: {-1: {0, e1}, -2: {0, e2}, 1: {1, e1}, 2: {1, e2}, -3: {2, e1}, -4: {2, e2}, 3: {3, e1}, 4: {3, e2}},
		5: {-3: {2, e1}, 4: {3, e2}, -5: {4, e1}, 5: {4, e2}},
	} {
		f := build(t, Params{Nodes: 2*k + 3, GPUsPerNode: 8, K: k, TP: 8})
		mid := k + 1
		for offset, p := range want {
			link, ok := f.Link(proto.NodeID(mid), proto.NodeID(mid+offset))
			if !ok || link.Local.Bundle != p.bundle || link.Local.Path != p.path {
				t.Errorf("K=%d offset %d: %v, want bundle %d %v", k, offset, link.Local, p.bundle, p.path)
			}
			back, crossed, ok := f.At(link.Local)
			if !ok || back != link.Remote || crossed {
				t.Errorf("K=%d offset %d: the other end is %v %v %v", k, offset, back, crossed, ok)
			}
		}
		if f.SharedBundle() != (k == 3 || k == 5) {
			t.Errorf("K=%d: shared bundle %v", k, f.SharedBundle())
		}
	}
}

// Fibres to n +- 2^i: as many bundles as spans, and no fibre of another length.
// Reference: [IHBD] sec 7
func TestWiringOfPowers(t *testing.T) {
	for count, shared := range []bool{2: false, 3: true, 4: false} {
		if count < 2 {
			continue
		}
		f := build(t, Params{Nodes: 40, GPUsPerNode: 4, TP: 8, K: 1, Spans: Powers(count), Topology: Ring})
		if f.K != 1<<(count-1) || f.Bundles != count || f.SharedBundle() != shared || len(f.AllFibres()) != 40*count {
			t.Errorf("%d spans: K %d, %d bundles, shared %v, %d fibres", count, f.K, f.Bundles, f.SharedBundle(), len(f.AllFibres()))
		}
		for hops := 1; hops <= f.K+1; hops++ {
			link, ok := f.Link(39, proto.NodeID(hops-1))
			if ok != slices.Contains(f.Spans, hops) || ok && !link.Crossed {
				t.Errorf("%d spans, %d hops over the seam: %v %v", count, hops, link, ok)
			}
		}
		g, err := Parse(f.Encode())
		if err != nil || string(g.Encode()) != string(f.Encode()) {
			t.Errorf("%d spans: %v", count, err)
		}
	}
}

// A line has no wrap; a ring's links over the seam are crossed, backups
// included, and no others.
func TestSeam(t *testing.T) {
	line := build(t, Params{Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16})
	if _, ok := line.Link(7, 0); ok || line.SeamCrossed() {
		t.Error("a line has no seam")
	}
	ring := build(t, Params{Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16, Topology: Ring})
	if !ring.SeamCrossed() {
		t.Error("the seam is not crossed")
	}
	count := 0
	for _, x := range ring.AllFibres() {
		if x.Crossed {
			count++
		}
	}
	if count != 3 {
		t.Errorf("%d crossed fibres, want those of 7-0, 6-0 and 7-1", count)
	}
	if ring.Distance(7, 1) != 2 || line.Distance(7, 1) != 6 {
		t.Error("distance")
	}
}

func TestDefault(t *testing.T) {
	f := Default()
	if f.Name != "f1" || f.Nodes != 64 || f.GroupNodes() != 8 || f.TargetRings() != 8 || f.Bundles != 2 || len(f.AllFibres()) != 63+62 {
		t.Errorf("%+v", f)
	}
}

func TestEncodeAndParse(t *testing.T) {
	f := build(t, Params{Nodes: 9, GPUsPerNode: 4, K: 3, TP: 16, Spares: 1, Topology: Ring})
	text := f.Encode()
	g, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if string(g.Encode()) != string(text) {
		t.Errorf("%s\n%s", text, g.Encode())
	}
	if link, ok := g.Link(8, 0); !ok || !link.Crossed {
		t.Error("the parsed fabric does not know its links")
	}
}

// Every error names the key and the limit, and all are reported at once.
func TestValidateNamesTheField(t *testing.T) {
	good := Params{Name: "f", Nodes: 16, GPUsPerNode: 4, K: 2, TP: 16}
	for _, c := range []struct {
		change func(*Params)
		fields string
	}{
		{func(p *Params) { p.Name = "F_1" }, "name"},
		{func(p *Params) { p.Nodes = 0 }, "nodes"},
		{func(p *Params) { p.Nodes = MaxNodes + 1 }, "nodes"},
		{func(p *Params) { p.GPUsPerNode = 0 }, "gpus_per_node"},
		{func(p *Params) { p.K = 5 }, "k bundles"},
		{func(p *Params) { p.K = 0 }, "k"},
		{func(p *Params) { p.Spans = Spans{1, 1, 2} }, "spans"},
		{func(p *Params) { p.Spans = Spans{2, 4} }, "spans"},
		{func(p *Params) { p.Spans = Spans{} }, "spans"},
		{func(p *Params) { p.Spans = Spans{1, 2, 4, 16} }, "k"},
		{func(p *Params) { p.Spans, p.NodesPerToR = Spans{1, 2, 4}, 2 }, "spans nodes_per_domain"},
		{func(p *Params) { p.GPUsPerNode, p.K, p.TP = 1, 1, 4 }, "k bundles"},
		{func(p *Params) { p.TP = 18 }, "tp"},
		{func(p *Params) { p.TP = 68 }, "tp"},
		{func(p *Params) { p.Spares = -1 }, "spares"},
		{func(p *Params) { p.Spares = 13 }, "spares"},
		{func(p *Params) { p.Topology = "torus" }, "topology"},
		{func(p *Params) { p.SpareLayout = "x" }, "spare_layout"},
		{func(p *Params) { p.Topology, p.Nodes = Ring, 4 }, "nodes"},
		{func(p *Params) { p.Name, p.Topology, p.TP = "", "x", 3 }, "name topology tp"},
	} {
		p := good
		c.change(&p)
		_, err := New(p)
		if got := strings.Join(fields(err), " "); got != c.fields {
			t.Errorf("%+v: fields %q, want %q (%v)", p, got, c.fields, err)
		}
	}
}

// Rings of several sizes: so many of each other size, and of TP what is left;
// sizes divide one another and fit beside the spares.
func TestRingSizes(t *testing.T) {
	f := build(t, Params{Nodes: 64, GPUsPerNode: 4, K: 2, TP: 32, Spares: 4, RingSizes: []RingSize{{64, 2}, {16, 3}}})
	back, err := Parse(f.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Targets(); !slices.Equal(got, []RingSize{{64, 2}, {16, 3}, {32, 2}}) || back.TargetRings() != 7 {
		t.Errorf("targets %v, %d rings", got, back.TargetRings())
	}
	if text := string(Default().Encode()); strings.Contains(text, "ring_sizes") {
		t.Error("a fabric of one size mentions others")
	}
	for _, c := range []struct {
		sizes  []RingSize
		fields string
	}{
		{[]RingSize{{64, 0}}, "ring_sizes[0].rings"},
		{[]RingSize{{64, 4}}, "ring_sizes[0].rings"},
		{[]RingSize{{64, 3}, {16, 3}}, ""},
		{[]RingSize{{64, 3}, {16, 4}}, "ring_sizes[1].rings"},
		{[]RingSize{{32, 1}}, "ring_sizes[0].tp"},
		{[]RingSize{{64, 1}, {64, 1}}, "ring_sizes[1].tp"},
		{[]RingSize{{48, 1}}, "ring_sizes[0].tp"},
		{[]RingSize{{2, 1}, {18, 1}, {260, 1}}, "ring_sizes[0].tp ring_sizes[1].tp ring_sizes[2].tp"},
		{make([]RingSize, 9), "ring_sizes"},
	} {
		_, err := New(Params{Name: "f", Nodes: 64, GPUsPerNode: 4, K: 2, TP: 32, Spares: 4, RingSizes: c.sizes})
		if got := strings.Join(fields(err), " "); got != c.fields {
			t.Errorf("%v: fields %q, want %q (%v)", c.sizes, got, c.fields, err)
		}
	}
	f.Moves, f.NodesPerToR, f.NodesPerDomain = MoveAny, 4, 16
	if got := strings.Join(fields(f.Validate()), " "); got != "" {
		t.Errorf("fields %q", got)
	}
}

// What rings do on a loss is checked too, and survives writing and reading.
func TestLossRules(t *testing.T) {
	for _, c := range []struct {
		change func(*Fabric)
		fields string
	}{
		{func(f *Fabric) { f.Policy = "wait" }, "policy"},
		{func(f *Fabric) { f.OnLoss = "drop" }, "on_loss"},
		{func(f *Fabric) { f.HoldOffUS = -1 }, "hold_off_us"},
		{func(f *Fabric) { f.HoldOffUS = maxHoldOffUS + 1 }, "hold_off_us"},
		{func(f *Fabric) { f.WaitToRestoreMS = maxRestoreMS + 1 }, "wait_to_restore_ms"},
		{func(f *Fabric) { f.MovePriceMS = -1 }, "move_price_ms"},
		{func(f *Fabric) { f.MovePriceMS = maxMovePriceMS + 1 }, "move_price_ms"},
		{func(f *Fabric) { f.Policy, f.OnLoss, f.HoldOffUS, f.WaitToRestoreMS = Hold, Dissolve, 100, 300_000 }, ""},
	} {
		f := Default()
		c.change(f)
		err := f.Validate()
		if got := strings.Join(fields(err), " "); got != c.fields {
			t.Errorf("fields %q, want %q (%v)", got, c.fields, err)
		}
		if back, err := Parse(f.Encode()); c.fields == "" && (err != nil || back.Policy != Hold || back.OnLoss != Dissolve || back.HoldOffUS != 100 || back.WaitToRestoreMS != 300_000) {
			t.Errorf("%+v, %v", back, err)
		}
	}
}

func fields(err error) []string {
	var out []string
	for _, e := range unjoin(err) {
		var f *Error
		if errors.As(e, &f) && f.Limit != "" {
			out = append(out, f.Field)
		} else {
			out = append(out, "?"+e.Error())
		}
	}
	return out
}

// Goal: where fibres lie as by default, nothing is kept of them, and every port
// and link is what a list of them says. Method: the same fabric with one fibre
// labelled, so that all are listed; written and read again.
func TestDefaultWiringNeedsNoList(t *testing.T) {
	for _, topology := range []Topology{Line, Ring} {
		for k := 1; k <= 6; k++ {
			for nodes := 2*k + 1; nodes < 2*k+9; nodes++ {
				f := build(t, Params{Nodes: nodes, GPUsPerNode: 8, K: k, TP: 16, Topology: topology})
				listed := *f
				listed.Fibres = f.AllFibres()
				listed.Fibres[0].ID = "x"
				listed.connect()
				if again, err := Parse(f.Encode()); err != nil || again.Fibres != nil || f.Fibres != nil || listed.peers == nil {
					t.Fatalf("%v: fibres are listed", err)
				}
				for a := range proto.NodeID(nodes) {
					for bundle := range f.Bundles {
						for path := proto.External1; path <= proto.External2; path++ {
							p := Port{Node: a, Bundle: proto.BundleID(bundle), Path: path}
							to, crossed, ok := f.At(p)
							if is, c, there := listed.At(p); ok && to != is || crossed && ok != c || ok != there {
								t.Fatalf("%s, k %d, %d nodes: port %v leads to %v %t %t, want %v %t %t", topology, k, nodes, p, to, crossed, ok, is, c, there)
							}
						}
					}
					for b := range proto.NodeID(nodes) {
						link, ok := f.Link(a, b)
						if is, there := listed.Link(a, b); link != is || ok != there {
							t.Fatalf("%s, k %d, %d nodes: link %d-%d is %v, want %v", topology, k, nodes, a, b, link, is)
						}
					}
				}
			}
		}
	}
}

// Wiring that is data can be wrong: each defect is found and named.
func TestWrongWiringIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, field string
		change      func(*Fabric)
	}{
		{"missing", "fibres", func(f *Fabric) { f.Fibres = f.Fibres[1:] }},
		{"port twice", "fibres[1]", func(f *Fabric) { f.Fibres[1].A = f.Fibres[0].A }},
		{"no such node", "fibres[0]", func(f *Fabric) { f.Fibres[0].B.Node = 99 }},
		{"no such bundle", "fibres[0]", func(f *Fabric) { f.Fibres[0].B.Bundle = 7 }},
		{"inner path", "fibres[0]", func(f *Fabric) { f.Fibres[0].B.Path = proto.Loopback }},
		{"half a seam", "fibres", func(f *Fabric) { f.Fibres[len(f.Fibres)-1].Crossed = false }},
		{"none", "fibres", func(f *Fabric) { f.Fibres = []Fibre{} }},
	} {
		f := build(t, Params{Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16, Topology: Ring})
		f.Fibres = f.AllFibres()
		c.change(f)
		err := f.Validate()
		got := fields(err)
		if c.name == "none" && (len(got) != 1 || !strings.Contains(err.Error(), "ocsctl fabric new writes")) {
			t.Errorf("none: %v", err)
		}
		if len(got) == 0 || got[0] != c.field {
			t.Errorf("%s: %v, want %s", c.name, got, c.field)
		}
	}
}

// A straight seam is allowed: rings are lines there.
func TestStraightSeamIsNoClosedRing(t *testing.T) {
	f := build(t, Params{Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16, Topology: Ring})
	f.Fibres = f.AllFibres()
	for i := range f.Fibres {
		f.Fibres[i].Crossed = false
	}
	g, err := Parse(f.Encode())
	if err != nil || g.SeamCrossed() {
		t.Error(err)
	}
}

func TestParseIsStrict(t *testing.T) {
	text := string(build(t, Params{Nodes: 4, GPUsPerNode: 4, K: 2, TP: 8}).Encode())
	for name, bad := range map[string]string{
		"unknown key": strings.Replace(text, `"k":`, `"kay": 1, "k":`, 1),
		"trailing":    text + "{}",
		"truncated":   text[:len(text)-4],
		"not JSON":    "fabric",
		"bad port":    strings.Replace(text, "0/1/external1", "0/1/loopback", 1),
		"float":       strings.Replace(text, `"nodes": 4`, `"nodes": 4.5`, 1),
	} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := Parse([]byte(text)); err != nil {
		t.Error(err)
	}
}

// Goal: a fabric file that does not fit says where, in its own keys. Method: a
// written file, one value of another kind.
func TestMisfitNamesKeyAndLine(t *testing.T) {
	text := string(build(t, Params{Nodes: 4, GPUsPerNode: 4, K: 2, TP: 8}).Encode())
	for _, c := range []struct{ old, new, want string }{
		{`"nodes": 4`, `"nodes": "four"`, `nodes: want a number, got "four", line `},
		{`"0/1/external1"`, `"0/1/loopback"`, `fibres[0].a: port "0/1/loopback": a fibre hangs on external1 or external2, line `},
		{`"0/1/external1"`, `7`, `fibres[0].a: want text, got 7, line `},
	} {
		at := strings.Index(text, c.old)
		if at < 0 {
			t.Fatalf("no %s in\n%s", c.old, text)
		}
		want := fmt.Sprintf("fabric: %s%d", c.want, 1+strings.Count(text[:at], "\n"))
		if _, err := Parse([]byte(strings.Replace(text, c.old, c.new, 1))); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	d, err := New(Params{Name: "f", Nodes: 4, GPUsPerNode: 4, K: 2, TP: 8})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(d.Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		g, err := Parse(raw)
		if err != nil {
			return
		}
		if _, err := Parse(g.Encode()); err != nil {
			t.Errorf("what was accepted is refused again: %v", err)
		}
	})
}
