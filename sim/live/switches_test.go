package live

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"ringlight/ocs/circuit"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// chief is a planner played by a test over real MQTT.
type chief struct {
	t      *testing.T
	ctx    context.Context
	core   *fabric.Core
	topics proto.Topics
	link   *mqtt.Link
	last   map[proto.NodeID]*proto.Reported
	acks   map[proto.NodeID]proto.Ack
	alive  map[proto.NodeID]bool
}

func (c *chief) send(topic string, kind proto.TopicKind, msg any) {
	c.t.Helper()
	payload, err := proto.Encode(msg)
	if err == nil {
		err = c.link.Send(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: 1, Retain: kind.Retain()})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chief) wait(what string, ok func() bool) {
	c.t.Helper()
	for !ok() {
		select {
		case p := <-c.link.Recv():
			topic, err := proto.ParseTopic(p.Topic)
			if p.Kind != proto.Publish || err != nil {
				continue
			}
			switch topic.Kind {
			case proto.TopicReported:
				r := new(proto.Reported)
				if _, err := proto.Decode(p.Payload, r); err != nil {
					c.t.Fatal(err)
				}
				c.last[r.Node] = r
			case proto.TopicAck:
				var a proto.Ack
				if _, err := proto.Decode(p.Payload, &a); err != nil {
					c.t.Fatal(err)
				}
				c.acks[a.Node] = a
			case proto.TopicPresence:
				var b proto.Presence
				if _, err := proto.Decode(p.Payload, &b); err != nil {
					c.t.Fatal(err)
				}
				c.alive[b.Node] = b.Online
			}
		case <-c.ctx.Done():
			c.t.Fatalf("waited in vain for %s; reports %+v", what, c.last)
		}
	}
}

// plan sends circuits to every switch, by its number, and waits until all are
// prepared.
func (c *chief) plan(g proto.Generation, circuits func(s int) []proto.Circuit) {
	c.t.Helper()
	clear(c.acks)
	for s := range c.core.Switches() {
		id := proto.FirstSwitch + proto.NodeID(s)
		c.send(c.topics.Desired(id), proto.TopicDesired, &proto.Desired{Version: proto.Version, Node: id, Term: 1, Generation: g,
			Plan: proto.Digest{byte(g)}, Decisions: []proto.RingID{c.core.GroupID(0)}, Circuits: circuits(s)})
	}
	c.wait("prepared", func() bool {
		for s := range c.core.Switches() {
			if a := c.acks[proto.FirstSwitch+proto.NodeID(s)]; a.Generation != g || a.Phase != proto.PhasePrepare || a.Code != proto.OK {
				return false
			}
		}
		return true
	})
}

func (c *chief) commit(g proto.Generation) {
	c.t.Helper()
	c.send(c.topics.Decision(c.core.GroupID(0)), proto.TopicDecision, &proto.Decision{Version: proto.Version, Ring: c.core.GroupID(0), Term: 1,
		Generation: g, Plan: proto.Digest{byte(g)}, Verdict: proto.Commit})
}

// done waits until all switches report the generation's circuits by light.
func (c *chief) done(g proto.Generation, circuits func(s int) []proto.Circuit) {
	c.t.Helper()
	c.wait("done", func() bool {
		for s := range c.core.Switches() {
			r := c.last[proto.FirstSwitch+proto.NodeID(s)]
			if r == nil || r.Generation != g || len(r.Circuits) != len(circuits(s)) {
				return false
			}
			for i, x := range r.Circuits {
				if w := circuits(s)[i]; x.State != proto.Tuned || x.A != w.A || x.B != w.B || x.Job != w.Job {
					return false
				}
			}
		}
		return true
	})
}

// Goal: switch agents make circuits over a real broker in real time; one that
// is killed in mid-change completes it in its next life, and no guarded
// circuit loses its light meanwhile.
// Method: two switches of four ports, a planner played by the test.
func TestSwitchesMakeCircuitsOverABroker(t *testing.T) {
	core := fabric.DefaultCore(4)
	core.LeavesPerPod, core.SpinesPerPod, core.SpinePorts, core.LeafLinks, core.SwitchPorts = 1, 1, 2, 1, 6
	if err := core.Validate(); err != nil {
		t.Fatal(err)
	}
	f := &fabric.Fabric{Name: "f1", Core: core}
	broker, err := server.StartBroker("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a bound on a hang
	defer cancel()
	to := mqtt.Config{Broker: broker.URL(), MinReconnect: minReconnect, MaxReconnect: maxReconnect}
	c := &chief{t: t, ctx: ctx, core: core, topics: proto.Topics{Fabric: f.Name}, last: map[proto.NodeID]*proto.Reported{},
		acks: map[proto.NodeID]proto.Ack{}, alive: map[proto.NodeID]bool{}}
	listen := to
	listen.ClientID, listen.Subscriptions = "chief", []string{c.topics.EveryNode(proto.TopicReported), c.topics.EveryNode(proto.TopicAck), c.topics.EveryNode(proto.TopicPresence)}
	if c.link, err = mqtt.Dial(listen); err != nil {
		t.Fatal(err)
	}
	defer c.link.Close()
	s, err := StartCluster(ctx, ClusterConfig{Fabric: f, Seed: 3, Health: time.Second, Broker: to, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c.wait("births", func() bool { return len(c.alive) == 2 && len(c.last) == 2 })
	// Pods in a chain one way round, then the other; the link of pods 0 and 1
	// is another job's and stays.
	first := func(s int) []proto.Circuit {
		return []proto.Circuit{{A: 0, B: 1, Job: 7}, {A: 2, B: 3, Job: 8}, {A: 3, B: 0, Job: 8}}
	}
	second := func(s int) []proto.Circuit {
		return []proto.Circuit{{A: 0, B: 1, Job: 7}, {A: 2, B: 0, Job: 9}, {A: 3, B: 2, Job: 9}}
	}
	c.plan(1, first)
	c.commit(1)
	c.done(1, first)
	for i := range 2 {
		s.circuits.Guard(i, []circuit.Pair{{A: 0, B: 1}})
	}
	c.plan(2, second)
	c.commit(2)
	s.Kill(proto.FirstSwitch + 1)
	c.wait("a death note", func() bool { return !c.alive[proto.FirstSwitch+1] })
	if err := s.Revive(ctx, proto.FirstSwitch+1); err != nil {
		t.Fatal(err)
	}
	c.done(2, second)
	for i := range 2 {
		if lit := s.circuits.Lit(i); !slices.Equal(lit, []circuit.Pair{{A: 0, B: 1}, {A: 2, B: 0}, {A: 3, B: 2}}) {
			t.Errorf("switch %d: light passes %v", i, lit)
		}
	}
	if d := s.circuits.Drops(); len(d) != 0 {
		t.Errorf("drops %+v", d)
	}
	cancel()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
}

// Goal: runs on the virtual clock are put together in the order of their
// seeds, are the same each time, and find nothing broken.
func TestCoreSeedsRepeat(t *testing.T) {
	core := fabric.DefaultCore(4)
	run := func() *CoreSeedsResult {
		r, err := CoreSeeds(t.Context(), CoreSeedsConfig{Core: core, Seed: 5, Runs: 3, Lists: 3, Replay: func(uint64) string { return "again" }})
		if err == nil {
			err = r.Verdict()
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b := run(), run()
	if !slices.Equal(a.SHA256, b.SHA256) || len(a.SHA256) != 3 || a.Killed == 0 || a.Looks == 0 {
		t.Errorf("%+v and then %+v", a, b)
	}
}
