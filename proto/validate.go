package proto

import "strconv"

// What the form alone does not say. Codes that are only ever added (Cause,
// EventKind, Code, Sensor, Noun, Verb, Phase) are not checked against today's
// list: a reader that does not know one keeps it, counts it or answers Unsupported.

func checkVersion(v uint8) *Error {
	if v != Version {
		return &Error{Code: WrongVersion, Field: "version", Limit: strconv.Itoa(Version), Reason: "version " + strconv.Itoa(int(v))}
	}
	return nil
}

// rules collects the first broken rule, so that a Validate reads as a list.
// The names are put together only when one is broken.
type rules struct {
	err   *Error
	list  string // the element of the message that is being checked, if list is set
	index int
}

func (r *rules) version(v uint8) {
	if r.err == nil {
		if r.err = checkVersion(v); r.err != nil {
			r.err.Field = r.name("version")
		}
	}
}

// element makes the following rules speak of list[i].
func (r *rules) element(list string, i int) { r.list, r.index = list, i }

func (r *rules) name(field string) string {
	if r.list == "" {
		return field
	}
	name := r.list + "[" + strconv.Itoa(r.index) + "]"
	if field == "" {
		return name
	}
	return name + "." + field
}

func (r *rules) broken(field, limit, format string, args ...any) {
	if r.err == nil {
		r.err = Wrong(r.name(field), limit, format, args...)
	}
}

// inside takes over what a check of a part found.
func (r *rules) inside(field string, e *Error) {
	if r.err == nil && e != nil {
		e.Field = r.name(field) + "." + e.Field
		r.err = e
	}
}

// scope checks what records are asked for.
func (r *rules) scope(s *BinScope) {
	if s != nil {
		r.within("bins.path", 0, uint64(numPaths)-1, uint64(s.Path))
	}
}

func (r *rules) atLeast(field string, low, got uint64) {
	if got < low {
		r.broken(field, "at least "+strconv.FormatUint(low, 10), "%d", got)
	}
}

func (r *rules) within(field string, low, high, got uint64) {
	if got < low || got > high {
		r.broken(field, strconv.FormatUint(low, 10)+" to "+strconv.FormatUint(high, 10), "%d", got)
	}
}

func (r *rules) result() error { return result(r.err) }

// check is for envelopes inside other messages; all zero means not measured.
func (e *Envelope) check() *Error {
	var r rules
	r.within("detect_max_micros", uint64(e.DetectMinMicros), MaxTimeMicros, uint64(e.DetectMaxMicros))
	r.within("switch_max_micros", uint64(e.SwitchMinMicros), MaxTimeMicros, uint64(e.SwitchMaxMicros))
	r.within("skew_micros", 0, MaxTimeMicros, uint64(e.SkewMicros))
	return r.err
}

type fibres [MaxBundles][NumPaths]bool

func checkCandidates(name string, list []Candidate, working uint8, used *fibres) *Error {
	var r rules
	for i := range list {
		c := &list[i]
		r.element(name, i)
		switch {
		case c.Bundle >= MaxBundles:
			r.within("bundle", 0, MaxBundles-1, uint64(c.Bundle))
		case !c.Path.External():
			r.broken("path", "external1 or external2", "%v", c.Path)
		case used[c.Bundle][c.Path]:
			r.broken("path", "each fibre once", "bundle %d %v twice", c.Bundle, c.Path)
		}
		if r.err != nil {
			return r.err
		}
		used[c.Bundle][c.Path] = true
	}
	r.element("", 0)
	if len(list) > 0 && int(working) >= len(list) {
		r.broken(name+"_working", "below "+strconv.Itoa(len(list)), "%d", working)
	}
	return r.err
}

func (a *RingAssignment) check() *Error {
	var r rules
	r.atLeast("ring", 1, uint64(a.Ring))
	r.atLeast("generation", 1, uint64(a.Generation))
	r.atLeast("size", uint64(a.Position)+1, uint64(a.Size))
	r.within("policy", 0, uint64(PolicyHold), uint64(a.Policy))
	r.within("hold_off_micros", 0, MaxTimeMicros, uint64(a.HoldOffMicros))
	r.inside("envelope", a.Envelope.check())
	var used fibres
	if r.err == nil {
		r.err = checkCandidates("left", a.Left, a.LeftWorking, &used)
	}
	if r.err == nil {
		r.err = checkCandidates("right", a.Right, a.RightWorking, &used)
	}
	return r.err
}

func (d Desired) Validate() error {
	var r rules
	r.version(d.Version)
	r.atLeast("term", 1, uint64(d.Term))
	r.atLeast("generation", 1, uint64(d.Generation))
	for i := range d.Rings {
		a := &d.Rings[i]
		r.element("rings", i)
		r.inside("", a.check())
		r.within("generation", 1, uint64(d.Generation), uint64(a.Generation))
		r.inside("", notItself("left", a.Left, d.Node))
		r.inside("", notItself("right", a.Right, d.Node))
	}
	r.element("", 0)
	switch {
	case d.Node.IsSwitch() && len(d.Rings) > 0:
		r.broken("rings", "none for a switch", "%d rings", len(d.Rings))
	case !d.Node.IsSwitch() && len(d.Circuits) > 0:
		r.broken("circuits", "none for a node", "%d circuits", len(d.Circuits))
	}
	if r.err == nil {
		r.err = checkCircuits(d.Circuits)
	}
	if len(d.Decisions) == 0 {
		r.broken("decisions", "at least one ring", "nothing could ever decide it")
	}
	return r.result()
}

// checkCircuits refuses a port that two circuits claim.
func checkCircuits(list []Circuit) *Error {
	if len(list) == 0 {
		return nil
	}
	var r rules
	var usedA, usedB [1 << 16 / 64]uint64
	for i := range list {
		c := &list[i]
		r.element("circuits", i)
		a, b := &usedA[c.A/64], &usedB[c.B/64]
		if *a>>(c.A%64)&1 != 0 {
			r.broken("a", "each port once", "port %d twice", c.A)
		}
		if *b>>(c.B%64)&1 != 0 {
			r.broken("b", "each port once", "port %d twice", c.B)
		}
		*a |= 1 << (c.A % 64)
		*b |= 1 << (c.B % 64)
	}
	return r.err
}

func notItself(list string, candidates []Candidate, self NodeID) *Error {
	var r rules
	for i := range candidates {
		if candidates[i].Peer == self {
			r.element(list, i)
			r.broken("peer", "another node", "node %d itself", self)
		}
	}
	return r.err
}

func (d Decision) Validate() error {
	var r rules
	r.version(d.Version)
	r.atLeast("term", 1, uint64(d.Term))
	r.atLeast("generation", 1, uint64(d.Generation))
	r.within("verdict", uint64(Commit), uint64(Abort), uint64(d.Verdict))
	return r.result()
}

func (c Command) Validate() error {
	var r rules
	r.version(c.Version)
	r.atLeast("term", 1, uint64(c.Term))
	r.atLeast("session", 1, uint64(c.Session))
	r.within("ttl_millis", 1, MaxTTLMillis, uint64(c.TTLMillis))
	r.atLeast("verb", 1, uint64(c.Verb))
	r.within("side", 0, uint64(Right), uint64(c.Side))
	r.within("request", 0, uint64(Lockout), uint64(c.Request))
	r.within("path", 0, uint64(numPaths)-1, uint64(c.Path))
	r.scope(c.Bins)
	r.within("pattern", 0, uint64(numPatterns)-1, uint64(c.Pattern))
	return r.result()
}

func (a Ack) Validate() error {
	var r rules
	r.version(a.Version)
	r.atLeast("session", 1, uint64(a.Session))
	r.atLeast("phase", 1, uint64(a.Phase))
	for i := range a.Events {
		r.element("events", i)
		r.inside("", a.Events[i].check())
	}
	return r.result()
}

func (e Event) Validate() error { return result(e.check()) }

func result(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}

func (e *Event) check() *Error {
	var r rules
	r.version(e.Version)
	r.atLeast("session", 1, uint64(e.Session))
	r.atLeast("seq", 1, e.Seq)
	r.atLeast("kind", 1, uint64(e.Kind))
	r.atLeast("count", 1, uint64(e.Count))
	r.within("severity", 0, uint64(SeverityCritical), uint64(e.Severity))
	r.within("path", 0, uint64(numPaths)-1, uint64(e.Path))
	r.within("from_path", 0, uint64(numPaths)-1, uint64(e.FromPath))
	r.within("side", 0, uint64(Right), uint64(e.Side))
	if e.Ledger != nil {
		r.within("ledger", 0, maxLedger, e.Ledger.sum())
	}
	return r.err
}

func (l *Ledger) sum() uint64 {
	return uint64(l.DetectMicros) + uint64(l.HoldoffMicros) + uint64(l.DecideMicros) +
		uint64(l.BusMicros) + uint64(l.SettleMicros) + uint64(l.ConfirmMicros)
}

func (m Reported) Validate() error { return result(m.check()) }

func (m *Reported) check() *Error {
	var r rules
	r.version(m.Version)
	r.atLeast("session", 1, uint64(m.Session))
	r.inside("measured", m.Measured.check())
	for i := range m.Rings {
		r.element("rings", i)
		r.inside("", m.Rings[i].check())
	}
	for i := range m.Bundles {
		b := &m.Bundles[i]
		r.element("bundles", i)
		r.within("bundle", 0, MaxBundles-1, uint64(b.Bundle))
		r.within("path", 0, uint64(numPaths)-1, uint64(b.Path))
		r.within("state", 0, uint64(NumPortStates-1), uint64(b.State))
		r.within("override", 0, uint64(PoweredOff), uint64(b.Override))
		r.within("lit", 0, 1<<numPaths-1, uint64(b.Lit))
	}
	for i := range m.Sides {
		s := &m.Sides[i]
		r.element("sides", i)
		r.within("side", 0, uint64(Right), uint64(s.Side))
		if s.Current < -1 || s.Current >= MaxCandidates {
			r.broken("current", "-1 to "+strconv.Itoa(MaxCandidates-1), "%d", s.Current)
		}
	}
	for i := range m.Circuits {
		r.element("circuits", i)
		r.within("state", 0, uint64(NumPortStates-1), uint64(m.Circuits[i].State))
	}
	for i := range m.Alarms {
		r.element("alarms", i)
		r.within("severity", 0, uint64(SeverityCritical), uint64(m.Alarms[i].Severity))
	}
	return r.err
}

func (p Presence) Validate() error {
	var r rules
	r.version(p.Version)
	r.atLeast("session", 1, uint64(p.Session))
	r.inside("measured", p.Measured.check())
	return r.result()
}

func (h Health) Validate() error {
	var r rules
	r.version(h.Version)
	r.atLeast("session", 1, uint64(h.Session))
	for i := range h.Samples {
		r.element("samples", i)
		r.atLeast("sensor", 1, uint64(h.Samples[i].Sensor))
	}
	return r.result()
}

func (p PlannerState) Validate() error {
	var r rules
	r.version(p.Version)
	r.atLeast("planner", 1, p.Planner)
	if p.Online {
		r.atLeast("term", 1, uint64(p.Term))
		r.within("period_millis", 1, MaxPeriod, uint64(p.PeriodMillis))
	}
	return r.result()
}

func (q OpRequest) Validate() error {
	var r rules
	r.version(q.Version)
	r.within("ttl_millis", 1, MaxTTLMillis, uint64(q.TTLMillis))
	r.atLeast("noun", 1, uint64(q.Noun))
	r.within("side", 0, uint64(Right), uint64(q.Side))
	r.within("request", 0, uint64(Lockout), uint64(q.Request))
	if q.Bundle < -1 || q.Bundle >= MaxBundles {
		r.broken("bundle", "-1 to "+strconv.Itoa(MaxBundles-1), "%d", q.Bundle)
	}
	r.scope(q.Bins)
	for i := range q.Jobs {
		r.element("jobs", i)
		r.atLeast("job", 1, uint64(q.Jobs[i].Job))
	}
	return r.result()
}

func (p OpReply) Validate() error {
	var r rules
	r.version(p.Version)
	for i := range p.Nodes {
		if p.Nodes[i].Reported != nil {
			r.element("nodes", i)
			r.inside("reported", p.Nodes[i].Reported.check())
		}
	}
	for i := range p.Events {
		r.element("events", i)
		r.inside("event", p.Events[i].Event.check())
	}
	return r.result()
}
