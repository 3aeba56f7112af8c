package server

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/seal"
)

// What one stranger can cost the embedded broker. Whoever goes beyond a limit
// that bounds memory is disconnected: a client that comes back and is told
// everything again is better off than one that lost a message silently.
const (
	// connectPatience is how long a connection may take from its first byte,
	// TLS included, to its CONNECT. chosen: a loaded BMC needs a second or two.
	connectPatience = 10 * time.Second
	// longestKeepalive replaces a longer one, or none. chosen: a peer that is
	// gone silently is dropped within seven minutes; ours ask for 10 s.
	longestKeepalive = 300
	// successionPatience is how long a client waits for the end of a former
	// connection of its name. chosen: ends take milliseconds, seconds under load.
	successionPatience = 5 * time.Second
	// writePatience is how long one write to a client may take. chosen: a
	// client that reads nothing for so long has lost its will's keepalive too.
	writePatience = 10 * time.Second
	// maxConnections: a cell of 10,000 nodes, its switches and operators.
	maxConnections = 12_288
	// ownDescriptors are kept for the process's own files and links. chosen.
	ownDescriptors = 32
	// maxQueuedBytes of one client, not yet written or not yet acknowledged.
	// chosen: 10,000 acknowledgements to the planner are 2 MB.
	maxQueuedBytes = 4 << 20
	// maxQueuedTotal of all clients; beyond it those with more than
	// fairQueuedBytes go. chosen: an eighth of 256 MiB; the collector lets it be twice that.
	maxQueuedTotal  = 32 << 20
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
	// maxRetainedBytes of their payloads. chosen: a presence and a report of
	// each node of a cell, a plan of some.
	maxRetainedBytes = 64 << 20
	// retainedPerToken is how many kept messages a filter with wildcards may
	// look through for the price of one packet. chosen: a planner with its
	// seven on a cell of 10,000 nodes is within the burst.
	retainedPerToken = 64
)

// packetRate is what one client may send; beyond it the broker reads it
// slower. chosen: a planner of 10,000 nodes sends each a plan at once, an agent
// some tens of events.
var packetRate = limit.Rate{Interval: time.Millisecond, Burst: 24_000}

// affordable is how many connections the process has descriptors for.
func affordable() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || r.Cur >= maxConnections+ownDescriptors {
		return maxConnections
	}
	return max(1, int(r.Cur)-ownDescriptors)
}

// limits is the broker's hook that holds clients to them.
type limits struct {
	mochi.HookBase
	broker *Broker
	log    *slog.Logger
	queued atomic.Int64 // bytes, of all clients
	sizes  sync.Map     // topic -> int64, of the message that is being handed out on it
	mu     sync.Mutex
	client map[*mochi.Client]*account
	names  map[*mochi.Client]proto.Grants // of those that are in, where there are rights
	conns  map[net.Conn]*mochi.Client
	trust  func() *seal.Trust // nil: everybody may do everything, unless
	logins *logins            // there are users; nil: there are none
	kept   retained
}

// account is what one client costs.
type account struct {
	mu      sync.Mutex
	queued  int64            // bytes, of both kinds
	count   int              // messages not yet written
	unacked map[uint16]int64 // bytes by packet id
	packets limit.Bucket
	asked   uint16 // its own number of the change of subscriptions under way
	ended   bool
}

func (h *limits) ID() string { return "limits" }

func (h *limits) Provides(b byte) bool {
	return slices.Contains([]byte{mochi.OnConnectAuthenticate, mochi.OnConnect, mochi.OnSessionEstablish, mochi.OnDisconnect, mochi.OnPacketRead, mochi.OnPacketEncode, mochi.OnACLCheck,
		mochi.OnSubscribe, mochi.OnWill, mochi.OnPublish, mochi.OnPublished, mochi.OnPublishDropped, mochi.OnQosPublish, mochi.OnQosComplete, mochi.OnQosDropped}, b)
}

// of finds the account of a client, nil for one that is gone.
func (h *limits) of(cl *mochi.Client) *account {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.client[cl]
}

// OnConnect settles how a client is served. What MQTT 5 could have kept for it is left out:
// ours speak 3.1.1.
func (h *limits) OnConnect(cl *mochi.Client, _ packets.Packet) error {
	if will := cl.Properties.Will; will.Flag != 0 && !h.fits(cl, will.TopicName) {
		return packets.ErrTopicNameInvalid
	}
	cl.Properties.Will.WillDelayInterval, cl.Properties.Will.User = 0, nil
	if cl.State.Keepalive == 0 || cl.State.Keepalive > longestKeepalive {
		cl.State.Keepalive = longestKeepalive
	}
	cl.Properties.Clean = true // nothing is kept for clients that are away
	cl.Properties.Props.SessionExpiryInterval, cl.Properties.Props.SessionExpiryIntervalFlag = 0, false
	return nil
}

// OnSessionEstablish takes the place of a client's name. It comes behind OnConnectAuthenticate,
// unlike OnConnect: a refused client ends no other connection.
func (h *limits) OnSessionEstablish(cl *mochi.Client, _ packets.Packet) {
	if c := limit.Of(cl.Net.Conn); c != nil {
		c.Admit()
	}
	h.succeed(cl)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.name(cl)
	h.client[cl], h.conns[cl.Net.Conn] = &account{unacked: map[uint16]int64{}}, cl
}

// succeed ends the connection that had a client's name before, and waits until
// the broker has done with it: a queue that is thrown away takes a while, and
// a client that returns within it would lose place and subscriptions to that.
func (h *limits) succeed(cl *mochi.Client) {
	for end := time.Now().Add(successionPatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		former, ok := h.broker.server.Clients.Get(cl.ID)
		if !ok {
			return
		}
		former.Stop(packets.ErrSessionTakenOver)
	}
}

// lost: the broker has given a client's place away, and would bring it nothing
// any more. It has to come again.
func (h *limits) lost(cl *mochi.Client) bool {
	now, ok := h.broker.server.Clients.Get(cl.ID)
	return (!ok || now != cl) && h.of(cl) != nil
}

// left: a connection is over. Of one that was refused, or that ended while it was let
// in, the library says nothing.
func (h *limits) left(conn net.Conn) {
	h.mu.Lock()
	cl := h.conns[conn]
	delete(h.conns, conn)
	h.mu.Unlock()
	if cl != nil {
		h.OnDisconnect(cl, nil, true)
	}
}

func (h *limits) OnDisconnect(cl *mochi.Client, _ error, _ bool) {
	h.mu.Lock()
	a := h.client[cl]
	if h.logins != nil {
		h.logins.left(cl)
	}
	delete(h.client, cl)
	delete(h.names, cl)
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
// later, and TCP tells it so. Acknowledgements that are waited for are free.
func (h *limits) OnPacketRead(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if h.lost(cl) {
		h.warn(cl, "the broker has lost its subscriptions, it has to come again")
		cl.Stop(packets.ErrServerUnavailable)
		return pk, packets.ErrRejectPacket
	}
	switch pk.FixedHeader.Type {
	case packets.Puback, packets.Pubrec, packets.Pubcomp:
		if _, waited := cl.State.Inflight.Get(pk.PacketID); waited {
			return pk, nil
		}
	case packets.Subscribe, packets.Unsubscribe:
		h.renumber(cl, &pk)
	}
	h.spend(cl, 1)
	return pk, nil
}

// renumber gives a change of subscriptions a number that the broker has given no
// message to the client. Those are not the client's (MQTT 3.1.1 sec 2.3.1), and the
// library refuses what has one of them: an agent never received a command again.
func (h *limits) renumber(cl *mochi.Client, pk *packets.Packet) {
	a := h.of(cl)
	if a == nil {
		return
	}
	a.asked = pk.PacketID // read and answered by one goroutine
	for used := true; used; pk.PacketID-- {
		_, used = cl.State.Inflight.Get(pk.PacketID - 1)
		used = used || pk.PacketID == 1
	}
}

// spend takes so many packets of a client's share, and waits for them.
func (h *limits) spend(cl *mochi.Client, n int) {
	a := h.of(cl)
	if a == nil {
		return
	}
	a.mu.Lock()
	wait := a.packets.Spend(time.Now(), packetRate, n)
	a.mu.Unlock()
	time.Sleep(wait)
}

// OnSubscribe charges a client for the kept messages that a filter makes the
// broker look through.
func (h *limits) OnSubscribe(cl *mochi.Client, pk packets.Packet) packets.Packet {
	price := h.broker.server.Topics.Retained.Len() / retainedPerToken
	for i := range pk.Filters {
		if strings.ContainsAny(pk.Filters[i].Filter, "+#") {
			h.spend(cl, 1+price)
		}
	}
	return pk
}

// fits refuses a topic that could not be one of ours.
func (h *limits) fits(cl *mochi.Client, topic string) bool {
	if len(topic) <= maxTopicLength && strings.Count(topic, "/") < maxTopicLevels {
		return true
	}
	h.warn(cl, fmt.Sprintf("a topic of %d characters and %d levels", len(topic), strings.Count(topic, "/")+1))
	return false
}

// OnACLCheck is asked for each topic that is published, each filter that is
// subscribed, and each message before it is queued for a subscriber.
func (h *limits) OnACLCheck(cl *mochi.Client, topic string, write bool) bool {
	if !h.fits(cl, topic) || !h.may(cl, topic, write) {
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
	pk.Properties = packets.Properties{} // of MQTT 5: kept and queued they cost more than they weigh
	pk.FixedHeader.Retain = pk.FixedHeader.Retain && h.retain(cl, pk.TopicName, len(pk.Payload))
	h.sizes.Store(pk.TopicName, sizeOf(&pk))
	return pk, nil
}

func (h *limits) OnWill(cl *mochi.Client, will mochi.Will) (mochi.Will, error) {
	will.Retain = will.Retain && h.retain(cl, will.TopicName, len(will.Payload))
	return will, nil
}

// retain reports whether a message can be kept. One that cannot is handed out
// all the same: subscribers that are there get it.
func (h *limits) retain(cl *mochi.Client, topic string, size int) bool {
	ok := h.kept.room(topic, size)
	if !ok {
		h.warn(cl, fmt.Sprintf("no room to retain its message beside %d topics and %d MiB", maxRetained, maxRetainedBytes>>20))
	}
	return ok
}

// retained is what the broker keeps for those who come later.
type retained struct {
	mu    sync.Mutex
	sizes map[string]int // by topic
	bytes int
}

// room makes room for a message, or says that there is none. An empty one
// takes away what was kept.
func (r *retained) room(topic string, size int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.sizes[topic]
	if size == 0 {
		delete(r.sizes, topic)
		r.bytes -= was
		return true
	}
	if !known && len(r.sizes) >= maxRetained || size > was && r.bytes+size-was > maxRetainedBytes {
		return false
	}
	r.sizes[topic] = size
	r.bytes += size - was
	return true
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
	queued, unacked := a.queued, len(a.unacked)
	total := h.queued.Add(size)
	a.mu.Unlock()
	if queued <= maxQueuedBytes && (total <= maxQueuedTotal || queued <= fairQueuedBytes) && unacked < brokerInflight {
		return true
	}
	h.warn(cl, fmt.Sprintf("it does not read: %d KiB are queued for it, %d messages not acknowledged", queued>>10, unacked))
	if c := limit.Of(cl.Net.Conn); c != nil {
		c.Reset()
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
	switch pk.FixedHeader.Type {
	case packets.Publish:
		h.done(cl, 0, sizeOf(&pk))
	case packets.Suback, packets.Unsuback:
		if a := h.of(cl); a != nil {
			pk.PacketID = a.asked
		}
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
	h.log.Warn("broker holds a client to its limits", "client", clip(cl.ID), "remote", cl.Net.Remote, "what", what)
}

// clip keeps a name that a stranger chose fit for a log.
func clip(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}
