package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/mqtt"
)

const (
	asPlanner = "RINGLIGHT_TEST_PLANNER" // broker URL: this process is a planner
	withState = "RINGLIGHT_TEST_STATE"
)

// TestMain lets the test's own binary be a planner in a process of its own,
// one that can be killed without a chance to clean up.
func TestMain(m *testing.M) {
	if broker := os.Getenv(asPlanner); broker != "" {
		if err := Run(context.Background(), testConfig(broker, os.Getenv(withState))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// testFabric is 8 nodes of 4 GPUs: two rings of TP-16.
func testFabric() *fabric.Fabric {
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16})
	if err != nil {
		panic(err)
	}
	return f
}

func testConfig(broker, state string) Config {
	return Config{Fabric: testFabric(), Broker: broker, State: state, MinReconnect: 10 * time.Millisecond, MaxReconnect: 200 * time.Millisecond}
}

func startBroker(t *testing.T, listen string) *Broker {
	t.Helper()
	b, err := StartBroker(listen, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func startAgents(t *testing.T, broker string, seen proto.Term) (agents []*fakeAgent) {
	for id := range testFabric().Nodes {
		agents = append(agents, startAgent(t, broker, proto.NodeID(id), seen))
	}
	return agents
}

// inProcess runs a planner until the test or the returned function ends it.
func inProcess(t *testing.T, cfg Config) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg) }()
	var ended bool
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stop
}

func ownProcess(t *testing.T, broker, state string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asPlanner+"="+broker, withState+"="+state)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd
}

// Goal: kill -9 and a new start change nothing on any node, and raise the term.
func TestKilledPlannerComesBackToTheSameState(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "127.0.0.1:0")
	agents := startAgents(t, b.URL(), 0)
	state := filepath.Join(t.TempDir(), "planner.db")
	op := startOperator(t, b.URL())
	first := ownProcess(t, b.URL(), state)
	before := op.rings("in service", allInService(2))
	was := op.state("alive", func(m *proto.PlannerState, _ bool) bool { return m.Online })
	applied := applications(agents)
	if applied != len(agents) {
		t.Errorf("%d nodes applied %d generations", len(agents), applied)
	}

	first.Process.Kill()
	first.Wait()
	op.state("dead by its will", func(m *proto.PlannerState, _ bool) bool { return !m.Online && m.Planner == was.Planner })
	ownProcess(t, b.URL(), state)
	now := op.state("back", func(m *proto.PlannerState, retained bool) bool { return m.Online && !retained })
	if now.Planner != was.Planner || now.Term != was.Term+1 {
		t.Errorf("planner %d term %d, was %d term %d", now.Planner, now.Term, was.Planner, was.Term)
	}
	after := op.rings("in service again", allInService(2))
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("rings\n%v\nwere\n%v", after, before)
	}
	if n := applications(agents); n != applied {
		t.Errorf("the restart applied %d generations", n-applied)
	}
}

// The broker alone goes away with everything it retained and returns on its
// port: all converge, and no node applies anything anew.
func TestBrokerRestartConverges(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "127.0.0.1:0")
	agents := startAgents(t, b.URL(), 0)
	op := startOperator(t, b.URL())
	inProcess(t, testConfig(b.URL(), filepath.Join(t.TempDir(), "planner.db")))
	before := op.rings("in service", allInService(2))
	applied := applications(agents)
	b.Close()
	startBroker(t, b.Addr())
	op.state("heard live", func(m *proto.PlannerState, retained bool) bool { return m.Online && !retained })
	births := watchPresence(t, b.URL())
	for seen := map[string]bool{}; len(seen) < len(agents); {
		seen[births()] = true
	}
	after := op.rings("in service again", allInService(2))
	if fmt.Sprint(before) != fmt.Sprint(after) || applications(agents) != applied {
		t.Errorf("rings\n%v\nwere\n%v; %d applications, were %d", after, before, applications(agents), applied)
	}
}

// watchPresence gives the topics of births one by one.
func watchPresence(t *testing.T, broker string) func() string {
	t.Helper()
	link, err := mqtt.Dial(mqtt.Config{Broker: broker, ClientID: "watch", Subscriptions: []string{proto.Topics{Fabric: "f1"}.EveryNode(proto.TopicPresence)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	deadline := time.After(patience)
	return func() string {
		for {
			select {
			case <-deadline:
				t.Fatal("not every node was born again")
			case p := <-link.Recv():
				if p.Kind == proto.Publish {
					return p.Topic
				}
			}
		}
	}
}

// A planner whose store is older than what the nodes know must not command
// them with its stale term: it listens, then takes a higher one and stores it.
func TestStaleTermIsRaised(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "127.0.0.1:0")
	agents := startAgents(t, b.URL(), 50)
	op := startOperator(t, b.URL())
	state := filepath.Join(t.TempDir(), "planner.db")
	stop := inProcess(t, testConfig(b.URL(), state))
	op.rings("in service", allInService(2))
	if m := op.state("alive", func(m *proto.PlannerState, _ bool) bool { return m.Online }); m.Term <= 50 {
		t.Errorf("term %d, the nodes know 50", m.Term)
	}
	for _, a := range agents {
		a.mu.Lock()
		if a.applied.Term <= 50 || a.applies != 1 {
			t.Errorf("node %d applied term %d, %d times", a.id, a.applied.Term, a.applies)
		}
		a.mu.Unlock()
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	store, err := openBolt(state)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	st, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := planner.Start(st, nil, 1)
	if err != nil || cfg.Term <= 50 {
		t.Errorf("the last term is %d, %v", cfg.Term, err)
	}
}

// The second of two planners stands by in its process, its own broker with it,
// and takes the first one's place; one with another description leaves, and
// says which planner it met.
func TestSecondPlannerStandsBy(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "127.0.0.1:0")
	dir := t.TempDir()
	op := startOperator(t, b.URL())
	stop := inProcess(t, testConfig(b.URL(), filepath.Join(dir, "one.db")))
	one := op.state("settled", func(m *proto.PlannerState, _ bool) bool { return m.Online && m.Seq >= 2 })

	wrong := testConfig(b.URL(), filepath.Join(dir, "wrong.db"))
	var err error
	if wrong.Fabric, err = fabric.New(fabric.Params{Name: "f1", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 32}); err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() { left <- Run(context.Background(), wrong) }()
	inProcess(t, testConfig(b.URL(), filepath.Join(dir, "two.db")))
	two := op.state("standing by", func(m *proto.PlannerState, _ bool) bool { return m.Standby })
	if two.Life == one.Life || two.Layout != one.Layout {
		t.Errorf("%+v stands by for %+v", two, one)
	}
	if err := <-left; !errors.Is(err, errGaveWay) || !strings.Contains(err.Error(), fmt.Sprintf("(%06x)", one.Life&0xffffff)) || !strings.Contains(err.Error(), "-takeover") {
		t.Errorf("%v, want to give way to (%06x)", err, one.Life&0xffffff)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	now := op.state("taken over", func(m *proto.PlannerState, retained bool) bool { return m.Online && m.Life == two.Life && !retained })
	if now.Term == 0 {
		t.Errorf("%+v", now)
	}
}

// What is not acceptable changes nothing and is counted.
func TestMalformedMessagesChangeNothing(t *testing.T) {
	t.Parallel()
	b := startBroker(t, "127.0.0.1:0")
	startAgents(t, b.URL(), 0)
	op := startOperator(t, b.URL())
	refused := make(chan uint64, 1)
	cfg := testConfig(b.URL(), filepath.Join(t.TempDir(), "planner.db"))
	cfg.Observe = func(p *planner.Planner) {
		select {
		case <-refused:
		default:
		}
		o := p.Overview()
		refused <- o.Refused + o.Shed
	}
	inProcess(t, cfg)
	before := op.rings("in service", allInService(2))
	topics := proto.Topics{Fabric: "f1"}
	bad := []proto.Packet{
		{Topic: topics.Ack(0), Payload: []byte("{}")},
		{Topic: topics.Reported(1), Payload: []byte{0xa1, 0x00, 0x02}},
		{Topic: topics.Presence(99), Payload: []byte{0xf6}},
		{Topic: topics.Event(2), Payload: make([]byte, proto.MaxPayload+1)},
		{Topic: topics.Planner(), Payload: []byte{0xff}},
	}
	for _, p := range bad {
		p.QoS = 1
		if err := op.link.Send(p); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(patience)
	for n := uint64(0); n < uint64(len(bad)); {
		select {
		case n = <-refused:
		case <-deadline:
			t.Fatalf("%d of %d counted", n, len(bad))
		}
	}
	after := op.rings("still in service", allInService(2))
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("rings\n%v\nwere\n%v", after, before)
	}
}

// A node's event is acknowledged when it is in the store, and never when the
// store takes nothing: then the planner ends.
func TestStoredBeforeSaid(t *testing.T) {
	for _, full := range []error{nil, errors.New("disk full")} {
		var trace []string
		store := &fakeStore{trace: new([]string)}
		cfg, err := planner.Start(nil, testFabric(), 7)
		if err != nil {
			t.Fatal(err)
		}
		s := &server{cfg: Config{Log: slog.New(slog.DiscardHandler)}, store: store, began: time.Now(), link: mqtt.Watch{Log: slog.New(slog.DiscardHandler)},
			sendOut: func(p proto.Packet) error {
				if topic, _ := proto.ParseTopic(p.Topic); topic.Kind == proto.TopicCommand {
					trace = append(trace, "said")
				}
				return nil
			}}
		cfg.Alone = true
		s.host = planner.NewHost(cfg, s)
		s.receive(proto.Packet{Kind: proto.LinkUp})
		if err := allStored(s); err != nil { // the term
			t.Fatal(err)
		}
		store.trace, store.err = &trace, full
		topics := proto.Topics{Fabric: cfg.Fabric.Name}
		for topic, m := range map[string]any{ // any order: both have come before the store is asked
			topics.Presence(1): &proto.Presence{Version: proto.Version, Node: 1, Session: 3, Online: true, Mode: proto.ModeService, Bundles: 2},
			topics.Event(1):    &proto.Event{Version: proto.Version, Node: 1, Session: 3, Seq: 1, Kind: proto.EvStarted, Count: 1},
		} {
			payload, err := proto.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			s.receive(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload})
		}
		s.began = s.began.Add(-time.Second) // time enough to gather more of them
		s.host.Tick()
		if err := allStored(s); err != full {
			t.Errorf("stored with %v, the store says %v", err, full)
		}
		got, want := strings.Join(trace, " "), ""
		if full == nil {
			want = "commit said"
		}
		if got != want {
			t.Errorf("store says %v: %q, want %q", full, got, want)
		}
	}
}

// allStored stores what is asked for, until nothing is.
func allStored(s *server) error {
	for s.settle(); s.stored != nil; s.settle() {
		if err := s.done(<-s.stored); err != nil {
			return err
		}
	}
	return nil
}

type fakeStore struct {
	trace *[]string
	err   error
}

func (s *fakeStore) Load() (planner.State, error) { return nil, nil }
func (s *fakeStore) Close() error                 { return nil }
func (s *fakeStore) Standing() (Standing, <-chan struct{}) {
	return Standing{Reign: 1}, nil
}

func (s *fakeStore) Commit([]planner.Record) error {
	if s.err != nil {
		return s.err
	}
	*s.trace = append(*s.trace, "commit")
	return nil
}

// A configuration that cannot work is refused before anything is touched.
func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		cfg   Config
		field string
	}{
		{Config{Broker: "mqtt://127.0.0.1:1"}, "state"},
		{Config{State: "x", Broker: "mqtt://192.0.2.1"}, "broker"},
		{Config{State: "x", Broker: "mqtt://127.0.0.1", Listen: "127.0.0.1:0"}, "listen"},
		{Config{State: "x", Listen: "0.0.0.0:1883"}, "listen"},
		{Config{State: "x", Listen: "127.0.0.1"}, "listen"},
		{Config{State: "x", Listen: "127.0.0.1:0", CertFile: "x"}, "cert"},
		{Config{State: "x", Listen: "127.0.0.1:0", CAFile: "x", CertFile: "x", KeyFile: "x"}, "cert"},
	} {
		err := Run(context.Background(), c.cfg)
		if e := proto.AsError(err); err == nil || e.Field != c.field || e.Limit == "" {
			t.Errorf("%+v: %v, want field %s", c.cfg, err, c.field)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a refused configuration left a store")
	}
}
