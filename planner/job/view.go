package job

import (
	"encoding/json"
	"fmt"
	"slices"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/proto"
)

// View is a job as it is answered.
type View struct {
	ID         string   `json:"id"`
	Generation uint64   `json:"generation"` // of its last event
	State      State    `json:"state"`
	Cause      string   `json:"cause,omitempty"`
	Wish       *Wish    `json:"wish"`
	Rings      []Ring   `json:"rings"`
	Spares     []string `json:"spares"`
	// CrossToR is the share of the traffic between rings, rank by rank, that
	// leaves a ToR switch; null where the fabric does not say which nodes share one.
	CrossToR  *float64 `json:"cross_tor_ratio"`
	Links     int      `json:"links"`
	Confirmed int      `json:"links_confirmed"`
	GPUsTotal int      `json:"gpus_total"` // in the orders of light
	// Routers must hold its routes; those are confirmed that were read back to.
	Routers          int `json:"routers,omitempty"`
	RoutersConfirmed int `json:"routers_confirmed,omitempty"`
	// Circuits is what a job has that asked for them.
	Circuits *Servers `json:"circuits,omitempty"`

	hosts  map[string][]fabric.GPU // as light goes through them; nil: numbered so
	ranks  core.Ranks              // of circuits, and as they
	routes func() ([]core.Route, string)
	fab    *fabric.Fabric
}

// Ring is one ring of a job.
type Ring struct {
	Ring  proto.RingID `json:"ring"` // 0: it is to be found anew
	State string       `json:"state"`
	Nodes []string     `json:"nodes"`
	// GPUOrder is the order in which light meets the GPUs; empty while light does
	// not close the ring.
	GPUOrder []GPU `json:"gpu_order"`
}

// GPU is one GPU of a host. In JSON it is ["host",0].
type GPU struct {
	Host string
	GPU  int // as its host calls it
}

// MarshalJSON writes a GPU as a list of two.
func (g GPU) MarshalJSON() ([]byte, error) { return json.Marshal([]any{g.Host, g.GPU}) }

// UnmarshalJSON reads a list of two.
func (g *GPU) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("want [host, GPU], got %.60s", b)
	}
	if err := json.Unmarshal(pair[0], &g.Host); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &g.GPU)
}

// Trial is what a wish would get.
type Trial struct {
	Feasible bool           `json:"feasible"`
	Most     int            `json:"most"`           // rings of this size that it could have now, or replicas of such circuits
	Why      string         `json:"why"`            // why it is not feasible
	Ends     []proto.RingID `json:"ends,omitempty"` // unassigned rings that make room for it
}

// Get is a job as it stands.
func (t *Table) Get(id string) (*View, error) {
	x := t.jobs[id]
	if x == nil {
		return nil, noJob(id)
	}
	return t.view(x, true), nil
}

// List are jobs that are not released, in order of arrival, whose wish is wanted, after
// a place in the list; next is the place to go on from, 0: there are no more.
func (t *Table) List(after uint64, most int, wanted func(*Wish) bool) (out []*View, next uint64) {
	out = []*View{}
	for _, x := range t.order() {
		switch {
		case x.State.ended() || x.Seq <= after || !wanted(x.wish):
		case len(out) == most:
			return out, next
		default:
			out, next = append(out, t.view(x, false)), x.Seq
		}
	}
	return out, 0
}

// Events are those after a number; complete is false where some between are
// not kept any more, or where there are fewer: the planner has lost its store.
func (t *Table) Events(id string, after uint64) (events []Event, complete bool, err error) {
	x := t.jobs[id]
	if x == nil {
		return nil, false, noJob(id)
	}
	at, _ := slices.BinarySearchFunc(x.events, after+1, func(e Event, n uint64) int { return int(int64(e.Generation) - int64(n)) })
	events = slices.Clone(x.events[at:])
	return events, after <= x.Gen && (len(x.events) == 0 || after+1 >= x.events[0].Generation), nil
}

func (t *Table) view(x *job, whole bool) *View {
	v := &View{ID: x.ID, Generation: x.Gen, State: x.State, Cause: x.Cause, Wish: x.wish, Rings: []Ring{}, Spares: []string{}}
	t.of(x.wish).show(x, v, whole)
	if err := t.Busy(); err != nil {
		v.Cause = "as a planner before this one left it: " + err.Error()
	}
	return v
}

func (t ringJobs) show(x *job, v *View, _ bool) {
	ranks := make([][]proto.RingGPU, len(x.Rings))
	v.hosts = map[string][]fabric.GPU{}
	for i, id := range x.Rings {
		l, ok := t.table.rings.Lent(id)
		r := Ring{Ring: id, State: proto.RingDown.String(), Nodes: []string{}, GPUOrder: []GPU{}}
		if ok && l.Owner == x.ID {
			r.State, ranks[i] = l.State.String(), t.table.ranks(&l)
			for _, n := range l.Nodes {
				r.Nodes = append(r.Nodes, t.table.name(n))
				v.hosts[t.table.name(n)] = t.table.fab().GPUsOf(n)
			}
			r.GPUOrder = t.table.named(l.GPUOrder)
			v.Links += int(l.Links)
			v.Confirmed += int(l.LinksConfirmed)
		}
		v.GPUsTotal += len(r.GPUOrder)
		v.Rings = append(v.Rings, r)
	}
	for _, n := range x.Spares {
		v.Spares = append(v.Spares, t.table.name(n))
	}
	v.CrossToR = t.table.crossToR(ranks)
}

// ranks are what exchanges over the data centre network, in order: the nodes of a
// ring, or with rails its GPUs, as light meets them.
func (t *Table) ranks(l *hbd.Lend) []proto.RingGPU {
	if t.fab().Rails {
		return l.GPUOrder
	}
	out := make([]proto.RingGPU, len(l.Nodes))
	for i, n := range l.Nodes {
		out[i].Node = n
	}
	return out
}

// crossToR compares what is at the same place of rings that follow one
// another, the last and the first included.
func (t *Table) crossToR(rings [][]proto.RingGPU) *float64 {
	f := t.fab()
	if !f.KnowsToRs() || len(rings) < 2 {
		return nil
	}
	cross, all := 0, 0
	for i := range rings {
		a, b := rings[i], rings[(i+1)%len(rings)]
		for k := range min(len(a), len(b)) {
			all++
			if f.ToR(a[k].Node) != f.ToR(b[k].Node) || a[k].GPU != b[k].GPU {
				cross++
			}
		}
	}
	if all == 0 {
		return nil
	}
	return new(float64(cross) / float64(all))
}
