package core

import (
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// crossMap is the cross-connect map of a pair of switches: what the even one
// carries, and with it the odd one, which has the same circuits the other way
// round. Under uniform wiring it is one switch, which has both ways, so to is
// symmetric. Where servers are joined directly it is one switch too, and each
// circuit by itself.
type crossMap struct {
	to  []int32 // of a sending pod: the receiving one, -1 = none
	job []proto.JobID
}

// mapSet is what the map at an index is to hold.
type mapSet struct {
	at int
	crossMap
}

func newMap(ports int) crossMap {
	return crossMap{slices.Repeat([]int32{-1}, ports), make([]proto.JobID, ports)}
}

func (d crossMap) clone() crossMap { return crossMap{slices.Clone(d.to), slices.Clone(d.job)} }

func (d crossMap) equal(o crossMap) bool {
	return slices.Equal(d.to, o.to) && slices.Equal(d.job, o.job)
}

func cloneMaps(maps []crossMap) []crossMap {
	out := make([]crossMap, len(maps))
	for k := range maps {
		out[k] = maps[k].clone()
	}
	return out
}

// layout is how the switches of a core form groups, and pairs that share a map.
type layout struct{ fab *fabric.Core }

// slot is one cross-connect of one switch, by the switch's index.
type slot struct {
	sw   int
	a, b uint16
}

// uniform: a link is in one switch, both ways.
func (c layout) uniform() bool { return !c.fab.Paired() && c.fab.Direct == nil }

// groupMaps is the number of maps of a group.
func (c layout) groupMaps() int {
	if !c.fab.Paired() {
		return c.fab.GroupSwitches()
	}
	return c.fab.GroupSwitches() / 2
}

// switchesOf are the switches of a map, the even one first.
func (c layout) switchesOf(at int) []int {
	if !c.fab.Paired() {
		return []int{at}
	}
	return []int{2 * at, 2*at + 1} // groups have an even number of switches
}

// mapOf is the map of a switch, and whether the switch is its odd one.
func (c layout) mapOf(sw int) (at int, odd bool) {
	if !c.fab.Paired() {
		return sw, false
	}
	return sw / 2, sw%2 == 1
}

// groupOf is the group of a map.
func (c layout) groupOf(at int) int { return at / c.groupMaps() }

// bare is a map without circuits.
func (c layout) bare(at int) crossMap { return newMap(c.fab.PortsOf(c.switchesOf(at)[0])) }

// circuitsOf is what a switch carries when its map holds d, by port of side A.
func (c layout) circuitsOf(sw int, d crossMap) []proto.Circuit {
	var out []proto.Circuit
	_, odd := c.mapOf(sw)
	for i, j := range d.to {
		switch {
		case j < 0:
		case odd:
			out = append(out, proto.Circuit{A: uint16(j), B: uint16(i), Job: d.job[i]})
		default:
			out = append(out, proto.Circuit{A: uint16(i), B: uint16(j), Job: d.job[i]})
		}
	}
	slices.SortFunc(out, func(a, b proto.Circuit) int { return int(a.A) - int(b.A) })
	return out
}

// links calls f for every link of a map once, by its sending pod; under
// uniform wiring that is the lower one. What a server's transceivers do is a
// part of links that layers have.
func (c layout) links(at int, d crossMap, f func(i, j int32, job proto.JobID)) {
	if _, server := c.fab.ServerOf(at); server {
		return
	}
	for i, j := range d.to {
		if j >= 0 && (!c.uniform() || int32(i) < j) {
			f(int32(i), j, d.job[i])
		}
	}
}

// free reports whether a link from i to j finds its ports free.
func (c layout) free(d crossMap, i, j int32) bool {
	if d.to[i] >= 0 {
		return false
	}
	if c.uniform() {
		return i != j && d.to[j] < 0
	}
	return !slices.Contains(d.to, j)
}

func (c layout) put(d crossMap, i, j int32, job proto.JobID) {
	d.to[i], d.job[i] = j, job
	if c.uniform() {
		d.to[j], d.job[j] = i, job
	}
}

func (c layout) drop(d crossMap, i int32) {
	j := d.to[i]
	d.to[i], d.job[i] = -1, 0
	if c.uniform() && j >= 0 {
		d.to[j], d.job[j] = -1, 0
	}
}

// slots are the cross-connects of a link of a map: of servers joined directly,
// the one of its layer and those of the transceivers at both ends.
func (c layout) slots(at int, i, j int32) []slot {
	a, b := uint16(i), uint16(j)
	if c.fab.Direct != nil {
		return []slot{{at, a, b}, c.pathSlot(at, i), c.pathSlot(at, j)}
	}
	s := c.switchesOf(at)
	return []slot{{s[0], a, b}, {s[len(s)-1], b, a}}
}

// pathSlot is the circuit of the transceiver whose fibre ends at a port of a layer.
func (c layout) pathSlot(layer int, port int32) slot {
	server, path := c.fab.PortEnd(int(port))
	return slot{c.fab.ServerSwitch(server), uint16(layer), uint16(c.fab.PathPort(layer, path))}
}

// changedMaps lists the maps in which two states differ.
func changedMaps(was, is []crossMap) []mapSet {
	var out []mapSet
	for at := range is {
		if !is[at].equal(was[at]) {
			out = append(out, mapSet{at, is[at].clone()})
		}
	}
	return out
}

// difference counts the cross-connects that come and go between two contents
// of a map, those of its odd switch included.
func (c layout) difference(was, is crossMap) (made, gone int) {
	for i := range is.to {
		if was.to[i] == is.to[i] {
			continue
		}
		if is.to[i] >= 0 {
			made++
		}
		if was.to[i] >= 0 {
			gone++
		}
	}
	if c.fab.Paired() {
		made, gone = 2*made, 2*gone
	}
	return made, gone
}

// made counts each job's links in maps, but for those that stand by, and over what is out:
// of a switch that is, nobody knows.
func (o *out) made(maps []crossMap) map[proto.JobID]int {
	c, out := o.layout, map[proto.JobID]int{}
	for at, d := range maps {
		c.links(at, d, func(i, j int32, id proto.JobID) {
			if len(o.ports) == 0 && c.fab.Direct == nil {
				out[id]++
			} else if link := c.slots(at, i, j); !sendsBeside(link, maps, id) && o.hits(link...) == "" {
				out[id]++
			}
		})
	}
	return out
}
