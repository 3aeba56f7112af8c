package agent

import (
	"errors"
	"fmt"
	"time"

	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// askPatience bounds a path set by hand. chosen: a hundred switches.
const askPatience = 500 * time.Millisecond

// pendingAsk is a person's or the planner's hold on one bundle.
type pendingAsk struct {
	ask     Ask
	own     bool      // the machine asked, to mend failed optics
	command bool      // a Command asked: ack is its answer
	ack     proto.Ack //
	began   time.Duration
	until   time.Duration
	darkens bool // Calibrate comes when the bundle is dark
	found   bool // calibrated; the codes are being staged
	held    bool // answered; the path stays until a plan comes
}

// ask takes a question of someone on this host.
func (a *Agent) ask(now time.Duration, q Ask) {
	if q.Verb == AskStatus {
		a.reply(&Answer{ID: q.ID, Status: a.status(now)})
		return
	}
	a.hands.serve(now, q)
}

func (a *Agent) reply(ans *Answer) { a.outs = append(a.outs, Output{Kind: OutAnswer, Answer: ans}) }

func (a *Agent) status(now time.Duration) *Status {
	s := &Status{Reported: *a.reported(now), Bundles: []BundleStatus{}, LinkUp: a.wire.up, Unacked: len(a.outbox.queue), UptimeUS: now.Microseconds()}
	a.hands.stand(s)
	return s
}

func (a *nodeHands) serve(now time.Duration, q Ask) {
	switch q.Verb {
	case AskHostFault:
		a.release(now)
		a.step(now, node.Event{Kind: node.HostFault, Text: proto.Clip(q.Text)})
		a.reply(&Answer{ID: q.ID})
	case AskHostOK:
		a.step(now, node.Event{Kind: node.HostOK, Text: proto.Clip(q.Text)})
		a.reply(&Answer{ID: q.ID})
	case AskCalibrate:
		if err := a.calibrate(now, q.Bundle, pendingAsk{ask: q}); err != nil {
			a.reply(&Answer{ID: q.ID, Err: err, Status: a.status(now)})
		}
	case AskPath:
		if err := a.setPath(now, q); err != nil {
			a.reply(&Answer{ID: q.ID, Err: err, Status: a.status(now)})
		}
	case AskDump:
		if err := a.dump(q); err != nil {
			a.reply(&Answer{ID: q.ID, Err: err})
		}
	default:
		a.reply(&Answer{ID: q.ID, Err: &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: "unknown question"}})
	}
}

func (a *nodeHands) stand(s *Status) {
	for i := range a.bundles {
		b := &a.bundles[i]
		o := b.optics.Status()
		bs := BundleStatus{Bundle: proto.BundleID(i), Machine: o.Machine.String(), Ready: o.Ready, Calibrated: o.Calibrated,
			Path: o.Path.String(), Target: o.Target.String(), State: o.State.String(), Lit: []string{},
			Expected: o.Expected, Measured: o.Measured, LimitErrors: o.LimitErrors, BusErrors: o.BusErrors,
			Step: o.Progress.Step, Modules: o.Progress.Done, Measurements: o.Progress.Measurements,
			ElapsedUS: o.Progress.Elapsed.Microseconds(), HeldByHand: b.ask != nil && b.ask.held,
			Hold: b.optics.Holds()}
		if o.Err != nil {
			bs.Reason = o.Err.Error()
		}
		for p := proto.Loopback; int(p) < proto.NumPaths; p++ {
			if b.lit&(1<<p) != 0 {
				bs.Lit = append(bs.Lit, p.String())
			}
		}
		s.Bundles = append(s.Bundles, bs)
	}
}

// take gives a bundle into the hands of whoever asks, if it carries nothing.
func (a *nodeHands) take(now time.Duration, id proto.BundleID, p pendingAsk) (*bundle, *proto.Error) {
	if int(id) >= len(a.bundles) {
		return nil, &proto.Error{Code: proto.NotFound, Field: "bundle", Limit: "0 to " + itoa(len(a.bundles)-1), Reason: "no bundle " + itoa(int(id))}
	}
	b := &a.bundles[id]
	if b.ask != nil && !b.ask.held {
		return nil, &proto.Error{Code: proto.Busy, Field: "bundle", Reason: "bundle " + itoa(int(id)) + " is being worked on"}
	}
	if a.node.Carries(id) {
		return nil, &proto.Error{Code: proto.Busy, Field: "bundle", Limit: "a bundle that carries nothing",
			Reason: fmt.Sprintf("bundle %d carries the ring of node %d", id, a.cfg.Node)}
	}
	p.began = now
	b.ask = &p
	b.ready = false
	a.step(now, node.Event{Kind: node.Unready, Bundle: id})
	return b, nil
}

// calibrate begins to calibrate a bundle, dark first.
func (a *nodeHands) calibrate(now time.Duration, id proto.BundleID, p pendingAsk) *proto.Error {
	p.ask.Verb, p.ask.Bundle, p.until = AskCalibrate, id, Never
	b, err := a.take(now, id, p)
	if err != nil {
		return err
	}
	if b.optics.Status().Path == proto.Dark {
		return a.search(now, b)
	}
	b.ask.darkens, b.ask.until = true, now+askPatience
	a.choose(now, id, proto.Dark)
	return a.choiceRefused(now, b)
}

func (a *nodeHands) search(now time.Duration, b *bundle) *proto.Error {
	b.ask.darkens, b.ask.until = false, Never
	b.due = true
	if err := b.optics.Calibrate(now); err != nil {
		id := b.ask.ask.Bundle
		a.giveBack(now, id)
		return codeOf(err, id)
	}
	return nil
}

func (a *nodeHands) setPath(now time.Duration, q Ask) *proto.Error {
	if int(q.Path) >= proto.NumPaths {
		return &proto.Error{Code: proto.Invalid, Field: "path", Reason: q.Path.String()}
	}
	if int(q.Bundle) < len(a.bundles) && q.Path != proto.Dark && !a.bundles[q.Bundle].optics.Status().Calibrated {
		return codeOf(ocs.ErrNotCalibrated, q.Bundle)
	}
	b, err := a.take(now, q.Bundle, pendingAsk{ask: q, until: now + askPatience})
	if err != nil {
		return err
	}
	a.rearrange(now, q.Bundle, q.Path)
	return a.choiceRefused(now, b)
}

// choiceRefused turns a refused Select into an answer.
func (a *nodeHands) choiceRefused(now time.Duration, b *bundle) *proto.Error {
	if b.failure == nil {
		return nil
	}
	id := b.ask.ask.Bundle
	err := codeOf(b.failure, id)
	b.failure = nil
	a.giveBack(now, id)
	return err
}

// codeOf says an error of the optics in the words of an answer.
func codeOf(err error, id proto.BundleID) *proto.Error {
	e := &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: fmt.Sprintf("bundle %d: %v", id, err)}
	switch {
	case errors.Is(err, ocs.ErrNotCalibrated):
		e.Code = proto.NotCalibrated
		e.Reason = fmt.Sprintf("bundle %d is not calibrated: no path but dark can be selected; run calibrate first", id)
	case errors.Is(err, ocs.ErrBusy), errors.Is(err, ocs.ErrNotReady), errors.Is(err, ocs.ErrCarriesLight):
		e.Code = proto.Busy
	}
	e.Reason = proto.Clip(e.Reason)
	return e
}

// giveBack returns a bundle to the machine, which puts it where it belongs.
func (a *nodeHands) giveBack(now time.Duration, id proto.BundleID) {
	b := &a.bundles[id]
	b.ask = nil
	if s := b.optics.Status(); s.Ready {
		b.ready = true
		a.step(now, node.Event{Kind: node.Ready, Bundle: id, Path: s.Path})
	}
}

// release ends the holds of paths set by hand: a plan has come, or the node
// must leave service with all of its bundles.
func (a *nodeHands) release(now time.Duration) {
	for i := range a.bundles {
		if q := a.bundles[i].ask; q != nil && q.held {
			a.giveBack(now, proto.BundleID(i))
		}
	}
}

// askProgress takes an event of a bundle that is in somebody's hands and
// reports whether it is nothing for the machine.
func (a *nodeHands) askProgress(now time.Duration, i int, ev *ocs.Event) bool {
	b := &a.bundles[i]
	q := b.ask
	id := proto.BundleID(i)
	if q.held {
		return ev.Kind == ocs.Switched || ev.Kind == ocs.Ready
	}
	switch {
	case q.darkens && ev.Kind == ocs.Switched && ev.Path == proto.Dark:
		if err := a.search(now, b); err != nil {
			a.conclude(now, *q, err)
		}
	case q.ask.Verb == AskPath && ev.Kind == ocs.Switched && ev.Path == proto.Dark && q.ask.Path == proto.Dark,
		q.ask.Verb == AskPath && ev.Kind == ocs.Verified && ev.Path == q.ask.Path:
		q.held = true
		a.conclude(now, *q, nil)
	case ev.Kind == ocs.PathFailed:
		a.giveBack(now, id)
		a.conclude(now, *q, &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: proto.Clip(named(i, text(ev)))})
		return false
	case ev.Kind == ocs.Calibrated:
		q.found = true
		a.outs = append(a.outs, Output{Kind: OutCalibrate, Bundle: id, Calibration: b.optics.Status().Calibration})
		a.note(now, own(now, proto.Event{Kind: proto.EvCalibrated, Bundle: id, Cause: proto.CauseOperator}))
	case ev.Kind == ocs.CalibrationFailed:
		a.giveBack(now, id)
		reason := proto.Clip(named(i, text(ev)))
		a.note(now, own(now, proto.Event{Kind: proto.EvAlarm, Severity: proto.SeverityCritical, Bundle: id,
			Cause: proto.CauseOwnFault, Module: unit(ev.Module), Text: reason}))
		a.conclude(now, *q, &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: reason})
	}
	if q.found && b.ask == q && b.optics.Status().Ready {
		if !q.own {
			b.remedy, b.remedyPath = true, proto.Loopback // a person's remedy, if it has failed
		}
		a.giveBack(now, id)
		a.conclude(now, *q, nil)
	}
	return ev.Kind != ocs.Degraded
}

// overdue ends the asks whose time is over.
func (a *nodeHands) overdue(now time.Duration) {
	for i := range a.bundles {
		q := a.bundles[i].ask
		if q == nil || q.held || q.until > now {
			continue
		}
		s := a.bundles[i].optics.Status()
		a.giveBack(now, proto.BundleID(i))
		a.conclude(now, *q, &proto.Error{Code: proto.HardwareFailed, Field: "bundle",
			Reason: fmt.Sprintf("bundle %d is on %v, %v, after %v", i, s.Path, s.State, now-q.began)})
	}
}

// askDue is when the next ask is overdue.
func (a *nodeHands) askDue() time.Duration {
	at := Never
	for i := range a.bundles {
		if q := a.bundles[i].ask; q != nil && !q.held {
			at = min(at, q.until)
		}
	}
	return at
}

// conclude answers whoever asked.
func (a *nodeHands) conclude(now time.Duration, q pendingAsk, err *proto.Error) {
	if q.own {
		if err != nil {
			a.failAgain(now, q.ask.Bundle, err.Reason)
		}
		return // else the light on the path that the machine wants decides
	}
	if q.command {
		if err != nil {
			q.ack.Refuse(err)
		}
		a.finishCommand(q.ack)
		return
	}
	ans := &Answer{ID: q.ask.ID, Err: err, Status: a.status(now), Took: now - q.began}
	b := &a.bundles[q.ask.Bundle]
	if q.ask.Verb == AskPath && err == nil {
		w := b.switches[b.newest]
		l, mark := a.ledger(node.Stamps{Lost: w.asked, Decided: w.asked, Settled: max(w.wrote, b.settled), Confirmed: now})
		ans.Ledger, ans.Modelled = &l, mark.Modelled()
	}
	a.reply(ans)
}
