package member

import (
	"encoding/json"
	"errors"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Prefixes of the store's keys, before a device's number.
const (
	PrefixNode   = "node/"
	PrefixSwitch = "switch/"
)

// record is a committed target. Desired are the bytes that the device
// prepared; they are absent where the target was adopted.
type record struct {
	Ring       proto.RingID     `json:"ring"` // of a node
	Term       proto.Term       `json:"term"`
	Generation proto.Generation `json:"generation"`
	Plan       proto.Digest     `json:"plan"`
	Unassigned bool             `json:"unassigned,omitempty"`
	Desired    []byte           `json:"desired,omitempty"`
}

func recordKey(id proto.NodeID) string {
	prefix := PrefixNode
	if id.IsSwitch() {
		prefix = PrefixSwitch
	}
	return journal.NumberedKey(prefix, uint64(id))
}

// Record is a device's target as the store keeps it. ring is a node's.
func Record(id proto.NodeID, ring proto.RingID, want Target, unassigned bool) journal.Record {
	return journal.Encode(recordKey(id), record{ring, want.Term, want.Gen, want.Plan, unassigned, []byte(want.Payload)})
}

// Restore takes a target from the store, and gives the ring that a node is in.
func (t *Table) Restore(d *Device, raw []byte) (ring proto.RingID, err error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return 0, err
	}
	d.Want, d.Unassigned = Target{t.alike.decided(Decided{r.Term, r.Generation, r.Plan}), string(r.Desired)}, r.Unassigned
	return r.Ring, errors.Join(journal.CheckCount("term", uint64(r.Term)), journal.CheckCount("generation", uint64(r.Generation)))
}
