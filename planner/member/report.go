package member

import (
	"encoding/binary"
	"slices"
	"time"

	"ringlight/proto"
)

// Report is the last report of a device as it is kept: packed, since one is held
// for each device and most of it is read when somebody asks. What every look
// reads comes first. Whole gives back what was said, to the bit. A switch's is
// kept as it came besides: there are few, and their circuits are looked at one by
// one.
type Report struct {
	*Decided // as applied; thousands have the same
	packed   string
}

// Keep takes a report as the last one of a device.
func (t *Table) Keep(d *Device, m *proto.Reported) {
	r := d.Report
	switch at := (Decided{m.Term, m.Generation, m.Plan}); {
	case at == *d.Want.Decided:
		r.Decided = d.Want.Decided
	case at != *r.Decided:
		r.Decided = t.alike.decided(at)
	}
	t.alike.scratch = head(t.alike.scratch[:0], m)
	if d.ID.IsSwitch() {
		d.own().whole = m
	} else {
		t.alike.scratch = pack(t.alike.scratch, m)
	}
	r.packed = string(t.alike.scratch)
	r.become(d, m.Session)
}

// become makes it the report of a device, from a life of it.
func (r *Report) become(d *Device, of proto.Session) {
	d.Report, d.Known, d.Notable = *r, true, r.Alarms() > 0
	d.reportIs(of)
	for b := range r.Bundles {
		d.Notable = d.Notable || Missing(&b) > 0
	}
}

// ReportOf is the life that sent its last report, 0: there is none.
func (d *Device) ReportOf() proto.Session {
	if d.reportOf == 0 && d.Known {
		return d.Session
	}
	return d.reportOf
}

func (d *Device) reportIs(of proto.Session) {
	if of == d.Session {
		of = 0
	}
	if d.reportOf != of {
		d.own().reportOf = of
	}
}

// lowLight is how much less own light a bundle may have than its calibration expects.
// chosen: below the .58 dB of one laser of eight, above what readings differ by.
const lowLight = proto.MilliDBm(500)

// Missing is how much less light a bundle has than its calibration expects, 0: it has
// enough, or none at all.
func Missing(b *proto.BundleReport) proto.MilliDBm {
	if margin, ok := b.Margin(); ok && b.State.Lit() && proto.LeastLightBelow-margin >= lowLight {
		return proto.LeastLightBelow - margin
	}
	return 0
}

// Plain: its agent speaks of nothing notable, and it has been in no setback.
func Plain(d *Device) bool { return d.state == Present && !d.Ignored && d.blank && !d.Notable }

func head(b []byte, m *proto.Reported) []byte {
	said := uint64(len(m.Alarms)) << 2
	if m.Drained {
		said |= 1
	}
	if m.AsksRestart {
		said |= 2
	}
	for _, x := range [6]uint64{uint64(m.Mode), said, m.LastEvent, m.BypassSeq, m.Seq, m.UptimeMicros} {
		b = binary.AppendUvarint(b, x)
	}
	return b
}

// at gives a number of the head.
func (r *Report) at(n int) (x uint64) {
	u := unpacker{s: r.packed}
	for ; n >= 0; n-- {
		x = u.num()
	}
	return x
}

func (r *Report) Mode() proto.Mode { return proto.Mode(r.at(0)) }

func (r *Report) Drained() bool { return r.at(1)&1 != 0 }

func (r *Report) AsksRestart() bool { return r.at(1)&2 != 0 }

// Alarms is how many it raises.
func (r *Report) Alarms() int { return int(r.at(1) >> 2) }

func (r *Report) LastEvent() uint64 { return r.at(2) }

func (r *Report) BypassSeq() uint64 { return r.at(3) }

func (r *Report) Seq() uint64 { return r.at(4) }

// Uptime is the device's clock when it reported.
func (r *Report) Uptime() time.Duration { return time.Duration(r.at(5)) * time.Microsecond }

// lists reads what comes after the head.
func (r *Report) lists() unpacker {
	u := unpacker{s: r.packed}
	for range 6 {
		u.num()
	}
	return u
}

// alike keeps one copy of what many devices say or are told.
type alike struct {
	births  []*birth
	last    *Decided
	scratch []byte
}

// unborn is the birth of a device that was never heard.
var unborn = new(birth)

// maxBirths bounds the births that are looked through for one that is alike.
// chosen: a fabric has two releases, a few on trial, and boards that measured the
// same.
const maxBirths = 64

func (a *alike) birth(m *proto.Presence) *birth {
	b := birth{m.Measured, m.Ports, m.Software, m.Features}
	for _, x := range a.births {
		if *x == b {
			return x
		}
		if x.Software == b.Software {
			b.Software = x.Software // one copy of the text at least
		}
	}
	if len(a.births) < maxBirths {
		a.births = append(a.births, &b)
	}
	return &b
}

// decided: neighbours have the same, and come one after the other.
func (a *alike) decided(x Decided) *Decided {
	if x != *a.last {
		a.last = &x
	}
	return a.last
}

// Bundles are those of a node, one after the other.
func (r *Report) Bundles(yield func(proto.BundleReport) bool) {
	for u := r.lists(); u.next(); {
		if !yield(u.bundle()) {
			return
		}
	}
}

// Bundle finds one.
func (r *Report) Bundle(id proto.BundleID) (proto.BundleReport, bool) {
	for b := range r.Bundles {
		if b.Bundle == id {
			return b, true
		}
	}
	return proto.BundleReport{}, false
}

// Sides are those of a node, one after the other.
func (r *Report) Sides(yield func(proto.SideReport) bool) {
	u := r.lists()
	for u.next() {
		u.bundle()
	}
	for u.next() {
		if !yield(u.side()) {
			return
		}
	}
}

// Scalars is what a device's report says beside the lists and what comes first.
func (d *Device) Scalars() (m proto.Reported) {
	if d.ID.IsSwitch() {
		return *d.whole
	}
	u := d.Report.lists()
	for u.next() {
		u.bundle()
	}
	for u.next() {
		u.side()
	}
	u.scalars(&m)
	return m
}

// Circuits are those of a switch, but for those that are by hand.
func (d *Device) Circuits() []proto.CircuitReport {
	byHand := func(r proto.CircuitReport) bool { return r.Job == proto.ByHand }
	if !slices.ContainsFunc(d.whole.Circuits, byHand) {
		return d.whole.Circuits
	}
	return slices.DeleteFunc(slices.Clone(d.whole.Circuits), byHand)
}

// Whole is the device's report as it was said; it is not to be changed.
func (d *Device) Whole() *proto.Reported {
	if d.ID.IsSwitch() {
		return d.whole
	}
	r := &d.Report
	m := &proto.Reported{Node: d.ID, Session: d.ReportOf(), Seq: r.Seq(), UptimeMicros: r.at(5), Mode: r.Mode(), Term: r.Term, Generation: r.Gen, Plan: r.Plan,
		BypassSeq: r.BypassSeq(), LastEvent: r.LastEvent(), Drained: r.Drained(), AsksRestart: r.AsksRestart(),
		Rings: []proto.RingAssignment{}, Bundles: []proto.BundleReport{}, Sides: []proto.SideReport{}, Alarms: []proto.Alarm{}} // as decoded
	u := r.lists()
	for u.next() {
		m.Bundles = append(m.Bundles, u.bundle())
	}
	for u.next() {
		m.Sides = append(m.Sides, u.side())
	}
	u.scalars(m)
	for u.next() {
		m.Rings = append(m.Rings, u.ring())
	}
	for u.next() {
		m.Alarms = append(m.Alarms, u.alarm())
	}
	return m
}

// The packed form: the head, bundles, sides, scalars, rings, alarms; before each of a list a
// 1 and after the last a 0; whole numbers of seven bits a byte, a digest behind
// a 1 or a 0 for none; zeros at the end are left out. It is never stored or sent.

func pack(b []byte, m *proto.Reported) []byte {
	num := func(all ...uint64) {
		for _, x := range all {
			b = binary.AppendUvarint(b, x)
		}
	}
	bit := func(x bool) uint64 {
		if x {
			return 1
		}
		return 0
	}
	digest := func(x *proto.Digest) {
		num(bit(*x != proto.Digest{}))
		if *x != (proto.Digest{}) {
			b = append(b, x[:]...)
		}
	}
	signed := func(x proto.MilliDBm) { b = binary.AppendVarint(b, int64(x)) }
	envelope := func(e *proto.Envelope) {
		num(uint64(e.DetectMaxMicros), uint64(e.DetectMinMicros), uint64(e.SwitchMaxMicros), uint64(e.SwitchMinMicros), uint64(e.SkewMicros))
	}
	for i := range m.Bundles {
		x := &m.Bundles[i]
		num(1, uint64(x.Bundle), uint64(x.Path), uint64(x.State), uint64(x.Override), x.SinceMicros, uint64(x.Cause), uint64(x.Lit), uint64(x.Flaps), uint64(x.Held))
		signed(x.Expected)
		signed(x.Measured)
		digest(&x.Calibration)
	}
	num(0)
	for i := range m.Sides {
		x := &m.Sides[i]
		num(1, uint64(x.Ring), uint64(x.Side), uint64(x.State), uint64(x.Request), uint64(x.Working), uint64(uint8(x.Current)), uint64(x.Peer), uint64(x.Banned), uint64(x.Timer), x.UntilMicros)
	}
	num(0)
	num(uint64(m.Version), uint64(m.SeenTerm), uint64(m.StagedTerm), uint64(m.StagedGeneration), m.Dropped, m.RefusedMessages, m.UnknownKeys, uint64(m.DarkMicros), m.SeenLife, m.Layout)
	digest(&m.StagedPlan)
	envelope(&m.Measured)
	for i := range m.Rings {
		x := &m.Rings[i]
		num(1, uint64(x.Ring), uint64(x.Generation), uint64(x.Position), uint64(x.Size), uint64(x.Policy), uint64(x.LeftWorking), uint64(x.RightWorking), uint64(x.HoldOffMicros), uint64(x.WaitToRestoreMillis))
		envelope(&x.Envelope)
		for _, list := range [2][]proto.Candidate{x.Left, x.Right} {
			for _, c := range list {
				num(1, uint64(c.Bundle), uint64(c.Path), uint64(c.Peer), bit(c.Others), bit(c.Crossed))
			}
			num(0)
		}
	}
	num(0)
	for i := range m.Alarms {
		x := &m.Alarms[i]
		num(1, uint64(x.Kind), uint64(x.Severity), uint64(x.Bundle), x.SinceMicros, uint64(x.PortA), uint64(x.PortB), uint64(len(x.Text)))
		b = append(b, x.Text...)
	}
	for len(m.Alarms) == 0 && len(b) > 0 && b[len(b)-1] == 0 { // else a text may end so
		b = b[:len(b)-1]
	}
	return b
}

// unpacker reads what pack wrote, in the same order.
type unpacker struct {
	s  string
	at int
}

func (u *unpacker) num() (x uint64) {
	for shift := 0; u.at < len(u.s); shift += 7 {
		c := u.s[u.at]
		u.at++
		if x |= uint64(c&0x7f) << shift; c < 0x80 {
			break
		}
	}
	return x
}

func (u *unpacker) next() bool { return u.num() == 1 }

func (u *unpacker) signed() proto.MilliDBm {
	x := u.num()
	return proto.MilliDBm(int64(x>>1) ^ -int64(x&1))
}

func (u *unpacker) digest() (x proto.Digest) {
	if u.num() == 1 {
		u.at += copy(x[:], u.s[min(u.at, len(u.s)):])
	}
	return x
}

func (u *unpacker) envelope() (e proto.Envelope) {
	for _, x := range []*uint32{&e.DetectMaxMicros, &e.DetectMinMicros, &e.SwitchMaxMicros, &e.SwitchMinMicros, &e.SkewMicros} {
		*x = uint32(u.num())
	}
	return e
}

func (u *unpacker) bundle() (x proto.BundleReport) {
	x.Bundle, x.Path, x.State, x.Override = proto.BundleID(u.num()), proto.Path(u.num()), proto.PortState(u.num()), proto.Override(u.num())
	x.SinceMicros, x.Cause, x.Lit, x.Flaps, x.Held = u.num(), proto.Cause(u.num()), uint8(u.num()), uint32(u.num()), proto.Held(u.num())
	x.Expected, x.Measured = u.signed(), u.signed()
	x.Calibration = u.digest()
	return x
}

func (u *unpacker) side() (x proto.SideReport) {
	x.Ring, x.Side, x.State, x.Request = proto.RingID(u.num()), proto.Side(u.num()), proto.SideState(u.num()), proto.Request(u.num())
	x.Working, x.Current, x.Peer, x.Banned = uint8(u.num()), int8(u.num()), proto.NodeID(u.num()), uint8(u.num())
	x.Timer, x.UntilMicros = proto.SideTimer(u.num()), u.num()
	return x
}

func (u *unpacker) ring() (x proto.RingAssignment) {
	x.Ring, x.Generation, x.Position, x.Size = proto.RingID(u.num()), proto.Generation(u.num()), uint16(u.num()), uint16(u.num())
	x.Policy, x.LeftWorking, x.RightWorking = proto.Policy(u.num()), uint8(u.num()), uint8(u.num())
	x.HoldOffMicros, x.WaitToRestoreMillis = uint32(u.num()), uint32(u.num())
	x.Envelope = u.envelope()
	for _, list := range [2]*[]proto.Candidate{&x.Left, &x.Right} {
		*list = []proto.Candidate{}
		for u.next() {
			*list = append(*list, proto.Candidate{Bundle: proto.BundleID(u.num()), Path: proto.Path(u.num()), Peer: proto.NodeID(u.num()), Others: u.num() == 1, Crossed: u.num() == 1})
		}
	}
	return x
}

func (u *unpacker) alarm() (x proto.Alarm) {
	x.Kind, x.Severity, x.Bundle, x.SinceMicros = proto.EventKind(u.num()), proto.Severity(u.num()), proto.BundleID(u.num()), u.num()
	x.PortA, x.PortB = uint16(u.num()), uint16(u.num())
	long := int(u.num())
	x.Text = u.s[u.at : u.at+long]
	u.at += long
	return x
}

func (u *unpacker) scalars(m *proto.Reported) {
	m.Version, m.SeenTerm, m.StagedTerm, m.StagedGeneration = uint8(u.num()), proto.Term(u.num()), proto.Term(u.num()), proto.Generation(u.num())
	m.Dropped, m.RefusedMessages, m.UnknownKeys = u.num(), u.num(), u.num()
	m.DarkMicros, m.SeenLife, m.Layout = uint32(u.num()), u.num(), u.num()
	m.StagedPlan, m.Measured = u.digest(), u.envelope()
}
