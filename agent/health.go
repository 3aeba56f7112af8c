package agent

import (
	"time"

	"ringlight/ocs"
	"ringlight/proto"
)

// moduleGap is the time between two modules of a health round: their reads
// never meet on a bus. chosen: a module's round takes some 5 ms.
const moduleGap = 50 * time.Millisecond

// health reads modules, one at a time: every one once a period, or only so
// many in each.
type health struct {
	period  time.Duration
	part    int           // modules of a period, 0: all
	parted  int           // read in this one
	round   time.Duration // when the round under way began
	next    time.Duration
	bundle  int // module that is next, in the order of the board
	module  int
	samples []proto.Sample
	mask    uint32 // sensors ever read, by bit
}

func (h *health) start(o *nodeOptics, now time.Duration) {
	h.period, h.part = o.agent.cfg.HealthPeriod, o.agent.cfg.HealthModules
	if h.period < 0 {
		return
	}
	h.next, o.agent.pm.seen = now+phase(o.agent.cfg.Node, h.period), now
}

// due starts the reading of the next module; after the last one the round is
// told.
func (h *health) due(o *nodeOptics, now time.Duration, out []Output) []Output {
	if h.bundle == 0 && h.module == 0 {
		h.round = now
	}
	if h.bundle < len(o.bundles) {
		b := &o.bundles[h.bundle]
		b.optics.Health.Round(now)
		b.due = true
		if h.module++; h.module >= len(o.agent.cfg.Board.Bundles[h.bundle].Modules) {
			h.bundle, h.module = h.bundle+1, 0
		}
		h.next = now + min(moduleGap, h.period/time.Duration(1+o.agent.cfg.Board.Modules()))
		if h.parted++; h.part > 0 && h.parted >= h.part && h.bundle < len(o.bundles) {
			h.parted = 0
			h.next = now + h.period
		}
		return out
	}
	h.bundle, h.module, h.parted = 0, 0, 0
	h.next = max(now, h.round+h.period)
	if h.part > 0 {
		h.next = now + h.period
	}
	for i := range o.bundles {
		b := &o.bundles[i]
		if held, _ := b.optics.Held(); held != b.held {
			b.held = held
			o.agent.report(now)
		}
		if why := b.optics.Unproven(); (why != "") != b.unproven {
			b.unproven = why != ""
			o.unproven(now, proto.BundleID(i), why)
		}
	}
	round := h.period
	if h.part > 0 {
		round *= time.Duration(1 + o.agent.cfg.Board.Modules()/h.part)
	}
	o.agent.pm.node(now, o.bundles)
	return h.tell(o, now, o.agent.pm.watched(now, round, out))
}

// unproven tells that nobody can say any more whether the light of a bundle is good, or,
// without a reason, that somebody can again. Who switched the lock off knows, and of the
// matrix reports say that it is not held.
func (o *nodeOptics) unproven(now time.Duration, id proto.BundleID, why string) {
	o.agent.report(now)
	b := &o.bundles[id]
	if o.agent.cfg.Lock.Mode == ocs.LockOff || !b.doubted && b.held != proto.HeldNothing {
		return
	}
	b.doubted = why != ""
	e := proto.Event{Kind: proto.EvAlarm, Severity: proto.SeverityWarning, Cause: proto.CauseOwnFault, Bundle: id,
		Path: b.optics.Status().Path, Text: proto.Clip("light is unproven: " + why)}
	if e.Resolved = why == ""; e.Resolved {
		e.Severity, e.Text = proto.SeverityOK, "light is proven again"
	}
	o.agent.note(now, own(now, e))
}

// tell sends the samples.
func (h *health) tell(o *nodeOptics, now time.Duration, out []Output) []Output {
	h.samples = h.samples[:0]
	for i := range o.bundles {
		h.samples = o.bundles[i].optics.Health.Samples(now, 0, h.samples)
	}
	for i := range h.samples {
		h.mask |= 1 << h.samples[i].Sensor
	}
	if len(h.samples) == 0 {
		return out
	}
	return o.agent.telemetry(out, h.samples)
}

// telemetry sends samples, or drops them when nobody listens: telemetry never
// queues. Without any it still says which report was the last: a planner that
// holds another one asks.
func (a *Agent) telemetry(out []Output, samples []proto.Sample) []Output {
	late := uint32(a.behind[0].Milliseconds())
	a.lag, a.behind = a.behind[0], [3]time.Duration{}
	var prompt *proto.Prompt
	if p := a.cfg.Prompt; p != nil {
		told := promptOf(p)
		prompt = &told
	}
	for {
		part := samples[:min(len(samples), proto.MaxArray)]
		samples = samples[len(part):]
		if a.wire.up {
			a.wire.health++
			out = a.send(out, a.topics.Health(a.cfg.Node), proto.TopicHealth, &proto.Health{Version: proto.Version,
				Node: a.cfg.Node, Session: a.cfg.Session, Seq: a.wire.health, Samples: part, Reported: a.wire.told, Prompt: prompt, LateMillis: late})
			late = 0
		} else {
			a.wire.dropped++
		}
		if len(samples) == 0 {
			return out
		}
	}
}
