package agent

import (
	"encoding/json"
	"fmt"

	"ringlight/node"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// Journal is what an agent knows of its life before. The zero Journal is that
// of a new node. Records are applied in the order in which they were
// persisted; a snapshot is one record that says it all.
type Journal struct {
	State    *node.State    // nil: never saved
	Events   []proto.Event  // not acknowledged, by Seq, without a gap
	Last     uint64         // highest sequence number given out
	Acked    uint64         // the planner has everything up to here
	Reserved uint64         // events up to here may have been sent
	Light    []BundleRecord // by bundle, as last seen
	Refused  uint64         // messages refused, over all lives
	// Circuits of a switch as they were last known, with where its mirrors
	// stood; Parked says that all other mirrors point at nothing.
	Circuits []circuit.Saved
	Parked   bool
	// Bins are rows of the records, by slot; those are not part of its records; none: nil.
	Bins [][]byte
	// Told is what a planner must know of how the journal was read; "": nothing.
	Told string
}

// BundleRecord is what was last known of one bundle's light.
type BundleRecord struct {
	Path proto.Path // selected
	Lit  uint8      // bit p: path p has light
	// Pattern: its modules may make bit patterns.
	Pattern bool `json:",omitempty"`
}

// record is one line of the journal. JSON, so that a person can read what a
// node remembers; it is written off the protection path.
type record struct {
	State    *node.State    `json:"state,omitempty"`
	Events   []proto.Event  `json:"events,omitempty"` // appended, or in place of the one with the same Seq
	Last     uint64         `json:"last,omitempty"`
	Acked    uint64         `json:"acked,omitempty"`
	Reserved uint64         `json:"reserved,omitempty"`
	Light    []BundleRecord `json:"light,omitempty"`
	Refused  uint64         `json:"refused,omitempty"`

	Circuits *[]circuit.Saved `json:"circuits,omitempty"` // absent: as before, and parked too
	Parked   bool             `json:"parked,omitempty"`
}

// Record is a record of the journal. What it says is shared with whoever made it, and nobody
// changes it.
type Record struct{ r record }

// Encode is the bytes of the record.
func (rec *Record) Encode() []byte {
	raw, err := json.Marshal(&rec.r)
	if err != nil {
		// Every field is an integer, a bool or a text.
		panic("agent: journal record does not encode: " + err.Error())
	}
	return raw
}

// readRecord reads the bytes of one record.
func readRecord(raw []byte) (*Record, error) {
	var rec Record
	if err := json.Unmarshal(raw, &rec.r); err != nil {
		return nil, fmt.Errorf("agent: journal record: %w", err)
	}
	return &rec, nil
}

// Events are those that a record adds or replaces; not to be written.
func (rec *Record) Events() []proto.Event { return rec.r.Events }

// Apply takes one record. After an error the journal is as before.
func (j *Journal) Apply(raw []byte) error {
	rec, err := readRecord(raw)
	if err != nil {
		return err
	}
	return j.Take(rec)
}

// Take is Apply for a record that has been read.
func (j *Journal) Take(rec *Record) error {
	r := &rec.r
	next := max(j.Last, j.Acked, r.Acked) + 1
	if len(j.Events) == 0 && len(r.Events) > 0 {
		next = r.Events[0].Seq // a snapshot
	}
	for _, e := range r.Events {
		if e.Seq > next {
			return fmt.Errorf("agent: journal record: event %d after %d", e.Seq, next-1)
		}
		next = max(next, e.Seq+1)
	}
	if r.State != nil {
		j.State = r.State
	}
	if r.Light != nil {
		j.Light = r.Light
	}
	if r.Circuits != nil {
		j.Circuits, j.Parked = *r.Circuits, r.Parked
	}
	j.Acked = max(j.Acked, r.Acked)
	j.Reserved = max(j.Reserved, r.Reserved)
	j.Refused = max(j.Refused, r.Refused)
	for _, e := range r.Events {
		j.put(e)
	}
	j.Last = max(j.Last, r.Last)
	j.drop()
	return nil
}

// put appends e, or puts it in place of the event with its number.
func (j *Journal) put(e proto.Event) {
	if e.Seq <= j.Acked {
		return
	}
	if n := len(j.Events); n > 0 && e.Seq <= j.Events[n-1].Seq {
		if first := j.Events[0].Seq; e.Seq >= first {
			j.Events[e.Seq-first] = e
		}
		return
	}
	j.Events = append(j.Events, e)
	j.Last = max(j.Last, e.Seq)
}

// drop forgets what is acknowledged.
func (j *Journal) drop() {
	n := 0
	for n < len(j.Events) && j.Events[n].Seq <= j.Acked {
		n++
	}
	if n > 0 {
		j.Events = append(j.Events[:0], j.Events[n:]...)
	}
	j.Last = max(j.Last, j.Acked)
}

// Snapshot is a record that makes a zero Journal equal to j.
func (j *Journal) Snapshot() []byte {
	r := record{State: j.State, Events: j.Events, Last: j.Last, Acked: j.Acked,
		Reserved: j.Reserved, Light: j.Light, Refused: j.Refused}
	if j.Circuits != nil {
		r.Circuits, r.Parked = &j.Circuits, j.Parked
	}
	return (&Record{r}).Encode()
}
