package job

import (
	"cmp"
	"fmt"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// circuitJobs are jobs that ask for circuits: core chooses them.
type circuitJobs struct{ table *Table }

// spec is a wish in the core's words.
func (t circuitJobs) spec(w *Wish) proto.JobSpec {
	s, err := w.Circuits.Spec()
	if err != nil {
		panic("job: invariant: a wish is checked: " + err.Error())
	}
	if before := t.table.jobs[w.Circuits.Next]; before != nil {
		s.Next = before.Number
	}
	return s
}

// check says what of a wish the core does not have.
func (t circuitJobs) check(id string, w *Wish) error {
	if next := w.Circuits.Next; next == id && id != "" {
		return proto.Wrong("circuits.next", "another job", "%s", next)
	} else if x := t.table.jobs[next]; next != "" && (x == nil || x.State.ended() || x.wish.Circuits == nil) {
		return proto.Wrong("circuits.next", "a job that has circuits", "no such job %.80q", next)
	}
	if err := t.table.core.Check(t.spec(w)); err != nil {
		if err.Field == "dp" && w.Circuits.GPUsTotal != nil {
			err.Field = "gpus_total"
		}
		return inCircuits(err)
	}
	return nil
}

func (t circuitJobs) trial(_ string, w *Wish) Trial {
	if !t.table.core.Ready() {
		return Trial{Why: "the planner is looking round first"}
	}
	most, why := t.table.core.Trial(t.spec(w))
	return Trial{Feasible: why == "", Most: most, Why: why}
}

func (t circuitJobs) resume(x *job) { t.table.look(x) }

func (t circuitJobs) lacks(x *job) bool { return x.Number == 0 }

// place enters a job into the core's list.
func (t circuitJobs) place(x *job) {
	if !t.table.core.Ready() {
		t.table.tryAt = min(t.table.tryAt, t.table.j.Now+tryAgain)
		return
	}
	if x.Number = t.table.core.Claim(x.ID, t.spec(x.wish)); x.Number == 0 {
		x.Cause = fmt.Sprintf("the core has %d jobs, the most that it can have", proto.MaxJobs)
		t.table.tryAt = min(t.table.tryAt, t.table.j.Now+tryEvery)
		return
	}
	t.table.lent = nil
	t.table.store(x, 0)
	t.table.look(x)
}

func (t circuitJobs) free(x *job) []journal.Record {
	t.table.core.Release(x.Number)
	t.table.lent, x.Number, x.Servers, x.stamp = nil, 0, nil, ""
	return t.table.routers.want(x.ID, nil, t.table.j.Wall)
}

// lookAtCircuits looks at all jobs that have some.
func (t *Table) lookAtCircuits() {
	if t.core == nil {
		return
	}
	t.lent = nil
	for _, x := range t.order() {
		if x.wish.Circuits != nil {
			t.look(x)
		}
	}
}

// has is what a job has of the core, nil: nothing.
func (t circuitJobs) has(x *job) *core.Lent {
	if x.Number == 0 {
		return nil
	}
	if t.table.lent == nil {
		t.table.lent = t.table.core.Lent()
	}
	return t.table.lent[x.Number]
}

// stand reads off the core's list how far a job is.
func (t circuitJobs) stand(x *job) (s State, cause string, changed bool) {
	if !t.table.core.Ready() || x.Number == 0 {
		return x.State, x.Cause, false
	}
	l := t.has(x)
	if l == nil { // the core's own records are gone
		x.Number, x.stamp, t.table.tryAt = 0, "", t.table.j.Now
		t.table.storeAll(t.table.routers.want(x.ID, nil, t.table.j.Wall))
		return Waiting, "its circuits are not known any more", true
	}
	x.gpus = l.GPUs
	changed = t.news(x)
	t.wantRoutes(x, l)
	lacks, refused := t.table.routers.lacks(x.ID)
	if l.Out != "" {
		lacks, refused = fmt.Sprintf("%s is out: %s", t.table.fab().PartName(l.Out), l.Why), true
		x.gpus -= l.Lost
	}
	switch lit := l.Realised >= l.Granted; {
	case l.State == proto.JobWaiting:
		s, cause = Waiting, l.Reason
		if x.State == Waiting {
			x.Cause = cause // people read it; it is no event
		}
	case l.State == proto.JobStandby:
		x.at = t.table.j.Now // it waits for another's end, not for light
		s, cause = Reserved, "it stands by for the servers of another job"
	case lit && lacks == "":
		s = Ready
	case lit && !x.Once:
		s, cause = Forming, lacks
	case lit && refused:
		s, cause = Degraded, lacks
	case lit:
		s, cause = Repairing, lacks
	case x.Once && !l.Quiet:
		s, cause = Repairing, cmp.Or(l.Dark, lacks)
	case x.Once && l.Realised == 0:
		s, cause, x.gpus = Down, cmp.Or(l.Dark, lacks), 0
	case x.Once:
		s, cause = Degraded, cmp.Or(l.Dark, lacks)
	case l.Quiet && (l.Out != "" || l.Told && l.Realised > 0): // no more will come
		s, cause = Degraded, cmp.Or(lacks, l.Dark)
	case !l.Told:
		s, cause = Reserved, l.Reason
	default:
		s, cause = Forming, l.Reason
	}
	if cause == "" && s != Ready {
		cause = l.Reason
	}
	if s == x.State && lacks != "" {
		x.Cause = cause // people read it; it is no event
	}
	if x.State == Waiting && s != Waiting {
		x.at = t.table.j.Now
	}
	return s, cause, changed
}

// Servers is what a job has of a core.
type Servers struct {
	Job     proto.JobID         `json:"job"`         // its number there: ocsctl circuit show
	Asked   int                 `json:"links_asked"` // links; ports may allow fewer
	Leaves  []proto.LeafServers `json:"servers"`
	Domains []Domain            `json:"domains,omitempty"` // of tensor parallelism, in the order of ranks
	Seats   [][3]uint16         `json:"seats,omitempty"`   // leaf, server, GPUs, in the order of ranks
	// Strategy is which server holds which part of the model that the wish names.
	Strategy *Held   `json:"strategy,omitempty"`
	Orders   []Order `json:"orders,omitempty"` // of servers joined directly: in which they reduce
	Phase    string  `json:"phase,omitempty"`  // of several: the one that it has links for
}

// Domain is a tensor parallel domain: its GPUs are ranks that follow one another.
type Domain struct {
	Stage   int   `json:"stage"` // of the pipeline
	Replica int   `json:"replica"`
	GPUs    []GPU `json:"gpu_order"`
}

// Order is one in which servers reduce over direct links.
type Order proto.Ring

func (t circuitJobs) show(x *job, v *View, whole bool) {
	l := t.has(x)
	if l == nil {
		return
	}
	v.Links, v.Confirmed = int(l.Granted), int(min(l.Realised, l.Granted))
	s := &Servers{Job: l.Job, Asked: int(l.Asked), Leaves: append([]proto.LeafServers{}, l.Servers...), Phase: l.Phase}
	v.Circuits = s
	if l.State != proto.JobWaiting {
		v.GPUsTotal = x.gpus
	}
	for _, r := range t.table.routers[x.ID] { // any order: counted
		if r.Want != "" {
			v.Routers++
		}
		if r.Held {
			v.RoutersConfirmed++
		}
	}
	if !whole {
		return
	}
	d := t.table.core.Describe(x.Number)
	v.ranks, v.routes, v.fab = t.table.core.Ranks(x.Number), t.table.core.Routes(x.Number), t.table.fab()
	s.Domains = domains(t.table.fab(), v.ranks)
	for _, w := range d.Seats {
		s.Seats = append(s.Seats, [3]uint16{w.Leaf, w.Server, w.GPUs})
	}
	s.Strategy = x.wish.held(t.table.fab(), v.ranks)
	for _, r := range d.Rings {
		s.Orders = append(s.Orders, Order(r))
	}
}

// domains are a job's GPUs by name.
func domains(f *fabric.Fabric, r core.Ranks) (out []Domain) {
	replicas := len(r.Places) / (max(1, r.TP) * max(1, r.Stages))
	for n := range replicas * r.Stages {
		d := Domain{Stage: n / replicas, Replica: n % replicas}
		for _, p := range r.Places[n*r.TP:][:r.TP] {
			d.GPUs = append(d.GPUs, GPU{f.ServerName(p.Server), p.GPU})
		}
		out = append(out, d)
	}
	return out
}
