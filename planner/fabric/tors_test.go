package fabric

import (
	"strings"
	"testing"

	"ringlight/proto"
)

// A list of racks becomes a map of any sizes, which is what the file says when it is
// read again; beside it other ring sizes may stand.
func TestToRsOfAnySizes(t *testing.T) {
	p := DefaultParams()
	p.Nodes, p.TP, p.RingSizes, p.NodeNames = 8, 8, []RingSize{{TP: 16, Rings: 1}}, []string{"a", "b"}
	f, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if f.KnowsToRs() {
		t.Error("it knows of ToRs that nobody named")
	}
	f, err = f.ReadToRs([]byte("# racks\na, r1, 0\nb,r2,7\n2,r1,0\n3,r2,7\n4,r1,0\n5,r3\n6,r3\n7,r3\n"))
	if err != nil {
		t.Fatal(err)
	}
	f.Rails = true
	g, err := Parse(f.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []int{0, 1, 0, 1, 0, 2, 2, 2} {
		if got := g.ToR(proto.NodeID(n)); got != want {
			t.Errorf("node %d is under ToR %d, want %d", n, got, want)
		}
	}
	if g.ToRCount() != 3 || g.ToRDomain(1) != 7 || g.ToRDomain(2) != 0 || g.ToRs[1].Name != "r2" || !g.Rails {
		t.Errorf("%+v", g.ToRs)
	}
	if changes := f.Changes(g); len(changes) != 0 {
		t.Errorf("written and read again it has changed: %v", changes)
	}
}

// What is wrong with a map is said with its key, what would be right, and the line.
func TestToRsAreRefused(t *testing.T) {
	base := Default()
	for list, want := range map[string]string{
		"0,r1":             "tors: node 1 is under none",
		"0,r1\n0,r2":       "tors[1].nodes: node 0 is under tors[0], too",
		"64,r1":            "tors, line 1: \"64\"",
		"0,r1,x":           "tors, line 1: \"x\"",
		"0,r1,1\n1,r1,2":   "tors, line 2: r1 is in 1 and 2",
		"0":                "tors, line 1: 1 fields",
		"0,\"r 1\"":        "tors[0].name",
		"0,r1,-1\n1,r1,-1": "tors[0].domain: -1",
		"\"":               "tors: ",
	} {
		if _, err := base.ReadToRs([]byte(list)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
	for want, spoil := range map[string]func(f *Fabric){
		"tors: 2 and 64": func(f *Fabric) { f.NodesPerToR, f.NodesPerDomain = 2, 64 },
		"tors[0].nodes: none": func(f *Fabric) {
			f.ToRs = append([]ToR{{}}, f.ToRs...)
		},
		"rails: true": func(f *Fabric) { f.ToRs, f.Rails = nil, true },
	} {
		f := *base
		f.ToRs = []ToR{{}}
		for n := range proto.NodeID(64) {
			f.ToRs[0].Nodes = append(f.ToRs[0].Nodes, n)
		}
		spoil(&f)
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
