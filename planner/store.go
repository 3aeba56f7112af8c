package planner

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Record is one small entry of the store. A nil Value deletes it.
type Record struct {
	Key   string
	Value []byte
}

// State is the content of a store, sorted by key.
type State []Record

// Keys of the store. Numbers are zero-padded so that they sort.
const (
	keyTerm    = "term"    // decimal
	keyPlanner = "planner" // decimal
	keyFabric  = "fabric"  // the description
	keyHead    = "head"    // head
	prefixRing = "ring/"   // ringRecord
	prefixNode = "node/"   // nodeRecord
	prefixSeen = "seen/"   // the last event of a node, seenRecord
	prefixLog  = "log/"    // the event log, see logValue
)

// head is the planner's own progress.
type head struct {
	Generation proto.Generation `json:"generation"`
	NextRing   proto.RingID     `json:"next_ring"`
}

type ringRecord struct {
	Nodes      []proto.NodeID   `json:"nodes"`
	Term       proto.Term       `json:"term"`
	Generation proto.Generation `json:"generation"`
	Plan       proto.Digest     `json:"plan"`
}

// nodeRecord is a committed target. Desired are the bytes that the node
// prepared; they are absent where the target was adopted.
type nodeRecord struct {
	Ring       proto.RingID     `json:"ring"`
	Term       proto.Term       `json:"term"`
	Generation proto.Generation `json:"generation"`
	Plan       proto.Digest     `json:"plan"`
	Unassigned bool             `json:"unassigned,omitempty"`
	Desired    []byte           `json:"desired,omitempty"`
}

func (s State) get(key string) []byte {
	i, ok := slices.BinarySearchFunc(s, key, func(r Record, key string) int { return strings.Compare(r.Key, key) })
	if !ok {
		return nil
	}
	return s[i].Value
}

func (s State) number(key string) (uint64, error) {
	raw := s.get(key)
	if raw == nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("store: %s: %w", key, err)
	}
	return n, nil
}

// Start makes a Config from what a store holds and raises the term. f is the
// fabric asked for; nil takes the stored one, else the default. A store knows
// one fabric: another is refused. The shell writes the returned records
// before it makes the planner. freshID becomes the planner's id when the
// store has none; it must not be 0.
func Start(st State, f *fabric.Fabric, freshID uint64) (Config, []Record, error) {
	term, err := st.number(keyTerm)
	if err != nil {
		return Config{}, nil, err
	}
	id, err := st.number(keyPlanner)
	if err != nil {
		return Config{}, nil, err
	}
	if id == 0 {
		id = freshID
	}
	if raw := st.get(keyFabric); raw != nil {
		stored, err := fabric.Parse(raw)
		if err != nil {
			return Config{}, nil, fmt.Errorf("store: fabric: %w", err)
		}
		if f != nil && string(f.Encode()) != string(stored.Encode()) {
			return Config{}, nil, &fabric.Error{Field: "fabric", Limit: "the stored fabric, or another store",
				Message: fmt.Sprintf("the store holds fabric %s (%d nodes, k %d, tp %d), which differs from the one given", stored.Name, stored.Nodes, stored.K, stored.TP)}
		}
		f = stored
	}
	if f == nil {
		f = fabric.Default()
	}
	term++
	cfg := Config{Fabric: f, Store: st, Term: proto.Term(term), PlannerID: id}
	// What New would panic about is an error here.
	if err := New(Config{Fabric: f, Term: 1, PlannerID: id}).restore(st); err != nil {
		return Config{}, nil, err
	}
	return cfg, []Record{
		{keyTerm, strconv.AppendUint(nil, term, 10)},
		{keyPlanner, strconv.AppendUint(nil, id, 10)},
		{keyFabric, f.Encode()},
	}, nil
}

func ringKey(id proto.RingID) string { return numberedKey(prefixRing, uint64(id)) }
func nodeKey(id proto.NodeID) string { return numberedKey(prefixNode, uint64(id)) }
func seenKey(id proto.NodeID) string { return numberedKey(prefixSeen, uint64(id)) }

// numberedKey sorts by number.
func numberedKey(prefix string, n uint64) string { return fmt.Sprintf("%s%010d", prefix, n) }

func logKey(seq uint64) string { return fmt.Sprintf("%s%016x", prefixLog, seq) }

func encodeRecord(key string, v any) Record {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("planner: a record always encodes: " + err.Error())
	}
	return Record{key, raw}
}

// commitRecords is the decision of the generation under way.
func (p *Planner) commitRecords() []Record {
	t := &p.txn
	out := []Record{encodeRecord(keyHead, head{t.gen, t.proposal.next})}
	left := map[proto.NodeID]bool{}
	for _, id := range t.proposal.gone {
		out = append(out, Record{Key: ringKey(id)})
		p.leavers(p.ring(id), left)
	}
	for _, r := range t.proposal.rings {
		out = append(out, encodeRecord(ringKey(r.id), ringRecord{r.nodes, t.term, t.gen, t.plan}))
		p.leavers(p.ring(r.id), left)
	}
	member := map[proto.NodeID]proto.RingID{}
	for _, r := range t.proposal.rings {
		for _, n := range r.nodes {
			member[n] = r.id
		}
	}
	for i := range t.parts {
		id := t.parts[i].node
		delete(left, id)
		out = append(out, encodeRecord(nodeKey(id), nodeRecord{Ring: member[id], Term: t.term, Generation: t.gen, Plan: t.plan, Desired: t.parts[i].payload}))
	}
	for i := range p.nodes {
		if n := &p.nodes[i]; left[n.id] {
			out = append(out, encodeRecord(nodeKey(n.id), nodeRecord{Term: n.want.term, Generation: n.want.gen, Plan: n.want.plan, Unassigned: true}))
		}
	}
	return out
}

func (p *Planner) leavers(r *ringView, left map[proto.NodeID]bool) {
	if r != nil {
		for _, n := range r.nodes {
			left[n] = true
		}
	}
}

// restore takes what a former planner stored.
func (p *Planner) restore(st State) error {
	p.fresh = st.get(keyHead) == nil
	if raw := st.get(keyHead); raw != nil {
		var h head
		if err := json.Unmarshal(raw, &h); err != nil {
			return fmt.Errorf("store: %s: %w", keyHead, err)
		}
		p.gen, p.nextRing = h.Generation, max(1, h.NextRing)
	}
	for _, rec := range st {
		var err error
		prefix, rest, ok := strings.Cut(rec.Key, "/")
		if !ok {
			continue
		}
		switch prefix + "/" {
		case prefixRing:
			err = p.restoreRing(rest, rec.Value)
		case prefixNode:
			err = p.restoreNode(rest, rec.Value)
		case prefixSeen:
			err = p.restoreSeen(rest, rec.Value)
		case prefixLog:
			err = p.restoreLog(rest, rec.Value)
		case prefixDrain:
			err = p.restoreDrain(rest, rec.Value)
		case prefixJob, prefixDeck, prefixSwitch:
			err = p.restoreCircuits(prefix+"/", rest, rec.Value)
		}
		if err != nil {
			return fmt.Errorf("store: %s: %w", rec.Key, err)
		}
	}
	if err := p.restoreStage(st); err != nil {
		return err
	}
	for _, r := range p.rings {
		if err := p.order.Check(r.nodes); err != nil {
			return fmt.Errorf("store: ring %d: %w", r.id, err)
		}
		for _, n := range r.nodes {
			if p.nodes[n].ring != r.id {
				return fmt.Errorf("store: node %d is a member of ring %d and does not say so", n, r.id)
			}
		}
	}
	return nil
}

func (p *Planner) restoreRing(key string, raw []byte) error {
	id, err := strconv.ParseUint(key, 10, 32)
	if err != nil {
		return err
	}
	var r ringRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	p.rings = append(p.rings, &ringView{id: proto.RingID(id), nodes: r.Nodes, lit: make([]bool, max(0, len(r.Nodes)-1)), decided: decided{r.Term, r.Generation, r.Plan}})
	p.gen, p.nextRing = max(p.gen, r.Generation), max(p.nextRing, proto.RingID(id)+1)
	return nil
}

func (p *Planner) restoreNodeID(key string) (*nodeView, error) {
	id, err := strconv.ParseUint(key, 10, 32)
	if err != nil {
		return nil, err
	}
	n := p.view(proto.NodeID(id))
	if n == nil {
		return nil, fmt.Errorf("no such node in a fabric of %d", len(p.nodes))
	}
	return n, nil
}

func (p *Planner) restoreNode(key string, raw []byte) error {
	n, err := p.restoreNodeID(key)
	if err != nil {
		return err
	}
	var r nodeRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	p.place(n.id, r.Ring)
	if r.Unassigned {
		p.unassign(n)
	}
	n.want = target{decided{r.Term, r.Generation, r.Plan}, r.Desired}
	return nil
}

// logValue is one entry of the log: the wall clock's milliseconds in eight
// bytes, then an encoded proto.Event, or a note as JSON.
func logValue(e *entry) []byte {
	out := binary.BigEndian.AppendUint64(nil, e.millis)
	if e.event == nil {
		return append(out, encodeRecord("", e.note).Value...)
	}
	out, err := proto.AppendEncode(out, e.event)
	if err != nil {
		panic("planner: an event that was decoded does not encode: " + err.Error())
	}
	return out
}

func parseLog(seq uint64, raw []byte) (entry, error) {
	if len(raw) < 9 {
		return entry{}, fmt.Errorf("%d bytes, want 9 or more", len(raw))
	}
	e := entry{seq: seq, millis: binary.BigEndian.Uint64(raw)}
	if raw[8] == '{' {
		e.note = new(note)
		return e, json.Unmarshal(raw[8:], e.note)
	}
	e.event = new(proto.Event)
	_, err := proto.Decode(raw[8:], e.event)
	return e, err
}
