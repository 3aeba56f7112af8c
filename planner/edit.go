package planner

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ringlight/planner/audit"
	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Editing the fabric while it runs. An edit is checked against what has light,
// its new fibres are tried where that costs none, and then it is one record of
// the store: killed before, the next planner knows nothing of it and is asked
// again; killed after, it plans from it and answers that it is so.

const (
	// maxOffer bounds a description on the wire. chosen: 200,000 nodes with
	// three fibres each.
	maxOffer = 64 << 20
	// offerPatience is how long a part of one is kept for the next.
	offerPatience = time.Minute
	maxLayouts    = 32 // former descriptions that agents may still hold; chosen
	maxTold       = 64 // changes that an answer has
	editPoll      = 100 * time.Millisecond
	maxStrangers  = 1 << 16 // chosen: a fabric that doubles; a megabyte
)

// edits takes descriptions in, and carries out one edit at a time.
type edits struct {
	p       *Planner
	layouts []uint64 // of former descriptions, the last one last

	offered proto.Digest // of the description that comes in
	size    int
	text    strings.Builder
	offerAt time.Duration

	now     *edit          // under way; nil: none
	bits    *qualification // an operator's count of bit errors; nil: none is under way
	counted []string       // fibres of the last one, in their order
	// qualified is what became of them, by name; last what was last found out of a fibre.
	qualified, last map[string]*proto.Qualification
	doubted         *trial // of fibres that were held to be cut; nil: none is tried now

	strangers map[proto.NodeID]proto.Session // nodes that an edit may bring and that are there already
}

// edit is one edit under way.
type edit struct {
	client   string
	corr     proto.Corr
	author   string
	to       *fabric.Fabric
	ends     []proto.RingID
	moves    bool
	status   proto.EditStatus
	trial    *trial
	deadline time.Duration
}

// describe gives a part of the description.
func (e *edits) describe(q *proto.OpRequest, r *proto.OpReply) {
	r.Text, r.Next = proto.PartOf(e.p.Fabric.Encode(), q.Page)
}

// offer takes a part of a description; the answer says how much is there.
func (e *edits) offer(q *proto.OpRequest, r *proto.OpReply) {
	switch {
	case q.Plan == nil || q.Size == 0 || q.Size > maxOffer:
		r.Refuse(&proto.Error{Code: proto.Invalid, Field: "size", Limit: fmt.Sprintf("1 to %d bytes, and a digest", maxOffer), Reason: fmt.Sprint(q.Size)})
		return
	case e.offered != *q.Plan || e.size != int(q.Size) || e.p.j.Now > e.offerAt+offerPatience:
		e.offered, e.size = *q.Plan, int(q.Size)
		e.text.Reset()
	}
	e.offerAt = e.p.j.Now
	if q.Page == uint64(e.text.Len()) && e.text.Len()+len(q.Text) <= e.size {
		e.text.WriteString(string(q.Text))
	}
	r.Next = uint64(e.text.Len())
}

// begin begins an edit, or says why not. It reports whether the answer comes
// later.
func (e *edits) begin(client string, q *proto.OpRequest, r *proto.OpReply) bool {
	p := e.p
	refuse := func(code proto.Code, field, limit, reason string) bool {
		r.Refuse(&proto.Error{Code: code, Field: field, Limit: limit, Reason: proto.Clip(reason)})
		return false
	}
	switch {
	case q.Plan == nil:
		return refuse(proto.Invalid, "plan", "the digest of a description", "none")
	case *q.Plan == proto.DigestOf(p.Fabric.Encode()):
		r.Edit = &proto.EditStatus{Changes: []string{}, Unheard: e.unheard(p.Fabric), Done: true}
		return false
	case *q.Plan != e.offered || e.text.Len() != e.size || proto.DigestOf([]byte(e.text.String())) != e.offered:
		e.offered = proto.Digest{} // it comes anew, from its beginning
		return refuse(proto.NotFound, "plan", "a description that was offered", "its parts are not here")
	case p.state != serving:
		return refuse(proto.Busy, "", "", "the planner is "+p.state.String())
	case e.bits != nil:
		return refuse(proto.Busy, "", "one at a time", "bit errors of fibres are being counted")
	case e.now != nil:
		return refuse(proto.Busy, "", "one edit at a time", "an edit of "+e.now.author+" is under way")
	}
	to, err := fabric.Parse([]byte(e.text.String()))
	if err == nil {
		err = p.Fabric.MayBecome(to)
	}
	if err != nil {
		field := "fabric"
		if x := (*fabric.Error)(nil); errors.As(err, &x) {
			field = x.Field
		}
		return refuse(proto.Invalid, field, "", err.Error())
	}
	now := &edit{client: client, corr: q.Corr, author: q.Author, to: to, ends: slices.Sorted(slices.Values(q.Rings)), moves: q.Moves, deadline: p.j.Now + time.Duration(q.TTLMillis)*time.Millisecond}
	now.ends = slices.Compact(now.ends)
	r.Edit = &now.status
	fibres := e.judge(now)
	if q.DryRun || len(now.status.Refused) > 0 {
		return false
	}
	e.now = now
	if now.status.Tried = uint32(len(fibres)); len(fibres) > 0 {
		now.trial = e.trial(fibres, nil)
		p.j.Note(Info, "new fibres are tried", journal.Note{Rule: "edit", Node: -1, Cause: proto.CauseOperator, Text: fmt.Sprintf("%d fibres in %d rounds", len(fibres), len(now.trial.rounds))})
	}
	return true
}

// judge says what an edit would come to, and which fibres can be tried first.
func (e *edits) judge(x *edit) (fibres []tried) {
	p, s := e.p, &x.status
	s.Changes, s.Ends = p.Fabric.Changes(x.to), x.ends
	s.Changes = s.Changes[:min(len(s.Changes), maxTold)]
	for i := range s.Changes {
		s.Changes[i] = proto.Clip(s.Changes[i])
	}
	s.Refused, s.Drains = p.Rings.Evidence.Against(x.to, x.ends, x.moves)
	s.Drains = s.Drains[:min(len(s.Drains), proto.MaxArray)]
	s.Told, s.Unheard, s.Untried, s.OneWay = 0, e.unheard(x.to), 0, 0
	if p.Core != nil {
		g := core.GrowthOf(p.Core)
		s.Refused, s.Ports = append(s.Refused, g.Against(x.to.Core)...), g.NewPorts(x.to.Core)
	}
	if len(s.Refused) == 0 {
		s.Told = p.Rings.Evidence.Retold(x.to, x.ends)
	}
	for _, f := range x.to.NewFibres(p.Fabric) {
		looks, may := p.Rings.Placed.MayTry(f.A, f.B)
		switch {
		case !may:
			s.Untried++
			continue
		case looks[0] || looks[1]:
			s.OneWay++
		}
		fibres = append(fibres, tried{f, looks})
	}
	return fibres
}

// unheard counts the nodes and switches of a description that have not spoken.
func (e *edits) unheard(f *fabric.Fabric) (count uint32) {
	for i := range f.Nodes {
		if d := e.p.Rings.Table.Find(proto.NodeID(i)); d == nil || !d.Heard() {
			count++
		}
	}
	for s := 0; f.Core != nil && s < f.Core.Switches(); s++ {
		if d := e.p.Core.Table.Find(proto.FirstSwitch + proto.NodeID(s)); d == nil || !d.Heard() {
			count++
		}
	}
	return count
}

// answer takes an agent's answer, and reports whether it was to a trial.
func (e *edits) answer(d *member.Device, m *proto.Ack) bool {
	return e.doubted != nil && e.doubted.answer(d, m) || e.bits != nil && e.bits.trial != nil && e.bits.trial.answer(d, m) || e.now != nil && e.now.trial != nil && e.now.trial.answer(d, m)
}

// run moves the edit on. It is called at the end of a step.
func (e *edits) run() {
	x := e.now
	if x == nil && e.bits != nil && e.doubted == nil {
		e.count()
		return
	}
	if x == nil {
		e.tryDoubted()
		return
	}
	e.doubted = nil // what is doubted is tried anew afterwards
	if x.trial != nil {
		x.trial.step()
		if !x.trial.done() {
			return
		}
		if x.status.Dark = x.trial.found(); len(x.status.Dark) > 0 {
			e.p.j.Note(Warn, "the fabric stays as it is", journal.Note{Rule: "edit", Node: -1, Cause: proto.CauseOperator, Text: strings.Join(x.status.Dark, "; ")})
			x.status.Dark = x.status.Dark[:min(len(x.status.Dark), maxTold)]
			e.finish(nil)
			return
		}
		x.trial = nil
	}
	switch tried, oneWay, added := x.status.Tried, x.status.OneWay, len(x.to.NewFibres(e.p.Fabric)); {
	case e.p.state != serving || e.p.j.Now >= x.deadline:
		e.finish(&proto.Error{Code: proto.Expired, Limit: "a fabric at rest", Reason: proto.Clip("not done in time; blocked by: " + strings.Join(e.p.waits(), "; "))})
	case e.p.Rings.Resting() && (e.p.Core == nil || core.GrowthOf(e.p.Core).Still()):
		if e.judge(x); len(x.status.Refused) == 0 { // much may have happened since it was asked for
			e.commit(x)
			x.status.Done = true
		}
		x.status.Tried, x.status.OneWay, x.status.Untried = tried, oneWay, uint32(added)-tried
		e.finish(nil)
	}
}

// tryDoubted tries fibres that were held to be cut for as long as they were to be, with
// no ring on them.
func (e *edits) tryDoubted() {
	if e.p.state != serving {
		e.doubted = nil
		return
	}
	if e.doubted == nil {
		var fibres []tried
		for _, f := range e.p.Rings.Evidence.Doubted() {
			looks, _ := e.p.Rings.Placed.MayTry(f.A, f.B)
			fibres = append(fibres, tried{f, looks})
		}
		if len(fibres) == 0 {
			return
		}
		var bits *bitTest
		if q := e.p.Fabric.Qualifies(); q.AfterRepair || q.BeforeUse {
			bits = newBitTest(e.p.Fabric, fibres, false)
		}
		e.doubted = e.trial(fibres, bits)
	}
	t := e.doubted
	if t.step(); !t.done() {
		return
	}
	e.doubted = nil
	for i := range t.fibres {
		bad, told := false, false
		if t.bits != nil && t.dark[i] == nil {
			x := &t.bits.of[i]
			bad, told = x.Result == proto.Bad, x.Result != proto.NotTried || x.never
			e.found(&t.fibres[i].Fibre, x)
		}
		dark := t.shown(i)
		if bad {
			dark = "light comes, with too many bit errors: ocsctl link list"
		}
		e.p.Rings.Evidence.Looked(&t.fibres[i].Fibre, t.fibres[i].looks, told, dark)
	}
}

// finish answers who asked.
func (e *edits) finish(err *proto.Error) {
	x := e.now
	e.now = nil
	r := &proto.OpReply{Corr: x.corr, Edit: &x.status}
	if err != nil {
		r = &proto.OpReply{Corr: x.corr}
		r.Refuse(err)
	}
	e.p.reply(x.client, r)
}

// commit plans from another description from now on.
func (e *edits) commit(x *edit) {
	p := e.p
	for _, t := range p.tables() {
		for i := range t.Devices {
			if d := &t.Devices[i]; d.Online() && !x.to.Has(d.ID) && len(e.strangers) < maxStrangers {
				e.strangers[d.ID] = d.Session
			}
		}
	}
	e.layouts = append(e.layouts, p.j.Layout)
	e.layouts = e.layouts[max(0, len(e.layouts)-maxLayouts):]
	records := append([]Record{{Key: keyFabric, Value: x.to.Encode()}, journal.Encode(keyLayouts, e.layouts)}, hbd.Refit(p.Rings, x.to, x.ends)...)
	if p.Core != nil {
		records = append(records, core.GrowthOf(p.Core).Refit(x.to.Core)...)
	}
	records = append(append(records, p.wear.Keep(x.to.Nodes)...), e.keepQualified(x.to)...)
	p.Fabric, p.j.Layout = x.to, layoutOf(x.to)
	what := audit.Record{Kind: audit.Decision, What: "the fabric is edited: " + strings.Join(x.status.Changes, "; "), Corr: hex.EncodeToString(x.corr[:])}
	p.j.Persist(append(records, p.j.Audit(what)...)...)
	who := ""
	if x.author != "" {
		who = " by " + x.author
	}
	p.j.Note(Info, "the fabric is edited", journal.Note{Rule: "edit", Node: -1, Cause: proto.CauseOperator, Text: "edited" + who + ": " + strings.Join(x.status.Changes, "; ")})
	hbd.Refitted(p.Rings)
	e.greet()
	e.offered = proto.Digest{}
	e.text.Reset()
}

// stranger remembers a node or switch that is not in the fabric and says that it is there.
func (e *edits) stranger(topic proto.Topic, payload []byte) {
	var m proto.Presence
	if topic.Kind != proto.TopicPresence || !topic.Node.IsSwitch() && int(topic.Node) >= fabric.MaxNodes {
		return
	}
	if _, err := proto.Decode(payload, &m); err != nil || m.Node != topic.Node {
		return
	}
	switch _, known := e.strangers[m.Node]; {
	case !m.Online:
		delete(e.strangers, m.Node)
	case known || len(e.strangers) < maxStrangers:
		e.strangers[m.Node] = m.Session
	}
}

// greet asks those that are strangers no more to announce themselves.
func (e *edits) greet() {
	for _, id := range slices.Sorted(maps.Keys(e.strangers)) {
		if e.p.Fabric.Has(id) {
			e.p.j.Command(id, e.strangers[id], proto.Command{Verb: proto.VerbReannounce})
			delete(e.strangers, id)
		}
	}
}

// restore takes the former descriptions' fingerprints.
func (e *edits) restore(st journal.State) error {
	if there, err := st.Decode(keyLayouts, &e.layouts); !there || err != nil {
		return err
	}
	if n := len(e.layouts); n > maxLayouts {
		return fmt.Errorf("store: %s: %d, want at most %d", keyLayouts, n, maxLayouts)
	}
	return nil
}

// next is when it wants a tick.
func (e *edits) next() time.Duration {
	switch x := e.now; {
	case x == nil && e.bits != nil && e.bits.trial != nil && e.doubted == nil:
		return e.bits.trial.until
	case x == nil && e.doubted != nil:
		return e.doubted.until
	case x == nil:
		return Never
	case x.trial != nil && !x.trial.done():
		return x.trial.until
	default:
		return min(x.deadline, e.p.j.Now+editPoll)
	}
}
