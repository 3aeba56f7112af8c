package node

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: a side cannot take an edge that the diagram does not have.
// Method: every pair of states; the illegal ones must panic with both names.
func TestIllegalEdgesPanic(t *testing.T) {
	illegal := 0
	for from := proto.SideEnd; from <= proto.SideClosed; from++ {
		for to := proto.SideEnd; to <= proto.SideClosed; to++ {
			if edges[from]&(1<<to) != 0 {
				continue
			}
			illegal++
			func() {
				defer func() {
					text, _ := recover().(string)
					if !strings.Contains(text, from.String()) || !strings.Contains(text, to.String()) {
						t.Errorf("%s to %s: panic %q", from, to, text)
					}
				}()
				s := side{node: new(shared), state: from}
				s.become(to)
			}()
		}
	}
	if illegal != 16 {
		t.Errorf("%d illegal edges, the diagram has 16", illegal)
	}
}

// Goal: a cross-connect cannot take an edge that its diagram does not have, and
// random lives take every edge that it has.
// Method: every pair of states; the illegal ones must panic with both names.
// Then each edge of crossEdges taken out has to end the lives of
// TestCrossConnectHoldsToItsPlanWhateverHappens' world in a panic.
func TestCrossConnectEdges(t *testing.T) {
	lives := func() (panicked any) {
		defer func() { panicked = recover() }()
		for seed := range uint64(60) {
			r := rand.New(rand.NewPCG(seed, 9))
			w := newCrossWorld(t)
			for range 300 {
				w.step(w.unread(w.event(r.IntN), r.IntN))
			}
		}
		return nil
	}
	if p := lives(); p != nil {
		t.Fatal(p)
	}
	for from := crossUnread; from <= crossOwed; from++ {
		for to := crossUnread; to <= crossOwed; to++ {
			if crossEdges[from]&(1<<to) == 0 {
				func() {
					defer func() {
						if text, _ := recover().(string); !strings.HasSuffix(text, from.String()+" to "+to.String()) {
							t.Errorf("%s to %s: panic %q", from, to, text)
						}
					}()
					(&CrossConnect{state: from}).become(to)
				}()
				continue
			}
			before := crossEdges[from]
			crossEdges[from] &^= 1 << to
			if lives() == nil {
				t.Errorf("nothing goes from %s to %s", from, to)
			}
			crossEdges[from] = before
		}
	}
}

// Goal: each ordering inequality of the timers is checked by itself.
// Method: derived timers pass for fast and slow hardware; each timer a
// microsecond short of its floor is refused and named.
func TestTimerInequalities(t *testing.T) {
	for _, e := range []proto.Envelope{
		defaultEnvelope,
		{DetectMaxMicros: 450, DetectMinMicros: 40, SwitchMaxMicros: 750, SwitchMinMicros: 75, SkewMicros: 500},
		{DetectMaxMicros: 50_000, DetectMinMicros: 1000, SwitchMaxMicros: 500_000, SwitchMinMicros: 10_000, SkewMicros: 1000},
		{DetectMaxMicros: 1, DetectMinMicros: 1, SwitchMaxMicros: 10, SwitchMinMicros: 10, SkewMicros: 0},
	} {
		v := envelopeOf(e)
		if err := check(v, derive(v)); err != nil {
			t.Errorf("%v: %v", e, err)
		}
	}
	e := envelopeOf(defaultEnvelope)
	for _, c := range []struct {
		field string
		spoil func(*timers)
	}{
		{"envelope.dwell", func(t *timers) { t.dwell = e.dwellFloor() - time.Microsecond }},
		{"envelope.grace", func(t *timers) { t.grace = e.graceFloor() - time.Microsecond }},
		{"envelope.retry", func(t *timers) { t.retry = e.retryFloor() - time.Microsecond }},
		{"envelope.answer", func(t *timers) { t.answer = 2*e.detectMax - time.Microsecond }},
		{"envelope.retry", func(t *timers) { t.retry = maxWait + 1 }},
	} {
		tm := derive(e)
		c.spoil(&tm)
		if err := check(e, tm); err == nil || err.Field != c.field || err.Code != proto.Invalid || err.Limit == "" {
			t.Errorf("%s: %v", c.field, err)
		}
	}
	noSkew := e
	noSkew.skew = 0
	tm := derive(noSkew)
	tm.dwell = noSkew.dwellFloorLight() - time.Microsecond
	if err := check(noSkew, tm); err == nil || !strings.Contains(err.Limit, "persist") {
		t.Errorf("dwell under persist + 2 D + S: %v", err)
	}
}

// Goal: the default board's timers are the page's.
// Method: derive them from its envelope.
func TestDefaultTimers(t *testing.T) {
	got := derive(envelopeOf(defaultEnvelope))
	us := time.Microsecond
	want := timers{dwell: 950 * us, grace: 300 * us, retry: 2000 * us, answer: 500 * us, alone: 3150 * us, steady: 3550 * us, late: 252 * time.Millisecond}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	e := envelopeOf(defaultEnvelope)
	if b := bound(e, got, true); b != 850*us {
		t.Errorf("recovery takes up to %v, want 850us", b)
	}
}

// Goal: nothing is answered before the hardware has been read back, and what
// was said of the host until then still counts.
// Method: events before Adopt.
func TestBeforeAdoption(t *testing.T) {
	m := New(Config{ID: 5, Bundles: 2})
	out := m.Step(Event{Kind: Stage, Desired: &proto.Desired{Node: 5, Term: 1, Generation: 1}}, nil)
	if len(out) != 1 || out[0].Ack.Code != proto.Busy {
		t.Fatalf("stage: %v", out)
	}
	m.Step(Event{Kind: HostFault}, nil)
	out = m.Step(Event{Kind: Adopt, Lits: []BundleLight{{Bundle: 0, Path: proto.External1, Ready: true}, {Bundle: 1, Path: proto.Loopback, Ready: true}}}, nil)
	dark := 0
	for _, a := range out {
		if a.Kind == Select && a.Path == proto.Dark {
			dark++
		}
	}
	if dark != 2 || m.Mode() != proto.ModeHostDown {
		t.Errorf("%d bundles dark, mode %s", dark, m.Mode())
	}
}

// Goal: a reason to be out of service out of an old journal takes no light; one
// that the light shows, and one that somebody says again, still do.
// Method: each reason restored over light that shows it nowhere, on one bundle,
// on all, and with the word of the host before the adoption.
func TestOldReasonTakesNoLight(t *testing.T) {
	for _, c := range []struct {
		reason reason
		found  [2]proto.Path
		again  bool
		mode   proto.Mode
		drives int
	}{
		{hostGone, [2]proto.Path{proto.External1, proto.External2}, false, proto.ModeUnplanned, 0},
		{hostGone, [2]proto.Path{proto.Loopback, proto.External2}, false, proto.ModeUnplanned, 0},
		{hostGone, [2]proto.Path{proto.Dark, proto.External2}, false, proto.ModeHostDown, 1},
		{hostGone, [2]proto.Path{proto.Dark, proto.Dark}, false, proto.ModeHostDown, 0},
		{hostGone, [2]proto.Path{proto.External1, proto.External2}, true, proto.ModeHostDown, 2},
		{drained, [2]proto.Path{proto.External1, proto.External2}, false, proto.ModeUnplanned, 0},
		{drained, [2]proto.Path{proto.Loopback, proto.External2}, false, proto.ModeUnplanned, 0}, // the end of a ring
		{drained, [2]proto.Path{proto.Dark, proto.External2}, false, proto.ModeDrained, 2},
		{drained, [2]proto.Path{proto.Loopback, proto.Loopback}, false, proto.ModeDrained, 0},
		{drained, [2]proto.Path{proto.Dark, proto.Dark}, false, proto.ModeDrained, 2}, // after a loss of supply
		{ownFault, [2]proto.Path{proto.External1, proto.External2}, false, proto.ModeUnplanned, 0},
		{ownFault, [2]proto.Path{proto.Dark, proto.Loopback}, false, proto.ModeIsolated, 1},
		{hostGone | drained, [2]proto.Path{proto.External1, proto.External2}, false, proto.ModeUnplanned, 0},
	} {
		m := New(Config{ID: 5, Bundles: 2})
		m.Restore(State{Reasons: uint8(c.reason), Failed: map[bool]uint16{true: 1}[c.reason&ownFault != 0]})
		if c.again {
			m.Step(Event{Kind: HostFault}, nil)
		}
		out := m.Step(Event{Kind: Adopt, Lits: []BundleLight{{Bundle: 0, Path: c.found[0], Lit: 1 << c.found[0], Ready: true},
			{Bundle: 1, Path: c.found[1], Lit: 1 << c.found[1], Ready: true}}}, nil)
		drives, told := 0, false
		for _, a := range out {
			drives += map[bool]int{true: 1}[a.Kind == Select]
			told = told || a.Kind == Note && strings.Contains(a.Note.Text, "say it again")
		}
		if m.Mode() != c.mode || drives != c.drives || told != (c.mode == proto.ModeUnplanned) {
			t.Errorf("reasons %b on %v: mode %s, %d drives, told %v; want %s, %d", c.reason, c.found, m.Mode(), drives, told, c.mode, c.drives)
		}
	}
}

// Goal: a bundle has settled where it was asked to be last, and not before.
// Method: a plan moves a side on while the first switch is under way.
func TestOvertakenSwitchIsNoSettling(t *testing.T) {
	sc := &scripted{}
	for _, line := range []string{"ring left=0/1>4! right=1/1>6!,1/2>7!", "light 1/1 off", "request right forced 1/1"} {
		sc.command(strings.Fields(line))
	}
	for _, c := range []struct {
		path proto.Path
		want proto.SideState
	}{{proto.External2, proto.SideSwitch}, {proto.External1, proto.SideListen}} {
		sc.step(Event{Kind: Switched, Bundle: 1, Path: c.path})
		if got := sc.m.sides[1].state; got != c.want {
			t.Errorf("settled on %s: %s, want %s", c.path, got, c.want)
		}
	}
}

// Goal: what State gives, Restore takes.
// Method: a machine with every part set, through a second one.
func TestStateRoundTrip(t *testing.T) {
	sc := &scripted{}
	for _, line := range []string{"ring left=0/1>4! right=1/1>6!,1/2>7!", "light 1/1 off", "settle", "light 1/2 on",
		"plan 2.2 left=0/1>4!", "stage", "drain", "settle"} {
		sc.command(strings.Fields(line))
	}
	want := sc.m.State()
	if want.Applied == nil || want.Staged == nil || want.BypassSeq == 0 || want.Reasons == 0 || want.Bundles[1].Flaps == 0 {
		t.Fatalf("not everything is set: %+v", want)
	}
	m := New(Config{ID: 5, Bundles: 2})
	m.Restore(want)
	if got := m.State(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// deadNeighbour returns a working machine and the events of one bypass and
// of the way back by another.
func deadNeighbour() (*Machine, [6]Event) {
	sc := &scripted{}
	sc.command(strings.Fields("ring left=0/1>4!,0/2>3! right=1/1>6!,1/2>7!,2/2>8!"))
	us := time.Microsecond
	return sc.m, [6]Event{
		{At: 0, Kind: Light, Bundle: 1, Path: proto.External1},
		{At: 200 * us, Kind: Switched, Bundle: 1, Path: proto.External2},
		{At: 210 * us, Kind: Switched, Bundle: 2, Path: proto.External2},
		{At: 300 * us, Kind: Light, Bundle: 1, Path: proto.External2, Lit: true},
		{At: 400 * us, Kind: Switched, Bundle: 2, Path: proto.Loopback},
		{At: 500 * us, Kind: Light, Bundle: 1, Path: proto.External1, Lit: true},
	}
}

// Goal: protection and waiting take nothing from the heap.
// Method: count allocations over a bypass there and back, and over ticks.
func TestNoAllocation(t *testing.T) {
	m, events := deadNeighbour()
	out := make([]Action, 0, 64)
	at := 2 * time.Second
	if n := testing.AllocsPerRun(100, func() { at += time.Hour; out = bypass(m, events, at, out) }); n != 0 {
		t.Errorf("%v allocations a bypass", n)
	}
	if n := testing.AllocsPerRun(100, func() { at += time.Microsecond; out = m.Step(Event{At: at, Kind: Tick}, out[:0]) }); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

// bypass plays the events from candidate 0 to 1, then loses 1 and takes 0
// again.
func bypass(m *Machine, events [6]Event, at time.Duration, out []Action) []Action {
	for _, ev := range events {
		ev.At += at
		out = m.Step(ev, out[:0])
	}
	at += time.Second
	for _, ev := range [...]Event{
		{At: at, Kind: Light, Bundle: 1, Path: proto.External2},
		{At: at, Kind: Switched, Bundle: 1, Path: proto.External1},
		{At: at, Kind: Switched, Bundle: 2, Path: proto.External2},
		{At: at + time.Second, Kind: Tick},
		{At: at + time.Second, Kind: Switched, Bundle: 1, Path: proto.External1},
		{At: at + time.Second, Kind: Switched, Bundle: 2, Path: proto.Loopback},
	} {
		out = m.Step(ev, out[:0])
	}
	return out
}

// One loss of light to the actions that answer it; putting the machine back
// is in the figure.
func BenchmarkBypassDecision(b *testing.B) {
	m, events := deadNeighbour()
	before, bundles, list := *m, slices.Clone(m.bundles), slices.Clone(m.sides[proto.Right].list)
	events[0].At = 2 * time.Second
	out := make([]Action, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		*m = before
		copy(m.bundles, bundles)
		copy(m.sides[proto.Right].list, list)
		out = m.Step(events[0], out[:0])
	}
	if len(out) != 3 || out[1].Kind != Select || out[2].Kind != Select {
		b.Fatalf("not a bypass: %v", out)
	}
}

func BenchmarkTickNothingDue(b *testing.B) {
	m, _ := deadNeighbour()
	out := make([]Action, 0, 8)
	at := 2 * time.Second
	b.ReportAllocs()
	for b.Loop() {
		at++
		out = m.Step(Event{At: at, Kind: Tick}, out[:0])
	}
}

func TestUsableEnvelopesFitEachOther(t *testing.T) {
	// Goal: whatever nodes a ring is made of, envelopes that each are usable keep
	// the order of the timers together, so that a plan is never refused for them.
	rng := rand.New(rand.NewPCG(1, 9))
	draw := func(low, high uint32) uint32 {
		switch rng.IntN(4) {
		case 0:
			return low
		case 1:
			return high
		}
		return low + rng.Uint32N(high-low+1)
	}
	for range 20_000 {
		var all proto.Envelope
		for i := range 2 + rng.IntN(4) {
			e := proto.Envelope{DetectMaxMicros: draw(1, proto.MaxRingMicros), SwitchMaxMicros: draw(proto.MinSwitchMaxMicros, proto.MaxRingMicros),
				SkewMicros: draw(0, proto.MaxRingMicros)}
			e.DetectMinMicros, e.SwitchMinMicros = draw(1, e.DetectMaxMicros), draw(1, e.SwitchMaxMicros)
			if err := e.Usable(); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				all = e
			}
			all = proto.Envelope{DetectMaxMicros: max(all.DetectMaxMicros, e.DetectMaxMicros), DetectMinMicros: min(all.DetectMinMicros, e.DetectMinMicros),
				SwitchMaxMicros: max(all.SwitchMaxMicros, e.SwitchMaxMicros), SwitchMinMicros: min(all.SwitchMinMicros, e.SwitchMinMicros),
				SkewMicros: max(all.SkewMicros, e.SkewMicros)}
		}
		if err := check(envelopeOf(all), derive(envelopeOf(all))); err != nil {
			t.Fatalf("%+v: %v", all, err)
		}
	}
}
