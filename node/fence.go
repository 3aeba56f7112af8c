package node

import (
	"fmt"
	"strconv"

	"ringlight/proto"
)

// fence knows which plans a machine holds, a node's or a cross-connect's, and judges
// what comes by its name alone: term, generation, plan and digest. What a plan
// says is the machine's to judge.
type fence struct {
	id              proto.NodeID
	seenTerm        proto.Term
	reach           reach
	seenLife        uint64 // of the planner that seenTerm is of; 0: it does not say
	applied, staged *Held
	early           proto.Decision // that came before its desired state
}

// order compares two plans by (term, generation).
func order(aTerm proto.Term, aGen proto.Generation, bTerm proto.Term, bGen proto.Generation) int {
	switch {
	case aTerm != bTerm && aTerm < bTerm, aTerm == bTerm && aGen < bGen:
		return -1
	case aTerm == bTerm && aGen == bGen:
		return 0
	}
	return 1
}

// compare orders (t, g) against h; everything is above nothing.
func (h *Held) compare(t proto.Term, g proto.Generation) int {
	if h == nil {
		return 1
	}
	return order(t, g, h.Desired.Term, h.Desired.Generation)
}

func (h *Held) name() (proto.Term, proto.Generation, proto.Digest) {
	if h == nil {
		return 0, 0, proto.Digest{}
	}
	return h.Desired.Term, h.Desired.Generation, h.Desired.Plan
}

// ring is the node's place in the ring of the plan in force, nil when it has
// none.
func (f *fence) ring() *proto.RingAssignment {
	if f.applied == nil || len(f.applied.Desired.Rings) == 0 {
		return nil
	}
	return &f.applied.Desired.Rings[0]
}

// superseded: the term was heard first from another life of a planner. Two that
// started from copies of one store both count themselves up to it.
func (f *fence) superseded(t proto.Term, life uint64) bool {
	return t == f.seenTerm && life != 0 && f.seenLife != 0 && life != f.seenLife
}

// inForce is what a refusal names: the highest term heard and the highest
// generation accepted.
func (f *fence) inForce() (t proto.Term, g proto.Generation) {
	if f.applied != nil {
		g = f.applied.Desired.Generation
	}
	if f.staged != nil {
		g = max(g, f.staged.Desired.Generation)
	}
	return f.seenTerm, g
}

// ack answers a desired state or a decision.
func (f *fence) ack(p proto.Phase, t proto.Term, g proto.Generation, plan proto.Digest, err *proto.Error) proto.Ack {
	a := proto.Ack{Version: proto.Version, Node: f.id, Phase: p, Term: t, Generation: g, Plan: plan}
	a.CurrentTerm, a.CurrentGeneration = f.inForce()
	if err != nil {
		a.Code, a.Field, a.Limit, a.Reason = err.Code, err.Field, err.Limit, err.Reason
	}
	if err == errStale {
		a.Field, a.Limit = "generation", "at least "+strconv.FormatUint(uint64(a.CurrentGeneration), 10)
		if least := max(f.seenTerm, a.CurrentTerm); t < least {
			a.Field, a.Limit = "term", "at least "+strconv.FormatUint(uint64(least), 10)
		}
	}
	return a
}

var (
	errStale     = &proto.Error{Code: proto.Stale, Reason: "a higher term or generation is in force"}
	errBusy      = &proto.Error{Code: proto.Busy, Reason: "the hardware has not been read back yet"}
	errSplit     = &proto.Error{Code: proto.Conflict, Field: "plan", Reason: "same term and generation, other plan, content or verdict"}
	errLife      = &proto.Error{Code: proto.Stale, Field: "life", Reason: "the term belongs to another life of a planner"}
	errNotStaged = &proto.Error{Code: proto.NotStaged, Reason: "never prepared here"}
)

// errMoved refuses a plan that was made before the node's own last move.
func errMoved(seq uint64) *proto.Error {
	return &proto.Error{Code: proto.Conflict, Field: "bypass_seq", Limit: "at least " + strconv.FormatUint(seq, 10),
		Reason: "the node has moved since the plan was made"}
}

// judge takes a desired state by its name: held is the same one if it is here
// already, and the one that it disagrees with in a split brain.
func (f *fence) judge(d *proto.Desired, digest proto.Digest) (held *Held, err *proto.Error) {
	if d.Node != f.id {
		return nil, &proto.Error{Code: proto.WrongNode, Field: "node", Reason: fmt.Sprintf("this is node %d", f.id)}
	}
	if err := f.far(d.Term, d.Generation); err != nil {
		return nil, err
	}
	switch {
	case d.Term < f.seenTerm:
		return nil, errStale
	case f.superseded(d.Term, d.Life):
		return nil, errLife
	}
	for _, h := range [2]*Held{f.applied, f.staged} {
		switch c := h.compare(d.Term, d.Generation); {
		case c < 0:
			return nil, errStale
		case c == 0 && h.Desired.Plan == d.Plan && h.Digest == digest:
			return h, nil
		case c == 0:
			return h, errSplit
		}
	}
	return nil, nil
}

// weigh says why a decision is not followed, or nil: then it settles what is
// staged, or is done already. rival is what it disagrees with in a split
// brain. One that comes before its desired state is kept.
func (f *fence) weigh(d *proto.Decision) (rival *Held, err *proto.Error) {
	if d.Verdict != proto.Commit && d.Verdict != proto.Abort {
		return nil, &proto.Error{Code: proto.Invalid, Field: "verdict", Limit: "commit or abort", Reason: d.Verdict.String()}
	}
	if err := f.far(d.Term, d.Generation); err != nil {
		return nil, err
	}
	if f.applied.compare(d.Term, d.Generation) == 0 {
		if f.applied.Desired.Plan == d.Plan && d.Verdict == proto.Commit {
			return nil, nil // already done
		}
		return f.applied, errSplit
	}
	switch {
	case d.Term < f.seenTerm || f.applied.compare(d.Term, d.Generation) < 0 || f.staged.compare(d.Term, d.Generation) < 0:
		return nil, errStale
	case f.staged.compare(d.Term, d.Generation) == 0:
		if f.staged.Desired.Plan != d.Plan {
			return f.staged, errSplit
		}
		return nil, nil
	}
	f.early = *d
	return nil, errNotStaged
}

// overdue gives the decision that came before the desired state that is
// staged now, once.
func (f *fence) overdue() *proto.Decision {
	if f.early.Term == 0 || f.staged.compare(f.early.Term, f.early.Generation) != 0 {
		return nil
	}
	e := f.early
	f.early = proto.Decision{}
	return &e
}
