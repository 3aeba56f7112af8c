package fleet

import (
	"slices"
	"time"

	"ringlight/proto"
)

// coreNet is the broker of a core and the way to it: it keeps what is to be
// kept, loses connections when it dies, and delays, repeats and reorders as
// its rates say. Times are those of the network of nodes.
type coreNet struct {
	r     *CoreRun
	up    bool
	draw  random
	kept  map[string]proto.Packet // by topic
	order []string                // its keys, in order of appearance
}

func (n *coreNet) hop() time.Duration {
	d := hopLeast + n.draw.wait(hopMean)
	if n.draw.chance(slowChance) {
		d += n.draw.wait(hopSlow)
	}
	return d
}

// carry puts a packet on its way. A connection that loses one sends it again.
func (n *coreNet) carry(kind taskKind, c *client, p proto.Packet, last *time.Duration) {
	copies, wait := 1, time.Duration(0)
	if p.Kind == proto.Publish {
		for again := resendAfter; n.draw.chance(n.r.cfg.Rates.Loss) && again < resendLast; again *= 2 {
			wait += again
		}
		if n.draw.chance(n.r.cfg.Rates.Repeat) {
			copies = 2
		}
	}
	for range copies {
		at := n.r.now + n.hop() + wait
		if !n.draw.chance(n.r.cfg.Rates.Reorder) {
			at = max(at, *last)
			*last = at
		}
		n.r.agenda.push(task{at: at, kind: kind, who: c.who, gen: c.session, packet: p})
	}
}

// send takes a packet of a client. A link that is down loses it.
func (n *coreNet) send(c *client, p proto.Packet) {
	if t, err := proto.ParseTopic(p.Topic); p.Kind != proto.Publish && err == nil && t.Kind == proto.TopicDecision {
		// Subscriptions outlive connections; other topics always are.
		switch i := slices.Index(c.rings, t.Ring); {
		case p.Kind == proto.Subscribe && i < 0:
			c.rings = append(c.rings, t.Ring)
		case p.Kind == proto.Unsubscribe && i >= 0:
			c.rings = slices.Delete(c.rings, i, i+1)
		}
	}
	if c.up {
		n.carry(taskUp, c, p, &c.upAt)
	}
}

func (n *coreNet) down(c *client, p proto.Packet) {
	if c.session != 0 {
		n.carry(taskDown, c, p, &c.downAt)
	}
}

// wants tells whether a client follows a topic.
func (n *coreNet) wants(c *client, t proto.Topic) bool {
	switch t.Kind {
	case proto.TopicPresence, proto.TopicReported, proto.TopicAck, proto.TopicEvent, proto.TopicRequest:
		return c.who < 0
	case proto.TopicDesired, proto.TopicCommand:
		return c.who >= 0 && n.r.switches[c.who].id == t.Node
	case proto.TopicDecision:
		return slices.Contains(c.rings, t.Ring)
	case proto.TopicPlanner:
		return true
	}
	return false
}

// connect lets a client try.
func (n *coreNet) connect(c *client) {
	if !c.alive || c.up {
		return
	}
	if !n.up {
		n.retry(c)
		return
	}
	if c.session != 0 {
		n.publish(c.will) // taken over
	}
	c.tries = 0
	n.r.mended = n.r.now
	c.conn++
	c.session, c.up, c.upAt, c.downAt = c.conn, true, n.r.now, n.r.now
	// A client knows of its connection before anything comes through it.
	n.r.agenda.push(task{at: n.r.now, kind: taskDown, who: c.who, gen: c.session, packet: proto.Packet{Kind: proto.LinkUp}})
	for _, topic := range n.order {
		if t, err := proto.ParseTopic(topic); err == nil && n.wants(c, t) {
			n.downKept(c, topic)
		}
	}
}

func (n *coreNet) downKept(c *client, topic string) {
	if p, ok := n.kept[topic]; ok {
		p.Retain = true
		n.down(c, p)
	}
}

func (n *coreNet) retry(c *client) {
	wait := min(retryFirst<<min(c.tries, 10), retryLast)
	c.tries++
	n.r.agenda.push(task{at: n.r.now + wait/2 + n.draw.between(0, wait/2), kind: taskConnect, who: c.who, gen: c.conn})
}

// hangUp ends a connection at the client, whose process is gone.
func (n *coreNet) hangUp(c *client) {
	if c.session != 0 && c.session == c.conn {
		n.r.agenda.push(task{at: n.r.now + n.hop(), kind: taskWill, who: c.who, gen: c.session})
	}
	c.up = false
	c.conn++
}

// die takes the broker down with all that it kept but what a disk would have.
func (n *coreNet) die() {
	if !n.up {
		return
	}
	n.up = false
	for i := -1; i < len(n.r.switches); i++ {
		c := n.r.client(int32(i))
		c.session = 0
		if c.up {
			n.r.agenda.push(task{at: n.r.now + n.hop(), kind: taskLost, who: c.who, gen: c.conn})
		}
	}
}

// arrive handles a packet at the broker.
func (n *coreNet) arrive(c *client, p proto.Packet) {
	switch p.Kind {
	case proto.Publish:
		n.publish(p)
	case proto.Subscribe:
		if t, err := proto.ParseTopic(p.Topic); err == nil && t.Kind == proto.TopicDecision {
			n.downKept(c, p.Topic)
		}
	}
}

func (n *coreNet) publish(p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	if err != nil {
		panic("fleet: somebody publishes on " + p.Topic)
	}
	if p.Retain {
		if _, known := n.kept[p.Topic]; !known {
			n.order = append(n.order, p.Topic)
		}
		n.kept[p.Topic] = p
	}
	p.Retain = false
	for i := -1; i < len(n.r.switches); i++ {
		if c := n.r.client(int32(i)); n.wants(c, t) {
			n.down(c, p)
		}
	}
}
