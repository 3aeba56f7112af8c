package planner

import (
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// ports of a host under test keep what it says.
type ports struct{ said []string }

func (p *ports) Now() (time.Duration, uint64) { return time.Second, 1 }
func (p *ports) Send(q proto.Packet)          { p.said = append(p.said, q.Topic) }
func (p *ports) Log(*Line)                    {}

func hosted(t *testing.T) (*Host, *ports) {
	t.Helper()
	cfg, err := Start(nil, fabric.Default(), 7)
	if err != nil {
		t.Fatal(err)
	}
	p := new(ports)
	return NewHost(cfg, p), p
}

// What follows a Persist leaves after it is on disk, in order; what precedes
// it does not wait; and several are one transaction.
func TestHostStoresBeforeItSends(t *testing.T) {
	h, p := hosted(t)
	sent := func(topic string) { h.act(&Action{Kind: Send, Packet: proto.Packet{Topic: topic}}) }
	said := func(want string) {
		t.Helper()
		if got := strings.Join(p.said, " "); got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	sent("a")
	h.act(&Action{Kind: Persist, Persist: 1 << 40, Records: []Record{{Key: "x"}}})
	sent("b")
	h.act(&Action{Kind: Persist, Persist: 1<<40 + 1, Records: []Record{{Key: "y"}}})
	sent("c")
	said("a")
	records, due := h.Transaction()
	if !due || len(records) != 2 || records[0].Key != "x" || records[1].Key != "y" {
		t.Fatalf("transaction %v, %t", records, due)
	}
	sent("d")
	if _, due := h.Transaction(); due {
		t.Error("two transactions at a time")
	}
	said("a")
	h.Stored()
	said("a b c d")
	if _, due := h.Transaction(); due {
		t.Error("nothing was asked for")
	}
}

// What is heard while the disk works waits, in order, and no timer runs.
func TestHostHearsNothingWhileItStores(t *testing.T) {
	h, _ := hosted(t)
	h.Deliver(proto.Packet{Kind: proto.LinkUp})
	h.Deliver(proto.Packet{Kind: proto.LinkDown})
	h.act(&Action{Kind: Persist, Persist: 1 << 40})
	if _, due := h.Transaction(); !due {
		t.Fatal("a transaction without records is one")
	}
	if _, more := h.Step(); more || h.Next() != Never {
		t.Error("stepped while something is being stored")
	}
	h.Stored()
	for _, want := range []proto.PacketKind{proto.LinkUp, proto.LinkDown} {
		if p, more := h.Step(); !more || p.Kind != want {
			t.Errorf("heard %+v, %t, want %v", p, more, want)
		}
	}
	if _, more := h.Step(); more {
		t.Error("heard something that nobody said")
	}
}

// A planner that gave way does nothing more.
func TestHostEndsWhenThePlannerGivesWay(t *testing.T) {
	h, _ := hosted(t)
	h.Deliver(proto.Packet{Kind: proto.LinkUp})
	h.act(&Action{Kind: Exit, Reason: "another one"})
	if reason, exited := h.Exited(); !exited || reason != "another one" {
		t.Errorf("%q, %t", reason, exited)
	}
	if _, more := h.Step(); more || h.Next() != Never {
		t.Error("it goes on")
	}
}
