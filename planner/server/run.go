package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
	"ringlight/proto/seal"
)

// Config of Run.
type Config struct {
	Fabric *fabric.Fabric // nil: the stored one
	State  string         // file of the store, or its name where Open is given
	// Open opens a store of another kind; nil: the file. It returns when there is
	// something to read, or ctx has ended.
	Open func(context.Context) (Store, error)
	// Version of the program, for those who look on.
	Version string

	// Broker is the URL of a broker. Empty: an embedded one on Listen.
	Broker       string
	Listen       string
	CAFile       string // PEM files for mqtts, of the link or of the embedded broker
	CertFile     string
	KeyFile      string
	PasswordFile string // of the link: see mqtt.Config
	Passwords    string // of the embedded broker: see BrokerConfig
	Insecure     bool   // allow mqtt beyond loopback
	Uncached     bool   // nothing is left with the broker: see planner.Config and mqtt.Config
	Seals        Seals

	// Takeover replaces whoever is in service, and what was planned from another
	// description. TermAbove begins above a term that agents know and that no
	// planner would believe.
	Takeover  bool
	TermAbove proto.Term

	MinReconnect, MaxReconnect time.Duration // of the link; 0: the link's own and 5 s

	// HTTP is where the HTTP server listens: host:port or unix:PATH, several with
	// commas; empty: nowhere. Beyond loopback it wants the PEM files above.
	HTTP      string
	HTTPReady func(url string)                          // is told where it listens, with commas, before Ready is called
	Serve     func(Door) (stop func() error, err error) // begins what else serves the planner, before Ready is called; nil: nothing does
	Webhook   string                                    // URL that is told of each alarm; empty: none
	Log       *slog.Logger
	// Ready is told the broker's URL and the start's configuration when the
	// term is stored and the link is being made.
	Ready func(broker string, cfg planner.Config)
	// Manager started the process and is told how it is; nil: nobody is.
	Manager Manager
	// Observe is called from the planner's goroutine before it waits for more, and
	// must not keep it.
	Observe func(*planner.Planner)
	// Skip is how far the planner's clock goes on at once, besides the wall's; nil:
	// never. A simulation skips what everybody would wait for.
	Skip <-chan time.Duration

	begun bool   // the store was read: what it holds is what is planned for
	host  string // of this process, for people
}

// Manager starts a process anew that ends or hangs. Only the planner's goroutine speaks
// to it.
type Manager interface {
	Ready() // the store is read and the link is being made
	// Beat tells that the loop turns, where that is due, and returns after which
	// time it is to be called again.
	Beat() time.Duration
}

// errGaveWay is what Run returns when the planner leaves by itself: the fabric
// is planned from another description.
var errGaveWay = errors.New("server: the planner gave way")

// maxBatch bounds the events between two commits of the store. chosen: a
// storm of acknowledgements of a cell costs tens of commits, not thousands.
const maxBatch = 256

// Run is a planner from its start to the end of ctx, when it returns nil. An
// error is a *proto.Error or *fabric.Error when the configuration is at fault,
// then nothing was attempted.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg.Log = limit.Logger(cfg.Log)
	if err := cfg.Check(); err != nil {
		return err
	}
	cfg.host, _ = os.Hostname() // none is none
	store, err := openStore(ctx, &cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	life := rand.Uint64() | 1
	start, err := begin(store, &cfg, life)
	if err != nil {
		return err
	}
	if start.Alone { // nobody is there whose fabric it could be
		if err := store.Commit(start.First); err != nil {
			return err
		}
	}
	standing, _ := store.Standing()
	start.Election, start.Follow, start.Picture = standing.Election, standing.Election != 0, standing.Election != 0
	at, issues, err := cfg.newGuard(start.Fabric.Name)
	if err != nil {
		return err
	}
	broker := cfg.Broker
	var own *Broker
	if broker == "" {
		if own, err = StartBrokerWith(cfg.embedded(at)); err != nil {
			return err
		}
		defer own.Close()
		broker = own.URL()
	}
	to := cfg.link(broker, start)
	if at != nil {
		to.Guard, to.Subscriptions = at, append(to.Subscriptions, issues.subscriptions(start.Fabric.Name)...)
	}
	link, err := mqtt.Dial(to)
	if err != nil {
		return err
	}
	// Without a goodbye: the will tells everyone that the planner is gone.
	defer link.Abandon()
	cfg.Log.Info("planner started", "fabric", start.Fabric.Name, "nodes", start.Fabric.Nodes, "term", start.Term,
		"planner", proto.PlannerCopy{Planner: start.PlannerID, Life: start.Life}, "broker", broker, "state", cfg.State)
	s := &server{cfg: cfg, store: store, life: life, standing: standing, recv: link.Recv(), sendOut: link.Send, began: time.Now(), broker: own, guard: at, issues: issues, meters: newMeters(), link: mqtt.Watch{Log: cfg.Log, Broker: broker, Why: link.Err, Without: "nothing is planned"}}
	s.host = planner.NewHost(start, s)
	s.topics, s.asker, s.asked = proto.Topics{Fabric: start.Fabric.Name}, fmt.Sprintf("view-%x", start.Life), map[proto.Corr]chan *proto.OpReply{}
	s.reads, s.rests, s.ended = make(chan func(*planner.Planner)), make(chan func(*planner.Planner)), make(chan struct{})
	defer close(s.ended)
	defer s.secure(link.Again)()
	stop, err := s.serve()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if cfg.Ready != nil {
		cfg.Ready(broker, start)
	}
	s.tellAlarms(ctx)
	return s.loop(ctx)
}

// Check reports what Run would refuse before it attempts anything.
func (c *Config) Check() error {
	if c.State == "" {
		return proto.Wrong("state", "a file", "empty")
	}
	if err := c.checkOutlets(); err != nil {
		return err
	}
	for _, h := range c.http() {
		if err := h.Check(); err != nil {
			return err
		}
	}
	if err := c.checkSeals(); err != nil {
		return err
	}
	if c.Broker == "" {
		if c.Open != nil {
			return proto.Wrong("broker", "-broker, the one of all copies of the planner", "none: a broker in this process goes with it, and the store is for those that take its place")
		}
		b := c.embedded(nil)
		if c.Passwords != "" && c.PasswordFile == "" {
			return proto.Wrong("password_file", "with passwords: the planner logs in, too", "none")
		}
		return b.Check()
	}
	if c.Passwords != "" {
		return proto.Wrong("passwords", "of the embedded broker", "another broker has users of its own")
	}
	if c.Listen != "" {
		return proto.Wrong("listen", "-listen or -broker", "both are given")
	}
	l := c.link(c.Broker, planner.Config{Fabric: fabric.Default(), PlannerID: 1, Life: 1})
	return l.Check()
}

func (c *Config) link(broker string, start planner.Config) mqtt.Config {
	will := start.Will()
	longest := cmp.Or(c.MaxReconnect, maxReconnect)
	ca, cert, key := c.tls()
	return mqtt.Config{Broker: broker, ClientID: proto.Topics{Fabric: start.Fabric.Name}.PlannerClient(start.Life),
		Will: &will, Subscriptions: planner.Subscriptions(start.Fabric.Name), Ordered: true, Queue: linkQueue, Intake: mqtt.DefaultIntake,
		CAFile: ca, CertFile: cert, KeyFile: key, PasswordFile: c.PasswordFile, Insecure: c.Insecure,
		MinReconnect: c.MinReconnect, MaxReconnect: longest, Uncached: c.Uncached}
}

// maxReconnect is shorter than a node's: one planner storms nobody, and
// everybody waits for it. chosen.
const maxReconnect = 5 * time.Second

// linkQueue bounds what waits for the planner or for its link. chosen: a cell
// of 10,000 nodes may all answer and report at once.
const linkQueue = 1 << 16

// server is the planner's ports in real time: one goroutine, a link, a store.
type server struct {
	cfg     Config
	store   Store
	recv    <-chan proto.Packet
	sendOut func(proto.Packet) error
	host    *planner.Host
	began   time.Time
	skipped time.Duration
	link    mqtt.Watch
	unsent  uint64 // the link would not take
	meters  meters
	broker  *Broker      // the embedded one, or nil
	guard   *guard.Guard // at the link, or nil
	issues  *issuer      // of certificates for nodes, or nil
	warnings
	told   *seal.Trust // the edition that everybody was told
	toldAt time.Time
	born   bool // somebody since, and the broker keeps nothing
	reads  chan func(*planner.Planner)
	rests  chan func(*planner.Planner) // reads of what is stored
	ended  chan struct{}               // closed when nobody steps the planner any more

	life     uint64          // of this process
	standing Standing        // of its store, as last looked at
	changed  <-chan struct{} // it is to be looked at again
	reign    uint64          // that the planner leads in; 0: it follows, or its store is a file
	memory   memory
	stored   chan error     // of the transaction under way; nil: none is
	storing  time.Time      // when it began
	head     string         // of the audit chain after it, "" where it does not change
	again    *time.Duration // when the notice came that the planner is told again; nil: it is not
	stale    bool           // others have written since the planner was made
	drawAt   time.Duration  // when it may be made anew

	topics proto.Topics
	asker  string // the client's name, over HTTP
	asked  map[proto.Corr]chan *proto.OpReply
}

func (s *server) loop(ctx context.Context) error {
	timer := time.NewTimer(s.meters.waits(0, 0))
	defer timer.Stop()
	if s.cfg.Manager != nil {
		s.cfg.Manager.Ready()
	}
	for {
		if err := s.seat(); err != nil {
			return err
		}
		if s.cfg.Observe != nil {
			s.cfg.Observe(s.host.Planner())
		}
		s.issues.answers(s.leads())
		recv, rests := s.recv, s.rests
		if s.stored != nil {
			recv, rests = nil, nil // what is heard while the disk works waits
		}
		select {
		case <-ctx.Done():
			return s.store.Close() // first of all: another one may lead at once
		case <-s.changed:
			continue
		case err := <-s.stored:
			if err := s.done(err); err != nil {
				return err
			}
		case <-timer.C:
			s.tick()
		case d := <-s.cfg.Skip:
			s.skipped += d
			s.tick()
		case p, ok := <-recv:
			if !ok {
				return nil
			}
			s.host.Late = s.meters.wakes()
			s.receive(p)
			s.receiveMore()
		case read := <-s.reads:
			s.meters.reads()
			read(s.host.Planner())
		case read := <-rests:
			s.meters.reads()
			read(s.host.Planner())
		}
		s.settle()
		if reason, exited := s.host.Exited(); exited {
			return fmt.Errorf("%w: %s", errGaveWay, reason)
		}
		s.meters.slept()
		timer.Reset(s.meters.waits(s.untilNext(), len(s.recv)))
	}
}

// tick runs the work that is due.
func (s *server) tick() {
	s.host.Late = s.meters.wakes()
	s.link.Look(s.since())
	if s.stored == nil {
		s.lookAtSeals(time.Now())
		s.warn(time.Now())
		s.host.Tick()
	}
}

// since is the time since the start, with what was skipped.
func (s *server) since() time.Duration { return time.Since(s.began) + s.skipped }

// untilNext bounds the wait so that the timer's arithmetic cannot wrap.
func (s *server) untilNext() time.Duration {
	now := s.since()
	next := min(s.host.Next(), s.link.Next(now))
	if s.stale {
		next = min(next, s.drawAt)
	}
	if u := s.standing.Until; s.reign != 0 && !u.IsZero() {
		next = min(next, u.Sub(s.began)+s.skipped+time.Millisecond)
	}
	if s.cfg.Manager != nil { // whoever started this process hears that the loop turns
		next = min(next, now+s.cfg.Manager.Beat())
	}
	return max(0, next-now)
}

// receiveMore takes what else has come, so that it shares a transaction.
func (s *server) receiveMore() {
	for range maxBatch {
		select {
		case p, ok := <-s.recv:
			if !ok {
				return
			}
			s.receive(p)
		default:
			return
		}
	}
}

func (s *server) receive(p proto.Packet) {
	s.meters.queued--
	switch p.Kind {
	case proto.Publish:
		s.born = s.born || s.cfg.Uncached && strings.HasSuffix(p.Topic, "/"+proto.TopicPresence.String())
	case proto.Shed:
		s.cfg.Log.Warn("messages were not read: more than a topic may carry, or not sealed as they must be", "not_read", p.ShedCount())
	default:
		s.told = nil // a new connection may be to a broker that keeps nothing
		if p.Kind == proto.LinkDown {
			s.meters.losses++
		}
		s.link.Packet(&p, s.since())
	}
	s.announce()
	if s.standing.Election != 0 {
		s.memory.take(p, s.since())
		if s.reign == 0 && !forFollower(&p) {
			return
		}
	}
	s.host.Deliver(p)
	s.host.Step()
}

// settle begins to store what was asked for. The planner is read meanwhile, and steps
// no further: a store that is slow to answer keeps nobody from looking.
func (s *server) settle() {
	if s.stored != nil {
		return
	}
	records, due := s.host.Transaction()
	if !due {
		return
	}
	stored, began := make(chan error, 1), time.Now()
	s.head = planner.HeadOf(records)
	s.stored, s.storing = stored, began
	go func() { stored <- s.commit(records) }()
}

// done ends a transaction: what waited for it is said, and what was heard is heard.
func (s *server) done(err error) error {
	s.stored = nil
	switch {
	case errors.Is(err, ErrNotLeading):
		return nil // the store's standing says so too, and the planner is made anew
	case err != nil:
		return err // a planner that cannot remember must not decide
	}
	s.host.Late = time.Since(s.storing)
	s.meters.commits.Observe(s.host.Late.Microseconds())
	if s.head != "" { // where the log is kept elsewhere, who writes the store anew is found
		s.cfg.Log.Info("audit", "newest", s.head)
	}
	if st, _ := s.store.Standing(); st.Reign == s.standing.Reign {
		s.standing.Batches, s.host.Batches = st.Batches, st.Batches
	}
	s.host.Stored()
	for more := true; more; {
		_, more = s.host.Step()
	}
	return nil
}

// Now is the planner's clock.
func (s *server) Now() (time.Duration, uint64) {
	if s.again != nil {
		return *s.again, uint64(s.began.Add(*s.again).UnixMilli())
	}
	return s.since(), uint64(time.Now().UnixMilli())
}

// Send hands a packet to the link.
func (s *server) Send(p proto.Packet) {
	if s.answered(&p) || s.again != nil || !s.leads() && p.Topic != s.topics.Planner() {
		return
	}
	err := s.sendOut(p)
	if err == nil || errors.Is(err, mqtt.ErrDown) {
		return // what is lost with a link is sent again on the next
	}
	if s.unsent++; s.unsent&(s.unsent-1) == 0 { // at 1, 2, 4, 8 ...
		s.cfg.Log.Warn("message not sent", "topic", p.Topic, "reason", err, "so far", s.unsent)
	}
}
