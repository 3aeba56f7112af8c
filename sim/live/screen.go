package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/sim/trace"
)

// screen tells the story of a run, a line or two a fault.
type screen struct {
	w   io.Writer
	err error

	gpusPerNode int
}

func (s *screen) line(format string, args ...any) {
	if s.w == nil || s.err != nil {
		return
	}
	_, s.err = fmt.Fprintf(s.w, format+"\n", args...)
}

func (s *screen) fabric(c *DemoConfig, bundles int, traceName string) {
	s.line("fabric   %s x %s, K=%d, %s of %s (simulated boards, register level)      trace: %s",
		proto.Count(c.Nodes, "node"), proto.Count(c.GPUsPerNode, "GPU"), c.K, proto.Count(bundles, "bundle"), proto.Count(c.Modules, "module"), traceName)
	late := ""
	if ph := c.Physics; ph != nil && ph.LateCall > 0 {
		late = fmt.Sprintf("; %g %% of bus calls %g us late", 100*ph.LateCall, ph.LateCallUS)
	}
	s.line("calls    latencies %s%s", c.Costs.Source, late)
}

func (s *screen) broker(url string, spread boardTime, n int) {
	s.line("broker   embedded, %s      optics: %s calibrated from nothing in %.1f to %.1f s of board time each",
		url, proto.Count(n, "module"), spread.min.Seconds(), spread.max.Seconds())
}

func (s *screen) formed(o planner.Overview, tp, nodes int, f fabricSpares, applied int, commit time.Duration) {
	s.line("planner  term %d generation %d: %s of TP-%d, %s, committed on %d/%d nodes in %d ms, light confirmed on %d/%d links",
		o.Term, o.Generation, proto.Count(o.Rings, "ring"), tp, f, applied, nodes, commit.Milliseconds(), o.LinksConfirmed, o.LinksTotal)
}

// fabricSpares words where the spare nodes are.
type fabricSpares struct{ spares, reach int }

func (f fabricSpares) String() string {
	if f.spares == 0 {
		return "no node spare"
	}
	return fmt.Sprintf("%s spare, %d beside a ring", proto.Count(f.spares, "node"), f.reach)
}

const (
	dayWidth  = "%5.1f"
	headWidth = 48 // day, node and what happened
)

func (s *screen) fault(f *FaultResult, ends []proto.NodeID, ring *proto.RingStatus, what string) {
	day := fmt.Sprintf(dayWidth, f.Day)
	head := fmt.Sprintf("%-*s", headWidth, fmt.Sprintf("day %s  node %d %s", day, f.Node, what))
	switch f.Outcome {
	case Bypassed:
		l := f.Ledger
		s.line("%s %d <-> %d bypassed in %d us (detect %d, decide %d*, bus %d, settle %d, confirm %d)   %s", head,
			ends[0], ends[1], *f.BypassMicros, l.Detect, l.Decide, l.Bus, l.Settle, l.Confirm, s.left(f, ends, ring))
	case Closed:
		s.line("%s %s   %s", head, proto.Nodes(ends, "closed its end", "closed their ends"), s.left(f, ends, ring))
	default:
		s.line("%s idle node, no ring affected", head)
	}
}

// left words what remains of a ring; ring is its status before the fault.
func (s *screen) left(f *FaultResult, ends []proto.NodeID, ring *proto.RingStatus) string {
	switch {
	case !f.RingClosed:
		return "ring OPEN"
	case ring == nil:
		return "ring closed"
	case f.Outcome == Closed && len(ends) > 1:
		return fmt.Sprintf("ring %d in two closed pieces", ring.Ring)
	}
	return fmt.Sprintf("ring %d closed, degraded: %d GPUs", ring.Ring, int(ring.GPUs)-s.gpusPerNode)
}

func (s *screen) again(day float64, node proto.NodeID, what string) {
	s.line("day "+dayWidth+"  node %d %s", day, node, what)
}

// planned tells what the planner did about it, if it did anything.
func (s *screen) planned(text string) {
	if text != "" {
		s.line("%11s planner %s", "", text)
	}
}

func (s *screen) end(c *DemoConfig, r *Result) {
	s.summary(fmt.Sprintf("%d days", c.Days), fmt.Sprintf("events lost %d", r.EventsLost), r)
	s.line("* modelled constant; hardware times are virtual, push and commit times are wall clock")
	s.line("health rounds every %v a node; no drift locks, so light is unproven an hour after it came", c.Health)
	if !c.Hold {
		s.line("look closer: ocs-sim demo -hold, then ocsctl ring list")
	}
}

// interrupted tells what there is so far; an event that did not arrive yet is
// not lost.
func (s *screen) interrupted(c *DemoConfig, r *Result, day float64) {
	s.summary(fmt.Sprintf("interrupted on day %.1f of %d", day, c.Days), fmt.Sprintf("events delivered %d of %d", r.EventsDelivered, r.EventsQueued), r)
}

func (s *screen) summary(days, events string, r *Result) {
	sum := r.Summary()
	times := "no bypass"
	if sum.Bypassed > 0 {
		times = fmt.Sprintf("p50 %d us, p99 %d us", sum.P50.Microseconds(), sum.P99.Microseconds())
	}
	s.line("%s   %s: %d bypassed, %d closed, %d on idle nodes, %s, rings open %d, %s, GPU waste %.1f %% (ideal %.1f %%: all healthy GPUs in groups, no spares kept)",
		days, proto.Count(len(r.Faults), "fault"), sum.Bypassed, sum.Closed, sum.Idle, times, r.RingsOpen, events, 100*r.GPUWasteRatio, 100*r.GPUWasteIdeal)
}

// faultName is short enough for a line: the description without what is in
// brackets, or the class where the description says nothing.
func faultName(f trace.Fault) string {
	if strings.EqualFold(f.Desc, "unknown error") {
		return f.Class
	}
	if !strings.Contains(f.Desc, " ") {
		return f.Class + " " + strings.ToLower(f.Desc)
	}
	name, _, _ := strings.Cut(f.Desc, "(")
	if f.Class == "GPU" || strings.Contains(name, f.Class) {
		return strings.TrimSpace(name)
	}
	return f.Class + " " + strings.TrimSpace(name)
}

func nodeList(ids []proto.NodeID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = fmt.Sprint(id)
	}
	return strings.Join(parts, " and ")
}
