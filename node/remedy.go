package node

import (
	"strconv"
	"time"

	"ringlight/proto"
)

// A node whose own optics failed has left its ring. Alone it tries them
// again, harder each time, and asks to be let in when they are well.

// Remedies are the steps of a remediation, in order; the last one repeats.
type Remedies uint8

const (
	RemedyRetry Remedies = iota // ask for the path again and look at the light
	RemedyReset                 // read the chips back and write the codes again
	RemedyTrim                  // calibrate the bundle anew
	numRemedies
)

var remedyNames = [...]string{"retry", "reset", "re-trim"}

func (r Remedies) String() string {
	if int(r) < len(remedyNames) {
		return remedyNames[r]
	}
	return "unknown"
}

const (
	// remedyFirst is the wait before the first try; each later one doubles.
	// chosen: what passes by itself has passed, and nobody waits for a node
	// whose place a spare has taken.
	remedyFirst = time.Second
	// maxRemedies ends the tries: a person is needed. chosen: two minutes in
	// all, and what failed five times is broken.
	maxRemedies = 5
	// remedyPatience is how long a try may say nothing. chosen: longer than a
	// bundle takes to be calibrated.
	remedyPatience = 2 * time.Minute
	// remedyMemory is how long optics must be well before their failures are
	// forgotten. chosen: a path that works in loopback and fails in the ring
	// comes back after seconds, and must not do so for ever.
	remedyMemory = 10 * time.Minute
)

// ail notes that a bundle's optics failed, or failed again.
func (b *bundle) ail(now time.Duration) {
	if !b.failed && b.wellAt+remedyMemory < now {
		b.tries = 0
	}
	b.failed, b.remedyAt = true, Never
	if b.tries < maxRemedies {
		b.remedyAt = now + remedyFirst<<b.tries
	}
}

// runRemedies tries failed optics again.
func (m *Machine) runRemedies(now time.Duration) {
	for i := range m.bundles {
		b := &m.bundles[i]
		if !b.failed || b.remedyAt == Never || !m.due(b.remedyAt, now) {
			continue
		}
		if b.tries == maxRemedies { // the last try said nothing
			b.remedyAt = Never
			continue
		}
		step := min(Remedies(b.tries), numRemedies-1)
		b.tries++
		b.remedyAt = now + remedyPatience
		m.next = min(m.next, b.remedyAt)
		m.note(proto.Event{Kind: proto.EvRemedy, Severity: proto.SeverityWarning, Bundle: proto.BundleID(i), Path: b.path, Cause: proto.CauseRemedy,
			Text: step.String() + ", try " + itoa(b.tries) + " of " + itoa(maxRemedies)}, now)
		m.out = append(m.out, Action{Kind: Remedy, Bundle: proto.BundleID(i), Path: rest(m.Mode()), Cause: proto.CauseRemedy, Remedy: step})
	}
}

// pathOK takes the word of the optics that a bundle is well again.
func (m *Machine) pathOK(id proto.BundleID, now time.Duration) {
	b := &m.bundles[id]
	if !b.failed {
		return
	}
	b.failed, b.wellAt, b.remedyAt = false, now, Never
	m.note(proto.Event{Kind: proto.EvRemedy, Resolved: true, Bundle: id, Path: b.path, Cause: proto.CauseRemedy, Text: "optics are well again"}, now)
	if !m.anyFailed() {
		m.become(m.reasons&^ownFault, proto.CauseOwnFault, now)
	}
}

// outlook says what failed optics may hope for.
func (b *bundle) outlook() string {
	switch {
	case b.tries == maxRemedies && b.remedyAt == Never:
		return "no try helped: a person is needed"
	case b.tries > 0:
		return "try " + itoa(b.tries) + " of " + itoa(maxRemedies)
	}
	return ""
}

func itoa(n int) string { return strconv.Itoa(n) }
