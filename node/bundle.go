package node

import (
	"time"

	"ringlight/proto"
)

// bundle is what the node knows of one bundle of modules.
type bundle struct {
	path   proto.Path // last asked for
	busy   bool       // asked for, not yet settled
	late   bool       // that takes long
	ready  bool       // can switch
	failed bool       // own optics failed
	owner  int8       // side that has it outside, or nobody
	lit    uint8      // bit p: path p has light
	litAt  [proto.NumPaths]time.Duration
	since  time.Duration
	cause  proto.Cause
	flaps  uint32 // losses of the selected light

	wrongAt  time.Duration // since when it has failed or is silent, 0: not known
	why      string        // why it failed last, "": in a former life of the agent
	silent   string        // why its bus or chips do not answer, or what is too warm; "": nothing
	back     bool          // they do again, and its light has not been tried since
	degraded uint8         // bit p: path p has a signal degrade
	tries    int           // remedies so far
	remedyAt time.Duration // of the next one
	wellAt   time.Duration // since the last one helped
}

const nobody = -1

// wrong notes since when something is, before that is set.
func (b *bundle) wrong(now time.Duration) {
	if !b.failed && b.silent == "" {
		b.wrongAt = now
	}
}

// hasLight is the filtered light of a path.
func (b *bundle) hasLight(p proto.Path) bool { return b.lit&(1<<p) != 0 }

// unowned tells whether the bundle carries light outside that no side has: a
// plan that the journal lost put it there. It is left alone while it shines,
// until a plan says more, and closed when it goes dark.
func (b *bundle) unowned() bool {
	return b.owner == nobody && b.path.External() && b.hasLight(b.path)
}

// shared is what both sides of a node act on: its bundles, the waits that its
// ring prescribes, and what is to be done.
type shared struct {
	participant
	bundles     []bundle
	timers      timers
	holdOff     time.Duration // a lost light may come back
	restoreWait time.Duration // wait-to-restore, 0: not revertive
	next        time.Duration // earliest timer, found anew by each Step
	toldLate    time.Duration // when light was last told late
}

// due tells whether t has come, and remembers it when not.
func (n *shared) due(t time.Duration) bool {
	if n.now >= t {
		return true
	}
	n.next = min(n.next, t)
	return false
}

// drive asks for a path unless it has been asked for already: what is right
// is never driven again. A move that no plan asked for is counted, so that a
// plan which does not know of it can be refused.
func (n *shared) drive(b int, p proto.Path, cause proto.Cause) {
	x := &n.bundles[b]
	if x.path == p || !x.ready {
		return
	}
	x.path, x.busy, x.since, x.cause = p, true, n.now, cause
	n.unsaved = true
	switch cause {
	case proto.CausePlan, proto.CauseColdStart, proto.CauseAdopted:
	default:
		n.bypassSeq++
	}
	n.out = append(n.out, Action{Kind: Select, Bundle: proto.BundleID(b), Path: p, Cause: cause})
}

// closeAll drives bundles into loopback.
func (n *shared) closeAll(set uint16, cause proto.Cause) {
	for b := range n.bundles {
		if set&(1<<b) != 0 {
			n.drive(b, proto.Loopback, cause)
		}
	}
}

// ringTimers takes what the ring of the plan in force says of times.
func (n *shared) ringTimers() {
	r := n.ring()
	n.timers = derive(envelopeOf(r.Envelope))
	n.holdOff = time.Duration(r.HoldOffMicros) * time.Microsecond
	n.restoreWait = time.Duration(r.WaitToRestoreMillis) * time.Millisecond
}
