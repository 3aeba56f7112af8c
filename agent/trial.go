package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// A fibre is tried before anything is planned over it: both of its ends are asked
// to light it and to say whether the other's light comes. A bundle that carries
// nothing is lit for it. One that carries a ring stays as it is: its receivers
// still see a path that is not selected, and say whether the other end's light
// comes there.

// tryPatience bounds how long the light of a fibre that is tried stays, should
// nobody end it. chosen: longer than a planner tries all fibres of a round.
const tryPatience = 5 * time.Second

// tryMargin is how far above what counts as light a new fibre's must lie. chosen:
// what lasers lose as they age, and a connector that was opened.
const tryMargin = 2000 // thousandths of a dB

// listener is a path of a bundle with a ring, on which light is waited for.
type listener struct {
	bundle proto.BundleID
	path   proto.Path
	ack    proto.Ack
	until  time.Duration
}

// try lights a path of a bundle that carries nothing, for the planner to see
// whether a fibre is there; loopback ends it.
func (a *manual) try(now time.Duration, c *proto.Command, ack proto.Ack) *proto.Error {
	if err := a.optics.noBundle(c.Bundle); err != nil {
		return err
	}
	switch {
	case c.Pattern > proto.PatternAhead:
		return a.pattern(now, c, ack)
	case c.Path == proto.Loopback:
		return a.endTry(now, c.Bundle, ack)
	case !c.Path.External():
		return &proto.Error{Code: proto.Invalid, Field: "path", Limit: "external1, external2 or loopback", Reason: c.Path.String()}
	case a.optics.node.Carries(c.Bundle) && !a.busy(c.Bundle):
		return a.listen(now, c, ack)
	}
	return a.byHand(now, manualOp{ask: Ask{Verb: AskPath, Bundle: c.Bundle, Path: c.Path}, command: true, ack: ack, tries: true, alone: c.Alone, counts: c.Pattern != 0, until: now + askPatience})
}

// endTry puts a bundle back into loopback, and into the machine's hands.
func (a *manual) endTry(now time.Duration, id proto.BundleID, ack proto.Ack) *proto.Error {
	q := a.ops[id]
	if q == nil || !q.tries || !q.held {
		return &proto.Error{Code: proto.Duplicate, Field: "bundle", Limit: "a bundle that is tried", Reason: "bundle " + itoa(int(id)) + " is not"}
	}
	return a.byHand(now, manualOp{ask: Ask{Verb: AskPath, Bundle: id, Path: proto.Loopback}, command: true, ack: ack, ends: true, until: now + askPatience})
}

// listen waits for light on a path that no ring goes over, and touches nothing.
func (a *manual) listen(now time.Duration, c *proto.Command, ack proto.Ack) *proto.Error {
	if a.optics.node.Lists(c.Bundle, c.Path) || a.optics.bundles[c.Bundle].optics.Status().Path == c.Path {
		return &proto.Error{Code: proto.Busy, Field: "path", Limit: "one that no ring goes over", Reason: fmt.Sprintf("bundle %d has a ring's way on %v", c.Bundle, c.Path)}
	}
	if a.sees(c.Bundle, c.Path) {
		a.agent.finishCommand(now, ack)
		return nil
	}
	if len(a.listeners) >= 2*len(a.optics.bundles) {
		return &proto.Error{Code: proto.Busy, Field: "path", Limit: "one trial of a path at a time", Reason: "others are waited for"}
	}
	a.listeners = append(a.listeners, listener{c.Bundle, c.Path, ack, now + askPatience})
	return nil
}

// sees: light comes to a path, selected or not.
func (a *manual) sees(id proto.BundleID, p proto.Path) bool {
	return a.optics.bundles[id].lit&(1<<p) != 0
}

// shone takes light that has come, for those who wait for it.
func (a *manual) shone(now time.Duration, id proto.BundleID, p proto.Path) {
	if q := a.ops[id]; q != nil && q.tries && !q.held && q.ask.Path == p {
		a.optics.bundles[id].optics.Recheck() // now that there is something to be read
	}
	a.listeners = slices.DeleteFunc(a.listeners, func(x listener) bool {
		heard := x.bundle == id && x.path == p
		if heard {
			a.agent.finishCommand(now, x.ack)
		}
		return heard
	})
}

// deaf ends the listening that had its time.
func (a *manual) deaf(now time.Duration) {
	a.listeners = slices.DeleteFunc(a.listeners, func(x listener) bool {
		if over := x.until <= now; !over {
			return false
		}
		x.ack.Refuse(noLight(int(x.bundle), x.path))
		a.agent.finishCommand(now, x.ack)
		return true
	})
}

func noLight(bundle int, p proto.Path) *proto.Error {
	return &proto.Error{Code: proto.HardwareFailed, Field: "path", Limit: "light from the other end",
		Reason: fmt.Sprintf("no light comes to bundle %d, %v, within %v", bundle, p, askPatience)}
}

// tried takes a reading of a fibre that is tried. Own light alone says nothing of
// it: the other end's must come, and with something to spare.
func (a *manual) tried(now time.Duration, q *manualOp, ev *ocs.Event) {
	id := q.ask.Bundle
	if q.alone {
		q.held, q.until = true, now+tryPatience
		a.conclude(now, *q, nil)
		return
	}
	if !a.sees(id, ev.Path) {
		return // it has its time
	}
	least := a.agent.cfg.Board.Bundles[id].Modules[0].Optics().LOSClearMilliDBm + tryMargin
	if ev.Received != proto.NoPower && ev.Received < proto.MilliDBm(least) {
		a.giveBack(now, id)
		a.conclude(now, *q, &proto.Error{Code: proto.HardwareFailed, Field: "path", Limit: fmt.Sprintf("at least %.1f dBm a lane", float64(least)/1000),
			Reason: fmt.Sprintf("too little light comes to bundle %d, %v: %.1f dBm a lane, at least %.1f is well", id, ev.Path, float64(ev.Received)/1000, float64(least)/1000)})
		return
	}
	q.held, q.until = true, now+tryPatience
	if q.counts && a.optics.bundles[id].optics.Patterns.There() { // the next life, too, has to end what this one begins
		a.optics.bundles[id].pattern = true
		a.agent.persist.saveLight()
		a.agent.persist.saveState()
	}
	a.conclude(now, *q, nil)
}

// pattern has the modules of a bundle that is tried make, check or count bit patterns.
func (a *manual) pattern(now time.Duration, c *proto.Command, ack proto.Ack) *proto.Error {
	q, b := a.ops[c.Bundle], &a.optics.bundles[c.Bundle]
	if !b.optics.Patterns.There() {
		return &proto.Error{Code: proto.Unsupported, Field: "pattern", Limit: "modules that make bit patterns", Reason: "bundle " + itoa(int(c.Bundle)) + " has none"}
	}
	if q == nil || !q.tries || !q.held || !b.pattern || q.ask.Path != c.Path || q.pattern.Corr != (proto.Corr{}) {
		return &proto.Error{Code: proto.Busy, Field: "bundle", Limit: "a bundle that is tried for its bit errors", Reason: fmt.Sprintf("bundle %d is not, on %v", c.Bundle, c.Path)}
	}
	if err := b.optics.Patterns.Ask(c.Pattern); err != nil {
		return codeOf(err, c.Bundle)
	}
	q.until, q.pattern, b.due = now+tryPatience, ack, true
	return nil
}

// patterned takes the modules' answer about bit patterns.
func (a *manual) patterned(now time.Duration, id proto.BundleID, ev *ocs.Event) {
	q, b := a.ops[id], &a.optics.bundles[id]
	switch {
	case b.stopAt != Never:
		if ev.Err == nil {
			a.stopped(now, id)
		}
	case q != nil && q.pattern.Corr != (proto.Corr{}):
		ack := q.pattern
		q.pattern = proto.Ack{}
		if ev.Err != nil {
			ack.Refuse(&proto.Error{Code: proto.HardwareFailed, Field: "pattern", Reason: proto.Clip(named(int(id), text(ev)))})
		} else {
			ack.Bits = b.optics.Patterns.Bits()
		}
		a.agent.finishCommand(now, ack)
	}
}

// patternAgain is after what time modules that did not stop are told again.
const patternAgain = 200 * time.Millisecond

// stopPattern has no module of a bundle make or check patterns. The machine has the
// bundle back when that is so: a ring would take them for its bits.
func (a *manual) stopPattern(now time.Duration, id proto.BundleID) {
	b := &a.optics.bundles[id]
	b.stopAt, b.due = now+patternAgain, true
	if err := b.optics.Patterns.Ask(proto.NoPattern); errors.Is(err, hal.ErrUnsupported) {
		a.stopped(now, id) // these are others, which never made any
	}
}

func (a *manual) stopped(now time.Duration, id proto.BundleID) {
	q, b := a.ops[id], &a.optics.bundles[id]
	b.pattern, b.stopAt = false, Never
	a.agent.persist.saveLight()
	if q == nil || !q.stops {
		return
	}
	a.giveBack(now, id)
	if q.ends {
		a.conclude(now, *q, nil)
	}
}

// stopPatterns stops what an earlier life began.
func (a *manual) stopPatterns(now time.Duration) {
	for i := range a.optics.bundles {
		b, id := &a.optics.bundles[i], proto.BundleID(i)
		switch {
		case !b.pattern || a.ops[i] != nil:
		case a.optics.node.Carries(id):
			a.stopPattern(now, id)
		default:
			b.ready = false
			a.agent.step(now, node.Event{Kind: node.Unready, Bundle: id})
			a.giveBack(now, id)
		}
	}
}
