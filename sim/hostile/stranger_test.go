package hostile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// Config of a run.
type Config struct {
	Broker string // mqtt://, on a loopback address
	Fabric string
	Nodes  int
	Seed   uint64
	Scale  float64       // of the counts; 1: as the table says
	Flood  time.Duration // of one flood
	Core   string        // name of a fabric of circuits on the same broker; "": none
	Socket string        // of an agent on this machine; "": none
	Only   []string      // names of attacks; none: all
	Seals  *Seals        // of a fabric whose messages are sealed; nil: they are not
	Report func(Result)  // is told each result as it comes
}

// Result of one attack.
type Result struct {
	Attack string `json:"attack"`
	What   string `json:"what"`
	Count  int    `json:"count"`
	// Planning says that the planner answered while the attack went on, and
	// the longest that it took to.
	Planning  bool  `json:"planning"`
	AnswerMax int64 `json:"answer_ms_max"`
	// Back is how long after it until all rings were what they had been.
	Back  int64  `json:"back_ms"`
	Fell  bool   `json:"fell"`
	Note  string `json:"note,omitempty"`
	Rings string `json:"-"`
	Table string `json:"-"` // what was said, by kind
}

// backPatience is how long the rings may take to be what they were.
const backPatience = 90 * time.Second

// attackPatience bounds an attack besides its flood: a broker that is gone must
// not keep the stranger waiting without end.
const attackPatience = 3 * time.Minute

// stranger is the attacker while a run lasts.
type stranger struct {
	cfg    Config
	topics proto.Topics
	host   string // of the broker, host:port
	random *detmath.Random
	asker  *asker           // of the rings
	watch  *asker           // of whether anybody answers
	birth  []proto.Presence // as the broker keeps them, by node
	state  proto.PlannerState
	heard  []proto.Packet // genuine traffic

	// Where messages are sealed.
	front *front
	ear   *ear
	turn  int    // of the voices
	table string // what they said
	rings string // as they must be after it, where nodes died before
}

// Run carries out the attacks. The fabric's rings must be in service when it
// begins. An error says that it could not go on; what fell is in the results.
func Run(ctx context.Context, cfg Config) ([]Result, error) {
	u, err := url.Parse(cfg.Broker)
	if err != nil || u.Scheme != "mqtt" || !mqtt.IsLoopback(u.Hostname()) {
		return nil, &proto.Error{Code: proto.Invalid, Field: "broker", Limit: "mqtt:// on a loopback address", Reason: fmt.Sprintf("%q", cfg.Broker)}
	}
	list := attacks
	if len(cfg.Only) > 0 {
		list = nil
		for _, name := range cfg.Only {
			i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })
			if i < 0 {
				return nil, &proto.Error{Code: proto.NotFound, Field: "attack", Reason: fmt.Sprintf("%q", name)}
			}
			list = append(list, attacks[i])
		}
	}
	s := &stranger{cfg: cfg, topics: proto.Topics{Fabric: cfg.Fabric}, host: u.Host, random: detmath.Stream(cfg.Seed, 0)}
	if cfg.Seals != nil {
		if s.front, err = newFront(cfg.Seals, cfg.Fabric, s.host, cfg.Seed); err != nil {
			return nil, err
		}
		defer s.front.close()
		s.ear = &ear{random: detmath.Stream(cfg.Seed, 1<<33), since: time.Now(), heard: map[proto.TopicKind][]genuine{}}
		if err := s.ear.listen(ctx, s); err != nil {
			return nil, err
		}
	}
	if s.asker, err = cfg.newAsker(s.topics); err != nil {
		return nil, err
	}
	defer s.asker.Link.Close()
	if s.watch, err = cfg.newAsker(s.topics); err != nil {
		return nil, err
	}
	defer s.watch.Link.Close()
	before, err := s.asker.settled(ctx, backPatience)
	if err != nil {
		return nil, fmt.Errorf("hostile: the fabric is not in service to begin with: %w", err)
	}
	if err := s.history(ctx); err != nil {
		return nil, err
	}
	if err := s.listen(ctx, 12*time.Second); err != nil {
		return nil, err
	}
	if cfg.Seals != nil { // its history moved light
		if before, err = s.asker.settled(ctx, backPatience); err != nil {
			return nil, err
		}
	}
	var out []Result
	for _, a := range list {
		r := s.carryOut(ctx, a, before)
		out = append(out, r)
		if cfg.Report != nil {
			cfg.Report(r)
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if r.Fell && !r.Planning { // what comes after would only wait
			return out, fmt.Errorf("hostile: %s: no planner answers any more", r.Attack)
		}
	}
	return out, nil
}

func (s *stranger) carryOut(ctx context.Context, a attack, before string) Result {
	r := Result{Attack: a.name, What: a.what}
	watching, stop := context.WithCancel(ctx)
	worst := make(chan time.Duration, 1)
	go func() { worst <- s.watch.longest(watching) }()
	long := s.cfg.Flood + attackPatience
	if s.cfg.Seals != nil {
		long += time.Hour // as many as were asked for
	}
	running, done := context.WithTimeout(ctx, long)
	n, err := a.run(running, s)
	done()
	r.Count = n
	if err != nil {
		r.Note, r.Fell = err.Error(), errors.Is(err, errFell)
	}
	if r.Fell && s.cfg.Seals != nil {
		stop()
		<-worst
		r.Planning = true
		return r // what the rings are is told besides
	}
	patience := a.back
	if patience == 0 {
		patience = backPatience
	}
	if s.rings != "" {
		before = s.rings
	}
	begin := time.Now()
	after, err := s.asker.same(ctx, before, patience)
	r.Back = time.Since(begin).Milliseconds()
	stop()
	longest := <-worst
	r.AnswerMax = longest.Milliseconds()
	r.Planning, r.Table = longest < answerPatience, s.table
	r.Rings = after
	if err != nil {
		r.Fell, r.Note = true, strings.TrimPrefix(r.Note+"; ", "; ")+err.Error()
	}
	return r
}

// listen learns what anybody can: what the broker keeps and what passes.
func (s *stranger) listen(ctx context.Context, long time.Duration) error {
	s.birth = make([]proto.Presence, s.cfg.Nodes)
	return s.hear(ctx, long)
}

// hear takes what the broker keeps, and what passes for some time.
func (s *stranger) hear(ctx context.Context, long time.Duration) error {
	l, err := s.link(fmt.Sprintf("listener-%d", s.random.Next()>>32), "ocs/v1/"+s.cfg.Fabric+"/#")
	if err != nil {
		return err
	}
	defer l.Close()
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case p := <-l.Recv():
			t, err := proto.ParseTopic(p.Topic)
			if p.Kind != proto.Publish || err != nil {
				continue
			}
			s.heard = append(s.heard, p)
			switch t.Kind {
			case proto.TopicPresence:
				var m proto.Presence
				if _, err := proto.Decode(p.Payload, &m); err == nil && m.Online && int(t.Node) < len(s.birth) {
					s.birth[t.Node] = m
				}
			case proto.TopicPlanner:
				var m proto.PlannerState
				if _, err := proto.Decode(p.Payload, &m); err == nil && m.Online {
					s.state = m
				}
			}
		}
	}
}

func (s *stranger) link(id string, subs ...string) (*mqtt.Link, error) {
	return dial(s.cfg.Broker, id, subs...)
}

func (s *stranger) speaker() (*speaker, error) {
	return speak(s.cfg.Broker, fmt.Sprintf("stranger-%d", s.random.Next()>>32))
}

func (s *stranger) scaled(n int) int { return max(1, int(float64(n)*s.cfg.Scale)) }

// errFell says that an attack succeeded, whatever became of the rings.
var errFell = errors.New("fell")

// answerPatience is how long the planner may take to answer. An operator waits
// no longer.
const answerPatience = 10 * time.Second

// asker asks the planner as ocsctl does. It is for one goroutine.
type asker struct{ mqtt.Asker }

func (c *Config) newAsker(topics proto.Topics) (*asker, error) {
	a := &asker{mqtt.Asker{Topics: topics, Wait: answerPatience}}
	rand.Read(a.Seed[:])
	a.Name = fmt.Sprintf("watch-%x", a.Seed)
	to := mqtt.Config{Broker: c.Broker, ClientID: topics.Fabric + "-" + a.Name, Ordered: true, MinReconnect: 50 * time.Millisecond, MaxReconnect: time.Second}
	if g, name, err := c.sealer(); err != nil {
		return nil, err
	} else if g != nil {
		to.Guard, a.Name = g, name
		to.Subscriptions = append(to.Subscriptions, topics.Planner())
	}
	to.Subscriptions = append(to.Subscriptions, topics.Reply(a.Name))
	l, err := mqtt.Dial(to)
	a.Link = l
	return a, err
}

func (a *asker) ask(ctx context.Context, noun proto.Noun) (*proto.OpReply, error) {
	return a.Ask(ctx, proto.OpRequest{Noun: noun})
}

// rings is the members of each ring, and whether all are in service with all light
// confirmed.
func (a *asker) rings(ctx context.Context) (members string, well bool, err error) {
	r, err := a.ask(ctx, proto.NounRings)
	if err != nil {
		return "", false, err
	}
	well = len(r.Rings) > 0
	for _, x := range r.Rings {
		well = well && x.State == proto.RingInService && x.Links == x.LinksConfirmed
	}
	return membersOf(r.Rings), well, nil
}

func membersOf(rings []proto.RingStatus) (members string) {
	for _, x := range rings {
		members += fmt.Sprintf("ring %d %v; ", x.Ring, x.Nodes)
	}
	return members
}

func (a *asker) settled(ctx context.Context, patience time.Duration) (string, error) {
	return a.until(ctx, patience, func(string) bool { return true })
}

func (a *asker) same(ctx context.Context, want string, patience time.Duration) (string, error) {
	return a.until(ctx, patience, func(got string) bool { return got == want })
}

func (a *asker) until(ctx context.Context, patience time.Duration, ok func(string) bool) (string, error) {
	last, why := "", error(nil)
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		got, well, err := a.rings(ctx)
		switch {
		case err != nil:
			why = err
		case !well:
			last, why = got, fmt.Errorf("hostile: rings are not in service: %s", got)
		case !ok(got):
			last, why = got, fmt.Errorf("hostile: the rings are others: %s", got)
		default:
			return got, nil
		}
	}
	return last, why
}

// longest asks on and on, and gives the longest that an answer took.
func (a *asker) longest(ctx context.Context) (longest time.Duration) {
	for ctx.Err() == nil {
		begin := time.Now()
		_, err := a.ask(ctx, proto.NounFabric)
		if ctx.Err() == nil || err == nil {
			longest = max(longest, time.Since(begin))
		}
		pause(ctx, 100*time.Millisecond)
	}
	return longest
}

// dialRaw opens a bare connection to the broker.
func (s *stranger) dialRaw() (net.Conn, error) { return net.DialTimeout("tcp", s.host, 5*time.Second) }
