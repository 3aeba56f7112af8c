package journal

import (
	"cmp"
	"encoding/hex"
	"fmt"

	"ringlight/planner/audit"
	"ringlight/proto"
)

// Keys of the audit chain in the store.
const (
	PrefixAudit = "audit/" // a line, by its number
	KeyAudit    = "audit"  // the head
)

func auditKey(seq uint64) string { return fmt.Sprintf("%s%016x", PrefixAudit, seq) }

// Elsewhere is Audit of what shows that there are records which are not in this chain.
func (j *Journal) Elsewhere(what, why string) []Record {
	return j.Audit(audit.Record{Kind: audit.Start, What: what, Reason: why})
}

// Audit adds a record to the chain and gives what is to be stored for it: with what
// it is about, or before anything comes of that. Its author is this planner where r
// names none.
func (j *Journal) Audit(r audit.Record) []Record {
	if j.Mute {
		return nil
	}
	r.AtMillis, r.Term = j.Wall, max(r.Term, uint64(j.Term))
	r.Who = cmp.Or(r.Who, j.Self)
	if j.Asked != (proto.Corr{}) && r.Corr == "" {
		r.Corr = hex.EncodeToString(j.Asked[:])
	}
	r.What, r.Why, r.Reason = proto.Clip(r.What), proto.Clip(r.Why), proto.Clip(r.Reason)
	line, head, gone := j.Chain.Add(r)
	records := []Record{{auditKey(head.Seq), []byte(line)}, {KeyAudit, []byte(head.Line())}}
	if gone != 0 {
		records = append(records, Record{Key: auditKey(gone)})
	}
	return records
}
