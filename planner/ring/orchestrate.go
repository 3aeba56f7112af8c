package ring

import (
	"fmt"

	"ringlight/proto"
)

// Job is one orchestration: TP groups on the HBD whose ranks meet under the
// same ToR switches of the data centre network.
type Job struct {
	Deployment
	PerDomain int    // nodes under one group of aggregation switches, a multiple of PerToR; the last domain may be smaller
	Racks     *Racks // where nodes stand, in place of PerToR and PerDomain; nodes have the numbers of their positions then
	K         int    // hops that a fibre may span
	Wrap      bool   // the last sub-line's end is a neighbour of the first's start
	Shared    bool   // a node reaches -K and +K over one bundle: not both at once
	Size      int    // nodes in a group
	Want      int    // groups
	Faulty    func(proto.NodeID) bool

	racks *Racks
	piece []int32 // by position: the part of a sub-line within its domain
	line  []int32 // the same, over the ends of domains
}

// Orchestration is what a method found. Groups holds the aligned groups set
// by set, then the other sets, then those that are left over. Nodes are
// numbered as the job numbers them and stand in HBD order within their group.
//
// Where as many nodes are under every ToR, a set is that many groups. Else it is
// two or more, up to the nodes of the largest ToR, and a group that is left over
// counts with all its flows, as its partner stands anywhere.
type Orchestration struct {
	Groups    [][]proto.NodeID // exactly Want, nil when they do not fit
	Sets      [][]int          // inner sets: indices into Groups
	CrossToR  int              // inner flows between different ToRs
	Inner     int              // inner flows: one for each rank of each group in a set
	Least     int              // no placement has fewer cross-ToR flows; with two nodes under each ToR none within domains, groups one behind the other
	Unaligned int              // groups that were not placed ToR by ToR with one on every other sub-line there
	Crossing  int              // groups that reach into two domains or sub-lines
	Most      int              // groups that the HBD holds at most, in domains or not
	Aligned   []bool           // by group: placed ToR by ToR with one on every other sub-line there
	Rule      Rule             // which constraints stood
	Held      int              // with RuleConstraints: how many
}

// Rules of an orchestration.
const (
	RuleWithinDomains Rule = "within_domains"       // every group in one domain and sub-line
	RuleDomainEnds    Rule = "domain_ends_opened"   // groups may reach from one domain into the next
	RuleSubLineEnds   Rule = "sub_line_ends_opened" // and from one sub-line into the next
	RuleConstraints   Rule = "constraints"          // [IHBD] Alg. 5: so many hold
)

// Text says the rule in words.
func (o Orchestration) Text() string {
	switch o.Rule {
	case RuleWithinDomains:
		return fmt.Sprintf("the job fits when every group stays in its domain; flows between ToRs: %d; groups one behind the other have at least %d", o.CrossToR, o.Least)
	case RuleDomainEnds:
		return "the domains for themselves hold too few groups: some reach over the end of one, as few constraints broken as can be"
	case RuleSubLineEnds:
		return "the sub-lines for themselves hold too few groups: some reach over the end of one, as few as can be"
	case RuleConstraints:
		return fmt.Sprintf("the job fits with %d constraints applied and not with one more", o.Held)
	}
	return "no method was run for it"
}

// OK reports whether the job fits.
func (o Orchestration) OK() bool { return o.Groups != nil }

// M is the share of the inner flows that leave their ToR. A tenth of it
// compares with [IHBD] Fig. 13: inner flows are about a tenth of TP and DCN
// traffic together.
func (o Orchestration) M() float64 {
	if o.Inner == 0 {
		return 0
	}
	return float64(o.CrossToR) / float64(o.Inner)
}

// Check names the first thing that no method can work with.
func (j Job) Check() error {
	switch {
	case j.Nodes < 1 || j.Racks != nil && len(j.Racks.ToR) != j.Nodes:
		return fmt.Errorf("ring: %d nodes: want at least one, and every one under a ToR", j.Nodes)
	case j.Racks == nil && (j.PerToR < 1 || j.Nodes%j.PerToR != 0):
		return fmt.Errorf("ring: %d nodes, %d per ToR: want a multiple", j.Nodes, j.PerToR)
	case j.Racks == nil && (j.PerDomain < j.PerToR || j.PerDomain%j.PerToR != 0):
		return fmt.Errorf("ring: %d nodes per domain, %d per ToR: want a multiple", j.PerDomain, j.PerToR)
	case j.K < 1 || j.Size < 1 || j.Want < 0:
		return fmt.Errorf("ring: K %d, %d nodes a group, %d groups: want at least 1, 1 and 0", j.K, j.Size, j.Want)
	case j.Wrap && j.Nodes < 2*j.K+1:
		return fmt.Errorf("ring: %d nodes on a ring of %d hops: want at least %d", j.Nodes, j.K, 2*j.K+1)
	}
	return nil
}

// laid is the job with what is looked up by position. Without that it panics as
// Check says.
func (j Job) laid() Job {
	if err := j.Check(); err != nil {
		panic(err.Error())
	}
	if j.racks = j.Racks; j.racks == nil {
		j.racks = j.Deployment.racks(j.PerDomain)
	} else {
		j.PerToR = j.racks.even()
	}
	j.piece, j.line = j.racks.pieces(false), j.racks.pieces(true)
	return j
}

// order is the HBD order of the job's positions.
func (j Job) order() Order { return Order{Nodes: j.Nodes, K: j.K, Wrap: j.Wrap, Shared: j.Shared} }

// name is what the job calls the node at a position.
func (j Job) name(position int) proto.NodeID {
	if j.Racks != nil {
		return proto.NodeID(position)
	}
	return j.Node(position)
}

// domainToRs is the length of a sub-line within one domain, l of the paper.
func (j Job) domainToRs() int { return j.PerDomain / j.PerToR }

// domains is the number of domains, a last smaller one included.
func (j Job) domains() int { return (j.ToRs() + j.domainToRs() - 1) / j.domainToRs() }

// usable lists by HBD position which nodes are well.
func (j Job) usable() []bool {
	out := make([]bool, j.Nodes)
	for at := range out {
		out[at] = !j.Faulty(j.name(at))
	}
	return out
}

// Orchestrate places the job with the fewest flows between ToRs where two nodes
// are under each (see pairUp), else with the fewest unaligned groups, and says what
// no placement goes under. Within each
// domain an exact dynamic program cuts the ToR line into aligned segments,
// where only ToRs without a fault count and every sub-line is cut at the same
// ToRs, and free ones, where each sub-line is cut for itself; a knapsack
// shares the unaligned groups out over the domains.
//
// Only when the domains hold too few groups their ends are opened: the same
// program over whole sub-lines then counts a group over an end as one
// constraint broken, as it counts an unaligned one. Last, groups may also go
// over the ends of sub-lines. Where tables would grow too large, a cost of
// unaligned groups takes the place of their number.
//
// Unlike [IHBD] Alg. 5, which aligns whole domains or not at all, and opens
// ends only when nothing is aligned any more.
func Orchestrate(j Job) Orchestration {
	j = j.laid()
	ok := j.usable()
	rule := RuleWithinDomains
	domains := j.domainLines(ok, false)
	groups := j.shareOut(domains, j.Want)
	if groups == nil {
		rule = RuleDomainEnds
		groups = j.shareOut(j.domainLines(ok, true), j.Want)
	}
	if groups == nil {
		rule = RuleSubLineEnds
		groups = j.reachOver(ok)
	}
	most := len(j.placeAll(ok))
	if groups == nil {
		return Orchestration{Most: most}
	}
	o := j.finish(groups, most)
	o.Rule, o.Least = rule, j.least(ok)
	if rule == RuleWithinDomains && o.CrossToR > 0 && j.PerToR == 2 {
		if pairs, least := j.pairUp(domains, j.Want); pairs != nil {
			if better := j.count(pairs, nil, most); better.CrossToR < o.CrossToR {
				better.Rule = rule
				o = better
			}
			o.Least = least
		}
	}
	return o
}

// placeAll is [IHBD] Alg. 2 on the whole HBD order: as many groups as can be.
func (j Job) placeAll(ok []bool) []placed {
	return j.spansOf(Place(Problem{Order: j.order(), Size: j.Size, Want: -1,
		Usable: func(position proto.NodeID) bool { return ok[position] }}))
}

// placed is a group by HBD positions, left to right.
type placed struct {
	at      []int32
	aligned bool // with PerToR-1 others, ToR by ToR
}

func (j Job) spansOf(groups [][]proto.NodeID) []placed {
	out := make([]placed, len(groups))
	for i, g := range groups {
		out[i].at = make([]int32, len(g))
		for r, n := range g {
			out[i].at[r] = int32(n)
		}
	}
	return out
}
