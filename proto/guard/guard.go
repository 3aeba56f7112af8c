package guard

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/seal"
)

// Mode is what becomes of a message that should be sealed and is not, or wrongly.
type Mode string

const (
	Off     Mode = "off"     // seals are taken off and not looked at
	Warn    Mode = "warn"    // it is logged and read
	Enforce Mode = "enforce" // it is not read
)

// On: seals are looked at.
func (m Mode) On() bool { return m == Warn || m == Enforce }

// Check refuses a mode that is none.
func (m Mode) Check() error {
	if m == "" || m == Off || m.On() {
		return nil
	}
	return proto.Wrong("seal", "off, warn or enforce", "%q", string(m))
}

// SealedReports is the setting for sealed reports; the other is plain.
const SealedReports = "sealed"

// CheckKeys holds the keys of a configuration against each other; needed says that
// its key is there.
func CheckKeys(m Mode, trust, reports string, key bool) error {
	switch {
	case m.Check() != nil:
		return m.Check()
	case reports != SealedReports && reports != "plain":
		return proto.Wrong("reports", "plain or sealed", "%q", reports)
	case m.On() && trust == "":
		return proto.Wrong("trust", "a file of ocsctl pki, with seal "+string(m), "none")
	case m.On() && !key:
		return proto.Wrong("key", "the own key, with seal "+string(m), "none")
	case !m.On() && reports == SealedReports:
		return proto.Wrong("reports", "plain, with seal off", "%q", reports)
	}
	return nil
}

// Encrypted reports whether the link to a broker is.
func Encrypted(broker string) bool { return strings.HasPrefix(broker, "mqtts:") }

// Config of a Guard.
type Config struct {
	Mode      Mode
	Fabric    string
	Role      proto.Role // of the guard's owner: RoleNode, RolePlanner or an operator's
	KeyFile   string     // own key, PEM; "": nothing is sealed
	TrustFile string     // as ocsctl pki writes it; read again when it changes
	// Kept is where the highest edition is kept that came over the link; "": nowhere.
	Kept string
	// Also finds keys of nodes that issuers vouch for; nil: nobody does.
	Also func(seal.KeyID) (seal.Vouched, bool)
	// Hear is told what is asked of and said by issuers, and must not keep its caller; nil: nobody is.
	Hear func(proto.Packet)
	// Used is told whose key has sealed a message, the first time; nil: nobody is.
	Used func(seal.Key)
	// Reports says that answers, reports, events and births are to be sealed.
	Reports bool
	Log     *slog.Logger
}

const (
	lookEvery = 2 * time.Second // between two looks at the file
	// maxKnown bounds the messages that are known to be rightly sealed. chosen: the
	// retained ones of a node or of a planner's rivals, several times.
	maxKnown  = 512
	maxTopics = 1 << 16 // chosen: as a link counts topics
	maxKey    = 64 << 10
)

// Rates of signatures that are checked. A 32-bit controller takes some 4 ms for
// one; a planner hears all nodes at once.
var (
	agentTotal   = limit.Rate{Interval: 50 * time.Millisecond, Burst: 64}
	agentTopic   = limit.Rate{Interval: 100 * time.Millisecond, Burst: 32}
	plannerTotal = limit.Rate{Interval: 200 * time.Microsecond, Burst: 1 << 16}
	plannerTopic = limit.Rate{Interval: 10 * time.Millisecond, Burst: 512}
)

// Guard opens and seals the messages of one link.
type Guard struct {
	cfg   Config
	log   *slog.Logger
	key   atomic.Pointer[ed25519.PrivateKey]
	trust atomic.Pointer[seal.Trust]
	again atomic.Pointer[func()] // is called when another own key is in use

	mu     sync.Mutex
	known  map[[sha256.Size]byte]seal.Key // rightly sealed, by topic and bytes
	total  limit.Bucket
	rate   limit.Rate
	topics limit.Sources
	looked time.Time
	read   time.Time // when the file was last written
	bad    string    // what was wrong with it

	counts Counts
	doubts map[string]Doubt
}

// New reads what the configuration names. nil, nil: no guard, the mode is Off.
func New(cfg Config) (*Guard, error) {
	if err := cfg.Mode.Check(); err != nil || !cfg.Mode.On() {
		return nil, err
	}
	if cfg.TrustFile == "" {
		return nil, proto.Wrong("trust", "a file of ocsctl pki, with seal "+string(cfg.Mode), "none")
	}
	g := &Guard{cfg: cfg, log: limit.Logger(cfg.Log), known: map[[sha256.Size]byte]seal.Key{}, doubts: map[string]Doubt{}, rate: agentTotal, topics: limit.Sources{Rate: agentTopic, Max: maxTopics}}
	if cfg.Role == proto.RolePlanner {
		g.rate, g.topics.Rate = plannerTotal, plannerTopic
	}
	if cfg.KeyFile != "" {
		raw, err := readFile(cfg.KeyFile, maxKey)
		if err == nil {
			var key ed25519.PrivateKey
			key, err = seal.ParseKey(raw)
			g.key.Store(&key)
		}
		if err != nil {
			return nil, proto.Wrong("key", "a PEM file with an Ed25519 key", "%s: %v", cfg.KeyFile, err)
		}
	} else if cfg.Role == proto.RolePlanner || cfg.Role == proto.RoleNode && cfg.Reports {
		return nil, proto.Wrong("key", "a key to seal with", "none")
	}
	t, err := g.readTrust(cfg.TrustFile)
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(cfg.TrustFile); err == nil {
		g.read = st.ModTime()
	}
	g.trust.Store(g.highest(t))
	g.tellOfKey()
	return g, nil
}

// highest is the kept edition where it follows the one of the file; else that is
// kept from now on.
func (g *Guard) highest(t *seal.Trust) *seal.Trust {
	if g.cfg.Kept == "" || g.cfg.Kept == g.cfg.TrustFile {
		return t
	}
	kept, err := g.readTrust(g.cfg.Kept)
	switch {
	case err == nil && kept.Follows(t) == nil:
		g.log.Warn("the trust document is older than one that was seen, which holds", "file", g.cfg.TrustFile, "edition", t.Edition, "seen", kept.Edition)
		return kept
	case err != nil && !os.IsNotExist(err):
		g.log.Error("the kept trust document cannot be read; that of the file holds", "file", g.cfg.Kept, "error", err)
	}
	g.keep(t)
	return t
}

// readTrust reads a document that may be used here.
func (g *Guard) readTrust(file string) (*seal.Trust, error) {
	raw, err := readFile(file, seal.MaxTrustFile)
	if err != nil {
		if os.IsNotExist(err) && file == g.cfg.Kept {
			return nil, err
		}
		return nil, proto.Wrong("trust", "a readable file", "%v", err)
	}
	t, err := g.parseTrust(raw)
	switch {
	case err != nil:
		return nil, proto.Wrong("trust", "a file of ocsctl pki", "%s: %v", file, err)
	case t.Fabric != g.cfg.Fabric:
		return nil, proto.Wrong("trust", "of fabric "+g.cfg.Fabric, "%s is of fabric %s", file, t.Fabric)
	case g.needsNodes() && !t.KnowsNodes() && file != g.cfg.Kept:
		return nil, proto.Wrong("trust", "with the keys of the nodes", "%s has them not", file)
	}
	return t, nil
}

func (g *Guard) parseTrust(raw []byte) (*seal.Trust, error) {
	t, err := seal.ReadTrust(raw)
	if err == nil && g.cfg.Also != nil {
		t.Also(g.cfg.Also)
	}
	return t, err
}

// needsNodes: who judges what nodes say needs their keys.
func (g *Guard) needsNodes() bool { return g.cfg.Role == proto.RolePlanner && g.cfg.Reports }

func (g *Guard) tellOfKey() {
	t := g.trust.Load()
	key := g.key.Load()
	if key == nil || !t.KnowsNodes() || g.cfg.Role == proto.RoleNode && len(t.Issuers) > 0 {
		return
	}
	if id := seal.IDOf(key.Public().(ed25519.PublicKey)); !knows(t, id) {
		g.log.Warn("the own key is not trusted: others will not believe what it seals", "key", id.String(), "edition", t.Edition)
	}
}

func knows(t *seal.Trust, id seal.KeyID) bool { _, ok := t.Find(id); return ok }

// Look reads the file again where that is due, for a caller that reads Trust while no message comes.
func (g *Guard) Look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.look(time.Now())
}

// Trust is the edition in force.
func (g *Guard) Trust() *seal.Trust { return g.trust.Load() }

// Seal seals what others want sealed of us.
func (g *Guard) Seal(p *proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	key := g.key.Load()
	if err != nil || key == nil || p.Kind != proto.Publish || len(p.Payload) == 0 || seal.IsSealed(p.Payload) || !g.wants(topic.Kind) {
		return
	}
	p.Payload = seal.Sign(*key, p.Topic, p.Payload)
}

// wants: messages of a kind are to be sealed.
func (g *Guard) wants(k proto.TopicKind) bool {
	switch k {
	case proto.TopicPlanner, proto.TopicDesired, proto.TopicCommand, proto.TopicDecision, proto.TopicRequest, proto.TopicTrust,
		proto.TopicCSR, proto.TopicCRT, proto.TopicEnrolCSR, proto.TopicEnrolCRT:
		return true
	case proto.TopicAck, proto.TopicReported, proto.TopicPresence, proto.TopicEvent:
		return g.cfg.Reports
	}
	return false
}

// Open takes a message out of its seal and says whether it may be read, and by
// whom it is. An operator's question that is not acceptable is read, to be
// answered so.
func (g *Guard) Open(p *proto.Packet) proto.Passage {
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil || topic.Fabric != g.cfg.Fabric || !g.wants(topic.Kind) {
		return proto.Passes // what it is worth is for the reader to say
	}
	if len(p.Payload) == 0 && p.Sealed == nil {
		return proto.Passes // an empty retained one is one that was deleted
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.look(now)
	if topic.Kind == proto.TopicTrust {
		g.hear(p, now)
		return proto.Kept
	}
	switch topic.Kind {
	case proto.TopicCSR, proto.TopicCRT, proto.TopicEnrolCSR, proto.TopicEnrolCRT:
		if g.cfg.Hear != nil && p.Sealed != nil && g.afford(p.Topic, now) {
			g.cfg.Hear(*p)
		}
		return proto.Kept
	}
	k, err := g.author(p, topic, now)
	switch {
	case err == nil:
		g.counts.Opened[sender(topic)]++
		p.By = k.Holder.String()
		if topic.Kind == proto.TopicRequest {
			g.entitle(p, topic, k)
		}
		return proto.Passes
	case g.cfg.Mode == Warn:
		if why := g.wrong(p, topic, err, now); !p.Retain {
			p.Doubt = why // what the broker kept is of a former life
		}
		g.log.Warn("a message that is not sealed as it should be was read", "topic", p.Topic, "reason", err)
		return proto.Passes
	case topic.Kind == proto.TopicRequest:
		p.Denied = g.wrong(p, topic, err, now)
		return proto.Passes
	case p.Retain && g.leftOver(p):
		return proto.Kept
	}
	g.wrong(p, topic, err, now)
	g.log.Warn("a message that is not sealed as it must be was not read", "topic", p.Topic, "reason", err)
	return proto.Stopped
}

// leftOver: what a broker kept is by a key that is not known here. After a change of keys
// there is some of that until all is said anew; it is not read, and no sign of an attack.
func (g *Guard) leftOver(p *proto.Packet) bool {
	s, _, err := seal.Open(p.Sealed)
	_, known := g.trust.Load().Find(s.Key)
	return err == nil && !known
}

// author is who sealed a message. What is known is not checked again.
func (g *Guard) author(p *proto.Packet, topic proto.Topic, now time.Time) (seal.Key, error) {
	t := g.trust.Load()
	if p.Sealed == nil {
		return seal.Key{}, seal.Refuse(seal.Unsealed, fmt.Sprintf("sealed by a key of edition %d", t.Edition), "not sealed")
	}
	s, rest, err := seal.Open(p.Sealed)
	if err != nil || len(rest) > 0 {
		return seal.Key{}, seal.Refuse(seal.Malformed, "", seal.ErrForm.Error())
	}
	h := sha256.New()
	h.Write(p.Sealed)
	h.Write([]byte(p.Topic))
	name := [sha256.Size]byte(h.Sum(nil))
	if k, ok := g.known[name]; ok {
		return k, nil
	}
	if err := t.Admits(&s, p.Topic, topic); err != nil {
		return seal.Key{}, err
	}
	if !g.afford(p.Topic, now) {
		return seal.Key{}, seal.Refuse(seal.Unchecked, fmt.Sprintf("one in %v", g.topics.Rate.Interval), "more seals than are checked")
	}
	k, err := t.Author(&s, p.Topic, topic)
	if err != nil {
		return k, err
	}
	if len(g.known) >= maxKnown {
		clear(g.known)
	}
	g.known[name] = k
	if g.cfg.Used != nil {
		g.cfg.Used(k)
	}
	return k, nil
}

// afford takes a signature of those that may be checked, each topic's share and all.
func (g *Guard) afford(topic string, now time.Time) bool {
	share := g.topics.Of(now, topic)
	return share.Has(now, g.topics.Rate, 1) && g.total.Take(now, g.rate, 1) && share.Take(now, g.topics.Rate, 1)
}

// entitle checks a question against the rights of the sender.
func (g *Guard) entitle(p *proto.Packet, topic proto.Topic, k seal.Key) {
	var q proto.OpRequest
	if _, err := proto.Decode(p.Payload, &q); err != nil {
		return // the reader says what is wrong with it
	}
	if need := q.Needs(); k.Role < need {
		why := fmt.Sprintf("%s is %s, this takes %s", k.Holder, k.Role, need)
		err := seal.Refuse(seal.NoRight, need.String(), why)
		if g.cfg.Mode == Enforce {
			p.Denied = g.wrong(p, topic, err, time.Now())
		} else {
			p.Doubt = g.wrong(p, topic, err, time.Now())
		}
		g.log.Warn("an operator asked for more than is granted", "operator", k.Holder.String(), "noun", q.Noun.String(), "reason", why)
	}
}
