package main

import (
	"encoding/json"
	"fmt"

	"ringlight/planner/ring"
	"ringlight/proto"
)

type explainComponent struct {
	Component int            `json:"component"`
	Nodes     int            `json:"nodes"`
	First     proto.NodeID   `json:"first"`
	Last      proto.NodeID   `json:"last"`
	Closed    bool           `json:"closed"`
	Groups    []int          `json:"groups"`
	Bound     int            `json:"bound"`
	Pinned    []proto.NodeID `json:"pinned"`
}

type explainGroup struct {
	Group     int            `json:"group"`
	Nodes     []proto.NodeID `json:"nodes"`
	Component int            `json:"component"`
	Was       *int           `json:"was"`
	Rule      ring.Rule      `json:"rule"`
	Text      string         `json:"text"`
}

type explainIdle struct {
	Node      proto.NodeID `json:"node"`
	Component int          `json:"component"`
	Rule      ring.Rule    `json:"rule"`
	Text      string       `json:"text"`
}

type explainRing struct {
	Components []explainComponent `json:"components"`
	Groups     []explainGroup     `json:"groups"`
	Idle       []explainIdle      `json:"idle"`
}

func planExplain(text []byte, _ func() ([]byte, error)) (any, error) {
	var kind struct{ Degree json.RawMessage }
	if json.Unmarshal(text, &kind) == nil && kind.Degree != nil {
		return explainTopology(text)
	}
	var in orchestrateInput
	if err := decodePlan(text, in.keys()); err != nil {
		return nil, err
	}
	if in.NodesPerToR != 0 || in.NodesPerDomain != 0 || in.GPUsTotal != 0 || in.Method != "" {
		return in.explain()
	}
	if err := in.ringInput.check(); err != nil {
		return nil, err
	}
	return in.ringInput.explain(), nil
}

var ruleTexts = map[ring.Rule]string{
	ring.RuleFirstFit: "the first nodes of the component that no group holds yet",
	ring.RuleKept:     "it runs, and as many groups fit when it stays exactly as it is",
	ring.RuleShifted:  "it runs whole, but as many groups fit only when it moves",
	ring.RuleMended:   "it runs, but lost nodes or is no line of so many",
}

func (in *ringInput) explain() explainRing {
	p := in.problem()
	groups, _ := in.place()
	o := explainRing{Components: []explainComponent{}, Groups: []explainGroup{}, Idle: []explainIdle{}}
	component := make([]int, in.Nodes)
	for i, r := range ring.Explain(p, groups) {
		c := explainComponent{Component: i, Nodes: len(r.Nodes), First: r.Nodes[0], Last: r.Nodes[len(r.Nodes)-1], Closed: r.Closed,
			Groups: append([]int{}, r.Groups...), Bound: r.Bound, Pinned: append([]proto.NodeID{}, r.Pinned...)}
		o.Components = append(o.Components, c)
		rule := r.IdleRule(p.Size)
		text := map[ring.Rule]string{
			ring.RuleRemainder: fmt.Sprintf("%d nodes make %d groups of %d", len(r.Nodes), r.Bound, p.Size),
			ring.RuleTooShort:  fmt.Sprintf("%d nodes that reach each other are fewer than a group's %d", len(r.Nodes), p.Size),
			ring.RuleWiring:    fmt.Sprintf("%d nodes would make %d groups if -%d and +%d had bundles of their own", len(r.Nodes), r.Bound, in.K, in.K),
		}[rule]
		grouped := map[proto.NodeID]bool{}
		for _, g := range r.Groups {
			for _, n := range groups[g] {
				grouped[n] = true
			}
		}
		for _, n := range r.Nodes {
			if component[n] = i; !grouped[n] {
				o.Idle = append(o.Idle, explainIdle{n, i, rule, text})
			}
		}
	}
	running := in.running()
	was := make([]*int, len(groups))
	for i, j := range ring.Same(running, groups) {
		if j >= 0 {
			was[j] = &i
		}
	}
	for i, g := range groups {
		var before []proto.NodeID
		if was[i] != nil {
			before = running[*was[i]]
		}
		rule := ring.GroupRule(p, g, before)
		o.Groups = append(o.Groups, explainGroup{i, g, component[g[0]], was[i], rule, ruleTexts[rule]})
	}
	return o
}

type explainDomain struct {
	Domain     int `json:"domain"`
	ToRs       int `json:"tors"`
	FaultyToRs int `json:"faulty_tors"`
	Groups     int `json:"groups"`
	Aligned    int `json:"aligned"`
	Unaligned  int `json:"unaligned"`
}

type explainPlaced struct {
	Group int            `json:"group"`
	Nodes []proto.NodeID `json:"nodes"`
	ToRs  []int          `json:"tors"`
	Set   *int           `json:"set"`
	Rule  string         `json:"rule"`
	Text  string         `json:"text"`
}

type explainJob struct {
	Rule    ring.Rule       `json:"rule"`
	Text    string          `json:"text"`
	Domains []explainDomain `json:"domains"`
	Groups  []explainPlaced `json:"groups"`
}

func (in *orchestrateInput) explain() (any, error) {
	res, none, err := in.solve()
	if err != nil {
		return none, err
	}
	job := in.job()
	o := explainJob{Rule: res.Rule, Text: res.Text(), Groups: []explainPlaced{}}
	tors := in.Nodes / in.NodesPerToR
	perDomain := in.NodesPerDomain / in.NodesPerToR
	for from := 0; from < tors; from += perDomain {
		d := explainDomain{Domain: from / perDomain, ToRs: min(perDomain, tors-from)}
		for tor := from; tor < from+d.ToRs; tor++ {
			for n := tor * in.NodesPerToR; n < (tor+1)*in.NodesPerToR; n++ {
				if in.out[n] {
					d.FaultyToRs++
					break
				}
			}
		}
		o.Domains = append(o.Domains, d)
	}
	set := make([]*int, len(res.Groups))
	for i, s := range res.Sets {
		for _, g := range s {
			set[g] = &i
		}
	}
	for i, g := range res.Groups {
		p := explainPlaced{Group: i, Nodes: g, Set: set[i], Rule: "unaligned",
			Text: "its sub-line is cut for itself here: that makes room for more groups than whole ToRs do"}
		for _, n := range g {
			p.ToRs = append(p.ToRs, job.ToR(n))
		}
		d := &o.Domains[p.ToRs[0]/perDomain]
		d.Groups++
		if res.Aligned[i] {
			p.Rule, p.Text = "aligned", "the same ToRs, rank by rank, as a group on every other sub-line"
			d.Aligned++
		} else {
			d.Unaligned++
		}
		o.Groups = append(o.Groups, p)
	}
	return o, nil
}
