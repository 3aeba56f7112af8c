package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/proto"
)

const (
	prefixWish = "wish/"      // keys of the store: a job, by its name
	prefixTold = "told/"      // Event, by the job's name and its number
	prefixNode = "told_node/" // an event of a node, by its number

	maxJobs = 16384 // live ones; chosen: a job for every fourth node of the largest fabric in use
	// maxReleased are remembered after their end, so that a client that asks again gets
	// the same answer. chosen.
	maxReleased = 256
	// tryEvery is how often those that wait are looked at without news. chosen.
	tryEvery = time.Second
	tryAgain = 10 * time.Millisecond // while a generation is under way; chosen: it takes as long
	// hurtWait is how long a ring may be short before a job that would not wait
	// for a node shrinks. chosen: many times what a spare needs to join.
	hurtWait = 2 * time.Second
)

// Prefixes are those of the records here.
var Prefixes = []string{prefixWish, prefixTold, prefixNode, prefixRouted}

// Table is all jobs of a fabric.
type Table struct {
	fab     func() *fabric.Fabric
	rings   hbd.Claims
	core    *core.Claims // nil: a fabric without one; it has a list of its own, in which jobs wait for their turn
	j       *journal.Journal
	busy    func() string // why nothing may be begun, "" when it may
	jobs    map[string]*job
	seq     uint64
	tryAt   time.Duration
	began   bool   // this planner has looked at all of them
	claim   *claim // under way; nil: none
	stored  uint64 // times that something was
	routers ledger
	lent    map[proto.JobID]*core.Lent // by the core when it moved last; nil: not asked since
	all     told
	paged   paged
}

// FieldRevision is named where a job is at another revision than it must be.
const FieldRevision = "If-Match"

// At says why a job is not at a revision, its last event; 0: any will do.
func (t *Table) At(id string, revision uint64) error {
	now := uint64(0)
	if x := t.jobs[id]; x != nil {
		now = x.Gen
	}
	if revision == 0 || revision == now {
		return nil
	}
	return &proto.Error{Code: proto.Conflict, Field: FieldRevision, Limit: strconv.Quote(strconv.FormatUint(now, 10)), Reason: fmt.Sprintf("job %.80s is not at %d any more", id, revision)}
}

// claim is a share that a generation brings.
type claim struct {
	id   string
	then job          // as the store has it when the generation is decided
	ring proto.RingID // one that it brings
}

// New makes a table without jobs.
func New(fab func() *fabric.Fabric, rings hbd.Claims, core *core.Claims, j *journal.Journal, busy func() string) *Table {
	t := &Table{fab: fab, rings: rings, core: core, j: j, busy: busy, jobs: map[string]*job{}, all: told{stands: map[proto.NodeID]Standing{}}, routers: ledger{}, tryAt: journal.Never}
	rings.Bar(t.barred)
	rings.Along(func(id string) bool {
		x := t.jobs[id]
		return x != nil && x.wish != nil && x.wish.Prefer == CrossToR
	})
	return t
}

// barred: a job must not have a node, by its wish.
func (t *Table) barred(id string, n proto.NodeID) bool {
	x := t.jobs[id]
	if x == nil || x.wish == nil {
		return false
	}
	if _, out := slices.BinarySearch(x.exclude, n); out {
		return true
	}
	_, in := slices.BinarySearch(x.only, n)
	return x.wish.Nodes != nil && !in
}

// Put asks for a job. The same wish under the same name is the same job.
func (t *Table) Put(id, text string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	w, err := parseWish(t.fab(), []byte(text))
	if err != nil {
		return err
	}
	old := t.jobs[id]
	if old != nil && !old.State.ended() {
		if same(old.wish, w) {
			return nil
		}
		return &proto.Error{Code: proto.Conflict, Field: "id", Limit: "the wish it was asked for with, or another name", Reason: fmt.Sprintf("job %s is %s with another wish", id, old.State)}
	}
	if err := t.Busy(); err != nil {
		return err
	}
	if live := t.live(); live >= maxJobs {
		return &proto.Error{Code: proto.Conflict, Field: "id", Limit: fmt.Sprintf("%d jobs", maxJobs), Reason: fmt.Sprintf("%d are there", live)}
	}
	if err := t.checkCore(id, w); err != nil {
		return err
	}
	if w.Ring != 0 {
		if s := t.rings.Share(w.want(t.fab(), 1, 0)); s.Gone {
			return &proto.Error{Code: proto.Conflict, Field: "ring", Limit: "one that stands on these nodes", Reason: s.Why}
		}
	}
	if w.Policy == Fail {
		if s := t.of(w).trial(id, w); !s.Feasible {
			return &proto.Error{Code: proto.Conflict, Field: w.kind(), Limit: fmt.Sprintf("%d now", s.Most), Reason: s.Why}
		}
	}
	t.seq++
	x := &job{ID: id, Text: text, Seq: t.seq, State: Waiting, Rings: make([]proto.RingID, w.Rings), Size: w.size(t.fab()), wish: w, at: t.j.Now}
	x.only, x.exclude = w.nodes(t.fab())
	if old != nil {
		x.Gen, x.events = old.Gen, old.events
	}
	t.told(x, Event{Event: string(Waiting)})
	t.jobs[id] = x
	t.j.Note(journal.Info, "job is asked for", journal.Note{Rule: "job", Node: -1, Cause: proto.CauseOperator, Text: proto.Clip("job " + id + ": " + w.String())})
	t.store(x, 1)
	t.tryAt = t.j.Now
	return nil
}

// same: two wishes ask for the same.
func same(a, b *Wish) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func (t *Table) live() (count int) {
	for _, x := range t.jobs { // any order: a count
		if !x.State.ended() {
			count++
		}
	}
	return count
}

// Try says what a wish would get now.
func (t *Table) Try(id, text string) (Trial, error) {
	if err := CheckID(id); err != nil {
		return Trial{}, err
	}
	w, err := parseWish(t.fab(), []byte(text))
	if err != nil {
		return Trial{}, err
	}
	if err := t.checkCore(id, w); err != nil {
		return Trial{}, err
	}
	return t.of(w).trial(id, w), nil
}

// checkCore says what is wrong with a wish for circuits, if it is one.
func (t *Table) checkCore(id string, w *Wish) error {
	if w.Circuits == nil {
		return nil
	}
	return circuitJobs{t}.check(id, w)
}

// Busy says what keeps the planner from its jobs, nil: nothing. Until then a job stands as
// a planner before this one left it, and nobody knows of its light.
func (t *Table) Busy() error {
	if why := t.busy(); why != "" {
		return &proto.Error{Code: proto.Busy, Field: proto.FieldPlanner, Limit: "one in service", Reason: "the planner is " + why}
	}
	return nil
}

// Drop releases a job for its owner. One that is released already stays so.
func (t *Table) Drop(id, owner string) error {
	x := t.jobs[id]
	switch {
	case x == nil:
		return noJob(id)
	case x.wish.OwnedBy(owner, id) != nil:
		return x.wish.OwnedBy(owner, id)
	case x.State.ended():
		return nil
	case t.Busy() != nil:
		return t.Busy()
	}
	records := t.of(x.wish).free(x)
	x.Rings, x.Once = nil, false
	t.seq++
	x.Seq = t.seq // who ended first is forgotten first
	t.enter(x, Released, "")
	t.store(x, 1, records...)
	t.tryAt = t.j.Now
	t.forget()
	return nil
}

// OwnedBy says why the job of a wish is not that owner's to change, nil where it is.
func (w *Wish) OwnedBy(owner, id string) error {
	if w.Owner == owner {
		return nil
	}
	return &proto.Error{Code: proto.Conflict, Field: "owner", Limit: cmp.Or(w.Owner, "none"), Reason: fmt.Sprintf("job %s is not of %.80q", id, owner)}
}

func noJob(id string) error {
	return &proto.Error{Code: proto.NotFound, Field: "id", Limit: "a job that is there", Reason: fmt.Sprintf("no job %.80q", id)}
}

// forget drops the oldest of those that are released.
func (t *Table) forget() {
	var ended []*job
	for _, x := range t.jobs { // any order: sorted below
		if x.State.ended() {
			ended = append(ended, x)
		}
	}
	if len(ended) <= maxReleased {
		return
	}
	slices.SortFunc(ended, func(a, b *job) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, x := range ended[:len(ended)-maxReleased] {
		records := []journal.Record{{Key: prefixWish + x.ID}}
		for i := range x.events {
			records = append(records, journal.Record{Key: toldKey(x.ID, x.events[i].Generation)})
		}
		delete(t.jobs, x.ID)
		t.j.Persist(records...)
	}
}

// enter begins a state.
func (t *Table) enter(x *job, s State, cause string) {
	x.State, x.Cause = s, cause
	e := Event{Event: string(s), Cause: cause}
	if s == Degraded || s == Ready || s == Down {
		e.GPUsTotal = x.gpus
	}
	t.told(x, e)
	level := journal.Info
	if s == Degraded || s == Down {
		level = journal.Warn
	}
	text := "job " + x.ID + " is " + string(s)
	if cause != "" {
		text += ": " + cause
	}
	t.j.Note(level, "job is "+string(s), journal.Note{Rule: "job", Node: -1, Text: proto.Clip(text)})
}

// nodeKey is not one of prefixTold: a planner of a release before, which knows events of jobs
// alone, passes it over when an upgrade is taken back.
func nodeKey(number uint64) string { return fmt.Sprintf("%s%016d", prefixNode, number) }

func toldKey(id string, gen uint64) string { return prefixTold + id + "/" + fmt.Sprintf("%016d", gen) }

// records is a job and its last events as the store is to have them.
func (x *job) records(events int) []journal.Record {
	out := []journal.Record{journal.Encode(prefixWish+x.ID, x)}
	for i := len(x.events) - events; i < len(x.events); i++ {
		out = append(out, journal.Encode(toldKey(x.ID, x.events[i].Generation), &x.events[i]))
	}
	return out
}

// store writes a job and its last events down.
func (t *Table) store(x *job, events int, more ...journal.Record) {
	for i := len(x.events) - events; i < len(x.events); i++ {
		if e := &x.events[i]; e.Number == 0 {
			t.all.last++
			e.Number = t.all.last
			t.all.add(x.ID, *e)
		}
	}
	records := append(more, x.records(events)...)
	for len(x.events) > maxEvents || x.handedOver() > maxHandOvers {
		records = append(records, journal.Record{Key: toldKey(x.ID, x.events[0].Generation)}) // forgotten
		x.events = slices.Delete(x.events, 0, 1)
	}
	t.stored++
	t.j.Persist(records...)
}

// News counts what has happened to any job.
func (t *Table) News() uint64 {
	if t.core != nil {
		return t.stored + t.core.DrainNews()
	}
	return t.stored
}

// Member is a node of an owner's job by its name.
func (t *Table) Member(id, owner string, name Name) (proto.NodeID, error) {
	x := t.jobs[id]
	if x == nil {
		return 0, noJob(id)
	}
	if err := x.wish.OwnedBy(owner, id); err != nil {
		return 0, err
	}
	n, ok := t.fab().FindNode(string(name))
	for _, r := range x.Rings {
		if l, there := t.rings.Lent(r); ok && there && l.Owner == id && slices.Contains(l.Nodes, n) {
			return n, nil
		}
	}
	return 0, proto.Wrong("out", "a node of the job's rings", "%.80q", string(name))
}

// Restore takes one record of the store; rest is its key without the prefix.
func (t *Table) Restore(prefix, rest string, raw []byte) error {
	if prefix == prefixRouted {
		return t.routers.restore(rest, raw)
	}
	var e Event
	if prefix == prefixNode {
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if n, known := t.fab().FindNode(e.Node); known {
			t.all.mixed = true
			t.all.node(n, nodeKey(e.Number), e)
		}
		return nil
	}
	if prefix == prefixTold {
		id, _, ok := strings.Cut(rest, "/")
		if err := json.Unmarshal(raw, &e); err != nil || !ok {
			return errors.Join(err, CheckID(id))
		}
		x := t.at(id)
		x.events = append(x.events, e) // keys are in order
		if e.Number != 0 {
			t.all.last, t.all.mixed = max(t.all.last, e.Number), true
			t.all.add(id, e)
		}
		return nil
	}
	if err := CheckID(rest); err != nil {
		return err
	}
	x := t.at(rest)
	if err := json.Unmarshal(raw, x); err != nil {
		return err
	}
	w, err := parseWish(t.fab(), []byte(x.Text))
	if w == nil || err != nil && w.Circuits != nil {
		return err // a fabric that was edited since may have no room: the job is there all the same
	}
	x.wish = w
	x.only, x.exclude = w.nodes(t.fab())
	t.seq = max(t.seq, x.Seq)
	t.rings.Keep(x.ID, x.Spares)
	return nil
}

func (t *Table) at(id string) *job {
	if t.jobs[id] == nil {
		t.jobs[id] = &job{ID: id}
	}
	return t.jobs[id]
}

// CheckStored says what is wrong with the jobs of a store, if anything.
func (t *Table) CheckStored() error {
	for _, id := range slices.Sorted(maps.Keys(t.jobs)) {
		if t.jobs[id].wish == nil {
			return fmt.Errorf("store: %s%s: events of a job that is not there", prefixTold, id)
		}
	}
	if t.core == nil {
		return nil
	}
	lent := t.core.Lent()
	for _, n := range slices.Sorted(maps.Keys(lent)) {
		if x := t.jobs[lent[n].Owner]; x == nil || x.Number != n {
			return fmt.Errorf("store: circuits of job %d are of %q, which does not know of them", n, lent[n].Owner)
		}
	}
	return nil
}

// order is the jobs in order of arrival.
func (t *Table) order() []*job {
	return slices.SortedFunc(maps.Values(t.jobs), func(a, b *job) int { return cmp.Compare(a.Seq, b.Seq) })
}

// name is what people call a node.
func (t *Table) name(id proto.NodeID) string {
	return cmp.Or(t.fab().NodeName(id), strconv.Itoa(int(id)))
}

// Waits tells the jobs that wait for room, why, and since when.
func (t *Table) Waits(tell func(name, cause string, sinceMillis uint64)) {
	for _, x := range t.order() {
		if x.State == Waiting {
			since := uint64(0)
			if n := len(x.events); n > 0 {
				since = x.events[n-1].AtMS
			}
			tell(x.ID, x.Cause, since)
		}
	}
}
