package wear

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Prefix is that of a node's record in the store.
const Prefix = "wear/"

const (
	// maxModules of a bundle that are followed. chosen: twice what a board has.
	maxModules = 16
	// settle is after the first reading of a life. Until then nobody knows what time it is. chosen: clocks
	// are set soon after a start.
	settle = 10 * time.Minute
	// stale is a reading that is told again and again. chosen.
	stale = 10 * time.Minute
	// format of a record; one of another is passed over.
	format = 1
)

// Book has the lines of all modules.
type Book struct {
	nodes map[proto.NodeID]*node
	begun time.Duration // when the first reading of this life came
	heard bool
	known bool // what minute it is
	// base is the minute at since. Within a life it is counted on from there, whatever the clock
	// does, and no life begins before what the store has.
	base  uint32
	since time.Duration
}

type node struct {
	last  uint32 // minute of the last points
	lines []line // by place
}

// Ageing is what lasers or heaters of a module take, where that goes for sure to a limit.
type Ageing struct {
	Node   proto.NodeID
	Bundle proto.BundleID
	Module uint8
	Lasers bool    // else heaters
	Is     float64 // microampere of the lasers of the half that takes most; microwatt
	Limit  float64
	Change float64 // a day
	Days   float64 // until the limit; 0: it is reached
}

// What says it in a word, for scripts.
func (a *Ageing) What() string {
	if a.Lasers {
		return "laser_bias"
	}
	return "heater_power"
}

// Take takes telemetry of a node, with what its last report says of its bundles, and the
// clock. It gives the record that is due, without a key when none is.
func (b *Book) Take(now time.Duration, wallMillis uint64, m *proto.Health, bundles iter.Seq[proto.BundleReport]) journal.Record {
	if !b.heard {
		b.heard, b.begun = true, now
	}
	n := b.nodes[m.Node]
	if n == nil {
		n = &node{}
		b.put(m.Node, n)
	}
	n.read(m, bundles)
	if now < b.begun+settle {
		return journal.Record{}
	}
	if !b.known {
		b.known, b.since, b.base = true, now, max(b.base+uint32(settle.Minutes()), uint32(min(wallMillis/60_000, math.MaxInt32)))
	}
	minute := b.base + uint32((now-b.since)/time.Minute)
	switch {
	case n.last == 0: // of many nodes not all at once
		n.last = minute - min(minute, uint32(m.Node)%every)
	case minute >= n.last+every:
		n.last = minute
		for i := range n.lines {
			n.lines[i].point(minute)
		}
		return n.record(m.Node)
	}
	return journal.Record{}
}

func (b *Book) put(id proto.NodeID, n *node) {
	if b.nodes == nil {
		b.nodes = map[proto.NodeID]*node{}
	}
	b.nodes[id] = n
}

// read takes the readings of a message. A module is known by its serial number, a
// heater by the calibration that its power is of.
func (n *node) read(m *proto.Health, bundles iter.Seq[proto.BundleReport]) {
	var heater [proto.MaxBundles]place
	var calibration [proto.MaxBundles]uint32
	for r := range bundles {
		if r.Calibration != (proto.Digest{}) {
			heater[r.Bundle].Kind = heaters + uint8(r.Path)
			calibration[r.Bundle] = crc32.ChecksumIEEE(r.Calibration[:])
		}
	}
	var serial proto.Sample
	for _, s := range m.Samples {
		at := place{Bundle: uint8(s.Bundle), Module: s.Module}
		if int(at.Bundle) >= len(heater) || at.Module >= maxModules || time.Duration(s.AgeMillis)*time.Millisecond > stale {
			continue
		}
		switch s.Sensor {
		case proto.SensorSerial:
			serial = s
		case proto.SensorRail:
			if at.Kind = heater[at.Bundle].Kind; at.Kind != lasers && s.Value > 0 {
				n.at(at).read(calibration[at.Bundle], s.Value, m.Seq)
			}
		case proto.SensorUpperBias, proto.SensorLowerBias:
			id := uint32(0)
			if serial.Sensor != 0 && serial.Bundle == s.Bundle && serial.Module == s.Module {
				id = uint32(serial.Value)
			}
			if s.Value > 0 {
				n.at(at).read(id, s.Value, m.Seq)
			}
		}
	}
}

// at finds the line of a place, or begins it.
func (n *node) at(p place) *line {
	i, found := slices.BinarySearchFunc(n.lines, p, func(l line, p place) int {
		return cmp.Or(cmp.Compare(l.Bundle, p.Bundle), cmp.Compare(l.Module, p.Module), cmp.Compare(l.Kind, p.Kind))
	})
	if !found {
		n.lines = slices.Insert(n.lines, i, line{stored: stored{place: p}})
	}
	return &n.lines[i]
}

func key(id proto.NodeID) string { return journal.NumberedKey(Prefix, uint64(id)) }

// record is what the store has of a node: the format, the minute of the last points, and
// the lines that have any.
func (n *node) record(id proto.NodeID) journal.Record {
	out := binary.BigEndian.AppendUint32([]byte{format}, n.last)
	for i := range n.lines {
		if l := &n.lines[i]; l.Begun != 0 {
			out, _ = binary.Append(out, binary.BigEndian, &l.stored) // of fixed size
		}
	}
	return journal.Record{Key: key(id), Value: out}
}

// Restore takes one record of the store; rest is its key without the prefix. What is of another
// format or no number is passed over: the lines begin anew.
func (b *Book) Restore(rest string, raw []byte) error {
	id, err := strconv.ParseUint(rest, 10, 32)
	if err != nil || len(raw) < 5 || raw[0] != format {
		return err
	}
	n := &node{last: binary.BigEndian.Uint32(raw[1:])}
	for r := bytes.NewReader(raw[5:]); ; {
		var s stored
		if binary.Read(r, binary.BigEndian, &s) != nil {
			break
		}
		if odd := s.Begun + s.Was + s.W + s.Age + s.MeanY + s.VarT + s.VarY + s.Both; odd-odd == 0 { // numbers
			l := n.at(s.place)
			l.stored = s
			l.judge()
		}
	}
	b.base = max(b.base, n.last)
	b.put(proto.NodeID(id), n)
	return nil
}

// Keep forgets nodes from a number on, and gives what the store forgets of them.
func (b *Book) Keep(nodes int) (records []journal.Record) {
	for _, id := range slices.Sorted(maps.Keys(b.nodes)) {
		if int(id) >= nodes {
			delete(b.nodes, id)
			records = append(records, journal.Record{Key: key(id)})
		}
	}
	return records
}

// Ageing lists what reaches its limit within days, the first first: lasers at so many per cent more
// than at first, heaters at so many more or less.
func (b *Book) Ageing(lasersPercent, heatersPercent int, days float64) (out []Ageing) {
	for id, n := range b.nodes { // any order: sorted below
		for i := range n.lines {
			l := &n.lines[i]
			a := Ageing{Node: id, Bundle: proto.BundleID(l.Bundle), Module: l.Module, Lasers: l.Kind == lasers, Is: float64(l.Was), Change: float64(l.slope)}
			begun, share := float64(l.Begun), float64(lasersPercent)/100
			if !a.Lasers {
				share = float64(heatersPercent) / 100
				if a.Change < 0 || a.Change == 0 && a.Is < begun {
					share = -share
				}
			}
			is := a.Is
			if a.Change != 0 { // a warm day is not on the line
				f := l.fit()
				is = f.At(l.at())
			}
			a.Limit = begun * (1 + share)
			switch left := (a.Limit - is) / share; {
			case begun == 0:
				continue
			case left <= 0: // it is there
			case a.Change/share <= 0:
				continue
			default:
				a.Days = left / (a.Change / share)
			}
			if a.Days < days {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, func(x, y Ageing) int {
		return cmp.Or(cmp.Compare(x.Days, y.Days), cmp.Compare(x.Node, y.Node), cmp.Compare(x.Bundle, y.Bundle), cmp.Compare(x.Module, y.Module), cmp.Compare(x.What(), y.What()))
	})
	return out
}
