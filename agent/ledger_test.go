package agent

import (
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// bypassLedger kills node 1 of four and gives the switch that node 0 told of,
// with the loss of light behind it: when the light went, and when its edge was
// noted.
func bypassLedger(t *testing.T, f *fleet) (e proto.Event, gone, noted time.Duration) {
	t.Helper()
	alter := f.edge
	f.edge = func(edge *hal.Edge) {
		went := edge.Origin
		if alter != nil {
			alter(edge)
		}
		if !edge.High && edge.Line == f.nodes[0].board.Bundles[1].LOS[hal.LOSExternal1] {
			gone, noted = went, edge.At
		}
	}
	f.power(f.nodes[1], false)
	f.must("bypass of node 1", 20*time.Millisecond, func() bool { return f.linkedTo(0, 2) })
	f.run(10*time.Millisecond, nil)
	for _, e := range f.nodes[0].events {
		if e.Kind == proto.EvSwitched && e.Cause != proto.CausePlan && e.Ledger != nil {
			return e, gone, noted
		}
	}
	t.Fatalf("no switch with a ledger: %+v", f.nodes[0].events)
	return proto.Event{}, 0, 0
}

// Goal: a ledger says what was measured. Where nobody sees the light go,
// detect is what calibration measured, and marked; from the moment when the
// host noted the edge everything is measured, being woken included. All parts
// add up.
// Method: one bypass on each kind of board: simulated on its virtual clock, in
// real time with the origin known, and real, where it is not. On a real clock
// the edge is noted 30 us before the agent hears it.
func TestLedgerMarksWhatIsModelled(t *testing.T) {
	const wake = 30 * time.Microsecond
	known := (150*time.Microsecond + 40*time.Microsecond) / 2 // of the rig's calibration
	var onBus uint32
	for _, c := range []struct {
		name     string
		decide   time.Duration
		edge     func(*hal.Edge)
		mark     proto.LedgerMark
		modelled []string
		detect   func(gone, noted time.Duration) time.Duration
	}{
		{"virtual clock", fleetDecide, nil, 0, []string{"decide"}, func(gone, noted time.Duration) time.Duration { return noted - gone }},
		{"simulated board in real time", 0, func(e *hal.Edge) { e.At -= wake }, proto.RealClock, nil,
			func(gone, noted time.Duration) time.Duration { return noted - gone }},
		{"real board", 0, func(e *hal.Edge) { e.At, e.Origin = e.At-wake, 0 }, proto.RealClock | proto.DetectModelled, []string{"detect"},
			func(_, _ time.Duration) time.Duration { return known }},
	} {
		f := startFleet(&fleet{t: t, decide: c.decide}, 4, 2).join()
		f.edge = c.edge
		e, gone, noted := bypassLedger(t, f)
		l := *e.Ledger
		if e.LedgerMark != c.mark || !slices.Equal(e.LedgerMark.Modelled(), c.modelled) {
			t.Errorf("%s: mark %#x, modelled %v", c.name, e.LedgerMark, e.LedgerMark.Modelled())
		}
		detect := c.detect(gone, noted)
		if d := time.Duration(l.DetectMicros)*time.Microsecond - detect; d < -time.Microsecond || d > time.Microsecond {
			t.Errorf("%s: detect %d us, want %v", c.name, l.DetectMicros, detect)
		}
		// The rig's agent thinks in no time: on a real clock decide is the time
		// to be woken and the wait for the bus; the modelled constant leaves
		// that wait to the bus.
		if decide := uint32(fleetDecide / time.Microsecond); c.decide > 0 {
			onBus = l.BusMicros
			if l.DecideMicros != decide || onBus == 0 {
				t.Errorf("%s: %+v, want decide %d us", c.name, l, decide)
			}
		} else if least := uint32(wake / time.Microsecond); l.DecideMicros < least || l.BusMicros == 0 ||
			l.DecideMicros+l.BusMicros < least+onBus-1 || l.DecideMicros+l.BusMicros > least+onBus+1 {
			t.Errorf("%s: %+v, want decide and bus of %d + %d us", c.name, l, least, onBus)
		}
		if total, want := uint64(l.TotalMicros()), e.AtMicros-uint64(floorMicros(noted-detect)); total != want {
			t.Errorf("%s: parts add up to %d us, the light was away for %d: %+v", c.name, total, want, l)
		}
	}
}
