package node

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/proto"
)

// A node whose own optics failed has left its ring. Alone it tries them
// again, harder each time, and asks to be let in when they are well. When that
// was of no use it calls for a person, and goes on at growing distances: what
// was too warm cools, and a part that somebody changed is well.

// Remedies are the steps of a remediation, in order. The first tries end with
// the last step; later ones go through all of them in turn.
type Remedies uint8

const (
	RemedyRetry Remedies = iota // ask for the path again and look at the light
	RemedyReset                 // read the chips back and write the codes again
	RemedyTrim                  // calibrate the bundle anew
	numRemedies
)

var remedyNames = [...]string{"retry", "reset", "re-trim"}

func (r Remedies) String() string { return nameOf(remedyNames[:], uint8(r)) }

const (
	// remedyFirst is the wait before the first try; each later one doubles.
	// chosen: what passes by itself has passed, and nobody waits for a node
	// whose place a spare has taken.
	remedyFirst = time.Second
	// remedyLast is the longest wait between two tries. chosen: a node that
	// works alone and fails in its ring disturbs that no oftener.
	remedyLast = time.Hour
	// maxRemedies is the number of tries after which a person is needed.
	// chosen: half a minute in all, and what failed five times is broken.
	maxRemedies = 5
	// remedyPatience is how long a try may say nothing. chosen: longer than a
	// bundle takes to be calibrated.
	remedyPatience = 2 * time.Minute
	// remedyMemory is how long optics must be well before their failures are
	// forgotten. chosen: a path that works in loopback and fails in the ring
	// comes back after seconds, and must not do so without end.
	remedyMemory = 10 * time.Minute
)

// fail notes that a bundle's optics failed, or failed again.
func (b *bundle) fail(now time.Duration) {
	if !b.failed && b.wellAt+remedyMemory < now {
		b.tries = 0
	}
	b.wrong(now)
	b.failed, b.remedyAt = true, now+b.remedyWait()
}

// remedyWait is how long the next try is away.
func (b *bundle) remedyWait() time.Duration {
	return min(remedyFirst<<min(b.tries, 30), remedyLast)
}

// answers: bus and chips that were silent do answer, or what was too warm has cooled. What the light failed for
// may be over with it, so that it is tried the mildest way, and the first time at
// once: a supply that comes and goes disturbs a ring no oftener than others.
func (b *bundle) answers(now time.Duration) {
	if b.failed && b.silent != "" {
		b.remedyAt, b.back = now, true
		if b.tries > 0 {
			b.remedyAt += b.remedyWait()
		}
	}
	b.silent = ""
}

// runRemedies tries failed optics again. Those that do not answer, or are too warm, are
// read again by their driver until that is over: tries would tell nothing of their light.
func (n *shared) runRemedies() {
	for i := range n.bundles {
		b := &n.bundles[i]
		if !b.failed || b.silent != "" || !n.due(b.remedyAt) {
			continue
		}
		step := min(Remedies(b.tries), numRemedies-1)
		if b.tries >= maxRemedies {
			step = Remedies(b.tries-maxRemedies) % numRemedies
		}
		if b.back {
			step, b.back = RemedyRetry, false
		}
		b.tries++
		b.remedyAt = n.now + max(remedyPatience, b.remedyWait()) // should it say nothing
		n.next = min(n.next, b.remedyAt)
		n.note(proto.Event{Kind: proto.EvRemedy, Severity: proto.SeverityWarning, Bundle: proto.BundleID(i), Path: b.path, Cause: proto.CauseRemedy,
			Text: step.String() + ", try " + itoa(b.tries)})
		n.out = append(n.out, Action{Kind: Remedy, Bundle: proto.BundleID(i), Path: idlePath(n.Mode()), Cause: proto.CauseRemedy, Remedy: step})
	}
}

// pathOK takes the report of the optics that a bundle is well again.
func (m *Machine) pathOK(id proto.BundleID) {
	b := &m.bundles[id]
	if !b.failed {
		return
	}
	b.failed, b.wellAt, m.unsaved = false, m.now, true
	m.note(proto.Event{Kind: proto.EvRemedy, Resolved: true, Bundle: id, Path: b.path, Cause: proto.CauseRemedy, Text: "optics recovered"})
	if !slices.ContainsFunc(m.bundles, func(b bundle) bool { return b.failed }) {
		m.become(m.reasons&^ownFault, proto.CauseOwnFault)
	}
}

// outlook says what failed optics may hope for, and who can help them.
func (b *bundle) outlook(id int) string {
	by, why := "ocs-agent calibrate -b "+itoa(id)+" tries at once", strings.TrimPrefix(b.why+"; ", "; ")
	switch {
	case b.silent != "":
		return b.silent + "; that is read again every few seconds, and light is tried when it is over"
	case b.tries >= maxRemedies:
		return why + "no try of " + itoa(b.tries) + " helped: a person is needed; " + by + ", else the next comes " + b.remedyWait().String() + " after it"
	case b.tries > 0:
		return why + "try " + itoa(b.tries) + ", the next comes " + b.remedyWait().String() + " after it; " + by
	}
	return why + "tried again in a moment; " + by
}

func itoa(n int) string { return strconv.Itoa(n) }
