package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"ringlight/sim/trace"
)

// scenario is a trace by hand over few nodes: node i is the server that the
// shuffle of the seed puts there.
type scenario struct {
	servers map[int]int // by node
	trace   trace.Trace
}

func newScenario(nodes int, seed uint64, span int) *scenario {
	s := &scenario{servers: map[int]int{}, trace: trace.Trace{Servers: trace.Servers, Span: time.Duration(span) * trace.Day}}
	probe := trace.Trace{Servers: trace.Servers, Span: trace.Day}
	for n := range trace.Servers {
		probe.Events = append(probe.Events, trace.Event{Server: n, Start: true})
	}
	// Every server fails at once, each with its number as the fault's name.
	for i := range probe.Events {
		probe.Events[i].Fault.Desc = string(rune('A' + i))
	}
	for _, e := range probe.Nodes(nodes, seed, trace.Day) {
		s.servers[e.Node] = int([]rune(e.Fault.Desc)[0] - 'A')
	}
	return s
}

func (s *scenario) at(day float64, node int, start bool, class string) {
	s.trace.Events = append(s.trace.Events, trace.Event{At: time.Duration(day * float64(trace.Day)), Server: s.servers[node], Start: start,
		Fault: trace.Fault{Level: "Hardware Failure", Class: class, Desc: class + " gone"}})
}

func run(t *testing.T, cfg DemoConfig, s *scenario) (*Result, string) {
	t.Helper()
	var out bytes.Buffer
	cfg.Screen = &out
	cfg.Trace, cfg.TraceName = &s.trace, "by hand"
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a bound on a hang, on any machine
	defer cancel()
	r, err := Demo(ctx, cfg)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Verdict(); err != nil {
		t.Error(err)
	}
	for _, f := range r.Faults {
		if !f.RingClosed {
			t.Errorf("day %.1f, node %d: ring not closed", f.Day, f.Node)
		}
		if (f.Outcome == Bypassed) != (f.Ledger != nil && f.BypassMicros != nil) {
			t.Errorf("day %.1f, node %d: %s with ledger %v", f.Day, f.Node, f.Outcome, f.Ledger)
		}
		if f.Ledger != nil && f.Ledger.Total() != *f.BypassMicros {
			t.Errorf("day %.1f, node %d: ledger %+v is not %d us", f.Day, f.Node, *f.Ledger, *f.BypassMicros)
		}
	}
	return r, out.String()
}

func small() DemoConfig {
	cfg := DefaultDemo()
	cfg.Nodes, cfg.TP, cfg.Spares, cfg.Modules, cfg.Days = 18, 32, 2, 2, 20
	return cfg
}

func outcomes(r *Result) string {
	var list []string
	for _, f := range r.Faults {
		list = append(list, f.Outcome)
	}
	return strings.Join(list, " ")
}

// Goal: the whole product, from calibration to the planner's repair, does what
// each fault of a small fabric asks for.
// Method: two rings of eight and two spares; an inner node's GPUs go, an inner
// node loses its power, a ring's end goes, a spare goes, all come back; twice,
// for the same seed has the same faults and ledgers.
func TestDemoRunsThroughFaults(t *testing.T) {
	s := newScenario(18, 1, 20)
	s.at(1, 3, true, "GPU") // inner: its neighbours find each other
	s.at(3, 3, false, "GPU")
	s.at(5, 12, true, "Power Supply") // inner: dark, with all its lasers
	s.at(7, 12, false, "Power Supply")
	s.at(8, 0, true, "NIC") // an end
	s.at(8, 0, false, "NIC")
	s.at(10, 12, true, "Fan") // carries nothing since a spare has its place
	s.at(10, 12, true, "GPU") // the same node again: a count
	s.at(11, 12, false, "Fan")
	s.at(12, 12, false, "GPU")
	r, screen := run(t, small(), s)
	if got, want := outcomes(r), "bypassed bypassed closed idle idle"; got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
	if r.Rings != 2 || r.LinksTotal != 14 || r.Generation < 4 || r.Term != 1 || r.GPUsTotal != 72 {
		t.Errorf("result %+v", r)
	}
	if r.EventsQueued == 0 || r.EventsDelivered < r.EventsQueued {
		t.Errorf("%d events queued, %d delivered", r.EventsQueued, r.EventsDelivered)
	}
	// Sixteen of eighteen nodes stand in rings, but for moments.
	if r.GPUWasteRatio < 0.05 || r.GPUWasteRatio > 0.12 || r.GPUWasteIdeal > r.GPUWasteRatio {
		t.Errorf("waste %v, ideal %v", r.GPUWasteRatio, r.GPUWasteIdeal)
	}
	again, _ := run(t, small(), s)
	if !reflect.DeepEqual(r.Faults, again.Faults) {
		t.Errorf("the same seed gives %+v and %+v", r.Faults, again.Faults)
	}
	for _, want := range []string{"bypassed in", "closed", "idle node, no ring affected", "recovered", "p99", "joins ring"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen does not say %q", want)
		}
	}
}

// Goal: without a broker rings are bypassed all the same, and what happened is
// told when it is back.
// Method: two faults in one ring while the broker is stopped.
func TestDemoWithoutABroker(t *testing.T) {
	s := newScenario(18, 1, 20)
	s.at(6, 3, true, "GPU")
	s.at(7, 5, true, "GPU")
	s.at(8, 5, false, "GPU")
	cfg := small()
	cfg.K = 3
	cfg.BrokerDown = &Outage{Day: 5, Days: 5}
	r, screen := run(t, cfg, s)
	if got, want := outcomes(r), "bypassed bypassed"; got != want {
		t.Errorf("outcomes %s, want %s", got, want)
	}
	if !strings.Contains(screen, "broker stopped") || !strings.Contains(screen, "broker back") {
		t.Error("the screen does not tell of the broker")
	}
}

// Goal: a run that is stopped stops.
// Method: a context that has ended.
func TestDemoStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Demo(ctx, small()); err == nil {
		t.Error("a stopped demo has a result")
	}
}

// stopAt ends a run when its screen shows a text.
type stopAt struct {
	strings.Builder
	text string
	stop func()
}

func (s *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.stop()
	}
	return s.Builder.Write(p)
}

// Goal: an interrupted demo tells what there is so far. Method: the run is
// stopped by the first line of a fault; the last line counts that fault.
func TestInterruptedDemoTells(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg, screen := small(), &stopAt{text: "day ", stop: cancel}
	cfg.Screen = screen
	if _, err := Demo(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	lines := strings.Split(strings.TrimSpace(screen.String()), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "interrupted on day ") || !strings.Contains(last, fmt.Sprintf(" of %d   1 fault: ", cfg.Days)) || !strings.Contains(last, "GPU waste ") {
		t.Errorf("%s", screen.String())
	}
}
