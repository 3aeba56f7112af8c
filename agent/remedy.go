package agent

import (
	"time"

	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// remedy tries the failed optics of a bundle again, as the machine asks. How
// it went the optics say themselves: by their own light on the path that they
// then take.
func (o *nodeOptics) remedy(now time.Duration, act *node.Action) {
	b := &o.bundles[act.Bundle]
	if o.manual.busy(act.Bundle) {
		return // somebody has it in hand; the machine asks again
	}
	o.manual.release(now)
	b.remedy, b.remedyPath = true, act.Path
	switch act.Remedy {
	case node.RemedyRetry:
		o.drive(now, act.Bundle, act.Path, true)
	case node.RemedyReset:
		b.retry, b.due = Never, true
		b.optics.Renew(now)
	case node.RemedyTrim:
		if b.optics.Health.TooHot() {
			o.failAgain(now, act.Bundle, "too warm to be calibrated: it would not hold")
			return
		}
		if err := o.manual.calibrate(now, act.Bundle, manualOp{own: true}); err != nil {
			o.failAgain(now, act.Bundle, err.Reason)
		}
	}
}

// remedied goes on with a try once the optics have answered.
func (o *nodeOptics) remedied(now time.Duration, id proto.BundleID, ev *ocs.Event) {
	b := &o.bundles[id]
	switch {
	case !b.remedy || !o.agent.adopted:
	case ev.Kind == ocs.Ready && ev.Err == nil:
		o.drive(now, id, b.remedyPath, true) // the light on it decides
	case ev.Kind == ocs.Ready:
		o.failAgain(now, id, proto.Clip(text(ev)))
	case ev.Kind == ocs.PathFailed:
		b.remedy = false
	case ev.Kind == ocs.Degraded && (ev.Err != nil || weak(ev)):
		o.failAgain(now, id, proto.Clip(text(ev))) // a harder try may do better
	case ev.Kind == ocs.Verified, ev.Kind == ocs.Degraded: // in service that is told, and no more
		b.remedy = false
		o.agent.step(now, node.Event{Kind: node.PathOK, Bundle: id, Path: ev.Path})
	}
}

func (o *nodeOptics) failAgain(now time.Duration, id proto.BundleID, why string) {
	b := &o.bundles[id]
	b.remedy = false
	o.agent.step(now, node.Event{Kind: node.PathFailed, Bundle: id, Path: b.optics.Status().Path, Module: ocs.None, Lane: ocs.None, Text: why})
}

// degrade tells the machine when the own light of a path is weak, and when it
// is no longer.
func (o *nodeOptics) degrade(now time.Duration, id proto.BundleID, ev *ocs.Event) {
	b := &o.bundles[id]
	bit := uint8(1) << ev.Path
	is := weak(ev)
	if !o.agent.adopted || !is && ev.Kind != ocs.Verified || is == (b.weak&bit != 0) {
		return
	}
	b.weak ^= bit
	o.agent.step(now, node.Event{Kind: node.Degrade, Bundle: id, Path: ev.Path, Lit: is})
}

// weak: a path has light, and less of it than its calibration.
func weak(ev *ocs.Event) bool { return ev.Kind == ocs.Degraded && ev.Measured != proto.NoPower }
