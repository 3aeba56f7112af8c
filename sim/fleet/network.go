package fleet

import (
	"fmt"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// The model of the network and its broker. Times are chosen: a management
// network on one site.
const (
	hopLeast   = 80 * time.Microsecond // between a client and the broker, one way
	hopMean    = 120 * time.Microsecond
	hopSlow    = 20 * time.Millisecond // mean of the few that are slow: a queue, a collection of garbage
	slowChance = 5_000                 // per million

	keepAlive  = 15 * time.Second // of every connection
	graveAfter = keepAlive * 3 / 2
	// A connection that loses a packet sends it again, and what is behind it
	// waits: only a connection that breaks really loses packets.
	resendAfter = 200 * time.Millisecond
	resendLast  = 10 * time.Second

	retryFirst = 500 * time.Millisecond
	retryLast  = 30 * time.Second
)

// client is a process with a connection to the broker.
type client struct {
	who     int32 // place among the devices, or plannerID and below
	alive   bool
	cut     bool   // its network is cut
	cuts    int    // how often it was
	up      bool   // connected as it knows itself
	conn    uint32 // number of the connection; what belongs to another is dropped
	session uint32 // connection as the broker knows it, 0: none
	tries   uint
	upAt    time.Duration // arrival of the last packet each way: a connection keeps their order
	downAt  time.Duration
	will    proto.Packet
	rings   []proto.RingID // decision topics that it follows
}

// plannerID is the planner; a second one that somebody started beside it is
// plannerID-1.
const plannerID = -1

// retained is what the broker keeps of a topic. old is what it had before at.
type retained struct {
	now, old proto.Packet
	at       time.Duration
}

// network is the broker and the way to it.
type network struct {
	*timeline
	up       bool
	rates    Rates
	shed     uint32 // messages in a million that a queue above TCP drops, each way
	lossy    bool   // it does, or will
	draw     random
	drops    random
	devices  []*client // nodes, then switches
	nodes    int       // of devices
	planners []*client

	desired, presence, reported []retained // by device
	decisions                   map[proto.RingID]*retained
	decided                     []proto.RingID // keys of decisions in order of appearance
	beat                        retained
	beatKey                     string
	fresh                       []int32 // devices that wait for a live sign of the planner
	followers                   map[proto.RingID][]int32
	resent                      func(who int32)
	joined                      time.Duration // when the last connection was made
}

func newNetwork(t *timeline, seed uint64, devices []*client, nodes int, planners []*client) *network {
	d := len(devices)
	return &network{timeline: t, up: true, draw: random{seed: detmath.Hash(seed, streamNetwork)}, drops: random{seed: detmath.Hash(seed, streamShed)},
		devices: devices, nodes: nodes, planners: planners,
		desired: make([]retained, d), presence: make([]retained, d), reported: make([]retained, d),
		decisions: map[proto.RingID]*retained{}, followers: map[proto.RingID][]int32{}}
}

func (n *network) client(who int32) *client {
	if who < 0 {
		return n.planners[plannerID-who]
	}
	return n.devices[who]
}

// device is the number of a client under which it is a NodeID to others.
func (n *network) device(id proto.NodeID) int32 {
	if id.IsSwitch() {
		return int32(n.nodes) + int32(id-proto.FirstSwitch)
	}
	return int32(id)
}

// send takes a packet of a client. A link that is down loses it.
func (n *network) send(c *client, p proto.Packet) {
	if p.Kind != proto.Publish {
		n.follow(c, p)
	}
	if c.up {
		n.carry(taskUp, c, p, &c.upAt)
	}
}

// follow keeps what a client subscribed, over its connections.
func (n *network) follow(c *client, p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	if err != nil || t.Kind != proto.TopicDecision {
		return // the node's own topics always are
	}
	i := slices.Index(c.rings, t.Ring)
	switch {
	case p.Kind == proto.Subscribe && i < 0:
		c.rings = append(c.rings, t.Ring)
	case p.Kind == proto.Unsubscribe && i >= 0:
		c.rings = slices.Delete(c.rings, i, i+1)
	}
}

// connect lets a client try. gen is the connection it belongs to.
func (n *network) connect(c *client) {
	if !c.alive || c.up {
		return
	}
	if !n.up || c.cut {
		n.retry(c)
		return
	}
	if c.session != 0 {
		n.bury(c) // taken over: the old connection is broken first
	}
	c.tries = 0
	c.conn++
	c.session, c.up = c.conn, true
	c.upAt, c.downAt, n.joined = n.now, n.now, n.now
	n.down(c, proto.Packet{Kind: proto.LinkUp})
	if c.who < 0 {
		for _, list := range [][]retained{n.presence, n.reported} {
			for i := range list {
				n.downKept(c, &list[i])
			}
		}
		n.downKept(c, &n.beat)
		return
	}
	n.fresh = append(n.fresh, c.who)
	n.downKept(c, &n.desired[c.who])
	n.downKept(c, &n.beat)
	for _, ring := range c.rings {
		n.subscribe(c, ring)
	}
}

// retry plans the next try of a client, later and later.
func (n *network) retry(c *client) {
	wait := min(retryFirst<<min(c.tries, 10), retryLast)
	c.tries++
	n.agenda.Push(n.now+wait/2+n.draw.between(0, wait/2), task{kind: taskConnect, who: c.who, gen: c.conn})
}

func (n *network) subscribe(c *client, ring proto.RingID) {
	if !slices.Contains(n.followers[ring], c.who) {
		n.followers[ring] = append(n.followers[ring], c.who)
	}
	if d := n.decisions[ring]; d != nil {
		n.downKept(c, d)
	}
}

func (n *network) unsubscribe(c *client, ring proto.RingID) {
	if i := slices.Index(n.followers[ring], c.who); i >= 0 {
		n.followers[ring] = slices.Delete(n.followers[ring], i, i+1)
	}
}

func (n *network) down(c *client, p proto.Packet) { n.carry(taskDown, c, p, &c.downAt) }

func (n *network) downKept(c *client, k *retained) {
	if k.now.Payload != nil {
		p := k.now
		p.Retain = true
		n.down(c, p)
	}
}

// mended: the cut of this number was over before anybody noticed, and the
// connection is the one that it met.
func (c *client) mended(cut int) bool {
	return cut != 0 && c.session == c.conn && (!c.cut || c.cuts != cut)
}

// hangUp ends a connection at the client. quiet: nobody tells the broker.
func (n *network) hangUp(c *client, quiet bool) {
	if c.session != 0 && c.session == c.conn {
		at := n.now + n.hop()
		if quiet {
			at = n.now + graveAfter
		}
		n.agenda.Push(at, task{kind: taskWill, who: c.who, gen: c.session})
	}
	c.up = false
	c.conn++
}

// leave ends a connection with DISCONNECT, so that there is no will.
func (n *network) leave(c *client) {
	if c.session != 0 && c.session == c.conn {
		n.forget(c)
	}
}

// bury ends a connection at the broker, which publishes the will.
func (n *network) bury(c *client) {
	n.forget(c)
	n.publish(c.who, c.will)
}

func (n *network) forget(c *client) {
	c.session = 0
	for _, ring := range c.rings {
		n.unsubscribe(c, ring)
	}
}

// die takes the broker down: every client notices at once.
func (n *network) die() {
	n.up = false
	for _, list := range [2][]*client{n.devices, n.planners} {
		for _, c := range list {
			if c.session != 0 {
				n.forget(c)
			}
			if c.up && !c.cut {
				n.agenda.Push(n.now+n.hop(), task{kind: taskLost, who: c.who, gen: c.conn})
			}
		}
	}
}

// rise brings the broker back with what it had on disk: what was retained in
// the last span before its death is as it was before.
func (n *network) rise(stale time.Duration, died time.Duration) {
	n.up = true
	roll := func(k *retained) {
		if k.at > died-stale {
			k.now = k.old
		}
	}
	for i := range n.desired {
		roll(&n.desired[i])
		roll(&n.presence[i])
		roll(&n.reported[i])
	}
	for _, ring := range n.decided {
		roll(n.decisions[ring])
	}
	roll(&n.beat)
}

// arrived handles a packet at the broker.
func (n *network) arrived(t *task) {
	c := n.client(t.who)
	if !n.up || c.session != t.gen {
		return
	}
	if c.cut {
		n.hold(t, &c.upAt)
		return
	}
	p := t.packet
	switch p.Kind {
	case proto.Publish:
		n.publish(t.who, p)
	default:
		topic, err := proto.ParseTopic(p.Topic)
		if err != nil || topic.Kind != proto.TopicDecision {
			return
		}
		if p.Kind == proto.Subscribe {
			n.subscribe(c, topic.Ring)
		} else {
			n.unsubscribe(c, topic.Ring)
		}
	}
}

// do lets happen what is on its way in the network.
func (n *network) do(t *task) {
	switch c := n.client(t.who); t.kind {
	case taskUp:
		n.arrived(t)
	case taskConnect:
		if c.conn == t.gen {
			n.connect(c)
		}
	case taskWill:
		if c.session == t.gen && n.up && !c.mended(t.n) {
			n.bury(c)
		}
	}
}

// breaks lets a client find its connection broken, if it is; it tries again.
func (n *network) breaks(t *task) bool {
	c := n.client(t.who)
	if c.conn != t.gen || !c.up || c.mended(t.n) {
		return false
	}
	c.up = false
	c.conn++
	n.retry(c)
	return true
}

func (k *retained) keep(p proto.Packet, now time.Duration) {
	k.old, k.now, k.at = k.now, p, now
}

// publish routes one publication.
func (n *network) publish(from int32, p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		panic(fmt.Sprintf("fleet: client %d publishes on %q", from, p.Topic))
	}
	now := n.now
	p.Retain = false // a live one
	switch topic.Kind {
	case proto.TopicPresence:
		n.presence[n.device(topic.Node)].keep(p, now)
		n.toPlanner(p)
	case proto.TopicReported:
		n.reported[n.device(topic.Node)].keep(p, now)
		n.toPlanner(p)
	case proto.TopicAck, proto.TopicEvent:
		n.toPlanner(p)
	case proto.TopicDesired:
		n.desired[n.device(topic.Node)].keep(p, now)
		n.toClient(n.device(topic.Node), p)
	case proto.TopicCommand:
		n.toClient(n.device(topic.Node), p)
	case proto.TopicDecision:
		k := n.decisions[topic.Ring]
		if k == nil {
			k = &retained{}
			n.decisions[topic.Ring] = k
			n.decided = append(n.decided, topic.Ring)
		}
		k.keep(p, now)
		for _, who := range n.followers[topic.Ring] {
			n.toClient(who, p)
		}
	case proto.TopicPlanner:
		n.publishBeat(p)
	case proto.TopicRequest:
		n.toPlanner(p)
	case proto.TopicReply: // the script's operators ask again anyway
	case proto.TopicHealth:
		// By it the planner finds that a report was lost. Where none is, it is only
		// kept for people.
		if n.lossy {
			n.toPlanner(p)
		}
	}
}

// publishBeat hands the planner's sign of life on. To an agent, a beat that
// says of planner and term what the one before said is no news, and ten
// thousand of them every two seconds are a load without a purpose: each
// connection is handed the first and those that differ.
func (n *network) publishBeat(p proto.Packet) {
	n.toPlanner(p)
	var s proto.PlannerState
	if _, err := proto.Decode(p.Payload, &s); err != nil {
		panic("fleet: the planner's own state is refused: " + err.Error())
	}
	if s.Standby {
		return // not retained, and nothing to an agent
	}
	n.beat.keep(p, n.now)
	if key := fmt.Sprint(s.Life, s.Term, s.Online); key != n.beatKey {
		n.beatKey = key
		n.fresh = n.fresh[:0]
		for i := range n.devices {
			n.toClient(int32(i), p)
		}
		return
	}
	for _, who := range n.fresh {
		n.toClient(who, p)
	}
	n.fresh = n.fresh[:0]
}

func (n *network) toPlanner(p proto.Packet) {
	for _, c := range n.planners {
		n.toClient(c.who, p)
	}
}

func (n *network) toClient(who int32, p proto.Packet) {
	if c := n.client(who); c.session != 0 {
		n.down(c, p)
	}
}
