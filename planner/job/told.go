package job

import (
	"cmp"
	"slices"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// maxTold are the events of all jobs that are kept for those who watch all, at least.
// chosen: a site that loses power has some a job, and who missed more reads the list.
const maxTold = 4096

// told are the last events of nodes and of all jobs, without who is which rank.
type told struct {
	last   uint64 // number of an event
	events []Event
	mixed  bool // not by number yet

	stands map[proto.NodeID]Standing // what was told of nodes last; those that are well are not in it
	nodes  []string                  // keys of the stored events of nodes, the oldest first
}

// add takes an event; the oldest are forgotten, many at a time.
func (a *told) add(id string, e Event) {
	e.Job, e.HandOver = id, nil
	if a.events = append(a.events, e); len(a.events) >= 2*maxTold && !a.mixed {
		a.events = slices.Clone(a.events[maxTold:])
	}
}

// sort puts those of the store into order.
func (a *told) sort() {
	if a.mixed {
		slices.SortFunc(a.events, func(x, y Event) int { return cmp.Compare(x.Number, y.Number) })
		a.events, a.mixed = slices.Clone(a.events[max(0, len(a.events)-maxTold):]), false
	}
}

// tellNodes tells of nodes that have come to be well, lost or drained. One that is
// silent keeps its light, and stands as it did.
func (a *told) tellNodes(t *Table) {
	var records []journal.Record
	for _, id := range t.rings.Touched() {
		s, lost := t.rings.Node(id)
		is := standing(s, lost)
		if is == Silent || is == cmp.Or(a.stands[id], Well) {
			continue
		}
		e := Event{Number: a.last + 1, Event: string(is), AtMS: t.j.Wall, Ring: s.Ring, Node: t.name(id)}
		if is != Well {
			e.Cause = s.Reason
		}
		if l, ok := t.rings.Lent(s.Ring); ok && is == Lost {
			e.BypassUS = l.Bypass
		}
		key := nodeKey(e.Number)
		records = append(records, journal.Encode(key, &e))
		a.node(id, key, e)
	}
	for ; len(a.nodes) > maxTold; a.nodes = a.nodes[1:] {
		records = append(records, journal.Record{Key: a.nodes[0]})
	}
	t.storeAll(records)
}

// node takes an event of a node.
func (a *told) node(id proto.NodeID, key string, e Event) {
	a.last = max(a.last, e.Number)
	a.add("", e)
	a.nodes = append(a.nodes, key)
	if delete(a.stands, id); e.Event != string(Well) {
		a.stands[id] = Standing(e.Event)
	}
}

// Told are events of nodes and of all jobs after a number, the first ones, and the number of the last
// there is; complete is false where some of them are not kept any more, or where there
// are fewer: the planner has lost its store.
func (t *Table) Told(after uint64) (events []Event, last uint64, complete bool) {
	a := &t.all
	a.sort()
	at, _ := slices.BinarySearchFunc(a.events, after, func(e Event, n uint64) int { return cmp.Compare(e.Number, n+1) })
	events = a.events[at:]
	complete = after <= a.last && uint64(len(events)) == a.last-after
	return append([]Event{}, events[:min(len(events), maxEvents)]...), a.last, complete
}
