package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim"
)

// RingConfig is an experiment: packets go round a ring of all nodes while their power is
// cut, or their fibres, one node at a time.
type RingConfig struct {
	Config
	Cuts   int  `flag:"cuts" usage:"times that a node's power is cut and comes back"`
	Rate   int  `flag:"rate" usage:"records a second of each stream"`
	Train  bool `flag:"train" usage:"every second node runs a process that sums up with the others (gloo), and those between are cut; needs PyTorch"`
	Fibres bool `flag:"fibres" usage:"every second time all fibres of the node are cut, and not its power"`
	Told   func(Cut)
}

// Cut is what one cut came to.
type Cut struct {
	Node          int   `json:"node"`
	Fibres        bool  `json:"fibres,omitempty"` // else its power
	LightMicros   int64 `json:"light_us"`         // from the last light lost to the last found, by the boards
	LedgerMicros  int64 `json:"ledger_us"`        // of the slower neighbour, as its agent says; 0: it did not say
	CalmMicros    int64 `json:"calm_us"`          // the longest gap of the datagrams in as long a time before, when nothing happened: this machine's own
	GapMicros     int64 `json:"gap_us"`           // of the datagrams
	Lost          int   `json:"lost"`
	TCPGapMicros  int64 `json:"tcp_gap_us"`
	BackGapMicros int64 `json:"back_gap_us"` // of the datagrams when the node joins again
	BackLost      int   `json:"back_lost"`
	// Of steps of training: the longest before, when nothing happened, and with the cut.
	CalmStepMicros int64 `json:"calm_step_us,omitempty"`
	StepMicros     int64 `json:"step_us,omitempty"`
	// WithoutSteps of training ended while the planner's ring was of all nodes but this one.
	WithoutSteps int `json:"without_steps,omitempty"`
}

// RingResult is all of it.
type RingResult struct {
	Nodes     int    `json:"nodes"`
	Hops      int    `json:"hops"` // of the streams' way
	Cuts      []Cut  `json:"cuts"`
	TCPWrong  int    `json:"tcp_records_wrong"`
	TCPBroken string `json:"tcp_broken,omitempty"`
	Steps     int    `json:"steps,omitempty"` // of training, by the same processes from first to last
	StepWrong int    `json:"steps_wrong,omitempty"`
}

// rings is what the planner last said of its rings, and which ledgers agents sent.
type rings struct {
	mu     sync.Mutex
	quiet  bool
	last   []proto.RingStatus
	ledger map[proto.NodeID]int64 // the longest since it was cleared, microseconds
}

func (r *rings) observe(p *planner.Planner) {
	o := p.Overview()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiet, r.last = o.Quiet && o.LinksConfirmed == o.LinksTotal, p.Rings.Placed.Statuses()
}

// without: the ring goes on without a node, and nothing is under way.
func (r *rings) without(node, nodes int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.quiet && len(r.last) == 1 && (r.last[0].State == proto.RingInService || r.last[0].State == proto.RingDegraded) &&
		len(r.last[0].Nodes) == nodes-1 && !slices.Contains(r.last[0].Nodes, proto.NodeID(node))
}

// whole is the ring when it has all nodes in service and nothing is under way.
func (r *rings) whole(nodes int) ([]proto.NodeID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.quiet || len(r.last) != 1 || r.last[0].State != proto.RingInService || len(r.last[0].Nodes) != nodes {
		return nil, false
	}
	return slices.Clone(r.last[0].Nodes), true
}

// listen takes ledgers from agents' events until the link is closed.
func (r *rings) listen(link *mqtt.Link) {
	for p := range link.Recv() {
		var e proto.Event
		if topic, err := proto.ParseTopic(p.Topic); err != nil || p.Kind != proto.Publish || topic.Kind != proto.TopicEvent {
			continue
		}
		if _, err := proto.Decode(p.Payload, &e); err != nil || e.Ledger == nil {
			continue
		}
		r.mu.Lock()
		r.ledger[e.Node] = max(r.ledger[e.Node], int64(e.Ledger.TotalMicros()))
		r.mu.Unlock()
	}
}

// ledgers is the longest of two nodes since it was asked last.
func (r *rings) ledgers(a, b int) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	longest := max(r.ledger[proto.NodeID(a)], r.ledger[proto.NodeID(b)])
	clear(r.ledger)
	return longest
}

// Ring cuts one node after the other and says what packets made of it.
func Ring(ctx context.Context, cfg RingConfig) (res *RingResult, err error) {
	seen := &rings{ledger: map[proto.NodeID]int64{}}
	cfg.Observe = seen.observe
	b, err := Start(ctx, cfg.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	res = &RingResult{Nodes: cfg.Fabric.Nodes}
	if err := b.routeRing(); err != nil {
		return nil, err
	}
	var ring []proto.NodeID
	whole := func() (ok bool) { ring, ok = seen.whole(res.Nodes); return ok }
	if err := until(ctx, "a ring of all nodes", whole); err != nil {
		return nil, err
	}
	to := b.Link()
	to.ClientID, to.Subscriptions = "testbed", []string{proto.Topics{Fabric: cfg.Fabric.Name}.EveryNode(proto.TopicEvent)}
	link, err := mqtt.Dial(to)
	if err != nil {
		return nil, err
	}
	go seen.listen(link)
	defer link.Close()
	first, last := int(ring[0]), int(ring[len(ring)-1])
	from, far := b.NS(nodeName(first)), b.NS(nodeName(last))
	res.Hops = b.hops(first, last)
	pace := time.Second / time.Duration(cfg.Rate)
	udp, err := newStream(ctx, "udp4", from, far, "", net.JoinHostPort(nodeAddress(last), streamPort), pace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = udp.Stop() }()
	tcp, err := newStream(ctx, "tcp4", from, far, "", net.JoinHostPort(nodeAddress(last), streamPort), pace)
	if err != nil {
		return nil, err
	}
	defer func() {
		if broken := tcp.Stop(); res != nil && broken != nil {
			res.TCPBroken = broken.Error()
		} else if res != nil {
			res.TCPWrong = tcp.wrong
		}
	}()
	var t *trainer
	if cfg.Train {
		var devices, addresses []string
		for at := 0; at < len(ring); at += 2 {
			devices, addresses = append(devices, nodeName(int(ring[at]))), append(addresses, nodeAddress(int(ring[at])))
		}
		if t, err = b.train(ctx, devices, addresses, ringElements, 0); t != nil {
			defer func() { err = errors.Join(err, t.end()) }()
		}
		if err != nil {
			return nil, err
		}
	}
	for n := range cfg.Cuts {
		at := 1 + n%(len(ring)-2)
		if cfg.Train {
			at = 1 + 2*(n%((len(ring)-1)/2))
		}
		c, err := b.cut(ctx, [3]int{int(ring[at-1]), int(ring[at]), int(ring[at+1])}, cfg.Fibres && n%2 == 1, udp, tcp, t, seen, whole)
		if err != nil {
			return res, fmt.Errorf("cut %d: %w", n, err)
		}
		res.Cuts = append(res.Cuts, *c)
		if cfg.Told != nil {
			cfg.Told(*c)
		}
		if t != nil {
			if res.Steps, res.StepWrong, err = t.done(0); err != nil {
				return res, err
			}
		}
	}
	return res, ctx.Err()
}

// ringElements of a sum in a ring. chosen: a step is some ten milliseconds.
const ringElements = 4096

const (
	afterward = 500 * time.Millisecond // in which a gap that a cut made is over. chosen: twice what TCP waits at least
	patience  = 60 * time.Second       // with a planner that plans. chosen: longer than its own patience with a device
)

// cut takes the power of the middle one of three neighbours, or its fibres, and gives them back.
func (b *Bed) cut(ctx context.Context, of [3]int, fibres bool, udp, tcp *stream, t *trainer, seen *rings, whole func() bool) (*Cut, error) {
	c, turn := &Cut{Node: of[1], Fibres: fibres}, b.power
	if fibres {
		turn = b.fibres
	}
	seen.ledgers(of[0], of[2])
	if err := pause(ctx, afterward); err != nil {
		return nil, err
	}
	calm, _ := udp.Gap(udp.Now() - afterward)
	c.CalmMicros = calm.Microseconds()
	if t != nil {
		c.CalmStepMicros = Quantile(t.took(t.now()-afterward), 1000)
	}
	datagrams, records, step := udp.Now(), tcp.Now(), time.Duration(0)
	if t != nil {
		step = t.now()
	}
	took, err := b.Cluster.Bypass(of[0], of[1], of[2], func() error { return turn(of[1], false) })
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, afterward); err != nil {
		return nil, err
	}
	c.LightMicros, c.LedgerMicros = took.Microseconds(), seen.ledgers(of[0], of[2])
	gap, lost := udp.Gap(datagrams)
	c.GapMicros, c.Lost = gap.Microseconds(), lost
	gap, _ = tcp.Gap(records)
	c.TCPGapMicros = gap.Microseconds()
	if t != nil { // and the step that is under way, however long that takes
		if c.StepMicros, err = t.longest(ctx, step, t.now()); err != nil {
			return nil, err
		}
		if err := until(ctx, fmt.Sprintf("a ring without node %d", of[1]), func() bool { return seen.without(of[1], b.fabric.Nodes) }); err != nil {
			return nil, err
		}
		since := t.now()
		if err := pause(ctx, afterward); err != nil {
			return nil, err
		}
		if _, err := t.longest(ctx, since, t.now()); err != nil {
			return nil, err
		}
		c.WithoutSteps, _, _ = t.done(since)
	}
	datagrams = udp.Now()
	if err := turn(of[1], true); err != nil {
		return nil, err
	}
	// Until the planner has heard of the cut, its ring has the node: it has gone first.
	if err := until(ctx, fmt.Sprintf("a ring with node %d again", of[1]), func() bool { return whole() && b.lit(of[1]) }); err != nil {
		return nil, err
	}
	if err := pause(ctx, afterward); err != nil {
		return nil, err
	}
	gap, c.BackLost = udp.Gap(datagrams)
	c.BackGapMicros = gap.Microseconds()
	return c, nil
}

// lit: all ports of a node have light.
func (b *Bed) lit(node int) bool {
	for i, p := range b.optics.ports {
		if p.Device == nodeName(node) && b.relay.ports[i].to.Load() == nowhere {
			return false
		}
	}
	return true
}

func nodeAddress(n int) string { return fmt.Sprintf("10.%d.%d.1", n/256, n%256) }

// lane is the address of every interface of a node. A bundle has one far end, whichever
// that is now, so nobody asks for its address: the kernel sends to its own and hears it.
const lane = "02:52:4c:00:00:01"

// routeRing has every node send on what is not its own as light would go on through its
// GPUs, and what begins there to the right of the last GPU that has a bundle.
func (b *Bed) routeRing() error {
	f := b.fabric
	for n := range f.Nodes {
		lines, routes, out := []string{fmt.Sprintf("addr add %s/32 dev lo", nodeAddress(n))}, []string(nil), ""
		for i, p := range b.optics.ports {
			if p.Device != nodeName(n) {
				continue
			}
			next := b.optics.ports[b.optics.through(i, f.GPUsPerNode, f.Bundles)].Name
			lines = append(lines, fmt.Sprintf("link set %s address %s arp off", p.Name, lane))
			routes = append(routes, fmt.Sprintf("rule add iif %s lookup %d", p.Name, 100+i), fmt.Sprintf("route add default dev %s table %d", next, 100+i))
			if b.optics.sides[i].Side == 1 {
				out = p.Name
			}
		}
		lines = append(lines, routes...)
		lines = append(lines, fmt.Sprintf("route add default dev %s src %s", out, nodeAddress(n)))
		if err := ip(b.NS(nodeName(n)), lines...); err != nil {
			return err
		}
	}
	return nil
}

// hops is how many links light passes from one node to the next time that it comes to
// another, as routeRing leads it; 0: it does not come there.
func (b *Bed) hops(from, to int) int {
	at := -1
	for i, p := range b.optics.ports {
		if p.Device == nodeName(from) && b.optics.sides[i].Side == 1 {
			at = i
		}
	}
	for n := 1; n <= len(b.optics.ports); n++ {
		far := int(b.relay.ports[at].to.Load())
		if far == nowhere {
			return 0
		}
		if b.optics.sides[far].Board == sim.BoardID(to) {
			return n
		}
		at = b.optics.through(far, b.fabric.GPUsPerNode, b.fabric.Bundles)
	}
	return 0
}
