package view

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"ringlight/planner"
	"ringlight/planner/hbd"
	"ringlight/proto"
)

// A frame on the wire, all numbers unsigned LEB128 unless said:
//
//	kind (1 snapshot, 2 changes), flags (1 linked, 2 serving), sequence, term, newest entry, time in ms,
//	switches, switches online,
//	cells: count, each: number above the one before, standing|leaving<<4, left|right<<4 (Light),
//	  deficit in 0.1 dB (at most 255), and for each side that is Bypassed the hops to its peer, zigzag
//	strips: count, each: id above the one before, state, generation, size, nodes: count, first, then hops, zigzag
const (
	kindSnapshot = 1
	kindChanges  = 2
)

// picture is the fabric as the page draws it.
type picture struct {
	seq    uint64
	last   planner.Snapshot // without cells and strips
	cells  []planner.Cell
	strips map[proto.RingID]planner.Strip
	wall   uint64
}

// take lays what has changed over it.
func (x *picture) take(g planner.Snapshot, all bool) {
	if all {
		x.cells, x.strips = nil, map[proto.RingID]planner.Strip{}
	}
	for _, c := range g.Cells {
		for int(c.Node) >= len(x.cells) {
			x.cells = append(x.cells, planner.Cell{Node: proto.NodeID(len(x.cells))})
		}
		x.cells[c.Node] = c
	}
	for _, s := range g.Strips {
		if x.strips[s.Ring] = s; len(s.Nodes) == 0 {
			delete(x.strips, s.Ring)
		}
	}
	g.Cells, g.Strips = nil, nil
	x.last = g
	x.seq++
}

// differs leaves of a look at everything what the picture does not show yet.
func (x *picture) differs(g planner.Snapshot) planner.Snapshot {
	g.Cells = slices.DeleteFunc(g.Cells, func(c planner.Cell) bool { return int(c.Node) < len(x.cells) && x.cells[c.Node] == c })
	gone := maps.Clone(x.strips)
	for _, s := range g.Strips {
		delete(gone, s.Ring)
	}
	g.Strips = slices.DeleteFunc(g.Strips, func(s planner.Strip) bool {
		was, ok := x.strips[s.Ring]
		return ok && was.State == s.State && was.Gen == s.Gen && was.Size == s.Size && slices.Equal(was.Nodes, s.Nodes)
	})
	for id := range gone { // any order: sorted below
		g.Strips = append(g.Strips, planner.Strip{Ring: id})
	}
	slices.SortFunc(g.Strips, func(a, b planner.Strip) int { return cmp.Compare(a.Ring, b.Ring) })
	return g
}

// snapshot is all of it as a frame.
func (x *picture) snapshot() []byte {
	strips := slices.SortedFunc(maps.Values(x.strips), func(a, b planner.Strip) int { return cmp.Compare(a.Ring, b.Ring) })
	return x.frame(nil, kindSnapshot, x.cells, strips)
}

// frame appends a frame; cells and strips rise by number.
func (x *picture) frame(out []byte, kind byte, cells []planner.Cell, strips []planner.Strip) []byte {
	u := func(n uint64) { out = binary.AppendUvarint(out, n) }
	z := func(n int64) { out = binary.AppendVarint(out, n) }
	flags := byte(0)
	if x.last.Linked {
		flags |= 1
	}
	if x.last.Serving {
		flags |= 2
	}
	out = append(out, kind, flags)
	for _, n := range [...]uint64{x.seq, uint64(x.last.Term), x.last.Last, x.wall, uint64(x.last.Switches[0]), uint64(x.last.Switches[1])} {
		u(n)
	}
	u(uint64(len(cells)))
	last := uint64(0)
	for i := range cells {
		c := &cells[i]
		u(uint64(c.Node) - last)
		last = uint64(c.Node)
		standing := byte(c.Standing)
		if c.Leaving {
			standing |= 1 << 4
		}
		out = append(out, standing, byte(c.Side[0])|byte(c.Side[1])<<4, byte(min(255, c.Deficit/100)))
		for s := range c.Side {
			if c.Side[s] == hbd.Bypassed {
				z(int64(c.Peer[s]) - int64(c.Node))
			}
		}
	}
	u(uint64(len(strips)))
	last = 0
	for i := range strips {
		s := &strips[i]
		u(uint64(s.Ring) - last)
		last = uint64(s.Ring)
		out = append(out, byte(s.State))
		u(uint64(s.Gen))
		u(uint64(s.Size))
		u(uint64(len(s.Nodes)))
		for k, id := range s.Nodes {
			if k == 0 {
				u(uint64(id))
			} else {
				z(int64(id) - int64(s.Nodes[k-1]))
			}
		}
	}
	return out
}

// entry appends an entry of the journal: number and time above those of the one
// before, what it is (an event's code, 0: a note), severity, then node and ring, both 0
// for none and else one more, side, and whether the side has light on another
// candidate (1) or was closed (2).
func entry(out []byte, e, before *planner.Entry) []byte {
	u := func(n uint64) { out = binary.AppendUvarint(out, n) }
	u(e.Seq - before.Seq)
	u(e.Millis - min(e.Millis, before.Millis)) // the wall clock may have been set back
	if m := e.Event; m != nil {
		side := byte(m.Side) & 1
		if m.SideBypassed {
			side |= 1 << 1
		}
		if m.Resolved {
			side |= 1 << 2
		}
		out = append(out, byte(m.Kind), byte(m.Severity), side)
		u(uint64(m.Node) + 1)
		u(uint64(m.Ring))
		return binary.AppendVarint(out, int64(m.Peer)-int64(m.Node))
	}
	dead := byte(0)
	if e.Note.Rule == "dead" {
		dead = 1
	}
	out = append(out, 0, dead, 0)
	u(uint64(e.Note.Node + 1))
	u(uint64(e.Note.Ring))
	u(0)
	return out
}
