package planner

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// With fixed links there is no switch to tell: jobs get servers, links and
// routes at once, wait where there are none, and the next life of the planner
// knows all of it.
// Method: a core of 4 x 4 with two links a pair; jobs that fill it, one that
// waits; the planner starts again; jobs end.
func TestJobsAloneOnFixedLinks(t *testing.T) {
	w := startedWorld(t, leafSpine(4, 4, 8, 2, 0))
	if r := w.apply(alone(1, 16), alone(2, 1), alone(3, 12), alone(4, 16)); r.Code != proto.OK || r.Change.Placed != 3 || len(r.Change.Waiting) != 1 || r.Change.Stages != 0 {
		t.Fatalf("%+v %+v\n%s", r, r.Change, w.show())
	}
	before := w.show()
	tables := w.tables(1)
	ups := map[[2]uint16]bool{}
	for _, id := range []proto.JobID{1, 3} {
		for _, x := range w.tables(id) {
			for _, s := range x.Sends {
				if up := [2]uint16{x.Number, s.Uplink}; ups[up] || s.Uplink >= 8 || s.Port >= 8 {
					t.Errorf("uplink %v twice, or none: %+v", up, s)
				} else {
					ups[up] = true
				}
			}
		}
	}
	if len(ups) != 16+12 || w.shared() != "" {
		t.Errorf("%d uplinks; %s", len(ups), w.shared())
	}
	w.start()
	w.run(20 * time.Second)
	if again := w.show(); again != before || len(w.tables(1)) != len(tables) {
		t.Errorf("%s\nthen\n%s", before, again)
	}
	if j := w.jobs()[3]; j.State != proto.JobWaiting || j.Cause != proto.WaitGPU {
		t.Errorf("%+v", j)
	}
	if r := w.apply(alone(2, 1), alone(3, 12), alone(4, 16)); r.Code != proto.OK || r.Change.Placed != 3 {
		t.Errorf("%+v", r.Change)
	}
	if j := w.jobs()[2]; j.State != proto.JobRealised || j.Reason != "" || j.Cause != proto.WaitUnknown {
		t.Errorf("%+v", j)
	}
}

// A planner whose store is lost adopts the light: nobody takes its ports or the
// servers of its leaves until a list without the job.
// Method: two jobs over spines, the store is emptied, the planner starts; the
// list with two more, of which one finds the leaf without light, a list without.
func TestLightOfALostStoreIsAdoptedAlone(t *testing.T) {
	w := startedWorld(t, leafSpine(4, 4, 8, 2, 8))
	w.apply(alone(1, 12), alone(2, 12))
	if !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	lit := func() int {
		n := 0
		for s := range w.switches {
			for _, x := range w.switches[s].light { // any order: a sum
				if x.job == 1 || x.job == 2 {
					n++
				}
			}
		}
		return n
	}
	before := lit()
	clear(w.store)
	w.start()
	if !w.quiet(time.Minute) || before == 0 || lit() != before {
		t.Fatalf("%d circuits, then %d\n%s", before, lit(), w.show())
	}
	for _, j := range w.jobs() {
		if j.State != proto.JobAdopted {
			t.Errorf("%+v", j)
		}
	}
	w.apply(alone(1, 12), alone(2, 12), alone(3, 8), alone(4, 2))
	if !w.quiet(time.Minute) || lit() != before || w.jobs()[2].State != proto.JobRealised || w.jobs()[3].Cause != proto.WaitGPU {
		t.Errorf("%d circuits, then %d\n%s", before, lit(), w.show())
	}
	for s := range w.switches {
		for a := range w.switches[s].light { // any order: each by itself
			if int(a) == int(w.jobs()[2].Servers[0].Leaf) { // a leaf has one port of each switch
				t.Errorf("job 3 is at leaf %d, which has light of others", a)
			}
		}
	}
	w.apply(alone(3, 8))
	if !w.quiet(time.Minute) || lit() != 0 || w.jobs()[0].State != proto.JobRealised {
		t.Errorf("%d circuits\n%s", lit(), w.show())
	}
	if d := w.consistent(); d != "" {
		t.Error(d)
	}
}

// Ports of spines that carry light of an adopted job are nobody else's.
// Method: one spine, whose ports two jobs over it use up; the store is emptied;
// one job leaves the list, and one comes that only its ports suffice for.
func TestSpinePortsOfALostStoreAreKept(t *testing.T) {
	core := leafSpine(6, 1, 4, 2, 2)
	core.AnyToAny = false
	w := startedWorld(t, core)
	w.apply(alone(1, 8), alone(2, 8))
	if !w.quiet(10*time.Second) || w.p.Core.Status().Realised != 16 {
		t.Fatal(w.show())
	}
	kept := map[circuitAt]bool{}
	for s := range w.switches {
		for a, x := range w.switches[s].light { // any order: a set
			if x.job == 1 {
				kept[circuitAt{s, a, x.b}] = true
			}
		}
	}
	clear(w.store)
	w.start()
	if !w.quiet(time.Minute) {
		t.Fatal(w.show())
	}
	w.apply(alone(1, 8), alone(3, 8), alone(4, 8))
	if !w.quiet(time.Minute) {
		t.Fatal(w.show())
	}
	for at := range kept { // any order: each by itself
		if x := w.switches[at.sw].light[at.a]; x.b != at.b || x.job != 1 {
			t.Errorf("%+v of job 1 is %+v", at, x)
		}
	}
	if j := w.jobs(); j[1].State != proto.JobRealised || j[2].State != proto.JobRealised {
		t.Error(w.show())
	}
	if d := w.consistent(); d != "" {
		t.Error(d)
	}
}

// A job gets no port of a switch that cannot be told: it goes round it, or
// waits for the network and says so; when the switch is back it starts.
// Method: one of two switches dies before a job comes that does without it, and
// one that does not.
func TestJobsGoRoundASwitchThatIsAway(t *testing.T) {
	core := leafSpine(4, 1, 4, 2, 2)
	core.AnyToAny = false
	w := startedWorld(t, core)
	w.die(0)
	w.run(time.Second)
	w.apply(alone(1, 6))
	if !w.quiet(time.Minute) || w.jobs()[0].State != proto.JobRealised || len(w.switches[0].light) > 0 {
		t.Fatalf("%s", w.show())
	}
	generation := w.p.Core.Status().Generation
	w.apply(alone(1, 6), alone(2, 8))
	w.run(time.Minute)
	if j := w.jobs()[1]; j.State != proto.JobWaiting || j.Cause != proto.WaitNetwork || !strings.Contains(j.Reason, "1 switches cannot be told") || w.p.Core.Status().Generation != generation {
		t.Errorf("%+v\n%s", j, w.show())
	}
	w.birth(0)
	if !w.quiet(time.Minute) || w.jobs()[1].State != proto.JobRealised {
		t.Error(w.show())
	}
}

// Two records that give one thing to two jobs are damage, and are refused by
// name before anything is done.
// Method: the second job's seat is the first's.
func TestOneSeatForTwoJobsIsRefused(t *testing.T) {
	w := startedWorld(t, leafSpine(4, 4, 8, 2, 8))
	w.apply(alone(1, 12), alone(2, 12))
	if !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	one, two := string(w.store["job/0000000001"]), string(w.store["job/0000000002"])
	seat := func(s string) string { return s[strings.Index(s, `"own"`):strings.Index(s, `"turn"`)] }
	w.store["job/0000000002"] = []byte(strings.Replace(two, seat(two), seat(one), 1))
	var st State
	for k, v := range w.store { // any order: sorted below
		st = append(st, Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	if _, err := Start(st, w.fab, 7); err == nil || !strings.Contains(err.Error(), "job/0000000002") {
		t.Errorf("%v", err)
	}
}

// A seat whose numbers are spoilt is refused, or does no harm: nothing panics.
// Method: every number of the record of a job, over spines, joined directly and
// in a server, becomes -1, 3 and a large one; who starts is
// asked for tables and given a list.
func TestSpoiltSeatsAreRefusedOrDoNoHarm(t *testing.T) {
	number := regexp.MustCompile(`-?\d+`)
	refused, lived := 0, 0
	for _, direct := range []bool{true, false} {
		core := leafSpine(4, 4, 8, 2, 8)
		core.AnyToAny = direct
		w := startedWorld(t, core)
		w.apply(alone(1, 12), alone(2, 1))
		if !w.quiet(10 * time.Second) {
			t.Fatal(w.show())
		}
		for _, key := range []string{"job/0000000001", "job/0000000002"} {
			was := string(w.store[key])
			for _, at := range number.FindAllStringIndex(was, -1) {
				for _, put := range []string{"-1", "3", "99999999"} {
					w.store[key] = []byte(was[:at[0]] + put + was[at[1]:])
					st := State{}
					for k, v := range w.store { // any order: sorted below
						st = append(st, Record{Key: k, Value: v})
					}
					slices.SortFunc(st, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
					if _, err := Start(st, w.fab, 7); err != nil {
						refused++
						continue
					}
					lived++
					other := startedStore(t, core, w.store)
					other.tell(proto.OpRequest{Noun: proto.NounTables})
					other.tell(proto.OpRequest{Noun: proto.NounJob, Job: 1})
					other.apply(alone(1, 12), alone(2, 1), alone(3, 8))
					other.run(time.Second)
				}
			}
			w.store[key] = []byte(was)
		}
	}
	if refused < 100 || lived == 0 {
		t.Errorf("%d refused, %d lived with", refused, lived)
	}
}

// startedStore is a planner that has looked round with this store, and no
// switch.
func startedStore(t testing.TB, core *fabric.Core, store map[string][]byte) *coreWorld {
	w := newCoreWorld(t, core)
	for k, v := range store { // any order: into a map
		w.store[k] = v
	}
	w.start()
	w.run(30 * time.Second)
	return w
}

// Tables that fill no message come in several pages, each once.
// Method: a job of 16,384 GPUs, over the wire.
func TestTablesComeInPages(t *testing.T) {
	w := startedWorld(t, leafSpine(16, 1024, 1024, 4, 0))
	if r := w.apply(alone(1, 16384)); r.Code != proto.OK || r.Change.Placed != 1 {
		t.Fatalf("%+v", r)
	}
	var got []proto.RoutingTable
	pages := 0
	for q := (proto.OpRequest{Noun: proto.NounTables}); ; pages++ {
		r := w.ask(q)
		if r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		got = append(got, r.Tables...)
		if q.Page = r.Next; q.Page == 0 {
			break
		}
	}
	want := w.tables(1)
	if len(got) != len(want) || len(want) != 16+1024 || pages < len(want)/proto.MaxPage+1 {
		t.Fatalf("%d tables of %d in %d pages", len(got), len(want), pages+1)
	}
	for n := range want {
		if got[n].Job != want[n].Job || got[n].Spine != want[n].Spine || got[n].Virtual != want[n].Virtual {
			t.Fatalf("table %d is %+v, want %+v", n, got[n], want[n])
		}
	}
}

// A job moves only where the fabric moves jobs and the job may pause so long;
// then the head of the queue finds room.
// Method: two jobs of a server each on two leaves of two servers, so that a
// third of two servers finds no leaf, and no spine has ports for it.
func TestJobsMoveOnlyWhereTheyMay(t *testing.T) {
	for _, c := range []struct {
		move  int
		pause uint64
		moved bool
	}{{0, 5000, false}, {1000, 0, false}, {1000, 999, false}, {1000, 1000, true}} {
		core := leafSpine(2, 1, 4, 2, 0)
		core.MoveMillis = c.move
		w := startedWorld(t, core)
		small := func(id int) proto.JobSpec {
			s := alone(id, 2)
			s.MayPauseMillis = c.pause
			return s
		}
		w.apply(small(1), small(2), small(3), small(4))
		w.apply(small(1), small(3))
		before := w.owners()
		r := w.apply(small(1), small(3), alone(5, 4))
		if got := r.Change.Placed == 3; got != c.moved {
			t.Errorf("%+v: %+v\n%s", c, r.Change, w.show())
		}
		same := true
		for n, o := range w.owners()[:2] {
			same = same && o.Own.Servers[0] == before[n].Own.Servers[0]
		}
		if same == c.moved || w.shared() != "" {
			t.Errorf("%+v: moved %v; %s\n%s", c, !same, w.shared(), w.show())
		}
	}
}

// The queue's policy decides who is next, and what each waits for is said.
// Method: a leaf of 16 GPUs, of which 12 are taken and 4 are free; a job of all
// of them waits, then a short one and a long one with a deadline come.
func TestQueuePolicies(t *testing.T) {
	for queue, want := range map[fabric.Queue][]proto.JobID{ // any order: each by itself
		fabric.FIFO:         {1},
		fabric.Fewest:       {1, 3, 4},
		fabric.EDF:          {1, 4},
		fabric.EASY:         {1, 3},
		fabric.Conservative: {1, 3},
	} {
		core := leafSpine(1, 1, 16, 2, 0)
		core.Queue = queue
		w := startedWorld(t, core)
		job := func(id, gpus int, duration, deadline uint64) proto.JobSpec {
			s := alone(id, gpus)
			s.DurationMillis, s.DeadlineMillis = duration, deadline
			return s
		}
		first, head := job(1, 12, 100_000, 0), job(2, 16, 50_000, 0)
		w.apply(first)
		w.apply(first, head)
		w.apply(first, head, job(3, 2, 60_000, 0), job(4, 2, 400_000, 500_000))
		var got []proto.JobID
		for _, j := range w.jobs() {
			if j.State != proto.JobWaiting {
				got = append(got, j.Job)
			} else if j.Cause == proto.WaitUnknown {
				t.Errorf("%s: %+v", queue, j)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v run, want %v\n%s", queue, got, want, w.show())
		}
		for n := range min(len(got), len(want)) {
			if got[n] != want[n] {
				t.Errorf("%s: %v run, want %v", queue, got, want)
			}
		}
	}
}

// What cannot be asked for is refused by field and limit, and nothing is done.
// Method: one job each.
func TestBadJobsOfLeavesAndSpines(t *testing.T) {
	clos, optical := startedWorld(t, leafSpine(4, 4, 8, 2, 0)), startedWorld(t, leafSpine(4, 4, 8, 2, 8))
	with := func(s proto.JobSpec, change func(*proto.JobSpec)) proto.JobSpec {
		change(&s)
		return s
	}
	for _, c := range []struct {
		w     *coreWorld
		spec  proto.JobSpec
		field string
	}{
		{clos, alone(1, 16), ""},
		{clos, alone(1, 14), "jobs[0].dp"}, // no l x s with 2 | s <= 4
		{clos, with(alone(1, 0), func(s *proto.JobSpec) { s.Servers = 7 }), "jobs[0].servers"},
		{optical, alone(1, 14), ""},
		{optical, alone(1, 33), "jobs[0].dp"},
		{optical, with(alone(1, 4), func(s *proto.JobSpec) { s.Pods = []uint16{0} }), "jobs[0].pods"},
		{optical, with(alone(1, 4), func(s *proto.JobSpec) { s.DurationMillis = proto.MaxCount }), ""},
		{startedWorld(t, smallCore()), with(spec(1, 4, 4, 1), func(s *proto.JobSpec) { s.DurationMillis = 1 }), "jobs[0].duration_ms"},
	} {
		r := c.w.ask(proto.OpRequest{Noun: proto.NounApply, Jobs: []proto.JobSpec{c.spec}, DryRun: true})
		if r.Field != c.field || (c.field != "") != (r.Code == proto.Invalid && r.Limit != "") {
			t.Errorf("%+v: %v %q, want %q: %s (%s)", c.spec, r.Code, r.Field, c.field, r.Reason, r.Limit)
		}
		if len(c.w.jobs()) != 0 {
			t.Errorf("%+v: something was done", c.spec)
		}
	}
	if r := startedWorld(t, smallCore()).ask(proto.OpRequest{Noun: proto.NounTables}); r.Code != proto.Unsupported {
		t.Errorf("tables between pods: %+v", r)
	}
	if r := optical.ask(proto.OpRequest{Noun: proto.NounTables, Job: 9}); r.Code != proto.NotFound {
		t.Errorf("tables of nobody: %+v", r)
	}
}

// Goal: routes as text come in pages of the same routes, of a job that a planner can write
// down within a step; what has changed between two pages is asked for again.
// Method: jobs of 128 and of 160 GPUs, all pages; then a page after the list has changed.
func TestRoutesComeInPages(t *testing.T) {
	w := startedWorld(t, leafSpine(9, 32, 32, 4, 0))
	if r := w.apply(alone(1, 128), alone(2, 160)); r.Code != proto.OK || r.Change.Placed != 2 {
		t.Fatalf("%+v", r)
	}
	var text strings.Builder
	ask := func(id proto.JobID, page uint64) proto.OpReply {
		return w.ask(proto.OpRequest{Noun: proto.NounTables, Job: id, Name: proto.TablesAsRoutes, Page: page})
	}
	second := uint64(0)
	for page := uint64(0); ; {
		r := ask(1, page)
		if r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		text.WriteString(string(r.Text))
		if second == 0 {
			second = r.Next
			if r := ask(2, 0); r.Code != proto.Unsupported || r.Field != "job" { // in between
				t.Fatalf("%+v", r)
			}
		}
		if page = r.Next; page == 0 {
			break
		}
	}
	if out, err := job.WriteRoutes([]byte(text.String()), "iproute2"); err != nil || len(out) < 8 || text.Len() < 2*proto.MaxPart {
		t.Fatalf("%d bytes, %d devices: %v", text.Len(), len(out), err)
	}
	if r := w.apply(alone(1, 128)); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	if r := ask(1, second); r.Code != proto.OK { // where it was
		t.Fatalf("%+v", r)
	}
	if r := w.apply(alone(1, 96)); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	if r := ask(1, second); r.Code != proto.Conflict || r.Field != "page" {
		t.Fatalf("%+v", r)
	}
}
