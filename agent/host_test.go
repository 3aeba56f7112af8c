package agent

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/proto"
)

// testPorts note what they are given; what they return is chosen.
type testPorts struct {
	work           []Work
	sent           []proto.Packet
	records        []uint64
	refuse, unsent error
	full           error
}

func (p *testPorts) Submit(_ time.Duration, w Work) error {
	p.work = append(p.work, w)
	return p.refuse
}

func (p *testPorts) Send(_ time.Duration, packet proto.Packet) error {
	p.sent = append(p.sent, packet)
	return p.unsent
}

func (p *testPorts) Persist(_ time.Duration, id uint64, _ *Record) error {
	p.records = append(p.records, id)
	return p.full
}

func hostOn(t *testing.T, p Ports) *Host {
	t.Helper()
	board, err := boardfile.Default(4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	return NewHost(Config{Fabric: "f1", Node: 5, Board: &board, Session: 1, HealthPeriod: -1}, Journal{}, p, nil)
}

// Goal: work that is refused ends at once: its agent waits for nothing.
// Method: a board that takes nothing; the bundles say so in no time.
func TestRefusedWorkEndsAtOnce(t *testing.T) {
	p := &testPorts{refuse: hal.ErrQueueFull}
	h := hostOn(t, p)
	if err := h.Settle(time.Second); err != nil {
		t.Fatal(err)
	}
	if len(p.work) == 0 || len(h.flying) != 0 {
		t.Errorf("%d ops asked for, %d under way", len(p.work), len(h.flying))
	}
	for _, b := range h.Status(time.Second).Bundles {
		if b.Ready || b.BusErrors == 0 {
			t.Errorf("%+v", b)
		}
	}
}

// Goal: only work of this life comes back to it, and once.
// Method: a completion that nobody asked for, and one told twice; the second
// would reach a bundle that waits for other work, or for none, which panics.
func TestCompletionsOfAnotherLifeAreDropped(t *testing.T) {
	p := new(testPorts)
	h := hostOn(t, p)
	done := func(op *hal.Op) {
		h.Deliver(2*time.Second, Input{Kind: InHardware, Hardware: hal.Event{Completion: &hal.Completion{Op: op, Err: hal.ErrTimeout}}})
	}
	done(&hal.Op{Token: 99 << tokenShift})
	if err := h.Settle(time.Second); err != nil {
		t.Fatal(err)
	}
	first, under := p.work[0].Op, len(h.flying)
	done(first)
	if len(h.flying) != under-1 || slices.Contains(h.flying, first) {
		t.Errorf("%d of %d ops under way", len(h.flying), under)
	}
	h.told = false
	done(first)
	if h.told {
		t.Error("told twice")
	}
}

// Goal: work that answers an edge is marked as decided just now, until the
// agent is quiet; levels told before the start are no edges to answer.
func TestWorkThatAnswersAnEdgeIsMarked(t *testing.T) {
	p := new(testPorts)
	h := hostOn(t, p)
	if err := h.Levels(0, func(hal.LineID) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	if err := h.Settle(0); err != nil {
		t.Fatal(err)
	}
	for _, w := range p.work {
		if w.Decided {
			t.Errorf("decided on a level: %+v", w)
		}
	}
	h.Deliver(time.Millisecond, Input{Kind: InHardware, Hardware: hal.Event{Edge: &hal.Edge{At: time.Millisecond}}})
	if !h.decided {
		t.Error("an edge is not remembered")
	}
	if err := h.Settle(time.Millisecond); err != nil || h.decided {
		t.Errorf("an edge is remembered when all is quiet (%v)", err)
	}
	var think Thinking
	think.Takes = 8
	for i, c := range []struct {
		now, leaves time.Duration
		decided     bool
	}{{1, 1, false}, {10, 18, true}, {12, 18, false}, {20, 20, false}} {
		if at := think.Leaves(c.now, c.decided); at != c.leaves {
			t.Errorf("%d: leaves at %d, want %d", i, at, c.leaves)
		}
	}
}

// Goal: every question has its own answer; a lost packet is told; a journal
// that cannot take a record ends the round.
func TestWhatPortsAnswer(t *testing.T) {
	full := errors.New("full")
	p := &testPorts{refuse: hal.ErrQueueFull, unsent: errSendQueue, full: full}
	h := hostOn(t, p)
	if err := h.Settle(time.Second); !errors.Is(err, full) || len(p.records) != 1 {
		t.Fatalf("%v, %d records", err, len(p.records))
	}
	p.full = nil
	h.Deliver(2*time.Second, Input{Kind: InPersisted, ID: p.records[0]})
	h.Deliver(2*time.Second, Input{Kind: InPacket, Packet: proto.Packet{Kind: proto.LinkUp}})
	var order []int
	for i := range 3 {
		h.Ask(2*time.Second, Ask{Verb: AskStatus}, func(a *Answer) {
			if a.Status == nil {
				t.Error("no status")
			}
			order = append(order, i)
		})
	}
	if err := h.Settle(2 * time.Second); err != nil || !slices.Equal(order, []int{0, 1, 2}) || len(h.asks) != 0 {
		t.Errorf("%v, %v, %d asks are left", err, order, len(h.asks))
	}
	if len(p.sent) == 0 || h.agent.wire.again != 2*time.Second+sendAgain {
		t.Errorf("%d packets sent and lost, repeated at %v", len(p.sent), h.agent.wire.again)
	}
}

// A simulation gives an agent its inputs and lets it settle; Next says when it
// wants to be called without one.
func ExampleHost() {
	board, _ := boardfile.Default(4, 2, 1)
	ports := new(testPorts) // the board, the link and the disk
	host := NewHost(Config{Fabric: "f1", Node: 5, Board: &board, Session: 1}, Journal{}, ports, nil)
	now := time.Second
	_ = host.Levels(now, func(hal.LineID) (bool, error) { return false, nil })
	_ = host.Settle(now)
	fmt.Println("reads the hardware:", len(ports.work) > 0)

	now = host.Next() // nothing has answered
	_ = host.Settle(now)
	fmt.Println("in service:", host.View().Mode())
	// Output:
	// reads the hardware: true
	// in service: unplanned
}
