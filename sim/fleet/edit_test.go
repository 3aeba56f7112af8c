package fleet

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// editable is a fleet on boards of three bundles, of which a fabric uses two.
func editable(t testing.TB, p fabric.Params) Config {
	cfg := testConfig(t, 16, 3, 32, fabric.Line)
	p.Name, p.GPUsPerNode = "f1", 4
	f, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	f.Bundles = 3
	if cfg.Fabric, err = fabric.Parse(f.Encode()); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// runEdits runs a fleet and gives what became of its edits.
func runEdits(t testing.TB, cfg Config) (*Run, *Result) {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Do()
	if err != nil {
		t.Fatal(err)
	}
	return r, res
}

// Goal: 64 to 96 nodes, K 2 to 3, one ring of 32 GPUs becomes two of 16, spares 4
// to 8, on real agents and simulated boards: the rings that are not named keep every
// light, by the boards' own record, and all wanted rings are lit at the end.
// Method: the boards and fibres are laid, then an operator asks.
func TestAFabricGrowsOnBoards(t *testing.T) {
	cfg := editable(t, fabric.Params{Nodes: 64, K: 2, TP: 32, Spares: 4})
	cfg.Span = 75 * time.Second
	cfg.Faults = script(t, "20s fabric edit nodes=96 k=3 sizes=16x2 spares=8 end=3")
	r, res := runEdits(t, cfg)
	clean(t, res)
	if e := r.edits.done; len(e) != 1 || !e[0].Done || e[0].Status.Told != 6 {
		t.Fatalf("%+v", e)
	}
	if rings := r.planners[0].host.Planner().Rings.Placed.Statuses(); len(rings) != 12 || r.audit.guards != 12 || len(r.nodes) != 96 {
		t.Errorf("%d rings, %d looks at rings that had to keep their light, %d nodes", len(rings), r.audit.guards, len(r.nodes))
	}
}

// drawEdits draws a script of edits, most of them possible, some not, and of faults
// around them, all of which have ended by the end of it.
func drawEdits(f *fabric.Fabric, seed uint64, span time.Duration) (out []Fault) {
	r := random{seed: detmath.Hash(seed, 0xed17)}
	pick := func(list ...string) string { return list[r.below(len(list))] }
	at, cables := 20*time.Second, f.AllFibres()
	for at < span-2*time.Minute {
		nodes := 24 + 4*r.below(5)
		edit := pick(fmt.Sprintf("nodes=%d", nodes), fmt.Sprintf("nodes=%d drain", nodes), fmt.Sprintf("nodes=%d k=3", nodes), "k=2", "k=3", fmt.Sprintf("spares=%d", r.below(6)),
			fmt.Sprintf("hold_off_us=%d", 50*r.below(3)), fmt.Sprintf("sizes=16x%d end=%d", 2*r.below(2), 1+r.below(4)), "sizes=none", "tp=64", fmt.Sprintf("k=2 recable=%d", r.below(20)))
		out = append(out, Fault{At: at, Verb: FabricEdit, Edit: edit})
		for range r.below(4) { // around it
			near := at + r.between(0, 12*time.Second) - 6*time.Second
			x := Fault{At: near, Node: proto.NodeID(r.below(f.Nodes)), For: r.between(time.Second, 40*time.Second)}
			switch r.below(8) {
			case 0, 1, 2:
				x.Verb = NodeDark
			case 3:
				x.Verb = HostFault
			case 4:
				x.Verb, x.Port, x.Node = FibreCut, cables[r.below(len(cables))].A, 0
			case 5:
				x.Verb = AgentCrash
			case 6:
				x.Verb, x.Node, x.At = PlannerKill, 0, at+r.between(0, 200*time.Millisecond)
			case 7:
				x.Verb, x.Node = LinkCut, 0
			}
			out = append(out, x)
		}
		at += r.between(50*time.Second, 80*time.Second)
	}
	// At last rings may move, so that as many are lit as there is room for.
	out = append(out, Fault{At: span - time.Minute, Verb: FabricEdit, Edit: "moves=few move"})
	order(out)
	return out
}

// Goal: whatever is edited, and whatever happens meanwhile - nodes, hosts, fibres,
// agents and the planner fail and come back - no light changes that the edit did
// not ask for, links that stay are never dark, what is refused has its reason and
// changes nothing, and afterwards every ring that is wanted is lit.
// Method: edits and faults drawn by seed, judged by the light. RINGLIGHT_EDITS is the
// number of seeds, 5.
func TestRandomEditsCostNoLight(t *testing.T) {
	seeds, err := strconv.Atoi(cmp.Or(os.Getenv("RINGLIGHT_EDITS"), "5"))
	if err != nil {
		t.Fatal(err)
	}
	var done, refused, gaveUp, looks int
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		cfg := editable(t, fabric.Params{Nodes: 28, K: 2, TP: 32, Spares: 3, Moves: fabric.MoveNone})
		cfg.Seed, cfg.Span = seed, 12*time.Minute
		cfg.Rates = Rates{Loss: 1000, Repeat: 1000, Reorder: 1000}
		cfg.Faults = drawEdits(cfg.Fabric, seed, cfg.Span)
		cfg.Replay = fmt.Sprintf("RINGLIGHT_EDITS=%d go test -run %s ./sim/fleet", seed, t.Name())
		r, res := runEdits(t, cfg)
		clean(t, res)
		for _, e := range r.edits.done {
			switch {
			case e.Done:
				done++
			case e.GaveUp:
				gaveUp++
			default:
				refused++
			}
		}
		looks += r.audit.guards
	}
	t.Logf("%d edits done, %d refused, %d not answered; %d looks at rings that had to keep their light", done, refused, gaveUp, looks)
	if done < 4*seeds || refused < seeds || looks < 10*seeds {
		t.Error("too little was edited")
	}
}

// Goal: new fibres are tried by their light before anything is planned over them: one
// that is dead, too weak, crosswise with another or in a wrong port is named with
// the end that misses its light, whether both ends are of free nodes or one of a
// ring's, and nothing is changed; laid as described they pass, and neither the
// trial nor what follows costs a ring light.
// Method: 16 nodes of two rings and 8 free ones get the third hop; what is wrong is
// laid by the person who lays the cables.
func TestNewFibresAreTriedByLight(t *testing.T) {
	hop := func(x fabric.Fibre, from int) bool {
		return x.A.Node == proto.NodeID(from) && x.B.Node == proto.NodeID(from+3)
	}
	cross := func(a, b int) func(fabric.Fibre) (fabric.Fibre, int32) { // the right ends of two fibres
		return func(x fabric.Fibre) (fabric.Fibre, int32) {
			for _, pair := range [2][2]int{{a, b}, {b, a}} {
				if hop(x, pair[0]) {
					x.B.Node = proto.NodeID(pair[1] + 3)
					break
				}
			}
			return x, fibreLoss
		}
	}
	lossy := func(from int, loss int32) func(fabric.Fibre) (fabric.Fibre, int32) {
		return func(x fabric.Fibre) (fabric.Fibre, int32) {
			if hop(x, from) {
				return x, loss
			}
			return x, fibreLoss
		}
	}
	for _, c := range []struct {
		name string
		lay  func(fabric.Fibre) (fabric.Fibre, int32)
		dark []string // each is in one line of its own
	}{
		{"as described", nil, nil},
		{"dead", lossy(18, 60_000), []string{"fibre 18/2/external2 - 21/2/external1 shows no light at nodes 18 and 21: no light comes to bundle 2, external2"}},
		{"too weak", lossy(19, 10_000), []string{"fibre 19/2/external2 - 22/2/external1 shows no light at node"}},
		{"three connectors more", lossy(19, 1500), nil},
		{"dead, one end in a ring", lossy(14, 60_000), []string{"fibre 14/2/external2 - 17/2/external1 shows no light at node 14: no light comes to bundle 2, external2"}},
		{"crosswise", cross(17, 20), []string{"fibre 17/2/external2 - 20/2/external1 shows no light", "fibre 20/2/external2 - 23/2/external1 shows no light"}},
		{"crosswise, ends in a ring", cross(13, 15), []string{"fibre 13/2/external2 - 16/2/external1 shows no light at node 13", "fibre 15/2/external2 - 18/2/external1 shows no light at node 15"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := editable(t, fabric.Params{Nodes: 24, K: 2, TP: 32, Spares: 8, SpareLayout: fabric.AtEnd})
			cfg.Span = time.Minute
			cfg.Faults = script(t, "20s fabric edit k=3")
			cfg.mutant = &mutant{lay: c.lay}
			r, res := runEdits(t, cfg)
			clean(t, res)
			if len(r.edits.done) != 1 {
				t.Fatal("no edit")
			}
			e := &r.edits.done[0]
			if e.Done != (c.dark == nil) || len(e.Dark) != len(c.dark) || e.Status.Tried != 8 || e.Status.OneWay != 3 {
				t.Fatalf("%+v", e)
			}
			for i, want := range c.dark {
				if !strings.HasPrefix(e.Dark[i], want) {
					t.Errorf("%q, want %q", e.Dark[i], want)
				}
			}
			if want := map[bool]int{true: 3, false: 2}[e.Done]; r.cfg.Fabric.K != want {
				t.Errorf("K %d", r.cfg.Fabric.K)
			}
		})
	}
}

// Goal: a fibre that light has gone round a lost node on is not taken away, and the
// ring that it belongs to is named; when the node is back and the light off it, it is.
// Method: a ring steps over a node for which there is no spare, and the fibre it does
// so on is to go over another bundle.
func TestFibreWithLightStays(t *testing.T) {
	cfg := editable(t, fabric.Params{Nodes: 16, K: 2, TP: 32})
	cfg.Span = 5 * time.Minute
	cfg.Faults = script(t, "20s node dark 4", "60s fabric edit k=2 recable=3", "90s node on 4", "150s fabric edit k=2 recable=3")
	r, res := runEdits(t, cfg)
	clean(t, res)
	e := r.edits.done
	if len(e) != 2 || e[0].Done || !strings.Contains(strings.Join(e[0].Refused, "\n"), "ring 1 has light on fibre 3/1/external2 - 5/0/external2") || !e[1].Done {
		t.Errorf("%+v", e)
	}
}
