package rollout

import (
	"cmp"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Modules' firmware goes out in the same waves, to nodes that carry no ring: a module is
// dark while it starts. Nodes of a wave are too far apart to have a fibre between them,
// and a node takes one module after the other. A node whose ring goes on waits until an
// operator drains it. What a node has, it says itself; a planner that takes over asks all
// again. Each time, what carries nothing is dark while it is asked, and read anew; what is
// there is not sent again.
const (
	// firmwarePatience is how long the modules of a node may take. chosen: 64 modules of a
	// megabyte, over slow buses.
	firmwarePatience = 2 * time.Hour
	// firmwareAgain is when one that has not answered is told again; its answer comes at
	// the end of all.
	firmwareAgain = 30 * time.Second
	// firmwareBusy is when one is that has done what it could: all its idle bundles go dark
	// for it once more. chosen.
	firmwareBusy = 10 * time.Minute
)

// took takes a node's answer about firmware.
func (r *Rollout) took(x *restart, m *proto.Ack) {
	switch {
	case m.Code == proto.OK, m.Code == proto.Unsupported:
		if r.has == nil { // a planner that took over
			r.has = map[proto.NodeID]bool{}
		}
		r.has[x.Node], x.done, r.at = true, true, r.j.Now
		text := cmp.Or(m.Reason, "its modules have firmware "+r.Software)
		if m.Code != proto.OK {
			text = "passed over, its agent takes no firmware: " + m.Words()
		}
		r.note(journal.Info, "firmware taken", x.Node, proto.Clip(text))
	case m.Code == proto.HardwareFailed, m.Code == proto.Invalid:
		x.failed, r.at = m.Words(), r.j.Now
	default: // it carries light by now, or is busy: told again
		if x.waits = m.Words(); m.Code == proto.Busy {
			x.tell = r.j.Now + firmwareBusy
		}
	}
}

// judgeFirmware looks at a node whose modules take firmware: is it done, or what is wrong?
func (r *Rollout) judgeFirmware(x *restart) (done bool, why string) {
	l, now := r.fab.Look(x.Node), r.j.Now
	if why = cmp.Or(x.failed, x.Before.lost(&l.Hold)); why != "" || x.done {
		return x.done, why
	}
	switch {
	case now >= x.until:
		return false, "its modules do not have it within " + firmwarePatience.String() + ": " + cmp.Or(x.waits, "it did not answer")
	case l.Present && l.Hold.Session != x.Before.Session:
		x.Before = l.Hold // its agent died, and knows nothing of it
		r.command(x)
	case l.Present && now >= x.tell:
		r.command(x)
	}
	return false, ""
}

// runs: what is wanted runs there already.
func (r *Rollout) runs(id proto.NodeID, l *Look) bool {
	if r.Firmware {
		return r.has[id]
	}
	return proto.Release(l.Software) == r.Software
}

// whyNot is why a node is not to be told now, "" where it may be.
func (r *Rollout) whyNot(l *Look) string {
	if r.Firmware {
		return cmp.Or(l.Engaged, l.Why)
	}
	return l.Why
}

func (r *Rollout) they(nodes []proto.NodeID) string {
	if r.Firmware {
		return proto.Nodes(nodes, "takes it", "take it")
	}
	return proto.Nodes(nodes, "starts", "start")
}

func (r *Rollout) patience(x *restart) time.Duration {
	switch {
	case r.Firmware && !x.Asked:
		return firmwarePatience
	case x.ByHand:
		return handPatience
	}
	return startPatience
}
