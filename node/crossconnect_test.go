package node

import (
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/proto"
)

// crossWorld is a cross-connect with hardware that makes what it is told, and a disk
// that has what was saved last. A crash keeps both and loses the rest.
type crossWorld struct {
	t      testing.TB
	s      *CrossConnect
	ports  int
	now    time.Duration
	disk   State
	light  map[uint16]uint16 // by port of A
	failed map[uint16]bool   // circuits that did not come up
	said   []proto.Ack
	again  int // circuits tried again
}

const crossPorts = 5

func newCrossWorld(t testing.TB) *crossWorld {
	w := &crossWorld{t: t, ports: crossPorts, light: map[uint16]uint16{}, failed: map[uint16]bool{}}
	w.boot()
	return w
}

func (w *crossWorld) boot() {
	w.s = NewCrossConnect(proto.FirstSwitch, w.ports)
	w.s.Restore(w.disk)
}

// found is what a life finds at its start.
func (w *crossWorld) found() (list []proto.CircuitReport) {
	for a := range uint16(w.ports) {
		if b, is := w.light[a]; is {
			r := proto.CircuitReport{A: a, B: b, State: proto.Tuned, Loss: 1700}
			if w.failed[a] {
				r.State, r.Loss = proto.Failed, proto.NoPower
			}
			list = append(list, r)
		}
	}
	return list
}

// step tells the machine something, checks what it asks and does it.
func (w *crossWorld) step(ev Event) {
	w.now += time.Millisecond
	ev.At = w.now
	saved := false
	before := w.s.applied
	for _, a := range w.s.Step(ev, nil) {
		switch a.Kind {
		case Save:
			saved = true
			next := w.s.State()
			if t, g, _ := next.Applied.name(); w.disk.Applied.compare(t, g) < 0 {
				w.t.Fatalf("applies %d.%d, and had %+v", t, g, w.disk.Applied)
			}
			w.disk = next
		case Connect:
			if w.disk.Applied == nil || w.disk.Applied != w.s.applied || !w.disk.Moving && !a.Change.Again {
				w.t.Fatalf("mirrors move before the disk knows: %+v", w.disk)
			}
			w.change(a.Change)
		case Answer:
			w.said = append(w.said, a.Ack)
		}
	}
	if w.s.applied != before && !saved {
		w.t.Fatal("a generation is applied and not saved")
	}
}

// change is what mirrors do: removes before creates, no port twice.
func (w *crossWorld) change(c *Change) {
	for _, x := range c.Remove {
		if b, is := w.light[x.A]; !is || b != x.B {
			w.t.Fatalf("removes %d to %d, which is not there: %v", x.A, x.B, w.light)
		}
		delete(w.light, x.A)
		delete(w.failed, x.A)
	}
	for _, x := range c.Create {
		if b, is := w.light[x.A]; is && (b != x.B || !w.failed[x.A]) {
			w.t.Fatalf("creates %d to %d over %d, which is there", x.A, x.B, b)
		}
		for a, b := range w.light { // any order: at most one has it
			if b == x.B && a != x.A {
				w.t.Fatalf("creates %d to %d while %d has it", x.A, x.B, a)
			}
		}
		w.light[x.A] = x.B
		delete(w.failed, x.A)
	}
	if c.Again {
		w.again += len(c.Create)
		return
	}
	// Now exactly the plan is there.
	if len(w.light) != len(w.s.applied.Desired.Circuits) {
		w.t.Fatalf("has %v, plan %+v", w.light, w.s.applied.Desired.Circuits)
	}
	for _, x := range w.s.applied.Desired.Circuits {
		if b, is := w.light[x.A]; !is || b != x.B {
			w.t.Fatalf("has %v, plan %+v", w.light, w.s.applied.Desired.Circuits)
		}
	}
}

// unread makes of some readings ones of a board that does not answer.
func (w *crossWorld) unread(ev Event, draw func(n int) int) Event {
	if (ev.Kind == Adopt || ev.Kind == Ready) && draw(3) == 0 {
		ev.Text, ev.Lit = "does not answer", draw(2) == 0
	}
	return ev
}

// event draws what may happen to a cross-connect.
func (w *crossWorld) event(draw func(n int) int) Event {
	if draw(20) == 0 {
		w.now += 20 * time.Second
	}
	seen, last := w.s.inForce()
	term, gen := max(seen, 1), last+proto.Generation(draw(3))
	if draw(8) == 0 {
		term += proto.Term(draw(3)) - 1
	}
	switch draw(14) {
	case 0:
		w.boot()
		return Event{Kind: Adopt, Circuits: w.found(), Lit: draw(8) == 0}
	case 1:
		return Event{Kind: Adopt, Circuits: w.found()} // twice
	case 2, 3, 4, 5:
		d := &proto.Desired{Version: 1, Node: proto.FirstSwitch, Term: term, Generation: gen, Plan: proto.Digest{byte(draw(2))},
			Decisions: []proto.RingID{proto.FirstGroup}, BypassSeq: uint64(draw(3))}
		if draw(4) > 0 {
			d.BypassSeq = w.s.bypassSeq
		}
		for a := range w.ports + draw(2)*draw(2) {
			if b := draw(w.ports + 2); b < w.ports {
				d.Circuits = append(d.Circuits, proto.Circuit{A: uint16(a), B: uint16(b), Job: proto.JobID(draw(3))})
			}
		}
		return Event{Kind: Stage, Desired: d, Digest: proto.Digest{byte(draw(2))}}
	case 6, 7, 8:
		d := &proto.Decision{Version: 1, Ring: proto.FirstGroup, Term: term, Generation: gen, Plan: proto.Digest{byte(draw(2))}, Verdict: proto.Verdict(draw(4))}
		if s := w.s.staged; s != nil && draw(4) > 0 {
			d.Term, d.Generation, d.Plan, d.Verdict = s.Desired.Term, s.Desired.Generation, s.Desired.Plan, proto.Commit
		}
		return Event{Kind: Decide, Decision: d}
	case 9:
		return Event{Kind: Switched}
	case 10:
		r := proto.CircuitReport{A: uint16(draw(w.ports + 1)), B: uint16(draw(w.ports + 1)), State: proto.PortState(draw(4)), Loss: proto.MilliDBm(draw(20_000))}
		if b, is := w.light[r.A]; is && b == r.B && r.State == proto.Failed {
			w.failed[r.A] = true
			r.Loss = proto.NoPower
		} else if r.State == proto.Failed {
			r.State = proto.Tuned
		}
		return Event{Kind: Circuit, Circuits: []proto.CircuitReport{r}, Text: []string{"", "why"}[draw(2)]}
	case 11:
		return Event{Kind: Hold, Array: uint8(draw(3)), Port: uint16(draw(w.ports + 1)), Override: proto.Override(draw(3))}
	case 12:
		return Event{Kind: []EventKind{HeardTerm, DropStaged, Tick, HostFault}[draw(4)], Term: term}
	}
	if draw(2) == 0 {
		return Event{Kind: Unready, Text: "gone"}
	}
	return Event{Kind: Ready, Circuits: w.found()}
}

func TestCrossConnectHoldsToItsPlanWhateverHappens(t *testing.T) {
	// Goal: mirrors move only for a plan that is on disk; a change leaves exactly
	// the plan, removes nothing twice, touches no circuit that has light; no
	// generation comes back, over crashes at any moment.
	// Method: 200,000 things at random to a small one with a model of its
	// mirrors and its disk.
	applied, moved, again := 0, 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := newCrossWorld(t)
		for range 500 {
			gen := w.s.applied
			w.step(w.event(r.IntN))
			if w.s.applied != gen {
				applied++
				moved += len(w.light)
			}
		}
		again += w.again
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if applied < 1000 || moved < 1000 || again < 10 {
		t.Errorf("%d generations with %d circuits, %d tried again: that shows little", applied, moved, again)
	}
}

func FuzzCrossConnect(f *testing.F) {
	f.Add([]byte{0, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	f.Add([]byte("prepare, commit, crash, adopt, prepare"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := &reader{in}
		w := newCrossWorld(t)
		for len(r.in) > 0 {
			w.step(w.event(func(n int) int { return int(r.next()) % n }))
		}
	})
}

func TestCrossConnectRefusesADecisionForAnotherPlan(t *testing.T) {
	// Goal: two planners at one generation are told once, and the one that was
	// held stays.
	w := newCrossWorld(t)
	w.step(Event{Kind: Adopt})
	d := &proto.Desired{Version: 1, Node: proto.FirstSwitch, Term: 1, Generation: 4, Plan: proto.Digest{1}, Decisions: []proto.RingID{proto.FirstGroup},
		Circuits: []proto.Circuit{{A: 0, B: 1}}}
	w.step(Event{Kind: Stage, Desired: d})
	for range 3 {
		w.step(Event{Kind: Decide, Decision: &proto.Decision{Term: 1, Generation: 4, Plan: proto.Digest{2}, Verdict: proto.Commit}})
	}
	w.step(Event{Kind: Decide, Decision: &proto.Decision{Term: 1, Generation: 4, Plan: proto.Digest{1}, Verdict: proto.Commit}})
	codes := []proto.Code{}
	for _, a := range w.said {
		codes = append(codes, a.Code)
	}
	if want := []proto.Code{proto.OK, proto.Conflict, proto.Conflict, proto.Conflict, proto.OK}; len(codes) != len(want) || codes[1] != want[1] || codes[4] != want[4] || w.light[0] != 1 {
		t.Errorf("answers %v, light %v", codes, w.light)
	}
}
