package hbd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/health"
	"ringlight/planner/member"
	"ringlight/proto"
)

// node is what the rings know of one node; Group is its ring.
type node struct {
	Device  *member.Device
	*plight           // read at will; own gives the one to write
	leaving bool      // is being drained
	stray   bool      // is on the list of those to be told where they stand
	dead    bool      // concluded from its neighbours
	stale   bool      // its board was silent by its last telemetry
	touched [2]bool   // since the view looked, since the jobs did
	said    saidFault // what it says of itself
	health  *telemetry
}

// parting is why a life was held to be dead, where one neighbour alone had lost its light.
type parting struct {
	life proto.Session // 0: there was none, or two had
	from proto.NodeID
}

// plight is what most nodes do not have: all of those share noPlight.
type plight struct {
	loss   [2]lossView // by side
	later  later       // than its last report
	hold   *hold       // stays out by an operator's word, nil: it may be in
	probe  probe
	reason string // why it is dead or out of service, for people
	over   string // why it is stepped over, "": it is not
	ended  bool   // its key counts no more, and it has not come with another
	parted parting
	outAt  time.Duration // since when it is not usable, 0: it is
	outs   damper        // how often it went out of service and came back
	again  damper        // how often it was told again where it stands
	// Why no ring can be built with what it measured of its optics, "" when one
	// can: all members would refuse the plan, and none of them is to blame.
	unmeasured string
	// Which bundle has failed or does not answer, "": none. It is in service by its own word
	// all the same and stays in a ring; in another one it closes no gap.
	failed string
}

var noPlight = new(plight)

// own gives the node a plight of its own, to be written.
func (n *node) own() *plight {
	if n.plight == noPlight {
		n.plight = new(plight)
	}
	return n.plight
}

// eased gives a plight back that says nothing any more.
func (n *node) eased() {
	if *n.plight == *noPlight {
		n.plight = noPlight
	}
}

// lose sets what is known of a side.
func (n *node) lose(s proto.Side, l lossView) {
	if !l.lost {
		l = lossView{seq: l.seq} // what is asked of a side that is well
	}
	if n.loss[s] != l {
		n.own().loss[s] = l
		n.eased()
	}
}

// unlost forgets what was lost under a former plan.
func (n *node) unlost() {
	n.lose(proto.Left, lossView{})
	n.lose(proto.Right, lossView{})
}

// because sets why it is dead or out of service, "" when it is neither.
func (n *node) because(reason string) {
	if n.reason != reason {
		n.own().reason = reason
		n.eased()
	}
}

// lossView is whether a side is off its planned candidate and still looking
// for another, whose light it has, the number of the event that said so, 0 for
// a report, and when it came.
type lossView struct {
	lost   bool
	moving bool
	lit    bool // by peer's light
	peer   proto.NodeID
	seq    uint64
	at     time.Duration
}

// saidFault is what a node says of itself.
type saidFault struct {
	out  bool // it is out of service
	mode proto.Mode
}

// usable: it may stay in its ring.
func (n *node) usable() bool { return n.able() && n.unmeasured == "" && n.over == "" }

// gone: its light is, or will be; that of one that is stepped over stays.
func (n *node) gone() bool { return !n.usable() && n.over == "" }

// able: its light and its host are well, in a ring or without one.
func (n *node) able() bool { return !n.dead && !n.said.out }

// wanted: it may stay in its ring, and nobody takes it out.
func (n *node) wanted() bool { return n.usable() && !n.leaving && n.hold == nil && !n.ended }

// free: it may join a ring, and nobody asks whether it lives. One that refused or
// did not answer is first told where it stands, and takes that.
func (n *node) free() bool {
	return n.Device.Ready() && n.wanted() && !n.probe.open && !n.outs.held && told(n.Device.Standing()) && n.failed == ""
}

// spare: in no ring, and well.
func (n *node) spare() bool {
	if n.Device.Group != 0 || !n.Device.Ready() || !n.usable() || n.failed != "" {
		return false
	}
	_, silent := n.boardSilent()
	return !silent
}

// whyNot says why a node cannot carry a ring, "" when it can.
func (n *node) whyNot() string {
	switch {
	case n.ended:
		return "its key is revoked, and it has not come with another"
	case n.usable() && n.hold != nil:
		return n.hold.about()
	case n.usable() && n.Device.Group == 0 && n.Device.Ready() && n.failed != "":
		return n.failed
	case n.usable() && n.outs.held && n.Device.Ready():
		return fmt.Sprintf("went out of service %d times in a row; it joins a ring again a while after the last", n.outs.count)
	case n.usable():
		return n.Device.WhyNot()
	case n.drained() && n.said.mode == proto.ModeDrained && n.hold != nil:
		return n.hold.about()
	case n.drained() && n.said.mode != proto.ModeDrained:
		return n.reason + "; an operator took it out besides"
	case !n.able():
		return n.reason
	case n.over != "":
		return n.over
	}
	return n.unmeasured
}

// envelope is what the node has measured, the default board's when it has not.
func (n *node) envelope() proto.Envelope {
	for _, m := range [2]proto.Envelope{n.Device.Scalars().Measured, n.Device.Birth.Measured} {
		if m != (proto.Envelope{}) {
			return m
		}
	}
	return defaultEnvelope
}

// readAlarms looks for a bundle that has failed.
func (n *node) readAlarms() {
	failed := ""
	if n.Device.Report.Alarms() > 0 {
		for _, a := range n.Device.Whole().Alarms {
			if a.Kind == proto.EvPathFailed {
				failed = fmt.Sprintf("its bundle %d has failed: %s", a.Bundle, a.Text)
			}
		}
	}
	if failed != n.failed {
		n.own().failed = failed
		n.eased()
	}
}

// measured looks at what the node's last report says of its optics, and whether
// that is news.
func (p *placement) measured(n *node) (news bool) {
	was, is, e := n.unmeasured, "", n.envelope()
	if err := e.Usable(); err != nil {
		is = fmt.Sprintf("no ring can be built with its measured times: %s is %s, want %s; calibrate its bundles", err.Field, err.Reason, err.Limit)
	} else if own := slowest(e); own > slowLeast {
		if others := p.typical(n.Device.ID); others > 0 && own > slowTimes*others {
			is = fmt.Sprintf("it says that it takes %d us to find light or to switch, and the nodes round it %d: it would slow its whole ring, or is wrong; calibrate its bundles", own, others)
		}
	}
	if is != was {
		n.own().unmeasured = is
		n.eased()
	}
	return is != was
}

const (
	// slowTimes is how many times slower than those round it a node may say it is, and
	// slowLeast, in microseconds, what is never too slow: all members of a ring wait with
	// the times of the slowest. chosen: boards of one kind differ by half; a ring is to
	// recover in 1 ms.
	slowTimes = 8
	slowLeast = 1000
	// typicalOf is of how many nodes on each side the median is taken, the least
	// that say something of a third.
	typicalOf    = 8
	typicalLeast = 4
)

// slowest is the longest of the times that a ring waits with.
func slowest(e proto.Envelope) uint32 {
	return max(e.DetectMaxMicros, e.SwitchMaxMicros, e.SkewMicros)
}

// SlowOf is the member that makes the ring of a node wait at least twice as long as all
// others would, or what all take where none does; nil: it is in no ring.
func (p *placement) SlowOf(id proto.NodeID) (slow *health.Slow) {
	r := p.ring(p.nodes[id].Device.Group)
	if r == nil {
		return nil
	}
	worst, all := uint32(0), []string(nil)
	for _, t := range [...]struct {
		does string
		of   func(proto.Envelope) uint32
	}{
		{"find light", func(e proto.Envelope) uint32 { return e.DetectMaxMicros }},
		{"switch", func(e proto.Envelope) uint32 { return e.SwitchMaxMicros }},
		{"be dark on all bundles when it dies", func(e proto.Envelope) uint32 { return e.SkewMicros }},
	} {
		most, second, who := uint32(0), uint32(0), id
		for _, m := range r.nodes {
			if own := t.of(p.nodes[m].envelope()); own > most {
				most, second, who = own, most, m
			} else {
				second = max(second, own)
			}
		}
		all = append(all, fmt.Sprintf("up to %d us (node %d) to %s", most, who, t.does))
		if most-second > worst && most >= 2*second {
			worst = most - second
			slow = &health.Slow{ID: who, Text: fmt.Sprintf("it says that it takes up to %d us to %s, the others of its ring %d", most, t.does, second)}
		}
	}
	if slow == nil {
		slow = &health.Slow{All: true, Text: fmt.Sprintf("its members say that they take %s; hold_off_us is %d", strings.Join(all, ", "), p.fab.HoldOffUS)}
	}
	return slow
}

// typical is the median of the slowest times of the nodes round one, 0 where too few
// have reported.
func (p *placement) typical(id proto.NodeID) uint32 {
	var all []uint32
	for at := max(0, int(id)-typicalOf); at <= min(len(p.nodes)-1, int(id)+typicalOf); at++ {
		if m := &p.nodes[at]; at != int(id) && m.Device.Known {
			all = append(all, slowest(m.envelope()))
		}
	}
	if len(all) < typicalLeast {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// fresh reports whether the node's bypass count is known as of the last event
// that moves a side, so that a plan can quote it.
func (n *node) fresh() bool {
	return n.Device.Known && (n.later.counted || !n.after(n.later.moved))
}

// flags are what a placement depends on; a change asks for a new look.
type flags struct{ usable, ready, unassigned, told, sound bool }

func (n *node) flags() flags { return n.flagsOf(n.Device.Standing()) }

func (n *node) flagsOf(s member.Standing) flags {
	return flags{n.usable(), s.Ready, s.Unassigned, told(s), n.failed == ""}
}

// told: it knows where it stands, or is one that takes what it is told.
func told(s member.Standing) bool {
	return !s.Tried || !s.Unassigned && !s.Pending
}

// over reports whether a new report takes away what was refused.
func over(r *member.Refusal, m *member.Report) bool {
	switch r.Code {
	case proto.Conflict:
		return m.BypassSeq() > r.BypassSeq
	case proto.NotCalibrated:
		return calibrationsOf(m) != r.Calibs
	case proto.HardwareFailed:
		return m.Mode() == proto.ModeService && m.LastEvent() > r.LastEvent
	}
	return false
}

// calibrationsOf names the set of calibrations in a report.
func calibrationsOf(m *member.Report) proto.Digest {
	var raw []byte
	for b := range m.Bundles {
		raw = append(raw, b.Calibration[:]...)
	}
	return proto.DigestOf(raw)
}

// readSides takes the losses that a report tells. What a later event told
// stays.
func (n *node) readSides(now time.Duration) {
	m := &n.Device.Report
	if m.Gen != n.Device.Want.Gen || m.Term != n.Device.Want.Term {
		return
	}
	for s := range m.Sides {
		if s.Side > proto.Right || n.after(n.loss[s.Side].seq) {
			continue
		}
		lost := s.State != proto.SideEnd && (s.State != proto.SideWork || int(s.Current) != int(s.Working))
		l := lossView{lost: lost, lit: s.State == proto.SideWork && s.Current >= 0, peer: s.Peer, at: now,
			moving: s.State == proto.SideSwitch || s.State == proto.SideListen || s.State == proto.SideClosing}
		if old := &n.loss[s.Side]; old.lost {
			l.at = old.at
		}
		n.lose(s.Side, l)
	}
}

// after: an event of that number came after the last report, as far as its numbers are
// true; one above the last that was taken was false.
func (n *node) after(seq uint64) bool {
	return seq > n.Device.Report.LastEvent() && seq <= n.Device.Events.Last
}

// readLoss takes what an event tells of a side.
func (n *node) readLoss(m *proto.Event, now time.Duration) {
	if m.Side > proto.Right || m.Generation != n.Device.Want.Gen || m.Ring != n.Device.Group || m.Ring == 0 {
		return
	}
	l := n.loss[m.Side]
	lost := m.Kind == proto.EvLightLost || m.Kind == proto.EvClosed || m.SideBypassed
	if m.Kind != proto.EvSwitched || lost {
		l = lossView{lost: lost, moving: m.Kind == proto.EvLightLost, seq: m.Seq, at: now}
	} else {
		l.moving = false
	}
	l.lit, l.peer = m.Kind != proto.EvLightLost && m.Kind != proto.EvClosed, m.Peer
	n.lose(m.Side, l)
}

// moved takes the bypass count that came with a move.
func (n *node) moved(m *proto.Event) {
	x := &n.own().later
	x.moved, x.counted = m.Seq, m.BypassSeq > 0
	if m.Session == n.Device.Session {
		x.bypass = max(x.bypass, m.BypassSeq)
	}
}

// bypass is the highest bypass count that it told of.
func (n *node) bypass() uint64 { return max(n.later.bypass, n.Device.Report.BypassSeq()) }

// settled reports whether no side is on the move, as far as events and reports
// tell, whichever is newer.
func (n *node) settled() bool {
	if !n.Device.Known {
		return false
	}
	if n.after(n.later.moved) {
		return !n.loss[proto.Left].moving && !n.loss[proto.Right].moving
	}
	for s := range n.Device.Report.Sides {
		switch s.State {
		case proto.SideSwitch, proto.SideListen, proto.SideClosing:
			return false
		}
	}
	return true
}

// held: an operator's request, not its light, keeps a side of the node where
// it is.
func (n *node) held() bool {
	for s := range n.Device.Report.Sides {
		if s.Request >= proto.ForcedSwitch || s.Request == proto.ManualSwitch && s.State == proto.SideWork {
			return true
		}
	}
	return false
}

// suspect: offline, silent to a probe, or already known to be out, so that its
// own silence about its neighbours says nothing.
func (n *node) suspect() bool {
	return n.Device.Heard() && (!n.Device.Online() || n.unanswered()) || !n.usable()
}

// drained: an operator took it out, whatever else keeps it out.
func (n *node) drained() bool {
	return n.said.out && (n.said.mode == proto.ModeDrained || n.Device.Report.Drained())
}

// mayUndrain says why a node must not be let in again, nil when it may: in
// its own loopback it must show light on every bundle.
func (n *node) mayUndrain() *proto.Error {
	if !n.drained() {
		return &proto.Error{Code: proto.Invalid, Field: "node", Limit: "a drained node", Reason: fmt.Sprintf("node %d is not drained", n.Device.ID)}
	}
	for b := range n.Device.Report.Bundles {
		if b.State == proto.Failed || b.Path == proto.Loopback && !b.State.Lit() {
			return &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Limit: "light on every bundle",
				Reason: fmt.Sprintf("bundle %d of node %d is on %s, %s", b.Bundle, n.Device.ID, b.Path, b.State)}
		}
	}
	return nil
}

// status is the node as operators see it.
func (n *node) status() proto.NodeStatus {
	s := proto.NodeStatus{Node: n.Device.ID, Online: n.Device.Online(), Ring: n.Device.Group, Want: n.Device.Want.Gen, Reason: n.whyNot(), Drain: n.hold.note(), Features: n.Device.Birth.Features,
		Mode: n.Device.Report.Mode(), Generation: n.Device.Report.Gen}
	s.Usable = n.usable() && n.Device.Ready() && n.hold == nil && (n.Device.Group != 0 || n.failed == "")
	if n.said.out {
		s.Mode = n.said.mode
	}
	return s
}
