package fleet

import (
	"time"

	"ringlight/proto"
)

// How a packet travels between a client and the broker.

func (n *network) hop() time.Duration {
	d := hopLeast + n.draw.wait(hopMean)
	if n.draw.chance(slowChance) {
		d += n.draw.wait(hopSlow)
	}
	return d
}

// carry puts a packet on its way between a client and the broker.
func (n *network) carry(kind taskKind, c *client, p proto.Packet, last *time.Duration) {
	copies := 1
	wait := time.Duration(0)
	if p.Kind == proto.Publish {
		if n.shed > 0 && n.drops.chance(n.shed) {
			n.resent(c.who)
			return
		}
		for again := resendAfter; n.draw.chance(n.rates.Loss) && again < resendLast; again *= 2 {
			wait += again
		}
		if wait > 0 {
			n.resent(c.who)
		}
		if n.draw.chance(n.rates.Repeat) {
			copies = 2
		}
	}
	conn := c.conn
	if kind == taskDown {
		conn = c.session
	}
	for range copies {
		at := n.now + n.hop() + wait
		if !n.draw.chance(n.rates.Reorder) {
			at = max(at, *last)
			*last = at
		}
		n.agenda.Push(at, task{kind: kind, who: c.who, gen: conn, packet: p})
	}
}

// hold sends a packet again that met a cut network.
func (n *network) hold(t *task, last *time.Duration) {
	at := n.now + resendAfter
	*last = max(*last, at)
	n.agenda.Push(at, *t)
}
