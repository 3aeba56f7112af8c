package planner

import (
	"encoding/json"
	"fmt"
	"strconv"

	"ringlight/planner/sched"
	"ringlight/proto"
)

// What circuits leave in the store.

const (
	keyCircuits  = "circuits" // circuitsHead
	keyStage     = "stage"    // stageRecord: of a stage that is not proven yet
	prefixJob    = "job/"     // jobRecord
	prefixDeck   = "deck/"    // deckRecord
	prefixSwitch = "switch/"  // nodeRecord, by the switch's number
)

type circuitsHead struct {
	Generation proto.Generation `json:"generation"`
}

// deckRecord lists a deck's links.
type deckRecord struct {
	Links [][3]uint32 `json:"links"` // from, to, job
}

type stageRecord struct {
	Back     map[string]deckRecord `json:"back"` // by deck
	Switches []int                 `json:"switches"`
	Kind     txnKind               `json:"kind"`
}

type jobRecord struct {
	Spec   proto.JobSpec `json:"spec"`
	Shares []sched.Share `json:"shares,omitempty"`
	Wants  []sched.Want  `json:"wants,omitempty"`
	Links  []int         `json:"links,omitempty"`
	Paths  []path        `json:"paths,omitempty"`
	Found  bool          `json:"found,omitempty"`
}

func deckKey(at int) string { return fmt.Sprintf("%s%06d", prefixDeck, at) }

func recordOf(d deck) deckRecord {
	r := deckRecord{Links: [][3]uint32{}}
	for i, j := range d.to {
		if j >= 0 {
			r.Links = append(r.Links, [3]uint32{uint32(i), uint32(j), uint32(d.job[i])})
		}
	}
	return r
}

func (r deckRecord) deck(pods int) (deck, error) {
	d := newDeck(pods)
	in := make([]bool, pods)
	for _, l := range r.Links {
		if int(l[0]) >= pods || int(l[1]) >= pods || d.to[l[0]] >= 0 || in[l[1]] {
			return d, fmt.Errorf("link %d to %d: no such pod, or a port twice", l[0], l[1])
		}
		d.to[l[0]], d.job[l[0]], in[l[1]] = int32(l[1]), proto.JobID(l[2]), true
	}
	return d, nil
}

// circuitRecords is the decision of the generation under way.
func (p *Planner) circuitRecords() []Record {
	c := p.core
	t := &c.txn
	out := []Record{encodeRecord(keyCircuits, circuitsHead{t.gen})}
	if t.kind != stageTell {
		stage := stageRecord{Back: map[string]deckRecord{}, Kind: t.kind}
		for _, set := range t.sets {
			stage.Back[strconv.Itoa(set.at)] = recordOf(c.decks[set.at])
			out = append(out, encodeRecord(deckKey(set.at), recordOf(set.deck)))
		}
		for i := range t.parts {
			stage.Switches = append(stage.Switches, t.parts[i].sw)
		}
		out = append(out, encodeRecord(keyStage, stage))
	}
	for i := range t.parts {
		out = append(out, encodeRecord(switchKey(c.switches[t.parts[i].sw].id),
			nodeRecord{Term: t.term, Generation: t.gen, Plan: t.plan, Desired: t.parts[i].payload}))
	}
	return out
}

func switchKey(id proto.NodeID) string { return fmt.Sprintf("%s%010d", prefixSwitch, id) }
func jobKey(id proto.JobID) string     { return fmt.Sprintf("%s%010d", prefixJob, id) }

// saveJobs writes jobs that have changed and forgets those that are gone.
func (p *Planner) saveJobs() {
	c := p.core
	var records []Record
	for _, j := range c.jobs {
		r := encodeRecord(jobKey(j.spec.Job), jobRecord{j.spec, j.placed.Shares, j.placed.Wants, j.placed.Links, j.paths, j.found})
		if c.saved[j.spec.Job] != string(r.Value) {
			c.saved[j.spec.Job] = string(r.Value)
			records = append(records, r)
		}
	}
	for _, id := range c.savedIDs {
		if c.job(id) == nil {
			delete(c.saved, id)
			records = append(records, Record{Key: jobKey(id)})
		}
	}
	c.savedIDs = c.savedIDs[:0]
	for _, j := range c.jobs {
		c.savedIDs = append(c.savedIDs, j.spec.Job)
	}
	if len(records) > 0 {
		p.persist(records)
	}
}

// restoreCircuits takes one record of the store.
func (p *Planner) restoreCircuits(prefix, rest string, raw []byte) error {
	c := p.core
	if c == nil {
		return fmt.Errorf("circuits in a fabric without a core")
	}
	switch prefix {
	case prefixJob:
		var r jobRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		j := &job{spec: r.Spec, placed: sched.Placed{Job: c.domains(&r.Spec), Shares: r.Shares, Wants: r.Wants, Links: r.Links}, paths: r.Paths, found: r.Found}
		c.jobs = append(c.jobs, j)
		c.saved[r.Spec.Job] = string(raw)
		c.savedIDs = append(c.savedIDs, r.Spec.Job)
		return c.checkStored(j)
	case prefixDeck:
		at, err := strconv.Atoi(rest)
		if err != nil || at < 0 || at >= len(c.decks) {
			return fmt.Errorf("no such deck")
		}
		var r deckRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		c.decks[at], err = r.deck(c.core.Pods)
		return err
	case prefixSwitch:
		id, err := strconv.ParseUint(rest, 10, 32)
		if err != nil {
			return err
		}
		v := p.switchAt(proto.NodeID(id))
		if v == nil {
			return fmt.Errorf("no such switch")
		}
		var r nodeRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		v.want, v.unassigned = target{decided{r.Term, r.Generation, r.Plan}, r.Desired}, r.Unassigned
		c.gen = max(c.gen, r.Generation)
	}
	return nil
}

// restoreStage takes the head and the open stage.
func (p *Planner) restoreStage(st State) error {
	c := p.core
	if c == nil {
		return nil
	}
	if raw := st.get(keyCircuits); raw != nil {
		var h circuitsHead
		if err := json.Unmarshal(raw, &h); err != nil {
			return fmt.Errorf("store: %s: %w", keyCircuits, err)
		}
		c.fresh, c.gen = false, max(c.gen, h.Generation)
	}
	raw := st.get(keyStage)
	if raw == nil {
		return nil
	}
	var r stageRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("store: %s: %w", keyStage, err)
	}
	c.open = openStage{kind: r.Kind}
	for _, s := range r.Switches {
		if s < 0 || s >= len(c.switches) {
			return fmt.Errorf("store: %s: no switch %d", keyStage, s)
		}
		c.open.sw = append(c.open.sw, s)
	}
	for at := range c.decks {
		if d, ok := r.Back[strconv.Itoa(at)]; ok {
			old, err := d.deck(c.core.Pods)
			if err != nil {
				return fmt.Errorf("store: %s: deck %d: %w", keyStage, at, err)
			}
			c.open.back = append(c.open.back, deckSet{at, old})
		}
	}
	return nil
}
