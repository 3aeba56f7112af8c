package proto

import (
	"strconv"
)

// What the form alone does not say. Codes that are only ever added (Cause,
// EventKind, Code, Sensor, Noun, Verb, Phase) are not checked against today's
// list: who does not know one keeps it, counts it or answers Unsupported.

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

func checkVersion(v uint8) *Error {
	if v != Version {
		return &Error{Code: WrongVersion, Field: "version", Limit: strconv.Itoa(Version), Reason: "version " + strconv.Itoa(int(v))}
	}
	return nil
}

// rules collects the first broken rule, so that a Validate reads as a list.
type rules struct{ err *Error }

func (r *rules) version(v uint8) { r.first(checkVersion(v)) }

func (r *rules) first(e *Error) {
	if r.err == nil {
		r.err = e
	}
}

func (r *rules) atLeast(field string, low, got uint64) {
	if r.err == nil && got < low {
		r.err = invalid(field, "at least "+strconv.FormatUint(low, 10), "%d", got)
	}
}

func (r *rules) within(field string, low, high, got uint64) {
	if r.err == nil && (got < low || got > high) {
		r.err = invalid(field, strconv.FormatUint(low, 10)+" to "+strconv.FormatUint(high, 10), "%d", got)
	}
}

func (r *rules) result() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// check is for envelopes inside other messages; all zero means not measured.
func (e Envelope) check(field string) *Error {
	var r rules
	r.within(field+".detect_max_micros", uint64(e.DetectMinMicros), MaxTimeMicros, uint64(e.DetectMaxMicros))
	r.within(field+".switch_max_micros", uint64(e.SwitchMinMicros), MaxTimeMicros, uint64(e.SwitchMaxMicros))
	r.within(field+".skew_micros", 0, MaxTimeMicros, uint64(e.SkewMicros))
	return r.err
}

func checkCandidates(field string, list []Candidate, working uint8, used *[MaxBundles][NumPaths]bool) *Error {
	for i := range list {
		c := &list[i]
		var r rules
		if c.Bundle >= MaxBundles {
			r.within(at(field, i)+".bundle", 0, MaxBundles-1, uint64(c.Bundle))
		} else if !c.Path.External() {
			r.first(invalid(at(field, i)+".path", "external1 or external2", "%v", c.Path))
		} else if used[c.Bundle][c.Path] {
			r.first(invalid(at(field, i)+".path", "each fibre once", "bundle %d %v twice", c.Bundle, c.Path))
		}
		if r.err != nil {
			return r.err
		}
		used[c.Bundle][c.Path] = true
	}
	if len(list) > 0 && int(working) >= len(list) {
		return invalid(field+"_working", "below "+strconv.Itoa(len(list)), "%d", working)
	}
	return nil
}

func (a *RingAssignment) check(field string) *Error {
	var r rules
	r.atLeast(field+".ring", 1, uint64(a.Ring))
	r.atLeast(field+".generation", 1, uint64(a.Generation))
	r.atLeast(field+".size", uint64(a.Position)+1, uint64(a.Size))
	r.within(field+".policy", 0, uint64(PolicyHold), uint64(a.Policy))
	r.first(a.Envelope.check(field + ".envelope"))
	var used [MaxBundles][NumPaths]bool
	if r.err == nil {
		r.first(checkCandidates(field+".left", a.Left, a.LeftWorking, &used))
	}
	if r.err == nil {
		r.first(checkCandidates(field+".right", a.Right, a.RightWorking, &used))
	}
	return r.err
}

func (d Desired) Validate() error {
	var r rules
	r.version(d.Version)
	r.atLeast("term", 1, uint64(d.Term))
	r.atLeast("generation", 1, uint64(d.Generation))
	for i := range d.Rings {
		if r.err != nil {
			break
		}
		a, field := &d.Rings[i], at("rings", i)
		r.first(a.check(field))
		r.within(field+".generation", 1, uint64(d.Generation), uint64(a.Generation))
		r.first(noPeer(field+".left", a.Left, d.Node))
		r.first(noPeer(field+".right", a.Right, d.Node))
	}
	if r.err == nil && len(d.Decisions) == 0 {
		r.first(invalid("decisions", "at least one ring", "nothing could ever decide it"))
	}
	return r.result()
}

func noPeer(field string, list []Candidate, self NodeID) *Error {
	for i := range list {
		if list[i].Peer == self {
			return invalid(at(field, i)+".peer", "another node", "node %d itself", self)
		}
	}
	return nil
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
	return r.result()
}

func (a Ack) Validate() error {
	var r rules
	r.version(a.Version)
	r.atLeast("session", 1, uint64(a.Session))
	r.atLeast("phase", 1, uint64(a.Phase))
	for i := range a.Events {
		r.first(a.Events[i].check(at("events", i) + "."))
	}
	return r.result()
}

func (e Event) Validate() error {
	if err := e.check(""); err != nil {
		return err
	}
	return nil
}

// check has the path of the event in its message as a prefix.
func (e *Event) check(prefix string) *Error {
	if v := checkVersion(e.Version); v != nil {
		v.Field = prefix + v.Field
		return v
	}
	bad := ""
	low, high, got := uint64(1), uint64(1)<<63, uint64(0)
	switch {
	case e.Session == 0:
		bad = "session"
	case e.Seq == 0:
		bad = "seq"
	case e.Kind == 0:
		bad = "kind"
	case e.Count == 0:
		bad = "count"
	case e.Severity > SeverityCritical:
		bad, low, high, got = "severity", 0, uint64(SeverityCritical), uint64(e.Severity)
	case e.Path >= numPaths:
		bad, low, high, got = "path", 0, uint64(numPaths)-1, uint64(e.Path)
	case e.FromPath >= numPaths:
		bad, low, high, got = "from_path", 0, uint64(numPaths)-1, uint64(e.FromPath)
	case e.Side > Right:
		bad, low, high, got = "side", 0, uint64(Right), uint64(e.Side)
	case e.Ledger != nil && e.Ledger.sum() > maxLedger:
		bad, low, high, got = "ledger", 0, maxLedger, e.Ledger.sum()
	}
	if bad == "" {
		return nil
	}
	var r rules
	r.within(prefix+bad, low, high, got)
	return r.err
}

func (l *Ledger) sum() uint64 {
	return uint64(l.DetectMicros) + uint64(l.HoldoffMicros) + uint64(l.DecideMicros) +
		uint64(l.BusMicros) + uint64(l.SettleMicros) + uint64(l.ConfirmMicros)
}

func (m Reported) Validate() error {
	if err := m.check(""); err != nil {
		return err
	}
	return nil
}

func (m *Reported) check(prefix string) *Error {
	var r rules
	if v := checkVersion(m.Version); v != nil {
		v.Field = prefix + v.Field
		return v
	}
	r.atLeast(prefix+"session", 1, uint64(m.Session))
	r.first(m.Measured.check(prefix + "measured"))
	for i := range m.Rings {
		r.first(m.Rings[i].check(at(prefix+"rings", i)))
	}
	for i := range m.Bundles {
		b, field := &m.Bundles[i], at(prefix+"bundles", i)
		r.within(field+".bundle", 0, MaxBundles-1, uint64(b.Bundle))
		r.within(field+".path", 0, uint64(numPaths)-1, uint64(b.Path))
		r.within(field+".state", 0, uint64(Failed), uint64(b.State))
		r.within(field+".override", 0, uint64(PoweredOff), uint64(b.Override))
		r.within(field+".lit", 0, 1<<numPaths-1, uint64(b.Lit))
	}
	for i := range m.Sides {
		s, field := &m.Sides[i], at(prefix+"sides", i)
		r.within(field+".side", 0, uint64(Right), uint64(s.Side))
		if s.Current < -1 || s.Current >= MaxCandidates {
			r.first(invalid(field+".current", "-1 to "+strconv.Itoa(MaxCandidates-1), "%d", s.Current))
		}
	}
	for i := range m.Alarms {
		r.within(at(prefix+"alarms", i)+".severity", 0, uint64(SeverityCritical), uint64(m.Alarms[i].Severity))
	}
	return r.err
}

func (p Presence) Validate() error {
	var r rules
	r.version(p.Version)
	r.atLeast("session", 1, uint64(p.Session))
	r.first(p.Measured.check("measured"))
	return r.result()
}

func (h Health) Validate() error {
	var r rules
	r.version(h.Version)
	r.atLeast("session", 1, uint64(h.Session))
	for i := range h.Samples {
		if h.Samples[i].Sensor == 0 {
			r.atLeast(at("samples", i)+".sensor", 1, 0)
		}
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
	if q.Bundle < -1 || q.Bundle >= MaxBundles {
		r.first(invalid("bundle", "-1 to "+strconv.Itoa(MaxBundles-1), "%d", q.Bundle))
	}
	return r.result()
}

func (p OpReply) Validate() error {
	var r rules
	r.version(p.Version)
	for i := range p.Nodes {
		if p.Nodes[i].Reported != nil {
			r.first(p.Nodes[i].Reported.check(at("nodes", i) + ".reported."))
		}
	}
	for i := range p.Events {
		r.first(p.Events[i].Event.check(at("events", i) + ".event."))
	}
	return r.result()
}
