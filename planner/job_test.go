package planner

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

func (w *fleet) put(id, wish string) *proto.OpReply {
	return w.ask(proto.OpRequest{Noun: proto.NounSubmit, Bundle: -1, Name: id, Text: proto.Part(wish)})
}

func (w *fleet) release(id string) *proto.OpReply {
	return w.ask(proto.OpRequest{Noun: proto.NounRelease, Bundle: -1, Name: id})
}

func (w *fleet) job(id string) *job.View {
	w.t.Helper()
	v, err := w.p.Jobs.Get(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// heard are a job's events in short.
func (w *fleet) heard(id string) string {
	events, _, _ := w.p.Jobs.Events(id, 0)
	var out []string
	for _, e := range events {
		text := e.Event
		switch e.Event {
		case job.NodeLost, job.Left:
			text += " " + e.Node
		case job.Replaced:
			text += fmt.Sprintf(" %s by %s", e.Out, e.In)
			if e.Position != nil {
				text += fmt.Sprintf(" at %d", *e.Position)
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// Goal: a job gets stock of its size as it stands, without a change of light;
// of another size it gets rings for which stock ends; what it gives back is
// stock again.
// Method: 64 nodes of which 8 are spares carry 7 rings of 8.
func TestJobGetsRings(t *testing.T) {
	w := small(t, 64, 2, 32, 8)
	_, dark := w.standing()
	if r := w.put("a", `{"tp":32,"rings":2}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	a := w.job("a")
	if a.State != job.Ready || len(a.Rings) != 2 || a.Links != 14 || a.Confirmed != 14 || a.GPUsTotal != 64 || w.heard("a") != "waiting, reserved, forming, ready" {
		t.Errorf("%+v\n%s", a, w.heard("a"))
	}
	if _, now := w.standing(); fmt.Sprint(now) != fmt.Sprint(dark) {
		t.Errorf("light changed: %v, before %v", now, dark)
	}
	if r := w.put("a", `{"rings":2, "tp":32, "policy":"wait"}`); r.Code != proto.OK || w.job("a").Generation != a.Generation {
		t.Errorf("asked for twice: %+v", r)
	}
	if r := w.put("a", `{"tp":32}`); r.Code != proto.Conflict || r.Field != "id" {
		t.Errorf("another wish under the same name: %+v", r)
	}

	if r := w.put("b", `{"tp":64,"rings":2,"spares":1}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	b := w.job("b")
	if b.State != job.Ready || b.GPUsTotal != 128 || len(b.Spares) != 1 {
		t.Errorf("%+v\n%s", b, w.heard("b"))
	}
	if got := w.job("a"); got.Generation != a.Generation {
		t.Errorf("job a was touched: %s", w.heard("a"))
	}
	stock := 0
	for _, r := range w.p.Rings.Placed.Statuses() {
		if len(r.Nodes) == 8 && r.State == proto.RingInService {
			stock++
		}
	}
	if want := 2 + (64-8-16-32)/8; stock != want {
		t.Errorf("%d rings of 8 nodes, want %d:\n%s", stock, want, w.show())
	}

	// The spare of b steps in where a node is lost, and a spare of the fabric where one of a is.
	lost := slices.Clone(b.Rings[0].Nodes)[7]
	w.die(node(lost))
	w.run(2 * time.Second)
	if b = w.job("b"); b.State != job.Ready || len(b.Spares) != 0 || !strings.Contains(w.heard("b"), "node_lost "+lost) || !strings.Contains(w.heard("b"), "replaced "+lost+" by ") {
		t.Errorf("%+v\n%s", b, w.heard("b"))
	}
	for _, id := range []string{"b", "a"} {
		if r := w.release(id); r.Code != proto.OK {
			t.Errorf("%+v", r)
		}
	}
	if r := w.release("a"); r.Code != proto.OK || w.job("a").State != job.Released {
		t.Errorf("released twice: %+v", r)
	}
	w.birth(node(lost), true)
	w.run(20 * time.Second)
	if rings := w.p.Rings.Placed.Statuses(); len(rings) != 7 || slices.ContainsFunc(rings, func(r proto.RingStatus) bool { return len(r.Nodes) != 8 || r.State != proto.RingInService }) {
		t.Errorf("stock is not as it was:\n%s", w.show())
	}
}

// Goal: where nobody replaces the lost node of a job it is told that the node left, and
// launchers are not given a size that models do not divide by.
// Method: a job has all eight nodes, and one is lost.
func TestJobHearsThatANodeLeft(t *testing.T) {
	w := small(t, 8, 2, 32, 0)
	w.put("a", `{"tp":32}`)
	size := func() string {
		text, _, err := w.job("a").File("megatron.env", job.Split{})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if is := size(); !strings.Contains(is, "\nTENSOR_MODEL_PARALLEL_SIZE=32\n") {
		t.Errorf("whole: %s", is)
	}
	w.die(4)
	w.run(5 * time.Second)
	if got := w.heard("a"); !strings.Contains(got, "left 4") || strings.Contains(got, "replaced") || w.job("a").State != job.Degraded {
		t.Errorf("%v: %s", w.job("a").State, got)
	}
	if is := size(); !strings.Contains(is, "# RING IS SHORT: light joins 28 of the 32 GPUs") || strings.Contains(is, "\nTENSOR") {
		t.Errorf("short: %s", is)
	}
}

// Goal: a job says that it computes again after the event with which it was whole, and not
// after another, for another owner, or while it is short.
// Method: a job loses a node twice, and gets a spare each time.
func TestJobComputesAgain(t *testing.T) {
	w := small(t, 64, 2, 32, 8)
	w.put("a", `{"tp":32,"rings":1,"spares":2,"owner":"o"}`)
	w.run(time.Second)
	resumed := func(owner string, event uint64) proto.Code {
		return w.ask(proto.OpRequest{Noun: proto.NounResumed, Bundle: -1, Name: "a", Text: proto.Part(owner), Page: event}).Code
	}
	for round, want := range []proto.Code{proto.Conflict, proto.OK, proto.OK} {
		if round > 0 {
			w.die(node(w.job("a").Rings[0].Nodes[3*round-2]))
			w.run(5 * time.Second)
		}
		last := w.job("a").Generation
		if events, _, _ := w.p.Jobs.Events("a", 0); round > 0 && events[len(events)-1].Event != job.Restored {
			t.Fatal(w.heard("a"))
		}
		for _, c := range []struct {
			owner string
			event uint64
			want  proto.Code
		}{{"o", last, want}, {"o", last, want}, {"", last, proto.Conflict}, {"o", last - 1, proto.Conflict}, {"o", 0, proto.Conflict}} {
			if got := resumed(c.owner, c.event); got != c.want {
				t.Errorf("round %d, owner %q, event %d of %d: %v, want %v", round, c.owner, c.event, last, got, c.want)
			}
		}
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounResumed, Bundle: -1, Name: "b", Page: 1}); r.Code != proto.NotFound {
		t.Errorf("%+v", r)
	}
}

// Goal: a ring that a job takes counts for the wish: nothing that has light ends but what
// the dry run names, the rings that the job has are listed as its own, and no ring is
// missing.
// Method: three rings of 32 GPUs and two of 16 with five spares; jobs that fit rings that
// stand, and one for which rings end.
func TestJobsEndNoRingUnnamed(t *testing.T) {
	w := started(t, fabric.Params{Name: "f", Nodes: 37, GPUsPerNode: 4, K: 2, TP: 32, RingSizes: []fabric.RingSize{{TP: 16, Rings: 2}}, Spares: 5})
	w.run(2 * time.Second)
	step := func(id, wish, rings string, gpus uint32) {
		t.Helper()
		before := w.p.Rings.Placed.Statuses()
		trial, err := w.p.Jobs.Try(id, wish)
		if err != nil || !trial.Feasible {
			t.Fatalf("%+v %v", trial, err)
		}
		w.put(id, wish)
		w.run(10 * time.Second)
		now, text := w.p.Rings.Placed.Statuses(), ""
		for _, r := range before {
			if named := slices.Contains(trial.Ends, r.Ring); named == slices.ContainsFunc(now, func(x proto.RingStatus) bool { return x.Ring == r.Ring }) {
				t.Errorf("%s: ring %d, named %v:\n%s", id, r.Ring, named, w.show())
			}
		}
		for _, r := range now {
			text += fmt.Sprintf("%d:%d%s ", r.Ring, len(r.Nodes), r.Job)
		}
		s := w.p.Status()
		if text != rings || s.GPUs != gpus || s.GPUWanted != gpus || s.Health != proto.HealthOK {
			t.Errorf("%s: %s, %d of %d GPUs in rings, %v\n%s", id, text, s.GPUs, s.GPUWanted, s.Health, w.alarms())
		}
	}
	step("a", `{"tp":16}`, "1:4a 2:4 3:8 4:8 5:8 ", 128)
	step("b", `{"tp":16}`, "1:4a 2:4b 3:8 4:8 5:8 ", 128)
	step("c", `{"tp":64}`, "1:4a 2:4b 5:8 6:16c ", 128)
	w.release("c")
	w.release("a")
	w.run(20 * time.Second)
	if s := w.p.Status(); s.GPUs != 128 || s.GPUWanted != 128 || s.Health != proto.HealthOK || len(w.p.Rings.Placed.Statuses()) != 5 {
		t.Errorf("given back: %+v\n%s", s, w.show())
	}
}

// Goal: whatever size a job has, and when it is given back, no ring ends but those of the
// job and those that the dry run named.
// Method: jobs of drawn sizes, which the fabric does not describe, come and go.
func TestJobsOfAnySizeEndNoRingUnnamed(t *testing.T) {
	for seed := range uint64(8) {
		draw := rand.New(rand.NewPCG(seed, 1))
		w := started(t, fabric.Params{Name: "f", Nodes: 37, GPUsPerNode: 4, K: 2, TP: 32, RingSizes: []fabric.RingSize{{TP: 16, Rings: 2}}, Spares: 5})
		w.run(2 * time.Second)
		var jobs []string
		for i := range 8 {
			before, named, what := w.p.Rings.Placed.Statuses(), map[proto.RingID]bool{}, ""
			if n := len(jobs); n > 0 && draw.IntN(3) == 0 {
				what, jobs = jobs[n-1], jobs[:n-1]
				for _, r := range before {
					named[r.Ring] = r.Job == what
				}
				w.release(what)
			} else {
				wish := fmt.Sprintf(`{"tp":%d,"rings":%d}`, 4*(2+draw.IntN(15)), 1+draw.IntN(2))
				trial, err := w.p.Jobs.Try(fmt.Sprint("j", i), wish)
				if err != nil || !trial.Feasible {
					continue
				}
				for _, id := range trial.Ends {
					named[id] = true
				}
				what, jobs = wish, append(jobs, fmt.Sprint("j", i))
				w.put(fmt.Sprint("j", i), wish)
			}
			w.run(10 * time.Second)
			now := w.p.Rings.Placed.Statuses()
			for _, r := range before {
				if !named[r.Ring] && !slices.ContainsFunc(now, func(x proto.RingStatus) bool { return x.Ring == r.Ring }) {
					t.Errorf("seed %d, %s: ring %d of %v ended, named %v:\n%s", seed, what, r.Ring, r.Nodes, named, w.show())
				}
			}
		}
	}
}

// named is a wish for a ring by its number and nodes.
func named(r *job.FabricRing) string {
	w := job.Wish{TP: r.TP, Rings: 1, Ring: r.Ring}
	for _, n := range r.Nodes {
		w.Nodes = append(w.Nodes, job.Name(n))
	}
	text, _ := json.Marshal(&w)
	return string(text)
}

// Goal: who names a ring that it has seen gets that ring as it stands or none, and it
// keeps its number as long as the job lives.
// Method: a node of the first ring is lost, so that the ring next to it takes one over and
// stands on others; it is asked for as it was and as it is. Then all its nodes are lost.
func TestJobGetsTheRingThatItNames(t *testing.T) {
	w := small(t, 32, 2, 16, 4)
	was := w.p.Jobs.Topology().Rings
	for _, n := range []proto.NodeID{0, 1, 2, 3} {
		w.die(n)
		w.run(2 * time.Second)
	}
	now := w.p.Jobs.Topology().Rings
	moved := slices.IndexFunc(was, func(a job.FabricRing) bool {
		return slices.ContainsFunc(now, func(b job.FabricRing) bool {
			return a.Ring == b.Ring && !slices.Equal(a.Nodes, b.Nodes) && b.State == "in_service"
		})
	})
	if moved < 0 {
		t.Fatalf("no ring moved:\n%s", w.show())
	}
	for _, c := range []struct {
		wish string
		code proto.Code
	}{
		{named(&was[moved]), proto.Conflict},
		{`{"tp":16,"ring":1}`, proto.Invalid},
		{`{"tp":16,"ring":1,"nodes":[4,5,6,7],"spares":1}`, proto.Invalid},
		{`{"tp":16,"ring":99,"nodes":[4,5,6,7]}`, proto.Conflict},
	} {
		if r := w.put("a", c.wish); r.Code != c.code || r.Field != "ring" {
			t.Errorf("%s: %+v", c.wish, r)
		}
	}
	if after := w.p.Jobs.Topology().Rings; fmt.Sprint(after) != fmt.Sprint(now) {
		t.Errorf("rings changed: %v, before %v", after, now)
	}
	ring := now[slices.IndexFunc(now, func(r job.FabricRing) bool { return r.Ring == was[moved].Ring })]
	if r := w.put("a", named(&ring)); r.Code != proto.OK {
		t.Fatalf("%s: %+v", named(&ring), r)
	}
	if r := w.put("b", named(&ring)); r.Code != proto.OK || w.job("b").State != job.Waiting || !strings.Contains(w.job("b").Cause, "is for job a") {
		t.Errorf("another's ring: %+v, %+v", r, w.job("b"))
	}
	has := func() bool {
		v := w.job("a")
		return v.State == job.Ready && v.Rings[0].Ring == ring.Ring && slices.Equal(v.Rings[0].Nodes, ring.Nodes)
	}
	if !has() {
		t.Errorf("%+v", w.job("a"))
	}
	for _, n := range ring.Nodes {
		w.setMode(node(n), proto.ModeHostDown)
	}
	w.run(5 * time.Second)
	if v := w.job("a"); v.State != job.Down || slices.ContainsFunc(w.p.Rings.Placed.Statuses(), func(r proto.RingStatus) bool { return r.Ring == ring.Ring }) {
		t.Errorf("its nodes are lost: %+v\n%s", v, w.show())
	}
	for _, n := range ring.Nodes {
		w.setMode(node(n), proto.ModeService)
		w.run(time.Second)
	}
	w.run(20 * time.Second)
	if !has() {
		t.Errorf("its nodes are back: %+v\n%s", w.job("a"), w.show())
	}
	w.start()
	w.run(5 * time.Second)
	if !has() {
		t.Errorf("after another planner's start: %+v\n%s", w.job("a"), w.show())
	}
	w.release("a")
	if w.run(2 * time.Second); w.job("b").State != job.Ready || w.job("b").Rings[0].Ring != ring.Ring {
		t.Errorf("who waited for it: %+v", w.job("b"))
	}
}

func node(name string) (id proto.NodeID) {
	_, _ = fmt.Sscanf(name, "%d", &id)
	return id
}

// Goal: whatever is asked for, lost and killed, no node is two jobs', a job's
// light changes only where a node of its ring is lost, ready means light on
// every link, every event comes once and in order over deaths of the planner,
// and in the end everything is stock again.
// Method: random wishes, releases, deaths, returns and restarts of the planner
// on small fabrics; a watcher who asks for what came after its last.
// RINGLIGHT_JOBS sets how many.
func TestJobsLiveOnWhateverHappens(t *testing.T) {
	seeds := uint64(8)
	if n, err := strconv.ParseUint(os.Getenv("RINGLIGHT_JOBS"), 10, 32); err == nil {
		seeds = n
	}
	for seed := range seeds {
		w := small(t, 24+int(seed%3)*8, 2+int(seed%2), 16, 2)
		rng := rand.New(rand.NewPCG(seed, 5))
		at := map[string]uint64{}
		heard := map[string][]job.Event{}
		dead := map[proto.NodeID]bool{}
		seen := w.p.Jobs.Topology().Rings // of any moment
		watch := func() {
			for id := range at {
				events, complete, err := w.p.Jobs.Events(id, at[id])
				if err != nil || !complete {
					t.Fatalf("seed %d: %s: %v, complete %v", seed, id, err, complete)
				}
				for _, e := range events {
					if e.Generation != at[id]+1 {
						t.Fatalf("seed %d: job %s: event %d after %d", seed, id, e.Generation, at[id])
					}
					at[id] = e.Generation
					heard[id] = append(heard[id], e)
				}
			}
		}
		for step := range 60 {
			id := fmt.Sprintf("j%d", rng.IntN(4))
			switch rng.IntN(8) {
			case 0, 1, 2:
				wish := fmt.Sprintf(`{"tp":%d,"rings":%d,"spares":%d,"policy":%q}`, 4*[]int{1, 2, 3, 4, 6, 8}[rng.IntN(6)], 1+rng.IntN(3), rng.IntN(2), []string{"wait", "wait", "shrink", "fail"}[rng.IntN(4)])
				if r := seen[rng.IntN(len(seen))]; rng.IntN(3) == 0 && len(r.Nodes)*4 == r.TP {
					wish = named(&r)
				}
				if r := w.put(id, wish); r.Code == proto.OK {
					if _, ok := at[id]; !ok {
						at[id] = 0
					}
				} else if r.Code != proto.Conflict {
					t.Fatalf("seed %d: %s: %+v", seed, wish, r)
				}
			case 3:
				w.release(id)
			case 4:
				if n := proto.NodeID(rng.IntN(len(w.nodes))); !dead[n] && len(dead) < 3 {
					dead[n] = true
					w.die(n)
				}
			case 5:
				for n := range dead { // any order
					delete(dead, n)
					w.birth(n, true)
					break
				}
			case 6:
				before := w.jobs()
				w.start()
				w.run(2 * time.Second)
				if after := w.jobs(); !sameRings(before, after) {
					t.Fatalf("seed %d, step %d: a planner began anew\n%s\nbefore\n%s\n%s", seed, step, after, before, w.show())
				}
			}
			w.run(time.Duration(rng.IntN(1500)) * time.Millisecond)
			watch()
			seen = append(seen, w.p.Jobs.Topology().Rings...)
			of := map[string]string{}
			for _, v := range listed(w.p) {
				for _, r := range v.Rings {
					if v.Wish.Ring != 0 && r.Ring != 0 && r.Ring != v.Wish.Ring {
						t.Fatalf("seed %d, step %d: job %s named ring %d and has %d", seed, step, v.ID, v.Wish.Ring, r.Ring)
					}
					for _, n := range r.Nodes {
						if of[n] != "" {
							t.Fatalf("seed %d, step %d: node %s is of %s and %s", seed, step, n, of[n], v.ID)
						}
						of[n] = v.ID
					}
				}
				for _, n := range v.Spares {
					if of[n] != "" {
						t.Fatalf("seed %d, step %d: node %s is of %s and a spare of %s", seed, step, n, of[n], v.ID)
					}
					of[n] = v.ID
				}
				if v.State == job.Ready && (v.Confirmed != v.Links || v.GPUsTotal == 0) {
					t.Fatalf("seed %d: ready with %+v", seed, v)
				}
			}
		}
		for n := range dead { // any order
			w.birth(n, true)
		}
		for id := range at {
			w.release(id)
		}
		w.run(30 * time.Second)
		watch()
		if want := w.fab.TargetRings(); len(w.p.Rings.Placed.Statuses()) != want || slices.ContainsFunc(w.p.Rings.Placed.Statuses(), func(r proto.RingStatus) bool { return r.State != proto.RingInService }) {
			t.Errorf("seed %d: %d rings, want %d:\n%s", seed, len(w.p.Rings.Placed.Statuses()), want, w.show())
		}
		for id, list := range heard {
			if list[len(list)-1].Event != string(job.Released) {
				t.Errorf("seed %d: job %s ends with %s", seed, id, list[len(list)-1].Event)
			}
		}
	}
}

// jobs are those that have something, and what.
func (w *fleet) jobs() (out map[string][][]string) {
	out = map[string][][]string{}
	for _, v := range listed(w.p) {
		var rings [][]string
		for _, r := range v.Rings {
			if len(r.Nodes) > 0 {
				rings = append(rings, r.Nodes)
			}
		}
		out[v.ID] = rings
	}
	return out
}

// sameRings: nothing that a job had is with another now, and who had all has all.
func sameRings(before, after map[string][][]string) bool {
	for id, rings := range before {
		if _, there := after[id]; !there {
			return false
		}
		for _, nodes := range rings {
			for other, theirs := range after {
				for _, list := range theirs {
					if other != id && slices.ContainsFunc(nodes, func(n string) bool { return slices.Contains(list, n) }) {
						return false
					}
				}
			}
		}
	}
	return true
}

// Goal: who places jobs sees every ring and node as they stand, and why a node
// is not well; a list of nodes says them in the short form.
// Method: a job on the nodes of a list; a node dies, one is taken out, one falls
// silent.
func TestTopologyIsHowTheFabricStands(t *testing.T) {
	p := fabric.Params{Name: "f", Nodes: 16, GPUsPerNode: 4, K: 2, TP: 16, Spares: 4}
	for id := range p.Nodes {
		p.NodeNames = append(p.NodeNames, fmt.Sprintf("n%02d", id))
	}
	w := started(t, p)
	if r := w.put("a", `{"tp":32,"nodes":["n[00-05]","n[06,07]"]}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	if r := w.put("b", `{"tp":16,"nodes":["n[00-99]"]}`); r.Code != proto.Invalid || r.Field != "nodes[0]" {
		t.Errorf("%+v", r)
	}
	w.run(2 * time.Second)
	w.die(10)
	w.offline(12)
	w.run(3 * time.Second)
	if r := w.ask(proto.OpRequest{Noun: proto.NounDrain, Bundle: -1, Node: 15, Reason: "a fan"}); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	top := w.p.Jobs.Topology()
	if len(top.Nodes) != 16 || top.GPUsPerNode != 4 || top.TP != 16 {
		t.Errorf("%+v", top)
	}
	on := map[string]int{}
	for _, r := range top.Rings {
		for at, host := range r.Nodes {
			n := top.Nodes[node(host[1:])]
			if on[host]++; n.Ring != r.Ring || n.Position == nil || *n.Position != at || n.Host != host {
				t.Errorf("%+v at %d of %+v", n, at, r)
			}
		}
		if r.Job == "a" && (r.TP != 32 || r.GPUs != 32 || r.State != proto.RingInService.String() || len(r.Nodes) != 8 || r.Nodes[0] > "n07") || r.Job != "a" && r.TP != 16 {
			t.Errorf("%+v", r)
		}
	}
	for i, want := range map[int]job.Standing{0: job.Well, 10: job.Lost, 12: job.Silent, 15: job.Drained} {
		if n := top.Nodes[i]; n.State != want || (n.Cause == "") != (want == job.Well) {
			t.Errorf("%+v, want %s", n, want)
		}
	}
	if n := top.Nodes[15]; !strings.Contains(n.Cause, "a fan") || on["n15"] != 0 || on["n00"] != 1 {
		t.Errorf("%+v: %v", n, on)
	}
}

// listed are all jobs that are not released.
func listed(p *Planner) []*job.View {
	all, _ := p.Jobs.List(0, 1<<20, func(*job.Wish) bool { return true })
	return all
}

// Goal: a ring that the store has for a job of which nobody knows, as after a death between
// two records of a release, is stock again when a planner begins.
// Method: the job's own records are taken out of the store.
func TestRingsOfNobodyAreGivenBack(t *testing.T) {
	w := small(t, 64, 2, 32, 8)
	if r := w.put("a", `{"tp":32,"rings":2}`); r.Code != proto.OK || w.job("a").State != job.Ready {
		t.Fatalf("%+v", r)
	}
	_, dark := w.standing()
	gone := []Record{{Key: "wish/a"}}
	for _, r := range w.state() {
		if strings.HasPrefix(r.Key, "told/a/") {
			gone = append(gone, Record{Key: r.Key})
		}
	}
	w.write(gone)
	w.listens = true
	w.start()
	w.run(20 * time.Second)
	for _, r := range w.p.Jobs.Topology().Rings {
		if r.Job != "" {
			t.Errorf("ring %d is for job %q", r.Ring, r.Job)
		}
	}
	for _, r := range w.state() {
		if strings.HasPrefix(r.Key, "ring/") && strings.Contains(string(r.Value), `"job"`) {
			t.Errorf("the store has %s", r.Value)
		}
	}
	if _, now := w.standing(); fmt.Sprint(now) != fmt.Sprint(dark) {
		t.Errorf("light changed: %v, before %v", now, dark)
	}
	if r := w.put("b", `{"tp":32,"rings":7}`); r.Code != proto.OK || w.job("b").State != job.Ready {
		t.Errorf("all rings: %+v, %+v", r, w.job("b"))
	}
}

// Goal: what is shown of a job before a planner knows of its light is said to be of before.
// Method: a planner begins anew on the store of one whose job is ready.
func TestJobAsItWasLeftIsSaidToBe(t *testing.T) {
	w := small(t, 24, 2, 16, 2)
	w.put("a", `{"tp":16}`)
	if v := w.job("a"); v.State != job.Ready || v.Cause != "" {
		t.Fatalf("%+v", v)
	}
	w.start()
	if v := w.job("a"); v.State != job.Ready || v.GPUsTotal != 0 || !strings.HasPrefix(v.Cause, "as a planner before this one left it: ") {
		t.Errorf("%+v", v)
	}
	w.run(20 * time.Second)
	if v := w.job("a"); v.State != job.Ready || v.GPUsTotal != 16 || v.Cause != "" {
		t.Errorf("%+v", v)
	}
}
