package planner

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"ringlight/proto"
)

// A drain outlives its planner: the next one goes on where the store says it
// stood, since half a drain is a node that nobody uses and nobody may touch.

const prefixDrain = "drain/" // drainRecord, by the node's number

// drainRecord is one drain under way. Whether the agent has been told is not
// kept: it says so itself, and is told again else.
type drainRecord struct {
	Ring      proto.RingID `json:"ring"`
	Client    string       `json:"client"`
	Corr      string       `json:"corr"`
	Cost      proto.Cost   `json:"cost"`
	TTLMillis uint32       `json:"ttl_millis"`
}

func drainKey(id proto.NodeID) string { return numberedKey(prefixDrain, uint64(id)) }

// keepDrain writes a drain down.
func (p *Planner) keepDrain(d *draining) {
	p.persist([]Record{encodeRecord(drainKey(d.node), drainRecord{Ring: d.ring, Client: d.client, Corr: hex.EncodeToString(d.corr[:]),
		Cost: d.cost, TTLMillis: uint32(d.ttl.Milliseconds())})})
}

// dropDrain forgets one that is over.
func (p *Planner) dropDrain(d *draining) { p.persist([]Record{{Key: drainKey(d.node)}}) }

// restoreDrain takes up a drain of a former planner. Its time begins anew with
// the first look round, since clocks of two lives have nothing in common.
func (p *Planner) restoreDrain(key string, raw []byte) error {
	n, err := p.restoreNodeID(key)
	if err != nil {
		return err
	}
	var r drainRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	d := draining{node: n.id, ring: r.Ring, client: r.Client, cost: r.Cost, ttl: time.Duration(r.TTLMillis) * time.Millisecond,
		deadline: Never, qualify: Never, again: Never}
	corr, err := hex.DecodeString(r.Corr)
	if err != nil || len(corr) != len(d.corr) {
		return errors.New("corr: want 32 hexadecimal digits")
	}
	copy(d.corr[:], corr)
	n.leaving = true
	p.drains = append(p.drains, d)
	return nil
}

// resumeDrains sets the time of the drains that a former planner began.
func (p *Planner) resumeDrains() {
	for i := range p.drains {
		d := &p.drains[i]
		if d.deadline != Never {
			continue
		}
		d.deadline = p.now + d.ttl
		p.note(Info, "drain goes on", note{Rule: "drain", Node: int64(d.node), Ring: d.ring, Cause: proto.CauseOperator, Text: "a former planner began it"})
	}
}
