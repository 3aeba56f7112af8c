package isolate

import (
	"cmp"
	"slices"
	"testing"

	"ringlight/mzi/detmath"
)

// open is a core of so many single GPUs whose links nobody owns.
func open(gpus int) Core { return Core{GPUsPerServer: 1, Servers: []int{gpus}} }

// ids are the jobs that start.
func ids(starts []Start) []JobID {
	var out []JobID
	for _, s := range starts {
		out = append(out, s.Job.ID)
	}
	return out
}

// Goal: each order starts whom it should.
// Method: 10 GPUs, of which 6 are busy until 100; jobs submitted in the order
// of their numbers; the answers are worked out by hand.
func TestOrders(t *testing.T) {
	jobs := []Job{
		{ID: 1, GPUs: 8, DurationMS: 50, DeadlineMS: 500},
		{ID: 2, GPUs: 2, DurationMS: 100}, // as long as the head waits
		{ID: 3, GPUs: 2, DurationMS: 101, DeadlineMS: 900},
		{ID: 4, GPUs: 1, DurationMS: 1000, DeadlineMS: 400},
		{ID: 5, GPUs: 1, DurationMS: 60, DeadlineMS: 300},
	}
	for _, c := range []struct {
		order      Order
		now, at100 []JobID
	}{
		{FIFO, nil, []JobID{1, 2}},                // the head needs 8 of 4
		{Fewest, []JobID{4, 5, 2}, []JobID{3}},    // 1, 1, 2, then 2 does not fit; at 100 the 8 do not
		{EDF, []JobID{5, 4}, []JobID{1}},          // then 8 blocks; 1 + 8 of 10 leave 1 for 2
		{EASY, []JobID{2, 3}, []JobID{1}},         // 3 ends late, beside the head: 8 + 2
		{Conservative, []JobID{2, 3}, []JobID{1}}, // the same here
	} {
		q := NewQueue(open(10).Empty(), Rules{Order: c.order})
		if err := q.Submit(Job{ID: 9, GPUs: 6, DurationMS: 100}); err != nil {
			t.Fatal(err)
		}
		q.Start(0)
		for _, j := range jobs {
			if err := q.Submit(j); err != nil {
				t.Fatal(err)
			}
		}
		if got := ids(q.Start(0)); !slices.Equal(got, c.now) {
			t.Errorf("%v: %v start, want %v", c.order, got, c.now)
		}
		for _, id := range []JobID{9, 2, 5} {
			if q.Runs(id) {
				q.Finished(id)
			}
		}
		if got := ids(q.Start(100)); !slices.Equal(got, c.at100) {
			t.Errorf("%v: %v start at 100, want %v", c.order, got, c.at100)
		}
	}
}

// Goal: conservative backfill delays nobody, EASY only the head.
// Method: a job that EASY lets pass and that would delay the second one.
func TestConservativeProtectsAll(t *testing.T) {
	for order, want := range map[Order][]JobID{EASY: {4}, Conservative: nil} {
		q := NewQueue(open(10).Empty(), Rules{Order: order})
		for _, j := range []Job{{ID: 9, GPUs: 8, DurationMS: 100}, {ID: 1, GPUs: 5, DurationMS: 100}, {ID: 2, GPUs: 5, DurationMS: 100}, {ID: 4, GPUs: 2, DurationMS: 150}} {
			if err := q.Submit(j); err != nil {
				t.Fatal(err)
			}
			if j.ID == 9 {
				q.Start(0)
			}
		}
		if got := ids(q.Start(0)); !slices.Equal(got, want) {
			t.Errorf("%v: %v pass", order, got)
		}
	}
}

// Goal: a head that fails is counted once, by cause.
func TestBlockedIsCountedOnce(t *testing.T) {
	q := NewQueue(Core{GPUsPerServer: 1, Servers: []int{2, 2}, Links: [][]int{{1, 1}, {1, 1}}}.Empty(), Rules{})
	submit := func(id JobID, gpus int) {
		if err := q.Submit(Job{ID: id, GPUs: gpus, DurationMS: 1}); err != nil {
			t.Fatal(err)
		}
		q.Start(0)
	}
	submit(1, 1)
	submit(2, 1) // beside 1, under leaf 0
	submit(3, 1)
	submit(4, 2) // one GPU is idle
	submit(5, 1)
	if b := q.Blocked(); b != (Blocked{GPU: 1}) || q.Why(4) != ByGPU || q.Why(5) != Fits {
		t.Errorf("%+v, %v, %v", b, q.Why(4), q.Why(5))
	}
	q.Start(1)
	q.Finished(1) // one idle at each leaf
	q.Start(2)
	if b := q.Blocked(); b != (Blocked{GPU: 2}) || !q.Runs(4) { // 5 is the head now
		t.Errorf("%+v, runs: %v", b, q.Runs(4))
	}
}

// Goal: whoever was passed 20 times becomes the head and blocks.
func TestPatienceEnds(t *testing.T) {
	q := NewQueue(open(4).Empty(), Rules{Order: Fewest})
	for _, j := range []Job{{ID: 1000, GPUs: 1, DurationMS: 1e6}, {ID: 1001, GPUs: 4, DurationMS: 10}} {
		if err := q.Submit(j); err != nil {
			t.Fatal(err)
		}
		q.Start(0)
	}
	started := 0
	for id := JobID(1); id <= 30; id++ {
		if err := q.Submit(Job{ID: id, GPUs: 1, DurationMS: 10}); err != nil {
			t.Fatal(err)
		}
		if got := q.Start(int64(id)); len(got) > 0 {
			started++
			q.Finished(id)
		}
	}
	if started != Patience || q.Waiting()[0].ID != 1001 {
		t.Fatalf("%d passed, then %v", started, q.Waiting()[0])
	}
	q.Finished(1000)
	if got := ids(q.Start(100)); len(got) != 1 || got[0] != 1001 {
		t.Errorf("%v", got)
	}
}

// Goal: under EASY no head starts later than it would if nobody passed it,
// when durations are as declared.
// Method: random jobs on cores with and without optics. When a head first
// fails, the earliest end after which it could be placed is found by letting
// what runs end on a copy; the head must start then or before.
func TestEASYDelaysNoHead(t *testing.T) {
	heads := 0
	for seed := range uint64(scale(12)) {
		r := detmath.Stream(21, seed)
		c := Clos(6, 8, 2, 8)
		if seed%2 == 0 {
			c = Optical(6, 8, 2, 4, 8)
		}
		q := NewQueue(c.Empty(), Rules{Order: EASY})
		promise, ends := map[JobID]int64{}, map[JobID]int64{}
		soonest := func() JobID {
			first := JobID(0)
			for id, at := range ends {
				if first == 0 || cmp.Or(cmp.Compare(at, ends[first]), cmp.Compare(id, first)) < 0 {
					first = id
				}
			}
			return first
		}
		for id, now := JobID(1), int64(0); id <= 150 || len(ends) > 0; {
			if next := soonest(); next != 0 && (id > 150 || r.Below(2) == 0) {
				now = ends[next]
				delete(ends, next)
				q.Finished(next)
			} else if err := q.Submit(Job{ID: id, GPUs: 1 << r.Below(6), DurationMS: int64(1 + r.Below(100))}); err == nil {
				id++
			} else {
				id++
				continue
			}
			for _, s := range q.Start(now) {
				ends[s.Job.ID] = now + s.Job.DurationMS
				if at, ok := promise[s.Job.ID]; ok && now > at {
					t.Fatalf("seed %d: job %d was the head, had place at %d and starts at %d", seed, s.Job.ID, at, now)
				}
			}
			if len(q.waiting) > 0 && promise[q.waiting[0].ID] == 0 && q.waiting[0].Passed < Patience {
				heads++
				promise[q.waiting[0].ID] = alone(q.State().Clone(), ends, q.waiting[0].GPUs)
			}
		}
		if len(q.Waiting()) > 0 {
			t.Fatalf("%d wait for ever", len(q.Waiting()))
		}
	}
	if heads < 100 {
		t.Errorf("%d heads", heads)
	}
}

// alone is when a job can be placed if nothing else starts.
func alone(s *State, ends map[JobID]int64, gpus int) int64 {
	jobs := s.Jobs()
	slices.SortFunc(jobs, func(a, b JobID) int { return cmp.Compare(ends[a], ends[b]) })
	for n, id := range jobs {
		s.Release(id)
		if n+1 < len(jobs) && ends[jobs[n+1]] == ends[id] {
			continue
		}
		if _, why := s.Place(gpus); why == Fits {
			return ends[id]
		}
	}
	return 1 << 60
}

// Goal: one job is moved, the smallest that allows it and helps, and only with
// leave.
// Method: three leaves of two servers; each has one small job, so that no two
// idle servers are under one leaf and no links are left between them.
func TestMovesMakeRoom(t *testing.T) {
	c := Core{GPUsPerServer: 2, Servers: []int{2, 2, 2}, Links: fill(3, 1, 0)}
	c.Links[0][0] = 1
	at := func(leaf, gpus int) Placement {
		return Placement{GPUs: gpus, Servers: []Server{{leaf, 0, gpus}}, L: 1}
	}
	for _, x := range []struct {
		rules Rules
		pause [3]int64
		want  []JobID
	}{
		{Rules{}, [3]int64{50, 50, 50}, nil},
		{Rules{MoveMS: 50}, [3]int64{0, 0, 0}, nil},
		{Rules{MoveMS: 50}, [3]int64{49, 50, 50}, []JobID{2}},
		{Rules{MoveMS: 50}, [3]int64{50, 50, 50}, []JobID{1}},
	} {
		q := NewQueue(c.Empty(), x.rules)
		for n, p := range []Placement{at(0, 1), at(1, 1), at(2, 2)} {
			if err := q.Adopt(Job{ID: JobID(n + 1), GPUs: p.GPUs, DurationMS: 1000, MayPauseMS: x.pause[n]}, p, 1000); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Submit(Job{ID: 9, GPUs: 4, DurationMS: 10}); err != nil {
			t.Fatal(err)
		}
		starts := q.Start(0)
		if len(x.want) == 0 {
			if len(starts) != 0 || q.Blocked().Network != 1 {
				t.Errorf("%+v: %+v", x, starts)
			}
			continue
		}
		if len(starts) != 1 || len(starts[0].Moves) != 1 || starts[0].Moves[0].Job != x.want[0] {
			t.Fatalf("%+v: %+v", x, starts)
		}
		now, _ := q.State().Of(x.want[0])
		if to := starts[0].Moves[0].To; !slices.Equal(now.Servers, to.Servers) || slices.Equal(to.Servers, starts[0].Moves[0].From.Servers) {
			t.Errorf("%+v is at %+v", starts[0].Moves[0], now)
		}
		ledger(t, q.State())
	}
}

// Goal: a queue that is told where its jobs are decides as the one that put
// them there.
func TestAdoptedQueueGoesOn(t *testing.T) {
	r := detmath.Stream(31, 0)
	a := NewQueue(defaultCore().Empty(), Rules{Order: EASY})
	ends := map[JobID]int64{}
	jobs := map[JobID]Job{}
	for id := JobID(1); id <= 120; id++ {
		j := Job{ID: id, GPUs: 1 << r.Below(8), DurationMS: int64(10 + r.Below(1000))}
		jobs[id] = j
		if err := a.Submit(j); err != nil {
			t.Fatal(err)
		}
		for _, s := range a.Start(int64(id)) {
			ends[s.Job.ID] = int64(id) + s.Job.DurationMS
		}
	}
	b := NewQueue(defaultCore().Empty(), Rules{Order: EASY})
	for _, id := range a.State().Jobs() {
		p, _ := a.State().Of(id)
		if err := b.Adopt(jobs[id], p, ends[id]); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range a.Waiting() {
		if err := b.Submit(j); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Adopt(jobs[1], Placement{}, 0); err == nil {
		t.Error("a job was adopted twice")
	}
	for n, id := range a.State().Jobs() {
		a.Finished(id)
		b.Finished(id)
		if x, y := ids(a.Start(2000+int64(n))), ids(b.Start(2000+int64(n))); !slices.Equal(x, y) {
			t.Fatalf("%v and %v", x, y)
		}
	}
}

// Goal: what can never be placed is refused with field and limit, and so is
// what is there already.
func TestSubmitRefuses(t *testing.T) {
	q := NewQueue(Clos(4, 8, 4, 4).Empty(), Rules{})
	if err := q.Submit(Job{ID: 7, GPUs: 1, DurationMS: 1}); err != nil {
		t.Fatal(err)
	}
	for field, j := range map[string]Job{
		"gpus_total":   {ID: 1, GPUs: 20, DurationMS: 1}, // five leaves of four
		"duration_ms":  {ID: 1, GPUs: 1},
		"deadline_ms":  {ID: 1, GPUs: 1, DurationMS: 1, DeadlineMS: -1},
		"may_pause_ms": {ID: 1, GPUs: 1, DurationMS: 1, MayPauseMS: -1},
		"job":          {ID: 7, GPUs: 1, DurationMS: 1},
	} {
		err, ok := q.Submit(j).(*Error)
		if !ok || err.Field != field || err.Limit == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	if q.Submit(Job{ID: 2, GPUs: 0, DurationMS: 1}) == nil || q.Submit(Job{ID: 2, GPUs: 64, DurationMS: 1}) == nil {
		t.Error("0 or 64 of 32 GPUs were accepted")
	}
	if got := ids(q.Start(0)); len(got) != 1 || got[0] != 7 {
		t.Errorf("%v", got)
	}
}
