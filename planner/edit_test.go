package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

func described(t testing.TB, p fabric.Params) *fabric.Fabric {
	t.Helper()
	p.Name, p.GPUsPerNode = "f", 4
	f, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// of is a description for boards with three bundles, however many its K needs.
func (w *fleet) of(p fabric.Params) *fabric.Fabric {
	f := described(w.t, p)
	f.Bundles = w.fab.Bundles
	g, err := fabric.Parse(f.Encode())
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// editable is a fleet of the plant of which a part is planned for at first.
func editable(t testing.TB, plant, first fabric.Params) *fleet {
	w := newFleet(t, described(t, plant))
	w.first = w.of(first)
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.run(8 * time.Second)
	return w
}

// offer sends a description in parts.
func (w *fleet) offer(f *fabric.Fabric) *proto.Digest {
	w.t.Helper()
	text := f.Encode()
	plan := proto.DigestOf(text)
	const part = 1000 // smaller than need be, so that there are several
	for at := 0; at < len(text); {
		r := w.ask(proto.OpRequest{Noun: proto.NounOffer, Bundle: -1, Page: uint64(at), Text: proto.Part(text[at:min(at+part, len(text))]), Size: uint32(len(text)), Plan: &plan})
		if r.Code != proto.OK || r.Next <= uint64(at) {
			w.t.Fatalf("%+v", r)
		}
		at = int(r.Next)
	}
	return &plan
}

func (w *fleet) edit(f *fabric.Fabric, dry bool, ends ...proto.RingID) *proto.OpReply {
	w.t.Helper()
	plan := w.offer(f)
	if dry {
		return w.ask(proto.OpRequest{Noun: proto.NounEdit, Bundle: -1, Plan: plan, Rings: ends, DryRun: true})
	}
	w.later(proto.OpRequest{Noun: proto.NounEdit, Bundle: -1, Plan: plan, Rings: ends, Author: "alice"})
	for range 200 {
		if w.run(20 * time.Millisecond); len(w.replies) > 0 {
			return &w.replies[0]
		}
	}
	w.t.Fatal("an edit is not answered")
	return nil
}

func (w *fleet) layouts() (out []int) {
	for _, r := range w.p.Rings.Placed.Statuses() {
		out = append(out, len(r.Nodes))
	}
	return out
}

// standing is what light cannot lose: by ring its members, and the times that
// a member lost a planned peer.
func (w *fleet) standing() (rings map[proto.RingID][]proto.NodeID, darkened map[proto.NodeID]uint64) {
	rings, darkened = map[proto.RingID][]proto.NodeID{}, map[proto.NodeID]uint64{}
	for _, r := range w.p.Rings.Placed.Statuses() {
		rings[r.Ring] = r.Nodes
		for _, n := range r.Nodes {
			darkened[n] = w.nodes[n].darkened
		}
	}
	return rings, darkened
}

var (
	plant96 = fabric.Params{Nodes: 96, K: 3, TP: 32}
	first64 = fabric.Params{Nodes: 64, K: 2, TP: 32, Spares: 4}
	then96  = fabric.Params{Nodes: 96, K: 3, TP: 32, Spares: 8, RingSizes: []fabric.RingSize{{TP: 16, Rings: 2}}}
)

// Goal: a fabric is edited while it runs, all at once: 64 to 96 nodes, K 2 to 3,
// one ring of 32 becomes two of 16, spares 4 to 8. The rings that are not named
// keep their members and their light and are told of their new neighbours; the
// new nodes form rings; a restart changes nothing, and the same edit again says
// that it is done.
func TestFabricIsEditedWhileItRuns(t *testing.T) {
	w := editable(t, plant96, first64)
	before, dark := w.standing()
	if len(before) != 7 {
		t.Fatalf("%v", before)
	}
	to := w.of(then96)
	plain := w.edit(to, true)
	if plain.Edit == nil || len(plain.Edit.Refused) != 0 || plain.Edit.Done || plain.Edit.Told != 7 || plain.Edit.Unheard != 32 {
		t.Fatalf("%+v %+v", plain, plain.Edit)
	}
	if len(plain.Edit.Changes) != 5 {
		t.Errorf("%q", plain.Edit.Changes)
	}
	if r := w.edit(to, false, 3); r.Edit == nil || !r.Edit.Done || len(r.Edit.Refused) != 0 {
		t.Fatalf("%+v %+v", r, r.Edit)
	}
	check := func(when string) {
		t.Helper()
		rings, now := w.standing()
		sizes := map[int]int{}
		for _, r := range w.p.Rings.Placed.Statuses() {
			if r.State != proto.RingInService {
				t.Errorf("%s: ring %d is %v", when, r.Ring, r.State)
			}
			sizes[len(r.Nodes)]++
		}
		if sizes[4] != 2 || sizes[8] != 10 { // 96 nodes, 8 spares, 8 in the small ones
			t.Errorf("%s: rings by size %v", when, sizes)
		}
		for id, nodes := range before {
			if id == 3 {
				continue
			}
			if !slices.Equal(rings[id], nodes) {
				t.Errorf("%s: ring %d was %v, is %v", when, id, nodes, rings[id])
			}
			for _, n := range nodes {
				if now[n] != dark[n] {
					t.Errorf("%s: node %d of ring %d lost light %d times", when, n, id, now[n]-dark[n])
				}
				if got := w.nodes[n].applied.Rings[0]; len(got.Left)+len(got.Right) < 3 || w.nodes[n].applied.Layout != w.p.j.Layout {
					t.Errorf("%s: node %d holds the candidates of the former description: %+v", when, n, got)
				}
			}
		}
		if w.p.Fabric.Nodes != 96 || w.p.Fabric.Spares != 8 {
			t.Errorf("%s: %+v", when, w.p.Fabric)
		}
	}
	w.run(30 * time.Second) // the new nodes were there all along, and are asked to announce themselves
	check("edited")
	w.start()
	w.run(30 * time.Second)
	check("after a restart")
	if r := w.edit(to, false, 3); r.Edit == nil || !r.Edit.Done || len(r.Edit.Changes) != 0 {
		t.Errorf("the same again: %+v %+v", r, r.Edit)
	}
}

// Goal: an edit is refused that would cost light nobody gave away, with the
// ring, the node or the fibre, and then changes nothing; with the operator's
// word it goes.
func TestEditsThatWouldCostLightAreRefused(t *testing.T) {
	w := editable(t, plant96, first64)
	show := w.show()
	for _, c := range []struct {
		change func(*fabric.Params)
		ends   []proto.RingID
		want   string
	}{
		{func(p *fabric.Params) { p.Nodes = 48 }, nil, "ring 6 is carried by nodes [4"},
		{func(p *fabric.Params) { p.TP = 64 }, nil, "ring 1 of 32 GPUs runs, and none of that size is wanted: let it end with -end 1"},
		{func(p *fabric.Params) { p.Spares = 16 }, nil, "7 rings of 32 GPUs run, and 6 are wanted or fit beside 16 spares: let 1 of them end with -end"},
		{func(p *fabric.Params) { p.RingSizes = []fabric.RingSize{{TP: 16, Rings: 4}} }, nil, "7 rings of 32 GPUs run, and 5 are wanted or fit beside 4 spares: let 2 of them end"},
		{func(p *fabric.Params) { p.Spares = 3 }, []proto.RingID{99}, "ring 99: there is none"},
		{func(p *fabric.Params) { p.K = 1 }, nil, "light on fibre"},
	} {
		p := first64
		c.change(&p)
		for _, dry := range []bool{true, false} {
			r := w.edit(w.of(p), dry, c.ends...)
			if p.K == 1 && r.Edit != nil && len(r.Edit.Refused) == 0 {
				continue // no ring has a gap
			}
			if r.Edit == nil || r.Edit.Done || !strings.Contains(strings.Join(r.Edit.Refused, "\n"), c.want) {
				t.Errorf("%s: %+v %+v", c.want, r, r.Edit)
			}
		}
	}
	p := first64
	p.Nodes = 60
	if r := w.edit(w.of(p), true); !slices.Equal(r.Edit.Drains, []proto.NodeID{}) && len(r.Edit.Drains) > 0 && r.Edit.Drains[0] < 60 {
		t.Errorf("%+v", r.Edit)
	}
	if now := w.show(); w.first.K == 2 && now != show && !strings.Contains(now, "7/7") {
		t.Errorf("a refused edit changed something:\n%s\n%s", show, now)
	}
	for text, field := range map[string]string{`{"name":"f"}`: "nodes", `{`: "fabric"} { // any order: each is judged by itself
		plan := proto.DigestOf([]byte(text))
		w.ask(proto.OpRequest{Noun: proto.NounOffer, Bundle: -1, Text: proto.Part(text), Size: uint32(len(text)), Plan: &plan})
		if r := w.ask(proto.OpRequest{Noun: proto.NounEdit, Bundle: -1, Plan: &plan}); r.Code != proto.Invalid || r.Field != field {
			t.Errorf("%s: %+v", text, r)
		}
	}
	other := w.of(first64)
	other.GPUsPerNode, other.Bundles = 8, 3
	if r := w.edit(other, true); r.Code != proto.Invalid || r.Field != "gpus_per_node" {
		t.Errorf("%+v", r)
	}
	plan := proto.DigestOf([]byte("never offered"))
	if r := w.ask(proto.OpRequest{Noun: proto.NounEdit, Bundle: -1, Plan: &plan}); r.Code != proto.NotFound {
		t.Errorf("%+v", r)
	}
}

// Goal: new fibres are lit before, from both ends or, where one is of a node in a
// ring, from the other, and one without light keeps the fabric as it is, by name.
func TestDarkFibreKeepsTheFabricAsItIs(t *testing.T) {
	plant := fabric.Params{Nodes: 24, K: 3, TP: 32, Spares: 8, SpareLayout: fabric.AtEnd}
	first := plant
	first.K = 2
	w := editable(t, plant, first)
	w.cuts[pair(18, 21)] = true
	r := w.edit(w.of(plant), false)
	if r.Edit == nil || r.Edit.Done || len(r.Edit.Dark) != 1 || !strings.Contains(r.Edit.Dark[0], "fibre 18/2/external2 - 21/2/external1 shows no light at nodes 18 and 21") {
		t.Fatalf("%+v %+v", r, r.Edit)
	}
	if w.p.Fabric.K != 2 || w.store["layouts"] != nil {
		t.Error("the fabric is changed")
	}
	delete(w.cuts, pair(18, 21))
	r = w.edit(w.of(plant), false)
	if r.Edit == nil || !r.Edit.Done || r.Edit.Tried != 8 || r.Edit.OneWay != 3 || r.Edit.Untried != 13 || w.p.Fabric.K != 3 {
		t.Fatalf("%+v %+v", r, r.Edit)
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		looks := i >= 13 && i < 16 // in a ring, three hops from one that is not
		if n.tried > 0 != (i >= 13) || n.tried%2 != 0 && !looks {
			t.Errorf("node %d was lit and put back, or looked, %d times", i, n.tried)
		}
	}
}

// Goal: a planner that is killed anywhere in an edit is followed by one that
// plans for the old description or for the new one, and by the same answer when
// it is asked again: rings that are not concerned never lose light.
// Method: killed at each of many moments; asked again as ocsctl does.
func TestEditOutlivesItsPlanner(t *testing.T) {
	done := 0
	for after := time.Duration(0); after < 150*time.Millisecond; after += 6 * time.Millisecond {
		w := editable(t, fabric.Params{Nodes: 36, K: 3, TP: 32}, fabric.Params{Nodes: 24, K: 2, TP: 32, Spares: 2})
		to := w.of(fabric.Params{Nodes: 36, K: 3, TP: 32, Spares: 4, RingSizes: []fabric.RingSize{{TP: 16, Rings: 2}}})
		before, dark := w.standing()
		plan := w.offer(to)
		w.later(proto.OpRequest{Noun: proto.NounEdit, Bundle: -1, Plan: plan, Rings: []proto.RingID{1}})
		w.run(after)
		w.start()
		w.run(15 * time.Second)
		if w.exit != "" {
			t.Fatalf("killed after %v: %s", after, w.exit)
		}
		if w.p.Fabric.K == 3 {
			done++
		}
		ends := []proto.RingID{1}
		if r := w.edit(to, false, ends...); r.Edit == nil || !r.Edit.Done {
			t.Fatalf("killed after %v: %+v %+v", after, r, r.Edit)
		}
		for i := 24; i < 36; i++ {
			w.birth(proto.NodeID(i), true)
		}
		w.run(30 * time.Second)
		rings, now := w.standing()
		for id, nodes := range before {
			for _, n := range nodes {
				if id != 1 && (now[n] != dark[n] || !slices.Equal(rings[id], nodes)) {
					t.Errorf("killed after %v: ring %d was %v, is %v; node %d lost light %d times", after, id, nodes, rings[id], n, now[n]-dark[n])
				}
			}
		}
		if got := w.layouts(); len(got) != 5 || w.p.Fabric.Nodes != 36 {
			t.Errorf("killed after %v: rings of %v", after, got)
		}
	}
	if done == 0 {
		t.Error("no planner was killed after the edit was on disk")
	}
}

// Goal: a shrink takes nodes that carry nothing; what the store and the planner
// knew of them is gone, and a restart reads that store.
func TestFabricShrinks(t *testing.T) {
	w := editable(t, fabric.Params{Nodes: 20, K: 2, TP: 32}, fabric.Params{Nodes: 20, K: 2, TP: 32, Spares: 4, SpareLayout: fabric.AtEnd})
	before, dark := w.standing()
	to := w.of(fabric.Params{Nodes: 17, K: 2, TP: 32, Spares: 1, SpareLayout: fabric.AtEnd})
	for range 2 {
		if r := w.edit(to, false); r.Edit == nil || !r.Edit.Done {
			t.Fatalf("%+v %+v", r, r.Edit)
		}
		w.run(10 * time.Second)
		w.start()
		w.run(15 * time.Second)
	}
	for k := range w.store { // any order: each is judged by itself
		for id := 17; id < 20; id++ {
			if strings.HasSuffix(k, fmt.Sprintf("/00000000%d", id)) {
				t.Errorf("%s is still in the store", k)
			}
		}
	}
	if rings, now := w.standing(); !maps.EqualFunc(rings, before, slices.Equal) || !maps.Equal(now, dark) || w.p.Overview().Online != 17 {
		t.Errorf("%v, %v", rings, before)
	}
	if r := w.edit(w.first, false); r.Edit == nil || !r.Edit.Done {
		t.Fatalf("%+v %+v", r, r.Edit)
	}
	if w.run(10 * time.Second); w.p.Overview().Online != 20 {
		t.Errorf("grown again: %+v", w.p.Overview())
	}
}
