package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"ringlight/proto"
	"ringlight/sim/testbroker"
)

// Goal: agents that know a term beyond what a planner believes are named with the
// way on, and that way works: begun above it, the planner has them in service.
// Method: a new store at a fabric whose agents know a far term, then -term-above;
// that real agents follow such a term is package node's to show.
func TestTermAboveReachesAgentsFarAhead(t *testing.T) {
	t.Parallel()
	const far = proto.MaxFirst + 7
	b := startBroker(t, "127.0.0.1:0")
	agents := startAgents(t, b.URL(), far)
	op := startOperator(t, b.URL())
	cfg := testConfig(b.URL(), filepath.Join(t.TempDir(), "planner.db"))
	log := expect(&cfg, fmt.Sprintf("-term-above %d", uint64(far)))
	stop := inProcess(t, cfg)
	op.state("in service with a term of its own", func(m *proto.PlannerState, _ bool) bool { return m.Online && m.Term < far })
	log.wait(t, patience)
	if n := applications(agents); n != 0 {
		t.Errorf("%d nodes applied something of an old term", n)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	cfg.TermAbove = far
	inProcess(t, cfg)
	op.rings("in service", allInService(2))
	if s := op.state("in service above it", func(m *proto.PlannerState, _ bool) bool { return m.Online && m.Term > far }); s.Term != far+1 {
		t.Errorf("term %d, want %d", s.Term, proto.Term(far+1))
	}
}

// expected is a log in which a text must come.
type expected struct {
	text string
	once sync.Once
	came chan struct{}
}

func expect(cfg *Config, text string) *expected {
	e := &expected{text: text, came: make(chan struct{})}
	cfg.Log = slog.New(slog.NewTextHandler(e, nil))
	return e
}

func (e *expected) Write(line []byte) (int, error) {
	if strings.Contains(string(line), e.text) {
		e.once.Do(func() { close(e.came) })
	}
	return len(line), nil
}

func (e *expected) wait(t *testing.T, limit time.Duration) {
	t.Helper()
	select {
	case <-e.came:
	case <-time.After(limit):
		t.Fatalf("the log does not say %q within %v", e.text, limit)
	}
}

// refusing is a broker's hook that lets nobody in, or denies one topic.
type refusing struct {
	mochi.HookBase
	topic string
}

func (h *refusing) ID() string { return "refusing" }
func (h *refusing) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck
}
func (h *refusing) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return h.topic != "" }
func (h *refusing) OnACLCheck(_ *mochi.Client, topic string, _ bool) bool    { return topic != h.topic }

// Goal: a planner that its broker refuses says so within 5 s, with the reason: that
// it may not in, that it may not hear a topic, that nobody is there.
// Method: brokers that do each; the planner's log.
func TestRefusedPlannerSaysWhy(t *testing.T) {
	t.Parallel()
	denied := proto.Topics{Fabric: "f1"}.EveryNode(proto.TopicAck)
	for _, c := range []struct{ topic, want string }{{"", "not Authorized"}, {denied, "denies a subscription, and without it nothing is planned\" broker"}, {"none", "connection refused"}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if c.topic == "none" {
			l.Close()
		} else {
			broker := mochi.New(&mochi.Options{Logger: slog.New(slog.DiscardHandler)})
			if err := errors.Join(broker.AddHook(&refusing{topic: c.topic}, nil), broker.AddListener(testbroker.Listener{Listener: listeners.NewNet("mqtt", l), Server: broker}), broker.Serve()); err != nil {
				t.Fatal(err)
			}
			defer broker.Close()
		}
		cfg := testConfig("mqtt://"+l.Addr().String(), filepath.Join(t.TempDir(), "planner.db"))
		log := expect(&cfg, c.want)
		stop := inProcess(t, cfg)
		log.wait(t, 5*time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}
