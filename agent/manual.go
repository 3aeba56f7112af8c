package agent

import (
	"errors"
	"fmt"
	"time"

	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// manual gives bundles that carry nothing into the hands of whoever asks: a
// person on this host, the planner's operators, or the machine that wants
// failed optics calibrated.
type manual struct {
	agent     *Agent
	optics    *nodeOptics
	ops       []*manualOp // by bundle; nil: the machine's own
	upgrade   *upgrade    // of the modules' firmware; nil: none
	listeners []listener
}

// askPatience bounds a path set by hand. chosen: a hundred switches.
const askPatience = 500 * time.Millisecond

// manualOp is a person's or the planner's hold on one bundle.
type manualOp struct {
	ask     Ask
	own     bool      // the machine asked, to mend failed optics
	command bool      // a Command asked: ack is its answer
	ack     proto.Ack //
	began   time.Duration
	until   time.Duration
	renews  bool      // the optics are read anew first: they have failed
	darkens bool      // Calibrate comes when the bundle is dark
	found   bool      // calibrated; the codes are being staged
	held    bool      // answered; the path stays until a plan comes
	tries   bool      // a fibre: held until tryPatience is over
	alone   bool      // ... whose other end only looks
	ends    bool      // ... and in loopback again it is given back
	counts  bool      // ... with bit patterns
	stops   bool      // given back when no module makes patterns any more
	pattern proto.Ack // of what the modules are asked about patterns
	failing []Failing
}

// question takes a question of someone on this host.
func (a *manual) question(now time.Duration, q Ask) {
	switch q.Verb {
	case AskHostFault:
		a.release(now)
		a.agent.step(now, node.Event{Kind: node.HostFault, Text: proto.Clip(q.Text)})
		a.agent.reply(&Answer{ID: q.ID})
	case AskHostOK:
		a.agent.step(now, node.Event{Kind: node.HostOK, Text: proto.Clip(q.Text)})
		a.agent.reply(&Answer{ID: q.ID})
	case AskCalibrate:
		if err := a.calibrate(now, q.Bundle, manualOp{ask: q}); err != nil {
			a.agent.reply(&Answer{ID: q.ID, Err: err, Status: a.agent.status(now)})
		}
	case AskPath:
		if err := a.setPath(now, q); err != nil {
			a.agent.reply(&Answer{ID: q.ID, Err: err, Status: a.agent.status(now)})
		}
	case AskFirmware:
		a.loaded(now, q)
	case AskDump:
		if err := a.optics.dump(q); err != nil {
			a.agent.reply(&Answer{ID: q.ID, Err: err})
		}
	default:
		a.agent.reply(&Answer{ID: q.ID, Err: &proto.Error{Code: proto.Unsupported, Field: "verb", Limit: "one that this kind of device answers", Reason: fmt.Sprintf("there is no %q here: a switch has ports, a node has paths and a host", q.Verb)}})
	}
}

// noBundle refuses the number of a bundle that there is not.
func (o *nodeOptics) noBundle(id proto.BundleID) *proto.Error {
	if int(id) < len(o.bundles) {
		return nil
	}
	return &proto.Error{Code: proto.NotFound, Field: "bundle", Limit: "0 to " + itoa(len(o.bundles)-1), Reason: "no bundle " + itoa(int(id))}
}

// take gives a bundle into the hands of whoever asks, if it carries nothing.
func (a *manual) take(now time.Duration, id proto.BundleID, p manualOp) (*bundle, *proto.Error) {
	if err := a.optics.noBundle(id); err != nil {
		return nil, err
	}
	b := &a.optics.bundles[id]
	if a.busy(id) {
		return nil, &proto.Error{Code: proto.Busy, Field: "bundle", Reason: "bundle " + itoa(int(id)) + " is being worked on"}
	}
	if a.optics.node.Carries(id) {
		return nil, &proto.Error{Code: proto.Busy, Field: "bundle", Limit: "a bundle that carries nothing",
			Reason: fmt.Sprintf("bundle %d carries the ring of node %d", id, a.agent.cfg.Node)}
	}
	p.began = now
	a.ops[id] = &p
	b.ready = false
	a.agent.step(now, node.Event{Kind: node.Unready, Bundle: id})
	return b, nil
}

// calibrate begins to calibrate a bundle, dark first.
func (a *manual) calibrate(now time.Duration, id proto.BundleID, p manualOp) *proto.Error {
	p.ask.Verb, p.ask.Bundle, p.until = AskCalibrate, id, Never
	b, err := a.take(now, id, p)
	if err != nil {
		return err
	}
	if s := b.optics.Status(); s.Machine == ocs.Faulted || s.State == proto.Failed {
		a.ops[id].renews, a.ops[id].until = true, now+node.BoardPatience
		b.retry, b.due = Never, true
		b.optics.Renew(now)
		return nil
	}
	return a.darken(now, id)
}

// darken makes a bundle that is to be calibrated dark.
func (a *manual) darken(now time.Duration, id proto.BundleID) *proto.Error {
	if a.optics.bundles[id].optics.Status().Path == proto.Dark {
		return a.search(now, id)
	}
	a.ops[id].darkens, a.ops[id].until = true, now+askPatience
	a.optics.drive(now, id, proto.Dark, true)
	return a.choiceRefused(now, id)
}

// renewed goes on with a calibration when the optics have been read anew.
func (a *manual) renewed(now time.Duration, id proto.BundleID, ev *ocs.Event) *proto.Error {
	a.ops[id].renews = false
	a.optics.faulted(now, int(id), ev)
	if ev.Err != nil && !errors.Is(ev.Err, ocs.ErrNotCalibrated) {
		a.giveBack(now, id)
		return &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: proto.Clip(named(int(id), text(ev)))}
	}
	if a.ops[id].ask.Verb == AskFirmware {
		a.giveBack(now, id)
		a.nextBundle(now)
		return nil
	}
	return a.darken(now, id)
}

func (a *manual) search(now time.Duration, id proto.BundleID) *proto.Error {
	a.ops[id].darkens, a.ops[id].until = false, Never
	b := &a.optics.bundles[id]
	b.due = true
	if a.ops[id].ask.Verb == AskFirmware {
		a.nextModule(now)
		return nil
	}
	if err := b.optics.Calibrate(now); err != nil {
		a.giveBack(now, id)
		return codeOf(err, id)
	}
	return nil
}

func (a *manual) setPath(now time.Duration, q Ask) *proto.Error {
	if int(q.Path) >= proto.NumPaths {
		return &proto.Error{Code: proto.Invalid, Field: "path", Reason: q.Path.String()}
	}
	return a.byHand(now, manualOp{ask: q, until: now + askPatience})
}

// byHand puts a bundle that carries nothing on a path.
func (a *manual) byHand(now time.Duration, p manualOp) *proto.Error {
	q := p.ask
	if int(q.Bundle) < len(a.optics.bundles) && q.Path != proto.Dark && !a.optics.bundles[q.Bundle].optics.Status().Calibrated {
		return codeOf(ocs.ErrNotCalibrated, q.Bundle)
	}
	if _, err := a.take(now, q.Bundle, p); err != nil {
		return err
	}
	a.optics.drive(now, q.Bundle, q.Path, false)
	return a.choiceRefused(now, q.Bundle)
}

// choiceRefused turns a refused Select into an answer.
func (a *manual) choiceRefused(now time.Duration, id proto.BundleID) *proto.Error {
	b := &a.optics.bundles[id]
	if b.failure == nil {
		return nil
	}
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
func (a *manual) giveBack(now time.Duration, id proto.BundleID) {
	b := &a.optics.bundles[id]
	if b.pattern {
		a.ops[id] = &manualOp{stops: true}
		a.stopPattern(now, id)
		return
	}
	a.ops[id] = nil
	if s := b.optics.Status(); s.Ready {
		b.ready = true
		a.agent.step(now, node.Event{Kind: node.Ready, Bundle: id, Path: s.Path})
	}
}

// release ends the holds of paths set by hand: a plan has come, or the node
// must leave service with all of its bundles.
func (a *manual) release(now time.Duration) {
	for i, q := range a.ops {
		if q != nil && q.held {
			a.giveBack(now, proto.BundleID(i))
		}
	}
}

// occupied names the bundle on which manual work is not done.
func (a *manual) occupied() string {
	for i := range a.ops {
		if a.busy(proto.BundleID(i)) {
			return fmt.Sprintf("bundle %d is being worked on", i)
		}
	}
	return ""
}

// busy reports whether a bundle is being worked on.
func (a *manual) busy(id proto.BundleID) bool { return a.ops[id] != nil && !a.ops[id].held }

// progress takes an event of a bundle and reports whether it is nothing for the
// machine, because the bundle is under manual control.
func (a *manual) progress(now time.Duration, i int, ev *ocs.Event) bool {
	b := &a.optics.bundles[i]
	q := a.ops[i]
	id := proto.BundleID(i)
	if ev.Kind == ocs.Patterned {
		a.patterned(now, id, ev)
		return true
	}
	if q == nil {
		return false
	}
	if q.stops {
		return ev.Kind != ocs.Degraded
	}
	if q.held {
		return ev.Kind == ocs.Switched || ev.Kind == ocs.Ready
	}
	switch {
	case q.renews && ev.Kind == ocs.Ready:
		if err := a.renewed(now, id, ev); err != nil {
			a.conclude(now, *q, err)
		}
	case q.darkens && ev.Kind == ocs.Switched && ev.Path == proto.Dark:
		if err := a.search(now, id); err != nil {
			a.conclude(now, *q, err)
		}
	case q.ask.Verb == AskPath && ev.Kind == ocs.Switched && ev.Path == proto.Dark && q.ask.Path == proto.Dark,
		q.ask.Verb == AskPath && !q.tries && ev.Kind == ocs.Verified && ev.Path == q.ask.Path:
		q.held = true
		if q.ends && b.pattern { // answered when that is over
			q.held, q.stops = false, true
			a.stopPattern(now, id)
			return true
		}
		if q.ends {
			a.giveBack(now, id)
		}
		a.conclude(now, *q, nil)
	case q.tries && (ev.Kind == ocs.Verified || ev.Kind == ocs.Degraded) && ev.Path == q.ask.Path:
		a.tried(now, q, ev)
	case ev.Kind == ocs.PathFailed:
		a.giveBack(now, id)
		a.conclude(now, *q, &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: proto.Clip(named(i, text(ev)))})
		return false
	case ev.Kind == ocs.Calibrated:
		q.found = true
		a.agent.put(Output{Kind: OutCalibrate, Bundle: id, Calibration: b.optics.Status().Calibration})
		a.agent.note(now, own(now, proto.Event{Kind: proto.EvCalibrated, Bundle: id, Cause: proto.CauseOperator, Text: proto.Clip(ev.Text)}))
	case ev.Kind == ocs.Upgraded:
		a.upgraded(now, ev)
	case ev.Kind == ocs.CalibrationFailed:
		a.giveBack(now, id)
		reason := proto.Clip(named(i, text(ev)))
		a.agent.alarm(now, Alarm{Bundle: id, Module: unit(ev.Module), Text: reason})
		for _, f := range ev.Failures {
			one := Failing{Module: f.Module, Cause: proto.Clip(named(i, f.Err.Error()))}
			if f.Cell != ocs.None {
				one.Cell = &f.Cell
			}
			q.failing = append(q.failing, one)
		}
		a.conclude(now, *q, &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: reason})
	}
	if q.found && a.ops[i] == q && b.optics.Status().Ready {
		if !q.own {
			b.remedy, b.remedyPath = true, proto.Loopback // a person's remedy, if it has failed
		}
		a.giveBack(now, id)
		a.conclude(now, *q, nil)
	}
	return ev.Kind != ocs.Degraded
}

// overdue ends what has had its time.
func (a *manual) overdue(now time.Duration) {
	for i, q := range a.ops {
		if b := &a.optics.bundles[i]; b.stopAt <= now {
			a.stopPattern(now, proto.BundleID(i))
		}
		if q != nil && q.held && a.optics.node.Carries(proto.BundleID(i)) { // it was taken between a plan and its decision
			a.giveBack(now, proto.BundleID(i))
			continue
		}
		if q == nil || q.stops || q.held && !q.tries || q.until > now {
			continue
		}
		if q.held {
			_ = a.endTry(now, proto.BundleID(i), proto.Ack{}) // refused, the machine has it back and says why itself
			continue
		}
		s := a.optics.bundles[i].optics.Status()
		a.giveBack(now, proto.BundleID(i))
		err := &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: fmt.Sprintf("bundle %d is on %v, %v, after %v", i, s.Path, s.State, now-q.began)}
		if q.tries && s.Path == q.ask.Path {
			err = noLight(i, s.Path)
		}
		a.conclude(now, *q, err)
	}
	a.deaf(now)
}

// overdueAt is when the next manual operation is overdue.
func (a *manual) overdueAt() time.Duration {
	at := Never
	for i, q := range a.ops {
		at = min(at, a.optics.bundles[i].stopAt)
		if q != nil && !q.stops && (!q.held || q.tries) {
			at = min(at, q.until)
		}
	}
	for i := range a.listeners {
		at = min(at, a.listeners[i].until)
	}
	return at
}

// conclude answers whoever asked.
func (a *manual) conclude(now time.Duration, q manualOp, err *proto.Error) {
	if q.ask.Verb == AskFirmware {
		a.upgrade.fails(err)
		a.nextBundle(now)
		return
	}
	if q.own {
		if err != nil {
			a.optics.failAgain(now, q.ask.Bundle, err.Reason)
		}
		return // else the light on the path that the machine wants decides
	}
	if q.command {
		if q.ack.Corr == (proto.Corr{}) {
			return // nobody asked
		}
		if err != nil {
			q.ack.Refuse(err)
		}
		a.agent.finishCommand(now, q.ack)
		return
	}
	ans := &Answer{ID: q.ask.ID, Err: err, Status: a.agent.status(now), Took: now - q.began, Failing: q.failing}
	b := &a.optics.bundles[q.ask.Bundle]
	if q.ask.Verb == AskPath && err == nil {
		w := b.switches[b.newest]
		l, mark := a.optics.ledger(node.Stamps{Lost: w.asked, Decided: w.asked, Settled: max(w.wrote, b.settled), Confirmed: now})
		ans.Ledger, ans.Modelled = &l, mark.Modelled()
	}
	a.agent.reply(ans)
}

// execute does a planner's command that only a node understands.
func (a *manual) execute(now time.Duration, c *proto.Command, ack proto.Ack) (later bool, _ error) {
	switch c.Verb {
	case proto.VerbHostFault:
		a.release(now)
		a.agent.step(now, node.Event{Kind: node.HostFault, Text: "told by the planner"})
	case proto.VerbHostOK:
		a.agent.step(now, node.Event{Kind: node.HostOK})
	case proto.VerbDrain:
		a.release(now)
		a.agent.step(now, node.Event{Kind: node.Drain})
	case proto.VerbUndrain:
		a.agent.step(now, node.Event{Kind: node.Undrain})
	case proto.VerbCalibrate:
		if refused := a.calibrate(now, c.Bundle, manualOp{command: true, ack: ack}); refused != nil {
			return false, refused
		}
		return true, nil
	case proto.VerbFirmware:
		if refused := a.firmware(now, c, ack); refused != nil {
			return false, refused
		}
		return true, nil
	case proto.VerbTry:
		if refused := a.try(now, c, ack); refused != nil {
			return false, refused
		}
		return true, nil
	case proto.VerbRequest:
		if refused := a.optics.node.Refuses(c.Side, c.Request, c.Bundle, c.Path); refused != nil {
			return false, refused
		}
		a.agent.step(now, node.Event{Kind: node.Request, Side: c.Side, Request: c.Request, Bundle: c.Bundle, Path: c.Path})
	default:
		return false, unknownVerb(c.Verb)
	}
	return false, nil
}
