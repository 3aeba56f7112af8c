package agent

import (
	"strconv"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/proto/metric"
)

// bypassBounds and callBounds are in microseconds. chosen: as the planner's;
// from a latch's write to a bus that timed out.
var (
	bypassBounds = []int64{100, 150, 200, 300, 400, 600, 800, 1000, 1500, 2000, 5000, 10_000, 50_000, 200_000, 1_000_000}
	callBounds   = []int64{20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 25_000, 100_000}
)

// maxLosses bounds the label of a bypass: what passes by more counts as so many.
// chosen: K is 4 at most on the boards that there are.
const maxLosses = 4

// passed counts the sides that went to another candidate, by how many nearer
// ones they passed by.
type passed [maxLosses]metric.Tally

func newPassed() (b passed) {
	for i := range b {
		b[i] = metric.NewTally(bypassBounds)
	}
	return b
}

func (b *passed) clone() (c passed) {
	for i := range b {
		c[i] = b[i].Clone()
	}
	return c
}

func (b *passed) take(e *proto.Event, report func(*proto.Reported)) {
	if e.Kind != proto.EvSwitched || !e.SideBypassed || e.Ledger == nil {
		return
	}
	var r proto.Reported
	report(&r)
	for i := range r.Rings {
		list := r.Rings[i].Left
		if e.Side == proto.Right {
			list = r.Rings[i].Right
		}
		for at, c := range list {
			if c.Bundle == e.Bundle && c.Path == e.Path && at > 0 {
				b[min(at, maxLosses)-1].Observe(int64(e.Ledger.TotalMicros()))
			}
		}
	}
}

// calls counts what was asked of the buses, by class.
type calls struct {
	took   [hal.NumClasses]metric.Tally
	failed [hal.NumClasses]uint64
}

func newCalls() (c calls) {
	for i := range c.took {
		c.took[i] = metric.NewTally(callBounds)
	}
	return c
}

func (c *calls) clone() *calls {
	out := &calls{failed: c.failed}
	for i := range c.took {
		out.took[i] = c.took[i].Clone()
	}
	return out
}

func (c *calls) take(x *hal.Completion) {
	c.took[x.Op.Class].Observe((x.End - x.Start).Microseconds())
	if x.Err != nil {
		c.failed[x.Op.Class]++
	}
}

// sight is what an agent's measures say: a copy, which may be written out while
// the agent goes on.
type sight struct {
	*Status
	JournalBytes int64 // -1: no journal
}

type (
	family  = metric.Family
	measure = metric.Measure[*sight]
	page    = metric.Page
)

func single(name string, kind metric.Kind, help string, value func(*sight) int64) measure {
	return metric.Of(family{Name: name, Kind: kind, Help: help}, func(s *sight, p *page) { p.Is(value(s)) })
}

// perBundle is a measure with a sample a bundle; !ok: none of it.
func perBundle(name string, kind metric.Kind, places int, help string, value func(*BundleStatus) (v int64, ok bool)) measure {
	return metric.Of(family{Name: name, Kind: kind, Places: places, Help: help, Labels: []string{"bundle"}}, func(s *sight, p *page) {
		for i := range s.Bundles {
			if v, ok := value(&s.Bundles[i]); ok {
				p.Number(int64(s.Bundles[i].Bundle)).Is(v)
			}
		}
	})
}

// perModule is a measure of what a health round reads; the newest of each module.
func perModule(name, help string, places int, sensor proto.Sensor, less int64) measure {
	return metric.Of(family{Name: name, Places: places, Help: help, Labels: []string{"bundle", "module"}}, func(s *sight, p *page) {
		for _, x := range s.Samples {
			if x.Sensor == sensor {
				p.Number(int64(x.Bundle)).Number(int64(x.Module)).Is(int64(x.Value) - less)
			}
		}
	})
}

func perHold(name string, kind metric.Kind, places int, help string, value func(*BundleStatus, int) int64) measure {
	return metric.Of(family{Name: name, Kind: kind, Places: places, Help: help, Labels: []string{"bundle", "module"}}, func(s *sight, p *page) {
		for i := range s.Bundles {
			for m := range s.Bundles[i].Hold {
				p.Number(int64(s.Bundles[i].Bundle)).Number(int64(m)).Is(value(&s.Bundles[i], m))
			}
		}
	})
}

var classNames = [hal.NumClasses]string{"switch", "verify", "safety", "housekeeping"}

// Measures are those of an agent.
var Measures = []measure{
	single("ringlight_agent_broker_connected", metric.Gauge, "1 while the agent's link to its broker is up.", func(s *sight) int64 { return metric.One(s.LinkUp) }),
	metric.Of(family{Name: "ringlight_agent_mode", Help: "1 for the mode that the node or switch is in; unplanned: no planner contact.", Labels: []string{"mode"}},
		func(s *sight, p *page) {
			for m := proto.ModeUnplanned; m <= proto.ModeDrained; m++ {
				p.Word(m.String()).Bool(s.Reported.Mode == m)
			}
		}),
	single("ringlight_agent_node", metric.Gauge, "Number of the node; of a switch from 1048576.", func(s *sight) int64 { return int64(s.Reported.Node) }),
	single("ringlight_agent_term", metric.Gauge, "Term of the plan in force.", func(s *sight) int64 { return int64(s.Reported.Term) }),
	single("ringlight_agent_generation", metric.Gauge, "Generation of the plan in force.", func(s *sight) int64 { return int64(s.Reported.Generation) }),
	single("ringlight_agent_events_waiting", metric.Gauge, "Events that the planner has not acknowledged.", func(s *sight) int64 { return int64(s.Unacked) }),
	single("ringlight_agent_events_total", metric.Counter, "Events noted, over all lives.", func(s *sight) int64 { return int64(s.Reported.LastEvent) }),
	single("ringlight_agent_messages_refused_total", metric.Counter, "Messages refused, over all lives.", func(s *sight) int64 { return int64(s.Reported.RefusedMessages) }),
	single("ringlight_agent_telemetry_dropped_total", metric.Counter, "Telemetry that nobody was there to take.", func(s *sight) int64 { return int64(s.Reported.Dropped) }),
	metric.Of(family{Name: "ringlight_agent_alarms", Help: "Standing alarms, by severity.", Labels: []string{"severity"}},
		func(s *sight, p *page) {
			var n [proto.SeverityCritical + 1]int64
			for i := range s.Reported.Alarms {
				n[min(s.Reported.Alarms[i].Severity, proto.SeverityCritical)]++
			}
			p.Word("warning").Is(n[proto.SeverityWarning])
			p.Word("critical").Is(n[proto.SeverityCritical])
		}),
	metric.Of(family{Name: "ringlight_agent_bypass_seconds", Kind: metric.Histogram, Places: metric.Micro, Labels: []string{"losses"},
		Help: "Time of one side from light lost to light confirmed on another candidate, by candidates bypassed; 4 stands for more, too."},
		func(s *sight, p *page) {
			for i := range s.bypasses {
				p.Word(strconv.Itoa(i + 1)).Tally(&s.bypasses[i])
			}
		}),

	metric.Of(family{Name: "ringlight_agent_path_state", Help: "1 for the path that a bundle is on and its state.", Labels: []string{"bundle", "path", "state"}},
		func(s *sight, p *page) {
			for i := range s.Bundles {
				p.Number(int64(s.Bundles[i].Bundle)).Word(s.Bundles[i].Path).Word(s.Bundles[i].State).Is(1)
			}
		}),
	metric.Of(family{Name: "ringlight_agent_margin_decibels", Places: metric.Milli, Labels: []string{"bundle"},
		Help: "Light that a bundle may still lose until its path counts as not there; worst module."},
		func(s *sight, p *page) {
			for i := range s.Reported.Bundles {
				b := &s.Reported.Bundles[i]
				if margin, ok := b.Margin(); ok {
					p.Number(int64(b.Bundle)).Is(int64(margin))
				}
			}
		}),
	metric.Of(family{Name: "ringlight_agent_flaps_total", Kind: metric.Counter, Labels: []string{"bundle"}, Help: "Losses of the selected light, over all lives."},
		func(s *sight, p *page) {
			for i := range s.Reported.Bundles {
				p.Number(int64(s.Reported.Bundles[i].Bundle)).Is(int64(s.Reported.Bundles[i].Flaps))
			}
		}),
	perBundle("ringlight_agent_calibrated", metric.Gauge, 0, "1 while the bundle has a calibration.", func(b *BundleStatus) (int64, bool) { return metric.One(b.Calibrated), true }),
	perBundle("ringlight_agent_bus_errors_total", metric.Counter, 0, "Bus work of a bundle that failed, retries included.", func(b *BundleStatus) (int64, bool) { return int64(b.BusErrors), true }),
	perBundle("ringlight_agent_limit_errors_total", metric.Counter, 0, "Codes that the heaters' limits cut down.", func(b *BundleStatus) (int64, bool) { return int64(b.LimitErrors), true }),
	perModule("ringlight_agent_case_celsius", "Case temperature; at 75 the bundle is taken out of use.", metric.Milli, proto.SensorCase, 273_150),
	perModule("ringlight_agent_heater_watts", "Power of the heaters' rail.", metric.Micro, proto.SensorRail, 0),
	perHold("ringlight_agent_lock_error_radians", metric.Gauge, metric.Micro, "Phase error over a module's cells at the lock's last look, root mean square.",
		func(b *BundleStatus, m int) int64 { return int64(b.Hold[m].RMSMicrorad) }),
	perHold("ringlight_agent_lock_engaged", metric.Gauge, 0, "1 while the lock holds the module.", func(b *BundleStatus, m int) int64 { return metric.One(b.Hold[m].Engaged) }),
	metric.Of(family{Name: "ringlight_agent_module_flags_total", Kind: metric.Counter, Help: "Times that a CMIS module raised a flag of its own; a path without light raises RxLOS.", Labels: []string{"bundle", "module", "flag"}},
		func(s *sight, p *page) {
			for i := range s.Bundles {
				for _, x := range s.Bundles[i].Flags {
					p.Number(int64(s.Bundles[i].Bundle)).Number(int64(x.Module)).Word(x.Flag).Is(int64(x.Times))
				}
			}
		}),
	perHold("ringlight_agent_lock_lost_total", metric.Counter, 0, "Cells that a look found beyond what 25 dB of extinction allow.", func(b *BundleStatus, m int) int64 { return int64(b.Hold[m].Lost) }),

	metric.Of(family{Name: "ringlight_agent_bus_call_seconds", Kind: metric.Histogram, Places: metric.Micro, Labels: []string{"class"},
		Help: "Time of bus work on the wire: what moves light, what confirms it, what guards limits, all else."},
		func(s *sight, p *page) {
			if s.calls == nil {
				return
			}
			for i := range s.calls.took {
				p.Word(classNames[i]).Tally(&s.calls.took[i])
			}
		}),
	metric.Of(family{Name: "ringlight_agent_bus_call_errors_total", Kind: metric.Counter, Labels: []string{"class"}, Help: "Bus work that failed."},
		func(s *sight, p *page) {
			if s.calls == nil {
				return
			}
			for i, n := range s.calls.failed {
				p.Word(classNames[i]).Is(int64(n))
			}
		}),
	metric.Of(family{Name: "ringlight_agent_late_seconds", Places: metric.Micro, Help: "By how much the agent's work began too late, three times at least since the last telemetry: too little processor."},
		func(s *sight, p *page) { p.Is(s.LateUS) }),
	single("ringlight_agent_quarantined_devices", metric.Gauge, "Devices that are kept off their bus.", func(s *sight) int64 { return int64(len(s.Quarantine)) }),
	metric.Of(family{Name: "ringlight_agent_wake_late_seconds", Places: metric.Micro, Labels: []string{"quantile"},
		Help: "How late the thread that answers edges woke up when the agent started. Only on real hardware."},
		func(s *sight, p *page) {
			if s.Prompt != nil {
				p.Word("0.5").Is(int64(s.Prompt.WakeP50Micros))
				p.Word("0.99").Is(int64(s.Prompt.WakeP99Micros))
				p.Word("1").Is(int64(s.Prompt.WakeMaxMicros))
			}
		}),
	metric.Of(family{Name: "ringlight_agent_edges_lost_total", Kind: metric.Counter, Help: "Edges of LOS lines lost in the kernel; the levels were read again. Only on real hardware."},
		func(s *sight, p *page) {
			if s.Prompt != nil {
				p.Is(int64(s.Prompt.LostEdges))
			}
		}),
	metric.Of(family{Name: "ringlight_agent_journal_bytes", Help: "Size of the journal's files."},
		func(s *sight, p *page) {
			if s.JournalBytes >= 0 {
				p.Is(s.JournalBytes)
			}
		}),
	metric.Of(family{Name: "ringlight_agent_circuits", Help: "Circuits by state. Only of a switch.", Labels: []string{"state"}},
		func(s *sight, p *page) {
			if s.Switch == nil {
				return
			}
			var n [proto.NumPortStates]int64
			for i := range s.Reported.Circuits {
				n[s.Reported.Circuits[i].State]++
			}
			for state, count := range n {
				p.Word(proto.PortState(state).String()).Is(count)
			}
		}),
}
