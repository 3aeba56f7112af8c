package node

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"ringlight/proto"
)

// participant is a machine's half of prepare and commit, the same for a node
// and for a cross-connect: it takes what a planner says, judges it by the
// fence, answers, and knows what has to be on disk. What a plan means is the
// device's.
type participant struct {
	fence
	now       time.Duration // of the latest event
	adopted   bool          // the hardware has been read back
	reasons   reason
	bypassSeq uint64 // moves that no plan asked for
	unsaved   bool
	split     [2]proto.Digest // plans of the last conflict told
	watched   []proto.RingID
	out       []Action // of the Step under way
}

// device is what plans are about.
type device interface {
	// validate says why a desired state cannot be had here, or nil.
	validate(d *proto.Desired) *proto.Error
	// enact puts a plan into force and saves it; nil is the one in force, told
	// once more. It says why the plan is not in effect, or nil.
	enact(h *Held) *proto.Error
	// plannerSeen is told of every sign of a planner's life.
	plannerSeen()
}

// tell takes what a planner says.
func (p *participant) tell(dev device, ev *Event) {
	switch ev.Kind {
	case Stage:
		p.stage(dev, ev.Desired, ev.Digest)
	case Decide:
		p.decide(dev, ev.Decision)
	case DropStaged:
		if ev.Term >= p.seenTerm && p.staged != nil {
			p.staged = nil
			p.save()
			p.watch()
		}
	case HeardTerm:
		p.reach.alive(ev.Term, p.now)
		p.seeTerm(dev, ev.Term, ev.Life)
	}
}

// seeTerm takes note of a planner's term.
func (p *participant) seeTerm(dev device, t proto.Term, life uint64) {
	if t == 0 || t < p.seenTerm || t > p.reach.term() || p.superseded(t, life) {
		return
	}
	if t > p.seenTerm || life != 0 && life != p.seenLife {
		p.seenTerm, p.seenLife, p.unsaved = t, life, true
	}
	dev.plannerSeen()
}

// stage takes a desired state: whole and valid, or not at all. It changes no
// light and has no deadline: without a decision the old state stays.
func (p *participant) stage(dev device, d *proto.Desired, digest proto.Digest) {
	if d == nil {
		return
	}
	held, err := p.admit(dev, d, digest)
	if p.adopted && d.Node == p.id {
		p.seeTerm(dev, d.Term, d.Life)
	}
	if err == nil && held == nil {
		p.staged = &Held{Desired: *d, Digest: digest}
		p.bypassSeq = max(p.bypassSeq, d.BypassSeq) // an unsaved tail may have been lost
		p.save()
		p.watch()
	}
	p.answer(proto.PhasePrepare, d.Term, d.Generation, d.Plan, err)
	if err == nil {
		p.decide(dev, p.overdue())
	}
}

// admit says why a desired state cannot be staged, or nil; held is the same
// one if it is here already.
func (p *participant) admit(dev device, d *proto.Desired, digest proto.Digest) (held *Held, err *proto.Error) {
	if !p.adopted {
		return nil, errBusy
	}
	held, err = p.judge(d, digest)
	switch {
	case err == errSplit:
		p.contradict(held, d.Plan)
		return held, err
	case err != nil || held != nil:
		return held, err
	}
	if d.BypassSeq < p.bypassSeq {
		return nil, errMoved(p.bypassSeq)
	}
	if limit := proto.Highest(p.bypassSeq); d.BypassSeq > limit {
		return nil, proto.Wrong("bypass_seq", "at most "+strconv.FormatUint(limit, 10), "%d; the node counts %d", d.BypassSeq, p.bypassSeq)
	}
	return nil, dev.validate(d)
}

// decide settles a generation. The decision may come before the desired state,
// twice, or too late.
func (p *participant) decide(dev device, d *proto.Decision) {
	if d == nil {
		return
	}
	err := errBusy
	if p.adopted {
		var rival *Held
		if rival, err = p.weigh(d); err == errSplit {
			p.contradict(rival, d.Plan)
		}
		p.seeTerm(dev, d.Term, 0)
	}
	switch {
	case err != nil:
	case p.staged.compare(d.Term, d.Generation) == 0:
		held := p.staged
		p.staged = nil
		if d.Verdict == proto.Commit {
			p.reach.settled = max(p.reach.settled, d.Term)
			err = dev.enact(held)
		} else {
			p.save()
		}
		p.watch()
	default:
		err = dev.enact(nil)
	}
	p.answer(proto.PhaseCommit, d.Term, d.Generation, d.Plan, err)
}

// contradict tells of two planners with one term, once for each pair of plans,
// however often they repeat themselves.
func (p *participant) contradict(held *Held, theirs proto.Digest) {
	ours := held.Desired.Plan
	if told := [2]proto.Digest{ours, theirs}; p.split != told {
		p.split = told
		p.note(proto.Event{Kind: proto.EvSplitBrain, Severity: proto.SeverityCritical,
			Text: fmt.Sprintf("plan %x is held here; another plan, content or verdict came with the same term and generation: plan %x", ours[:4], theirs[:4])})
	}
}

// watch follows the decision topics of what is applied and staged, and leaves
// the others.
func (p *participant) watch() {
	var want []proto.RingID
	for _, h := range [2]*Held{p.applied, p.staged} {
		if h != nil {
			for _, r := range h.Desired.Decisions {
				if i, found := slices.BinarySearch(want, r); !found {
					want = slices.Insert(want, i, r)
				}
			}
		}
	}
	for _, r := range want {
		if !slices.Contains(p.watched, r) {
			p.out = append(p.out, Action{Kind: Watch, Ring: r})
		}
	}
	for _, r := range p.watched {
		if !slices.Contains(want, r) {
			p.out = append(p.out, Action{Kind: Unwatch, Ring: r})
		}
	}
	p.watched = want
}

func (p *participant) answer(phase proto.Phase, t proto.Term, g proto.Generation, plan proto.Digest, err *proto.Error) {
	a := p.ack(phase, t, g, plan, err)
	if a.Code == proto.Conflict {
		a.BypassSeq = p.bypassSeq
	}
	p.out = append(p.out, Action{Kind: Answer, Ack: a})
}

func (p *participant) note(e proto.Event) { p.noteMove(e, Stamps{}) }

// noteMove notes what light has confirmed of a move, with its moments.
func (p *participant) noteMove(e proto.Event, st Stamps) {
	e.Version, e.Node, e.Count = proto.Version, p.id, 1
	e.AtMicros = uint64(p.now.Microseconds())
	e.FirstMicros = e.AtMicros
	if e.Measured == 0 && e.Expected == 0 {
		e.Measured, e.Expected = proto.NoPower, proto.NoPower
	}
	e.BypassSeq = p.bypassSeq
	if r := p.ring(); r != nil {
		e.Ring = r.Ring
	}
	if p.applied != nil {
		e.Generation = p.applied.Desired.Generation
	}
	p.out = append(p.out, Action{Kind: Note, Bundle: e.Bundle, Path: e.Path, Cause: e.Cause, Note: e, Stamps: st})
}

func (p *participant) save() {
	p.unsaved = false
	p.out = append(p.out, Action{Kind: Save})
}

// Mode is the standing of the machine.
func (p *participant) Mode() proto.Mode { return p.reasons.mode() }

// restore takes what every journal keeps; journal gives it.
func (p *participant) restore(s *State) {
	p.seenTerm, p.seenLife, p.bypassSeq = s.SeenTerm, s.SeenLife, s.BypassSeq
	p.reach.settled = s.SeenTerm
	p.applied, p.staged = s.Applied, s.Staged
	p.reasons = noPlanner
	if p.applied != nil {
		p.reasons = 0
	}
}

func (p *participant) journal() State {
	return State{SeenTerm: p.seenTerm, SeenLife: p.seenLife, Applied: p.applied, Staged: p.staged, BypassSeq: p.bypassSeq, Reasons: uint8(p.reasons)}
}

// report fills in what every report has; a plan that is not in effect is not
// named.
func (p *participant) report(r *proto.Reported, inEffect bool) {
	r.Version, r.Node = proto.Version, p.id
	r.Mode, r.SeenTerm, r.SeenLife, r.BypassSeq = p.Mode(), p.seenTerm, p.seenLife, p.bypassSeq
	if inEffect {
		r.Term, r.Generation, r.Plan = p.applied.name()
		if p.applied != nil {
			r.Layout = p.applied.Desired.Layout
		}
	}
	r.StagedTerm, r.StagedGeneration, r.StagedPlan = p.staged.name()
}
