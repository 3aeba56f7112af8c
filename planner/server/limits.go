package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// What one stranger can cost the embedded broker. Whoever goes beyond a limit
// that bounds memory is disconnected: a client that comes back and is told
// everything again is better off than one that lost a message silently.
const (
	// connectPatience is how long a connection may take from its first byte,
	// TLS included, to its CONNECT. chosen: a loaded BMC needs a second or two.
	connectPatience = 10 * time.Second
	// longestKeepalive replaces a longer one, or none. chosen: a peer that is
	// gone without a word is let go within seven minutes; ours ask for 10 s.
	longestKeepalive = 300
	// writePatience is how long one write to a client may take. chosen: a
	// client that reads nothing for so long has lost its will's keepalive too.
	writePatience = 10 * time.Second
	// maxConnections bounds the descriptors. chosen: a cell of 10,000 nodes,
	// its switches and operators.
	maxConnections = 12_288
	// maxQueuedBytes of one client, not yet written or not yet acknowledged.
	// chosen: 10,000 acknowledgements to the planner are 2 MB.
	maxQueuedBytes = 8 << 20
	// maxQueuedTotal of all clients; beyond it those with more than
	// fairQueuedBytes go. chosen: a quarter of what a planner may use.
	maxQueuedTotal  = 64 << 20
	fairQueuedBytes = 1 << 20
	// maxTopicLength and maxTopicLevels: ours have at most 64 characters
	// beside the fabric's name, and seven levels.
	maxTopicLength = 256
	maxTopicLevels = 16
	// maxRetained bounds the topics that are kept. chosen: five for each node
	// of a cell.
	maxRetained = 65_536
	// maxFilters bounds the subscriptions of one client. chosen: an agent has
	// three and one for each of its rings.
	maxFilters = 256
	// packetRate is what one client may send in a second, after packetBurst at
	// once; beyond it the broker reads it slower. chosen: a planner of 10,000
	// nodes sends each a plan at once, an agent some tens of events.
	packetRate  = 1000
	packetBurst = 24_000
)

// gate is a listener that outlives a shortage of descriptors and does not let
// a connection stay that says nothing.
type gate struct {
	net.Listener
	log      *slog.Logger
	patience time.Duration
	open     atomic.Int64
	short    logLimit
}

const (
	shortestRest = 5 * time.Millisecond
	longestRest  = time.Second
)

// Accept tries again, less and less often, until the listener is closed.
func (g *gate) Accept() (net.Conn, error) {
	rest := shortestRest
	for {
		conn, err := g.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			if n, ok := g.short.allow(time.Now()); ok {
				g.log.Error("broker cannot accept a connection; it tries again", "error", err, "not_logged", n)
			}
			time.Sleep(rest)
			rest = min(2*rest, longestRest)
			continue
		case g.open.Load() >= maxConnections:
			conn.Close()
			if n, ok := g.short.allow(time.Now()); ok {
				g.log.Error("broker is full", "connections", maxConnections, "not_logged", n)
			}
			continue
		}
		g.open.Add(1)
		conn.SetDeadline(time.Now().Add(g.patience))
		return &gateConn{Conn: conn, gate: g}, nil
	}
}

// gateConn ends with the first write that a client does not take.
type gateConn struct {
	net.Conn
	gate *gate
	once sync.Once
}

func (c *gateConn) Write(p []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(writePatience))
	n, err := c.Conn.Write(p)
	if err != nil {
		c.reset()
	}
	return n, err
}

// reset closes without waiting for what the peer has not read: the kernel
// would keep it for minutes.
func (c *gateConn) reset() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

func (c *gateConn) Close() error {
	c.once.Do(func() { c.gate.open.Add(-1) })
	return c.Conn.Close()
}

// logLimit lets a line through a second, and counts what it kept back.
type logLimit struct {
	mu   sync.Mutex
	next time.Time
	kept uint64
}

func (l *logLimit) allow(now time.Time) (kept uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.next) {
		l.kept++
		return 0, false
	}
	kept, l.kept, l.next = l.kept, 0, now.Add(time.Second)
	return kept, true
}

// limits is the broker's hook that holds clients to them.
type limits struct {
	mochi.HookBase
	broker *Broker
	log    *slog.Logger
	line   logLimit
	queued atomic.Int64 // bytes, of all clients
	sizes  sync.Map     // topic -> int64, of the message that is being handed out on it
	mu     sync.Mutex
	client map[*mochi.Client]*account
}

// account is what one client costs.
type account struct {
	mu      sync.Mutex
	queued  int64            // bytes, of both kinds
	count   int              // messages not yet written
	unacked map[uint16]int64 // bytes by packet id
	tokens  float64
	refill  time.Time
	ended   bool
}

func newLimits(b *Broker, log *slog.Logger) *limits {
	return &limits{broker: b, log: log, client: map[*mochi.Client]*account{}}
}

func (h *limits) ID() string { return "limits" }

func (h *limits) Provides(b byte) bool {
	switch b {
	case mochi.OnConnectAuthenticate, mochi.OnConnect, mochi.OnDisconnect, mochi.OnPacketRead, mochi.OnPacketEncode, mochi.OnACLCheck,
		mochi.OnPublish, mochi.OnPublished, mochi.OnPublishDropped, mochi.OnQosPublish, mochi.OnQosComplete, mochi.OnQosDropped:
		return true
	}
	return false
}

// of is the account of a client, nil for one that is gone.
func (h *limits) of(cl *mochi.Client) *account {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client[cl]
}

// OnConnectAuthenticate lets everybody in who came through the listener.
func (h *limits) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }

func (h *limits) OnConnect(cl *mochi.Client, _ packets.Packet) error {
	if cl.State.Keepalive == 0 || cl.State.Keepalive > longestKeepalive {
		cl.State.Keepalive = longestKeepalive
	}
	cl.Properties.Clean = true // nothing is kept for who is away
	h.mu.Lock()
	defer h.mu.Unlock()
	h.client[cl] = &account{unacked: map[uint16]int64{}, tokens: packetBurst, refill: time.Now()}
	return nil
}

func (h *limits) OnDisconnect(cl *mochi.Client, _ error, _ bool) {
	h.mu.Lock()
	a := h.client[cl]
	delete(h.client, cl)
	h.mu.Unlock()
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	h.queued.Add(-a.queued)
	a.queued = 0
}

// OnPacketRead slows a client down that sends more than its share: it is read
// later, and TCP tells it so.
func (h *limits) OnPacketRead(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	a := h.of(cl)
	if a == nil {
		return pk, nil
	}
	now := time.Now()
	a.mu.Lock()
	a.tokens = min(packetBurst, a.tokens+now.Sub(a.refill).Seconds()*packetRate) - 1
	a.refill = now
	wait := time.Duration(-a.tokens / packetRate * float64(time.Second))
	a.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	return pk, nil
}

// OnACLCheck is asked for each topic that is published, each filter that is
// subscribed, and each message before it is queued for a subscriber.
func (h *limits) OnACLCheck(cl *mochi.Client, topic string, write bool) bool {
	if len(topic) > maxTopicLength || strings.Count(topic, "/") >= maxTopicLevels {
		h.warn(cl, fmt.Sprintf("a topic of %d characters and %d levels", len(topic), strings.Count(topic, "/")+1))
		return false
	}
	if write {
		return true
	}
	size, ok := h.sizes.Load(topic)
	if !ok { // nothing is published there now: a subscription, or a retained message for one
		return cl.State.Subscriptions.Len() <= maxFilters
	}
	return h.queue(cl, 0, size.(int64))
}

func (h *limits) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	retained := h.broker.server.Topics.Retained
	if pk.FixedHeader.Retain && len(pk.Payload) > 0 && retained.Len() >= maxRetained {
		if _, known := retained.Get(pk.TopicName); !known {
			h.warn(cl, fmt.Sprintf("more than %d retained topics", maxRetained))
			return pk, packets.ErrRejectPacket
		}
	}
	h.sizes.Store(pk.TopicName, sizeOf(&pk))
	return pk, nil
}

func (h *limits) OnPublished(_ *mochi.Client, pk packets.Packet) { h.sizes.Delete(pk.TopicName) }

// queue charges a client for a message that is to be written, or, by its id,
// for one that is to be acknowledged.
func (h *limits) queue(cl *mochi.Client, id uint16, size int64) bool {
	a := h.of(cl)
	if a == nil {
		return true
	}
	a.mu.Lock()
	if id == 0 {
		a.count++
	} else {
		size -= a.unacked[id]
		a.unacked[id] += size
	}
	if a.ended {
		size = 0
	}
	a.queued += size
	queued := a.queued
	total := h.queued.Add(size)
	a.mu.Unlock()
	if queued <= maxQueuedBytes && (total <= maxQueuedTotal || queued <= fairQueuedBytes) {
		return true
	}
	h.warn(cl, fmt.Sprintf("it does not read: %d KiB are queued for it", queued>>10))
	conn := cl.Net.Conn
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	if c, ok := conn.(*gateConn); ok {
		c.reset()
	}
	cl.Stop(packets.ErrQuotaExceeded)
	return false
}

// done takes a charge back. When nothing is left to be written the sum is
// found anew: messages of two clients on one topic may be taken for each
// other, and that must not add up.
func (h *limits) done(cl *mochi.Client, id uint16, size int64) {
	a := h.of(cl)
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.queued
	if id != 0 {
		a.queued -= a.unacked[id]
		delete(a.unacked, id)
	} else if a.count > 0 {
		a.count--
		a.queued -= size
	}
	if a.count == 0 {
		a.queued = 0
		for _, n := range a.unacked { // any order: a sum
			a.queued += n
		}
	}
	h.queued.Add(a.queued - was)
}

func sizeOf(pk *packets.Packet) int64 { return int64(len(pk.Payload) + len(pk.TopicName)) }

func (h *limits) OnPacketEncode(cl *mochi.Client, pk packets.Packet) packets.Packet {
	if pk.FixedHeader.Type == packets.Publish {
		h.done(cl, 0, sizeOf(&pk))
	}
	return pk
}

func (h *limits) OnQosPublish(cl *mochi.Client, pk packets.Packet, _ int64, _ int) {
	if pk.FixedHeader.Type == packets.Publish {
		h.queue(cl, pk.PacketID, sizeOf(&pk))
	}
}

func (h *limits) OnQosComplete(cl *mochi.Client, pk packets.Packet) { h.done(cl, pk.PacketID, 0) }
func (h *limits) OnQosDropped(cl *mochi.Client, pk packets.Packet)  { h.done(cl, pk.PacketID, 0) }

// OnPublishDropped counts the messages that the broker gives up silently.
func (h *limits) OnPublishDropped(cl *mochi.Client, pk packets.Packet) {
	h.done(cl, 0, sizeOf(&pk))
	n := h.broker.dropped.Add(1)
	h.warn(cl, fmt.Sprintf("messages for it were dropped, %d so far in all", n))
}

func (h *limits) warn(cl *mochi.Client, what string) {
	if kept, ok := h.line.allow(time.Now()); ok {
		h.log.Warn("broker holds a client to its limits", "client", clip(cl.ID), "remote", cl.Net.Remote, "what", what, "not_logged", kept)
	}
}

// clip keeps a name that a stranger chose fit for a log.
func clip(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
