package view

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"ringlight/planner"
	"ringlight/planner/hbd"
	"ringlight/planner/wear"
	"ringlight/proto"
)

const (
	// freshFor is for how long an answer is given again, at least; chosen.
	freshFor = time.Second
	// share of one core that trying losses may take, as a divisor; chosen: 5 %.
	share = 20
	// maxRisks of a list. chosen: more than one reads.
	maxRisks = 200
)

// outlook tries each single loss on a copy, and keeps the answer for a while.
type outlook struct {
	source Source
	now    func() time.Time
	mu     sync.Mutex
	made   time.Time
	took   time.Duration
	risks  map[string]any
}

type breakJSON struct {
	Lose  string         `json:"lose"`
	Down  int            `json:"rings_down"`
	GPUs  int            `json:"gpus_lost"`
	Text  string         `json:"text"`
	Node  proto.NodeID   `json:"node"`
	Ring  proto.RingID   `json:"ring"`
	Rings []proto.RingID `json:"rings"`
	Torn  bool           `json:"torn"`
	Peer  *proto.NodeID  `json:"peer"` // of a fibre, the other end; null: of a node
}

// ringRisk is a ring and those of its nodes whose loss has a consequence.
type ringRisk struct {
	Ring  proto.RingID   `json:"ring"`
	Nodes []proto.NodeID `json:"nodes"`
}

func (o *outlook) get(ctx context.Context) (map[string]any, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	start := o.now()
	if o.risks != nil && start.Sub(o.made) < max(freshFor, share*o.took) {
		return o.risks, nil
	}
	var copied *hbd.Outlook
	var ages []wear.Ageing
	if err := o.source.Read(ctx, func(p *planner.Planner) { copied, ages = planner.LookAhead(p) }); err != nil {
		return nil, err
	}
	for !copied.Try(256) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	o.made = o.now()
	o.took = o.made.Sub(start)
	o.risks = risks(copied)
	o.risks["ageing"] = ageing(ages)
	o.risks["at_ms"], o.risks["took_us"] = o.made.UnixMilli(), o.took.Microseconds()
	return o.risks, nil
}

func risks(o *hbd.Outlook) map[string]any {
	list := []breakJSON{}
	for _, l := range o.Worst(maxRisks) {
		var peer *proto.NodeID
		if l.Fibre {
			peer = &l.Peer
		}
		list = append(list, breakJSON{l.What(), len(l.Down), l.GPUs, l.Comes(), l.Node, l.Ring, append([]proto.RingID{}, l.Down...), l.Torn, peer})
	}
	torn := byRing(o.Losses, func(l *hbd.Loss) bool { return l.Torn && !l.Fibre })
	spare := byRing(o.Losses, func(l *hbd.Loss) bool { return l.GPUs > 0 && !l.Fibre })
	return map[string]any{"breaks_next": list, "losses": len(o.Losses), "spares": o.Spares,
		"no_second_way": torn[:min(len(torn), maxRisks)], "no_second_way_total": len(torn),
		"no_spare": spare[:min(len(spare), maxRisks)], "no_spare_total": len(spare)}
}

// byRing gathers losses of one kind by the ring they are in.
func byRing(losses []hbd.Loss, which func(*hbd.Loss) bool) []ringRisk {
	at := map[proto.RingID]int{}
	out := []ringRisk{}
	for i := range losses {
		l := &losses[i]
		if !which(l) {
			continue
		}
		k, ok := at[l.Ring]
		if !ok {
			k = len(out)
			at[l.Ring] = k
			out = append(out, ringRisk{Ring: l.Ring})
		}
		out[k].Nodes = append(out[k].Nodes, l.Node)
	}
	slices.SortStableFunc(out, func(a, b ringRisk) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	return out
}

// breaks is what breaks next, and whose margin ends first.
func (v *View) breaks(r *http.Request) (any, error) {
	found, err := v.next.get(r.Context())
	if err != nil {
		return nil, err
	}
	out := map[string]any{"margins": v.trends.worst(maxRisks), "margins_since_ms": v.trends.since()}
	maps.Copy(out, found)
	return out, nil
}
