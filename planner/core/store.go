package core

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/planner/sched"
	"ringlight/proto"
)

// What circuits leave in the store.

const (
	keyHead   = "circuits" // head
	keyStage  = "stage"    // stageRecord: of a stage that is not proven yet
	keyBad    = "dark"     // badRecords: circuits that did not come up
	prefixJob = "job/"     // jobRecord
	prefixMap = "deck/"    // mapRecord
)

type head struct {
	Generation proto.Generation `json:"generation"`
}

// mapRecord lists a map's links.
type mapRecord struct {
	Links [][3]uint32 `json:"links"` // from, to, job
}

type stageRecord struct {
	Back     map[string]mapRecord `json:"back"` // by map
	Switches []int                `json:"switches"`
	Kind     kind                 `json:"kind"`
}

type jobRecord struct {
	Spec   proto.JobSpec `json:"spec"`
	Shares []sched.Share `json:"shares,omitempty"`
	Wants  []sched.Want  `json:"wants,omitempty"`
	Links  []int         `json:"links,omitempty"`
	Server []int         `json:"servers,omitempty"`
	Paths  []path        `json:"paths,omitempty"`
	Ways   []way         `json:"ways,omitempty"`
	Laid   bool          `json:"laid,omitempty"`
	Stray  bool          `json:"strayed,omitempty"`
	Found  bool          `json:"found,omitempty"`
	Owner  string        `json:"owner,omitempty"`
	Own    *seat         `json:"own,omitempty"`
	Shard  *shard        `json:"shard,omitempty"`
	Turn   *turn         `json:"turn,omitempty"`
}

func mapKey(at int) string { return fmt.Sprintf("%s%06d", prefixMap, at) }

func recordOf(d crossMap) mapRecord {
	r := mapRecord{Links: [][3]uint32{}}
	for i, j := range d.to {
		if j >= 0 {
			r.Links = append(r.Links, [3]uint32{uint32(i), uint32(j), uint32(d.job[i])})
		}
	}
	return r
}

func (r mapRecord) crossMap(ports int) (crossMap, error) {
	d := newMap(ports)
	in := make([]bool, ports)
	for _, l := range r.Links {
		if int(l[0]) >= ports || int(l[1]) >= ports || d.to[l[0]] >= 0 || in[l[1]] {
			return d, fmt.Errorf("link %d to %d: no such port, or a port twice", l[0], l[1])
		}
		d.to[l[0]], d.job[l[0]], in[l[1]] = int32(l[1]), proto.JobID(l[2]), true
	}
	return d, nil
}

// records is the decision of the generation under way.
func (c *stages) records() []journal.Record {
	t := &c.Txn
	out := []journal.Record{journal.Encode(keyHead, head{t.Gen})}
	if c.about.kind != stageTell {
		stage := stageRecord{Back: map[string]mapRecord{}, Kind: c.about.kind}
		for _, set := range c.about.sets {
			stage.Back[strconv.Itoa(set.at)] = recordOf(c.Evidence.maps[set.at])
			out = append(out, journal.Encode(mapKey(set.at), recordOf(set.crossMap)))
		}
		for i := range t.Parts {
			stage.Switches = append(stage.Switches, int(t.Parts[i].Device.ID-proto.FirstSwitch))
		}
		out = append(out, journal.Encode(keyStage, stage))
	}
	for i := range t.Parts {
		out = append(out, member.Record(t.Parts[i].Device.ID, 0, member.Target{Decided: &t.Decided, Payload: string(t.Parts[i].Payload)}, false))
	}
	return out
}

func jobKey(id proto.JobID) string { return journal.NumberedKey(prefixJob, uint64(id)) }

// saveJobs writes jobs that have changed and forgets those that are gone.
func (c *Circuits) saveJobs() {
	if records := c.jobs.unsaved(); len(records) > 0 {
		c.j.Persist(records...)
	}
}

// unsaved are the records of jobs that the store does not hold yet, and those
// that take back what it holds too much.
func (l *jobList) unsaved() []journal.Record {
	var records []journal.Record
	for _, j := range l.all {
		r := journal.Encode(jobKey(j.spec.Job), jobRecord{j.spec, j.placed.Shares, j.placed.Wants, j.placed.Links, j.servers, j.paths, j.ways, j.laid, j.strayed, j.found, j.owner, j.own, j.shard, j.turn.stored()})
		if l.saved[j.spec.Job] != string(r.Value) {
			l.saved[j.spec.Job] = string(r.Value)
			records = append(records, r)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.saved)) {
		if l.find(id) == nil {
			delete(l.saved, id)
			records = append(records, journal.Record{Key: jobKey(id)})
		}
	}
	return records
}

// Prefixes are those of the circuits' own records.
var Prefixes = []string{prefixJob, prefixMap, member.PrefixSwitch, prefixDrain}

// Restore takes one record of the store; rest is its key without the prefix.
func (c *Circuits) Restore(prefix, rest string, raw []byte) error {
	switch prefix {
	case prefixJob:
		var r jobRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		j := &job{spec: r.Spec, placed: sched.Placed{Job: c.jobs.domains(&r.Spec), Shares: r.Shares, Wants: r.Wants, Links: r.Links}, servers: r.Server, paths: r.Paths, ways: r.Ways, laid: r.Laid, strayed: r.Stray, found: r.Found, owner: r.Owner, own: r.Own, shard: r.Shard}
		if r.Turn != nil {
			j.turn = *r.Turn
		}
		c.jobs.all = append(c.jobs.all, j)
		c.jobs.saved[r.Spec.Job] = string(raw)
		return c.jobs.checkStored(j)
	case prefixDrain:
		return c.drains.restore(rest, raw)
	case prefixMap:
		at, err := strconv.Atoi(rest)
		if err != nil || at < 0 || at >= len(c.Evidence.maps) {
			return fmt.Errorf("no such pair of switches")
		}
		var r mapRecord
		if err := json.Unmarshal(raw, &r); err != nil {
			return err
		}
		c.Evidence.maps[at], err = r.crossMap(len(c.Evidence.maps[at].to))
		return err
	case member.PrefixSwitch:
		id, err := strconv.ParseUint(rest, 10, 32)
		if err != nil {
			return err
		}
		d := c.Table.Find(proto.NodeID(id))
		if d == nil {
			return fmt.Errorf("no such switch")
		}
		_, err = c.Table.Restore(d, raw)
		c.Table.Numbers.Stored(d.Want.Gen)
		return err
	}
	return nil
}

// badRecord is a circuit that did not come up in a life of its switch.
type badRecord struct {
	Switch int
	A, B   uint16
	Life   proto.Session
}

// RestoreStage takes the head and the open stage.
func (c *Circuits) RestoreStage(st journal.State) error {
	if err := c.jobs.checkOwners(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := c.Evidence.restoreOut(st); err != nil {
		return err
	}
	var bad []badRecord
	if _, err := st.Decode(keyBad, &bad); err != nil {
		return err
	}
	for _, b := range bad {
		if b.Switch < 0 || b.Switch >= len(c.Evidence.switches) || b.Life == 0 || int(max(b.A, b.B)) >= c.Evidence.fab.PortsOf(b.Switch) {
			return fmt.Errorf("store: %s: no such circuit: %+v", keyBad, b)
		}
		c.Evidence.bad[slot{b.Switch, b.A, b.B}] = b.Life
	}
	var h head
	there, err := st.Decode(keyHead, &h)
	if err == nil && there {
		err = c.Table.Numbers.RestoreHead(keyHead, h.Generation)
	}
	if err != nil {
		return err
	}
	var r stageRecord
	if there, err := st.Decode(keyStage, &r); !there || err != nil {
		return err
	}
	c.Stages.open = openStage{kind: r.Kind}
	for _, s := range r.Switches {
		if s < 0 || s >= len(c.Evidence.switches) {
			return fmt.Errorf("store: %s: no switch %d", keyStage, s)
		}
		c.Stages.open.sw = append(c.Stages.open.sw, s)
	}
	for at := range c.Evidence.maps {
		if d, ok := r.Back[strconv.Itoa(at)]; ok {
			old, err := d.crossMap(len(c.Evidence.maps[at].to))
			if err != nil {
				return fmt.Errorf("store: %s: map %d: %w", keyStage, at, err)
			}
			c.Stages.open.back = append(c.Stages.open.back, mapSet{at, old})
		}
	}
	return nil
}
