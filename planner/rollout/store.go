package rollout

import (
	"encoding/json"
	"fmt"
	"strconv"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Keys of the store.
const (
	keyHead = "rollout"
	// Prefix of the nodes that are under way, by number.
	Prefix = "restart/"
)

func key(id proto.NodeID) string { return journal.NumberedKey(Prefix, uint64(id)) }

// keep writes down how it stands.
func (r *Rollout) keep() {
	r.dirty = false
	r.j.Persist(journal.Encode(keyHead, &r.head))
}

// RestoreHead takes what a former planner stored. Nodes that were under way come by
// Restore.
func (r *Rollout) RestoreHead(st journal.State) error {
	if there, err := st.Decode(keyHead, &r.head); !there || err != nil {
		return err
	}
	if r.State > proto.RolloutDone || r.Wave < 0 || r.Back < 0 {
		return fmt.Errorf("store: %s: state %d, wave %d, back %d cannot be", keyHead, r.State, r.Wave, r.Back)
	}
	return nil
}

// Restore takes a node that was under way. Its time begins anew with Resume: clocks of
// two lives have nothing in common.
func (r *Rollout) Restore(rest string, raw []byte) error {
	id, err := strconv.ParseUint(rest, 10, 32)
	if err != nil {
		return err
	}
	x := restart{tell: journal.Never, until: journal.Never}
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if uint64(x.Node) != id {
		return fmt.Errorf("it is about node %d", x.Node)
	}
	if int(x.Node) >= r.fab.Shape().Nodes {
		return nil // an edit took it away
	}
	r.way = append(r.way, x)
	return nil
}

// Resume goes on where a former planner, or this one before it listened again, was. Who
// was not told yet, or whose word was lost, is told again; so a node that is back is found.
func (r *Rollout) Resume() {
	if !r.active() {
		return
	}
	r.at = r.j.Now
	for i := range r.way {
		x := &r.way[i]
		r.begin(x)
		x.now, x.born, x.well = 0, 0, 0
	}
	r.note(journal.Info, "roll-out goes on", everyone, fmt.Sprintf("%s under way; %s", proto.Count(len(r.way), "node"), r.State))
}
