package hbd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// What the rings leave in the store.
const (
	keyHead    = "head"  // head
	keyGrown   = "grown" // decimal: nodes from here on came with the last edits
	prefixRing = "ring/" // ringRecord
)

// Prefixes are those of the rings' records.
var Prefixes = []string{prefixRing, member.PrefixNode, prefixDrain, prefixHold}

// head is the rings' own progress.
type head struct {
	Generation proto.Generation `json:"generation"`
	NextRing   proto.RingID     `json:"next_ring"`
}

type ringRecord struct {
	Nodes      []proto.NodeID   `json:"nodes"`
	Term       proto.Term       `json:"term"`
	Generation proto.Generation `json:"generation"`
	Plan       proto.Digest     `json:"plan"`
	Size       int              `json:"size,omitempty"` // absent: as the fabric's TP
	Job        string           `json:"job,omitempty"`  // that it is for
	Step       paired           `json:"exchange_step,omitempty"`
}

// record is a ring as the store keeps it, with the decision on it.
func (r *ringView) record(d member.Decided) ringRecord {
	rec := ringRecord{Nodes: r.nodes, Term: d.Term, Generation: d.Gen, Plan: d.Plan, Job: r.owner, Step: r.step}
	if r.size != r.pl.fab.GroupNodes() {
		rec.Size = r.size
	}
	return rec
}

func ringKey(id proto.RingID) string { return journal.NumberedKey(prefixRing, uint64(id)) }

// RestoreHead takes the rings' progress from the store. Without it what runs
// is adopted.
func (h *Rings) RestoreHead(st journal.State) error {
	if st.Get(keyGrown) != nil {
		n, err := st.Number(keyGrown)
		if err != nil || n > uint64(len(h.Placed.nodes)) {
			return errors.Join(err, fmt.Errorf("store: %s: %d, want at most %d", keyGrown, n, len(h.Placed.nodes)))
		}
		h.Placed.grown = int(n)
	}
	var x head
	if there, err := st.Decode(keyHead, &x); !there || err != nil {
		return err
	}
	if err := h.Table.Numbers.RestoreHead(keyHead, x.Generation); err != nil {
		return err
	}
	if x.NextRing >= proto.FirstGroup {
		return fmt.Errorf("store: %s: next_ring: %d, want under %d", keyHead, x.NextRing, proto.FirstGroup)
	}
	h.nextRing = max(1, x.NextRing)
	return nil
}

// Restore takes one record of the store; rest is its key without the prefix.
func (h *Rings) Restore(prefix, rest string, raw []byte) error {
	if prefix == prefixRing {
		return h.restoreRing(rest, raw)
	}
	n, err := h.Placed.storedNode(rest)
	if err != nil {
		return err
	}
	switch prefix {
	case member.PrefixNode:
		ring, err := h.Table.Restore(n.Device, raw)
		h.Placed.place(n.Device.ID, ring)
		if n.Device.Unassigned {
			h.Agenda.unassign(n)
		}
		return err
	case prefixDrain:
		return h.drains.restore(n, raw)
	case prefixHold:
		return h.drains.holds.restore(n, raw)
	}
	return nil
}

func (h *Rings) restoreRing(key string, raw []byte) error {
	id, err := strconv.ParseUint(key, 10, 32)
	if err != nil {
		return err
	}
	if id >= uint64(proto.FirstGroup) {
		return fmt.Errorf("want a number under %d", proto.FirstGroup)
	}
	var r ringRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	if err := errors.Join(journal.CheckCount("term", uint64(r.Term)), journal.CheckCount("generation", uint64(r.Generation))); err != nil {
		return err
	}
	r.Size = cmp.Or(r.Size, h.Placed.fab.GroupNodes())
	v := h.Placed.form(proto.RingID(id), r.Nodes, r.Size, member.Decided{Term: r.Term, Gen: r.Generation, Plan: r.Plan})
	v.owner, v.step = r.Job, r.Step
	h.surplus = h.surplus || r.Job == "" && !slices.Contains(h.Placed.sizes, r.Size) // a job gave it back, and it ends
	h.Placed.rings = append(h.Placed.rings, v)
	h.Table.Numbers.Stored(r.Generation)
	h.nextRing = max(h.nextRing, proto.RingID(id)+1)
	return nil
}

func (p *placement) storedNode(key string) (*node, error) {
	id, err := strconv.ParseUint(key, 10, 32)
	if err != nil {
		return nil, err
	}
	if id >= uint64(len(p.nodes)) {
		return nil, fmt.Errorf("no such node in a fabric of %d", len(p.nodes))
	}
	return &p.nodes[id], nil
}

// CheckStored says what is wrong with the rings of a store, if anything.
func (p *placement) CheckStored() error {
	for i, r := range p.rings {
		switch { // other keys than ours, or other content
		case i > 0 && r.id <= p.rings[i-1].id:
			return fmt.Errorf("store: ring %d stands after ring %d", r.id, p.rings[i-1].id)
		case len(r.nodes) == 0:
			return fmt.Errorf("store: ring %d has no nodes", r.id)
		}
		if err := p.order.Check(r.nodes); err != nil {
			return fmt.Errorf("store: ring %d: %w", r.id, err)
		}
		if r.step > 0 && 1<<r.step > len(r.nodes)&-len(r.nodes) {
			return fmt.Errorf("store: ring %d of %s is at step %d of an exchange", r.id, proto.Count(len(r.nodes), "node"), r.step)
		}
		if r.size < len(r.nodes) || r.size > fabric.MaxGroupNodes {
			return fmt.Errorf("store: ring %d is of %d nodes and has %d", r.id, r.size, len(r.nodes))
		}
		for _, n := range r.nodes {
			if p.nodes[n].Device.Group != r.id {
				return fmt.Errorf("store: node %d is a member of ring %d and does not say so", n, r.id)
			}
		}
	}
	return nil
}
