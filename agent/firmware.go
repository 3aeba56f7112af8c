package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
)

// upgrade is the way of a node's modules to a firmware version: one bundle that carries
// nothing after the other, and of a bundle one module after the other. Where an earlier
// life stopped the modules themselves tell.
type upgrade struct {
	want    proto.FirmwareVersion
	image   []byte
	ack     proto.Ack
	bundle  int // that is worked on
	module  int
	without int      // modules that take no firmware
	left    []string // why bundles were left as they are
	failed  *proto.Error
}

// upgrading: modules of the node take firmware.
func (a *Agent) upgrading() bool {
	m, ok := a.operator.(*manual)
	return ok && m.upgrade != nil
}

func (u *upgrade) fails(err *proto.Error) {
	if u.failed == nil {
		u.failed = err
	}
}

// firmware takes a planner's wish for a version. One that is on its way is told again at
// its end to who asked last.
func (a *manual) firmware(now time.Duration, c *proto.Command, ack proto.Ack) *proto.Error {
	want, err := proto.ParseFirmware(c.Software)
	u := a.upgrade
	switch {
	case err != nil:
		return err
	case u != nil && u.want != want:
		return &proto.Error{Code: proto.Busy, Field: "software", Limit: "one version at a time", Reason: "firmware " + u.want.String() + " is on its way"}
	case u != nil:
		was := u.ack
		u.ack = ack
		was.Refuse(&proto.Error{Code: proto.Duplicate, Field: "software", Reason: "it was asked for again"})
		a.agent.finishCommand(now, was)
		return nil
	}
	u = &upgrade{want: want, ack: ack, bundle: -1, without: a.agent.cfg.Board.Modules()}
	a.upgrade = u
	there := false
	for i := range a.optics.bundles {
		there = there || a.optics.bundles[i].optics.Firmware.There()
	}
	if !there { // whatever the file says
		u.bundle = len(a.optics.bundles)
		a.nextBundle(now)
		return nil
	}
	u.without = 0
	a.agent.put(Output{Kind: OutFirmware, Text: want.String()})
	return nil
}

// loaded takes the file of the version, or why there is none.
func (a *manual) loaded(now time.Duration, q Ask) {
	u := a.upgrade
	if u == nil || u.bundle >= 0 {
		return
	}
	if u.image = q.Image; q.Text != "" {
		u.fails(&proto.Error{Code: proto.HardwareFailed, Field: "software", Limit: "a version whose file is there", Reason: proto.Clip(q.Text)})
	}
	a.nextBundle(now)
}

// nextBundle goes on with the next bundle that carries nothing, dark first, or ends it.
func (a *manual) nextBundle(now time.Duration) {
	u := a.upgrade
	for u.bundle++; u.bundle < len(a.optics.bundles) && u.failed == nil; u.bundle++ {
		id := proto.BundleID(u.bundle)
		s := a.optics.bundles[id].optics.Status()
		var err *proto.Error
		if u.module = 0; s.Machine != ocs.Idle {
			err = &proto.Error{Reason: fmt.Sprintf("bundle %d is %v", id, s.Machine)}
		} else if _, err = a.take(now, id, manualOp{ask: Ask{Verb: AskFirmware, Bundle: id}, until: Never}); err == nil {
			if err = a.darken(now, id); err == nil {
				return
			}
		}
		u.left = append(u.left, err.Reason)
	}
	a.upgrade = nil
	switch ack := u.ack; {
	case u.failed != nil:
		ack.Refuse(u.failed)
		a.agent.finishCommand(now, ack)
	case len(u.left) > 0:
		ack.Refuse(&proto.Error{Code: proto.Busy, Field: "bundle", Limit: "bundles that carry nothing", Reason: proto.Clip(strings.Join(u.left, "; "))})
		a.agent.finishCommand(now, ack)
	default:
		if u.without > 0 {
			ack.Reason = proto.Count(u.without, "module") + " of it take no firmware"
		}
		a.agent.finishCommand(now, ack)
	}
}

// nextModule has the next module of the bundle upgraded, or the bundle read anew when
// there is none.
func (a *manual) nextModule(now time.Duration) {
	u := a.upgrade
	id := proto.BundleID(u.bundle)
	b := &a.optics.bundles[id]
	b.due = true
	if n := len(a.agent.cfg.Board.Bundles[id].Modules); u.module < n && u.failed == nil {
		switch err := b.optics.Firmware.Upgrade(u.module, u.want, u.image); {
		case err == nil:
			return
		case errors.Is(err, hal.ErrUnsupported):
			u.without += n
			a.giveBack(now, id)
			a.nextBundle(now)
			return
		default:
			u.fails(codeOf(err, id))
		}
	}
	a.ops[id].renews, a.ops[id].until = true, now+node.BoardPatience
	b.retry = Never
	b.optics.Renew(now)
}

// upgraded takes the end of a module's upgrade.
func (a *manual) upgraded(now time.Duration, ev *ocs.Event) {
	u := a.upgrade
	level, what := uint8(0), "has firmware "+u.want.String()
	switch {
	case errors.Is(ev.Err, hal.ErrUnsupported):
		u.without++
		level, what = 1, "takes no firmware: "+ev.Err.Error()
	case ev.Err != nil:
		u.fails(codeOf(ev.Err, proto.BundleID(u.bundle)))
		level, what = 2, ev.Err.Error()
	}
	a.agent.log(level, proto.Clip(fmt.Sprintf("bundle %d: module %d %s", u.bundle, u.module, what)))
	u.module++
	a.nextModule(now)
}
