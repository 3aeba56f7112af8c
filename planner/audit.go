package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/audit"
	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// What operators do, as the audit chain has it.

// Bounds of the records of refusals, so that a client that asks often does not push out what
// others did: those between are counted. chosen: a person sees every one of his own.
const (
	refusalsAtOnce = 32
	refusalEvery   = 10 * time.Second
)

type refusals struct {
	allowance
	skipped uint64
}

// asked is what a record says of a request.
func asked(kind audit.Kind, client string, q *proto.OpRequest, pk *proto.Packet) audit.Record {
	raw := pk.Payload
	if pk.Sealed != nil {
		raw = pk.Sealed
	}
	sum := sha256.Sum256(raw)
	who := q.Author
	if pk.By != "" {
		who = pk.By
	}
	return audit.Record{Kind: kind, Who: proto.Clip(cmp.Or(who, client)), Sealed: pk.By != "", What: describe(q), Why: q.Reason,
		Corr: hex.EncodeToString(q.Corr[:]), Message: hex.EncodeToString(sum[:])}
}

// describe says in words what an act asks for.
func describe(q *proto.OpRequest) string {
	place := fmt.Sprintf("node %d", q.Node)
	if q.Node.IsSwitch() {
		place = fmt.Sprintf("switch %d", q.Node-proto.FirstSwitch)
	}
	if q.Name != "" && (q.Noun == proto.NounDrain || q.Noun == proto.NounUndrain) {
		place = "server " + q.Name
	}
	text := strings.ReplaceAll(q.Noun.String(), "_", " ")
	switch q.Noun {
	case proto.NounDrain, proto.NounUndrain, proto.NounHostFault, proto.NounHostOK, proto.NounClear, proto.NounQuarantine, proto.NounLift:
		text += " " + place
	case proto.NounQualify:
		text += " " + cmp.Or(strings.Join(q.Names, " "), "all fibres")
	case proto.NounConnect:
		text += " " + strings.Join(append([]string{place}, q.Names...), " ")
		if len(q.Gone) > 0 {
			text += ", not " + strings.Join(q.Gone, " ")
		}
	case proto.NounClearFibre:
		text += " " + q.Name
	case proto.NounRequest:
		text = fmt.Sprintf("%s of the %s side of %s", q.Request, q.Side, place)
		if q.Peer != nil {
			text += fmt.Sprintf(" to node %d", *q.Peer)
		}
	case proto.NounAck:
		text += " " + q.Alarm
	case proto.NounApply:
		text += " " + proto.Count(len(q.Jobs), "job")
	case proto.NounFlip:
		if text += fmt.Sprintf(" job %d", q.Job); len(q.Rings) > 0 {
			text = fmt.Sprintf("%s rings %v %s", q.Noun, q.Rings, q.Name)
		}
	case proto.NounEdit:
		if q.Plan != nil {
			text += fmt.Sprintf(" to description %x", *q.Plan)
		}
		if len(q.Rings) > 0 {
			text += fmt.Sprintf(", rings %v may end", q.Rings)
		}
	case proto.NounRollout:
		if q.Firmware {
			text += " firmware"
		}
		text += " " + q.Software
	case proto.NounRouted:
		text += " " + q.Name + " " + string(q.Text)
	case proto.NounSubmit, proto.NounRelease, proto.NounResumed:
		text += " job " + q.Name
	}
	return text
}

// answered is what an act came to.
func (d *deed) answered(r *proto.OpReply) audit.Record {
	e := audit.Record{Kind: audit.Answer, Who: d.who, Sealed: d.sealed, What: d.what, Result: r.Code.String(), Corr: hex.EncodeToString(r.Corr[:])}
	switch {
	case r.Code != proto.OK:
		e.Reason = (&proto.Error{Code: r.Code, Field: r.Field, Limit: r.Limit, Reason: r.Reason}).Error()
	case r.Cost != nil:
		e.Reason = fmt.Sprintf("%s, %s, %d GPUs fewer, %d us dark at most", proto.Count(len(r.Cost.Rings), "ring"), proto.Count(int(r.Cost.Links), "link"), r.Cost.GPUs, r.Cost.DarkMicros)
	case r.Edit != nil && len(r.Edit.Refused)+len(r.Edit.Dark) > 0:
		e.Result, e.Reason = "refused", strings.Join(slices.Concat(r.Edit.Refused, r.Edit.Dark), "; ")
	}
	return e
}

// former gives each act that no planner answered its end: that it is not known
// what came of it. Those that go on in this life are waited for.
func (l *actList) former(j *journal.Journal, rings *hbd.Rings, term uint64) (records []Record) {
	for _, e := range j.Chain.Unanswered() {
		raw, err := hex.DecodeString(e.Corr)
		if err != nil || len(raw) != len(proto.Corr{}) {
			continue
		}
		corr, d := proto.Corr(raw), deed{e.Who, e.What, e.Sealed}
		if slices.ContainsFunc(l.known, func(a act) bool { return a.corr == corr && a.answer == nil }) {
			continue
		}
		if client, goesOn := hbd.Draining(rings, corr); goesOn {
			l.wait(act{client: client, corr: corr, deed: d}, j.Now+2*lateAnswer)
			continue
		}
		r := proto.OpReply{Corr: corr}
		r.Refuse(&proto.Error{Code: proto.Expired, Reason: "the planner that was asked ended before it had an answer"})
		end := d.answered(&r)
		end.Term = term
		records = append(records, j.Audit(end)...)
	}
	return records
}

// deny answers a client that may not ask. It is no act's answer, though it may bear the number
// of one.
func deny(p *Planner, client string, q *proto.OpRequest, pk *proto.Packet) {
	denied := &proto.Error{Code: proto.Denied, Field: "seal", Limit: "a key with the right to ask this", Reason: pk.Denied}
	p.inbox.refuse(-1, denied)
	p.refusals.enter(p.j, client, q, pk, denied)
	r := proto.OpReply{Version: proto.Version, Corr: q.Corr}
	r.Refuse(denied)
	if payload, err := proto.Encode(&r); err == nil {
		p.j.SendRaw(p.j.Topics.Reply(client), proto.TopicReply, payload)
	}
}

// enter records a client whose request for a change was denied.
func (x *refusals) enter(j *journal.Journal, client string, q *proto.OpRequest, pk *proto.Packet, why *proto.Error) {
	if !acts(q) || j.Mute {
		return
	}
	if !x.room(j.Now, refusalsAtOnce, refusalEvery) {
		x.skipped++
		return
	}
	e := asked(audit.Refused, client, q, pk)
	e.Result, e.Reason, e.Skipped = why.Code.String(), why.Error(), x.skipped
	x.skipped = 0
	j.Persist(j.Audit(e)...)
}

// HeadOf is the newest number and hash of the audit chain among records, "" where
// there is none.
func HeadOf(records []Record) string {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].Key == journal.KeyAudit {
			if _, _, head := audit.Parse(string(records[i].Value)); head != nil {
				return head.String()
			}
		}
	}
	return ""
}

// AuditOf gives the audit chain of a store, a line a record, its head last. An error: a
// planner was in service with it, and there is none.
func AuditOf(st State) (string, error) {
	var c audit.Chain
	for _, r := range st {
		if strings.HasPrefix(r.Key, journal.PrefixAudit) {
			c.Restore(r.Value)
		}
	}
	if raw := st.Get(journal.KeyAudit); raw != nil {
		c.RestoreHead(raw)
	}
	text, _ := c.Page(0, int(^uint(0)>>1))
	term, err := st.Number(keyTerm)
	if c.Gone(term); err == nil && text == "" && c.Damage() != "" {
		err = errors.New("no audit chain: " + c.Damage())
	}
	return text, err
}
