package rollout

import "ringlight/proto"

// size is how many nodes a wave has at most, the first is 1. It never falls: in a
// small fabric a tenth is less than ten.
func size(wave, nodes int) int {
	switch wave {
	case 1:
		return 1
	case 2:
		return 10
	case 3:
		return max(10, nodes/100)
	}
	return max(10, nodes/10)
}

// choice chooses nodes that may be without their agents at the same time.
type choice struct {
	shape Shape
	near  []bool // not farther from one that is chosen than it may need
}

func newChoice(shape Shape, taken []restart) *choice {
	c := &choice{shape: shape, near: make([]bool, shape.Nodes)}
	for i := range taken {
		c.take(taken[i].Node)
	}
	return c
}

// take notes that a node is without its agent.
func (c *choice) take(id proto.NodeID) {
	for d := -c.shape.Reach; d <= c.shape.Reach; d++ {
		at := int(id) + d
		if c.shape.Wraps && c.shape.Nodes > 0 {
			at = (at%c.shape.Nodes + c.shape.Nodes) % c.shape.Nodes
		}
		if at >= 0 && at < len(c.near) {
			c.near[at] = true
		}
	}
}

// wave chooses those of a wave. The first is one that has neighbours, if it can be: they
// see whether its light stays.
func (c *choice) wave(number int, may func(proto.NodeID) bool, watched func(proto.NodeID) bool) (out []proto.NodeID) {
	most := size(number, c.shape.Nodes)
	if number == 1 {
		out = c.choose(most, func(id proto.NodeID) bool { return may(id) && watched(id) })
	}
	if len(out) == 0 {
		out = c.choose(most, may)
	}
	return out
}

// choose takes up to so many of those that may, by number.
func (c *choice) choose(most int, may func(proto.NodeID) bool) (out []proto.NodeID) {
	for i := 0; i < len(c.near) && len(out) < most; i++ {
		if id := proto.NodeID(i); !c.near[i] && may(id) {
			c.take(id)
			out = append(out, id)
		}
	}
	return out
}
