package ring

import (
	"slices"

	"ringlight/proto"
)

// Rule is what decided about a group or an idle node.
type Rule string

// Rules of groups.
const (
	RuleFirstFit Rule = "first_fit" // nothing ran here: the next nodes of its component
	RuleKept     Rule = "kept"      // it ran and stays exactly as it was
	RuleShifted  Rule = "shifted"   // it ran whole; its component holds as many groups only when it moves
	RuleMended   Rule = "mended"    // it ran and lost nodes or was no group of this size
)

// Rules of idle nodes.
const (
	RuleRemainder Rule = "remainder"     // the component's nodes do not divide by the group
	RuleTooShort  Rule = "too_short"     // the component has fewer nodes than a group
	RuleWiring    Rule = "shared_bundle" // without the bundle of -K and +K there would be one group more
)

// Reason is a component, which is why groups are where they are: usable nodes
// that fibres join, ended on both sides by K nodes in a row that are not
// usable or by the end of a line.
type Reason struct {
	Nodes  []proto.NodeID
	Closed bool // a circle without an end
	Groups []int
	Bound  int // floor(nodes / size), which no placement beats
	Pinned []proto.NodeID
	// Pinned nodes have both neighbours exactly K away over one bundle: they
	// can only be an end of a group, and nothing can step over them.
}

// Explain says of every component what it could hold and what it holds.
func Explain(p Problem, groups [][]proto.NodeID) []Reason {
	owner := make([]int32, p.Nodes)
	for i, g := range groups {
		for _, n := range g {
			owner[n] = int32(i + 1)
		}
	}
	var out []Reason
	for _, c := range components(p.Order, p.Usable) {
		r := Reason{Nodes: c.nodes, Closed: c.closed, Bound: len(c.nodes) / p.Size}
		n := len(c.nodes)
		for i, node := range c.nodes {
			if g := int(owner[node]) - 1; g >= 0 && groups[g][0] == node {
				r.Groups = append(r.Groups, g)
			}
			if n > 1 && (c.closed || i > 0 && i < n-1) && p.pinned(c.nodes[(i+n-1)%n], node, c.nodes[(i+1)%n]) {
				r.Pinned = append(r.Pinned, node)
			}
		}
		out = append(out, r)
	}
	return out
}

// IdleRule is why nodes of a component are in no group.
func (r Reason) IdleRule(size int) Rule {
	switch {
	case len(r.Nodes) < size:
		return RuleTooShort
	case len(r.Groups) < r.Bound:
		return RuleWiring
	}
	return RuleRemainder
}

// GroupRule is why a group is what it is, given which running group it was,
// nil for none.
func GroupRule(p Problem, group, was []proto.NodeID) Rule {
	switch {
	case was == nil:
		return RuleFirstFit
	case slices.Equal(group, was):
		return RuleKept
	case len(was) != p.Size || p.Check(was) != nil || slices.ContainsFunc(was, func(n proto.NodeID) bool { return !p.Usable(n) }):
		return RuleMended
	}
	return RuleShifted
}
