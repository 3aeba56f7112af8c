package mqtt

import (
	"bytes"
	"crypto/ed25519"
	"sync/atomic"
	"testing"

	"ringlight/proto"
	"ringlight/proto/seal"
)

var guardKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// sealing seals all that goes, and stops what is not sealed.
type sealing struct{ stopped atomic.Int32 }

func (s *sealing) Seal(p *proto.Packet) { p.Payload = seal.Sign(guardKey, p.Topic, p.Payload) }

func (s *sealing) Open(p *proto.Packet) proto.Passage {
	switch {
	case string(p.Payload) == "for the guard":
		return proto.Kept
	case p.Sealed == nil:
		s.stopped.Add(1)
		return proto.Stopped
	}
	p.By = "f1/planner/a"
	return proto.Passes
}

// Goal: a guard seals all that leaves a link, its will too, and judges all that
// comes; a link without one takes seals off. Method: three links on every broker.
func TestGuardStandsAtTheLink(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		g := new(sealing)
		bare := up(t, Config{Broker: b.url(), ClientID: "bare", Subscriptions: []string{"t/#"}, Ordered: true})
		guarded := up(t, Config{Broker: b.url(), ClientID: "guarded", Subscriptions: []string{"t/#"}, Ordered: true, Guard: g})
		dying := up(t, Config{Broker: b.url(), ClientID: "dying", Guard: new(sealing), Will: &proto.Packet{Topic: "t/will", Payload: []byte("gone"), QoS: 1}})
		send(t, bare, "t/plain", "plain", false)
		send(t, bare, "t/plain", "for the guard", false)
		for _, want := range []string{"plain", "for the guard", "sealed"} {
			if want == "sealed" {
				send(t, dying, "t/sealed", "sealed", false)
			}
			p := wantKind(t, bare, proto.Publish)
			if string(p.Payload) != want || p.By != "" || (p.Sealed != nil) != (want == "sealed") {
				t.Fatalf("without a guard: %q, by %q", p.Payload, p.By)
			}
		}
		p := wantKind(t, guarded, proto.Publish)
		if s, _, err := seal.Open(p.Sealed); string(p.Payload) != "sealed" || p.By == "" || err != nil || !s.By(guardKey.Public().(ed25519.PublicKey), "t/sealed") {
			t.Fatalf("with one: %q, by %q, %v", p.Payload, p.By, err)
		}
		dying.Abandon()
		for p.Topic != "t/will" {
			if p = wantKind(t, guarded, proto.Publish); string(p.Payload) == "gone" {
				break
			}
		}
		if s, _, err := seal.Open(p.Sealed); err != nil || !s.By(guardKey.Public().(ed25519.PublicKey), "t/will") {
			t.Errorf("the will is not sealed: %v", err)
		}
		if g.stopped.Load() != 1 || guarded.Stats().Shed != 1 {
			t.Errorf("stopped %d, counted %d", g.stopped.Load(), guarded.Stats().Shed)
		}
	})
}
