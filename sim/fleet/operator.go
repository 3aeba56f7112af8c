package fleet

import (
	"fmt"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// editor has the planner plan for another description, as ocsctl fabric apply
// does: it offers the text, asks, drains what must be drained and asks again. What
// is not answered is asked again.
type editor struct {
	in   *injector
	now  *editing
	done []edited
}

// edited is an edit and what came of it.
type edited struct {
	Text    string
	Done    bool
	Refused []string // reasons
	Dark    []string // fibres without light
	Status  proto.EditStatus
	Took    time.Duration
	GaveUp  bool // nobody answered in time
}

// editing is one under way.
type editing struct {
	text    string
	c       change
	to      *fabric.Fabric
	raw     []byte
	offered int
	drains  []proto.NodeID // still to be asked for
	drained bool
	asked   proto.Corr // the question under way
	began   time.Duration
	before  *guarded
}

// chosen: as an operator waits, and asks again when nobody has answered.
const (
	editPatience = 3 * time.Minute
	editAgain    = 2 * time.Second
	editAnswer   = operatorTTL*time.Millisecond + time.Second
)

// edit begins one. Of two at a time the second is not begun.
func (e *editor) edit(f *Fault) error {
	if e.now != nil {
		return nil
	}
	c, err := parseChange(f.Edit)
	if err != nil {
		return err
	}
	to, err := c.of(e.in.cfg.Fabric)
	if err != nil { // no description at all: nobody is asked
		e.done = append(e.done, edited{Text: f.Edit, Refused: []string{err.Error()}})
		return nil
	}
	e.now = &editing{text: f.Edit, c: c, to: to, raw: to.Encode(), began: e.in.now, before: e.in.audit.guard()}
	if err := e.in.lay(to); err != nil {
		return err
	}
	e.next()
	return nil
}

// next asks what is to be asked next.
func (e *editor) next() {
	x := e.now
	plan, wait := proto.DigestOf(x.raw), editAgain
	q := proto.OpRequest{Bundle: -1, Plan: &plan}
	switch {
	case x.offered < len(x.raw):
		q.Noun, q.Page, q.Size = proto.NounOffer, uint64(x.offered), uint32(len(x.raw))
		q.Text = proto.Part(x.raw[x.offered:min(x.offered+proto.MaxPart, len(x.raw))])
	case len(x.drains) > 0:
		q.Noun, q.Node, q.Plan, wait = proto.NounDrain, x.drains[0], nil, editAnswer
	default:
		q.Noun, q.Rings, q.Moves, q.Author, wait = proto.NounEdit, x.c.ends, x.c.move, "script", editAnswer
	}
	e.in.asked++
	q.Corr = corrOf(e.in.asked)
	x.asked = q.Corr
	e.in.agenda.Push(e.in.now+wait, task{kind: taskAsk, n: int(e.in.asked)})
	e.in.ask(q)
}

func corrOf(n uint64) proto.Corr { return proto.Corr(proto.DigestOf(fmt.Append(nil, n))) }

// again asks once more what nobody has answered.
func (e *editor) again(asked int) {
	x := e.now
	if x == nil || x.asked != corrOf(uint64(asked)) {
		return
	}
	if e.in.now-x.began > editPatience {
		e.finish(edited{GaveUp: true})
		return
	}
	e.next()
}

// answered takes what the planner answers.
func (e *editor) answered(r *proto.OpReply) {
	x := e.now
	if x == nil || r.Corr != x.asked {
		return
	}
	switch {
	case r.Code == proto.Busy, r.Code == proto.Expired, r.Code == proto.NotFound:
		x.offered = 0
		e.in.agenda.Push(e.in.now+editAgain, task{kind: taskAsk, n: int(e.in.asked)})
	case x.offered < len(x.raw) && r.Code == proto.OK:
		x.offered = int(r.Next)
		e.next()
	case len(x.drains) > 0:
		x.drains = x.drains[1:] // done, or not needed any more
		e.next()
	case r.Code != proto.OK:
		e.finish(edited{Refused: []string{strings.TrimSpace(r.Field + " " + r.Reason)}})
	case r.Edit != nil && x.c.drain && !x.drained && len(r.Edit.Drains) > 0:
		x.drains, x.drained = r.Edit.Drains, true
		e.next()
	case r.Edit != nil:
		e.finish(edited{Done: r.Edit.Done, Refused: r.Edit.Refused, Dark: r.Edit.Dark, Status: *r.Edit})
	}
}

func (e *editor) finish(d edited) {
	x := e.now
	d.Text, d.Took = x.text, e.in.now-x.began
	e.now = nil
	e.done = append(e.done, d)
	e.in.tracer.linef("edit %q: %+v", d.Text, d)
	e.in.audit.edited(x, &d)
}
