package planner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/job"
	"ringlight/planner/journal"
	"ringlight/planner/rollout"
	"ringlight/planner/wear"
	"ringlight/proto"
)

// Keys of the store that are the planner's own.
const (
	keyTerm    = "term"    // decimal
	keyPlanner = "planner" // decimal
	keyFabric  = "fabric"  // the description
	keyLife    = "life"    // decimal: of the planner whose term it is
	keyLayouts = "layouts" // fingerprints of the descriptions before this one
)

// Start makes a Config from what a store holds. f is the fabric asked for; nil
// takes the stored one; without one there is nothing to plan for. A store knows one fabric: another is
// refused. life is drawn at random at each start and must not be 0; it becomes
// the planner's id when the store has none. Nothing is stored before the
// planner has listened.
func Start(st State, f *fabric.Fabric, life uint64) (Config, error) {
	term, err := st.Number(keyTerm)
	if err != nil {
		return Config{}, err
	}
	id, err := st.Number(keyPlanner)
	if err != nil {
		return Config{}, err
	}
	id = cmp.Or(id, life)
	if raw := st.Get(keyFabric); raw != nil {
		stored, err := fabric.Parse(raw)
		if err != nil {
			return Config{}, fmt.Errorf("store: fabric: %w", err)
		}
		if f != nil && string(f.Encode()) != string(stored.Encode()) {
			const limit = "the stored one, which is used where none is given; ocsctl fabric apply FILE changes it while the planner runs; or a store of its own for the other"
			return Config{}, &fabric.Error{Field: "fabric", Limit: limit,
				Message: fmt.Sprintf("the store's fabric %s differs: %s: want %s", stored.Name, strings.Join(stored.Changes(f), "; "), limit)}
		}
		f = stored
	}
	if f == nil {
		const limit = "a description, by -fabric-file, where the store has none: 'ocsctl fabric new -nodes 64 -gpus 4 -k 2 -tp 32 -o fabric.json' writes one"
		return Config{}, &fabric.Error{Field: "fabric", Limit: limit, Message: "there is no fabric to plan for: want " + limit}
	}
	cfg := Config{Fabric: f, Store: st, Term: proto.Term(term), PlannerID: id, Life: life, First: []Record{
		{Key: keyPlanner, Value: strconv.AppendUint(nil, id, 10)},
		{Key: keyFabric, Value: f.Encode()},
	}}
	// What New would panic about is an error here.
	return cfg, New(Config{Fabric: f, PlannerID: id}).restore(st)
}

// Planned: the store says what fabric is planned for.
func Planned(st State) bool { return st.Get(keyFabric) != nil }

// restore takes what a former planner stored.
func (p *Planner) restore(st State) error {
	term, err := st.Number(keyTerm)
	if err := errors.Join(err, journal.CheckCount(keyTerm, term)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if raw := st.Get(journal.KeyAudit); raw != nil {
		p.j.Chain.RestoreHead(raw)
	}
	if err := p.Rings.RestoreHead(st); err != nil {
		return err
	}
	if err := p.Rollout.RestoreHead(st); err != nil {
		return err
	}
	for _, rec := range st {
		prefix, rest, ok := strings.Cut(rec.Key, "/")
		if !ok {
			continue
		}
		if err := p.restoreRecord(prefix+"/", rest, rec.Value); err != nil {
			return fmt.Errorf("store: %s: %w", rec.Key, err)
		}
	}
	p.wear.Keep(p.Fabric.Nodes)
	if term > 0 { // with which the first record was written
		p.j.Chain.Gone(term)
	}
	if err := p.edits.restore(st); err != nil {
		return err
	}
	if p.Core != nil {
		if err := p.Core.RestoreStage(st); err != nil {
			return err
		}
	}
	return errors.Join(p.Rings.Placed.CheckStored(), p.Jobs.CheckStored())
}

func (p *Planner) restoreRecord(prefix, rest string, raw []byte) error {
	switch {
	case prefix == journal.PrefixLog:
		return p.j.Restore(rest, raw)
	case prefix == journal.PrefixAudit:
		p.j.Chain.Restore(raw)
	case prefix == prefixAck:
		return p.Alarms.restore(rest, raw)
	case prefix == journal.PrefixSeen:
		id, err := strconv.ParseUint(rest, 10, 32)
		if err != nil {
			return err
		}
		_, d := p.find(proto.NodeID(id))
		if d == nil {
			return errNoNode
		}
		return d.Events.Restore(raw)
	case prefix == wear.Prefix:
		return p.wear.Restore(rest, raw)
	case prefix == prefixQualified:
		return p.edits.restoreQualified(raw)
	case prefix == rollout.Prefix:
		return p.Rollout.Restore(rest, raw)
	case slices.Contains(job.Prefixes, prefix):
		return p.Jobs.Restore(prefix, rest, raw)
	case slices.Contains(hbd.Prefixes, prefix):
		return p.Rings.Restore(prefix, rest, raw)
	case slices.Contains(core.Prefixes, prefix):
		if p.Core == nil {
			return errors.New("circuits in a fabric without a core")
		}
		return p.Core.Restore(prefix, rest, raw)
	}
	return nil
}
