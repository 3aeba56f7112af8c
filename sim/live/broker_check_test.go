package live

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"

	"ringlight/planner/server"
	"ringlight/proto/mqtt"
	"ringlight/sim/testbroker"
)

// Goal: the embedded broker has all that is asked of a broker, and an address where none
// is lacks the first thing. Method: the check itself.
func TestEmbeddedBrokerHasAll(t *testing.T) {
	t.Parallel()
	b, err := server.StartBroker("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	found := CheckBroker(t.Context(), mqtt.Config{Broker: b.URL() + "," + b.URL()}, "f1")
	for _, f := range found {
		if !f.Has {
			t.Errorf("%s: %s", f.Ask, f.Saw)
		}
	}
	if len(found) != 7 {
		t.Errorf("%d findings", len(found))
	}
}

// Goal: what a broker lacks is named, and the rest is found all the same. Method: one
// that keeps no retained message, and one that lets messages of 1 KiB pass.
func TestWhatABrokerLacksIsNamed(t *testing.T) {
	t.Parallel()
	for lack, with := range map[string]func(*mochi.Capabilities){ // any order
		"retained":            func(c *mochi.Capabilities) { c.RetainAvailable = 0 },
		"a message of 64 KiB": func(c *mochi.Capabilities) { c.MaximumPacketSize = 1024 },
	} {
		t.Run(lack, func(t *testing.T) {
			t.Parallel()
			caps := mochi.NewDefaultServerCapabilities()
			with(caps)
			s := mochi.New(&mochi.Options{Capabilities: caps, Logger: slog.New(slog.DiscardHandler)})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				err = errors.Join(s.AddHook(new(auth.AllowHook), nil), s.AddListener(testbroker.Listener{Listener: listeners.NewNet("t", l), Server: s}), s.Serve())
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, f := range CheckBroker(t.Context(), mqtt.Config{Broker: "mqtt://" + l.Addr().String()}, "f1") {
				if f.Has == strings.HasPrefix(f.Ask, lack) {
					t.Errorf("%s: %v, %s", f.Ask, f.Has, f.Saw)
				}
			}
		})
	}
}
