package live

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ringlight/hal"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
)

// CoreConfig says what a core run is.
type CoreConfig struct {
	Core    *fabric.Core
	Changes int                // of the job list, after the first one
	Mix     []proto.Collective // of the jobs, any of them; none: rings
	Seed    uint64
	Listen  string
	Virtual bool // the time is
	Hold    bool // keep everything running afterwards
	Screen  io.Writer
	Log     *slog.Logger
	// Finished is given the result, before Hold. nil: nobody.
	Finished func(*CoreResult)
}

// DemoCore is the core that a run has without flags: 32 switches, and eight
// links a leaf, so that a quarter of them is two.
func DemoCore(pods int) *fabric.Core {
	c := fabric.DefaultCore(pods)
	c.SpinesPerPod, c.ServersPerLeaf = 4, 2
	return c
}

// DemoLeafSpine is the leaf-spine core that a run has without other flags:
// eight switches with one port of each of four leaves and four spines.
func DemoLeafSpine() *fabric.Core {
	c := fabric.DefaultLeafSpine()
	*c.LeafSpine = fabric.LeafSpine{Leaves: 4, Spines: 4, GPUsPerLeaf: 8, Switches: 8, AnyToAny: true, Queue: fabric.FIFO}
	c.GPUsPerServer = 2
	return c
}

// maxCoreSwitches and maxCoreGPUs are chosen as maxCorePods.
const (
	maxCoreSwitches = 128
	maxCoreGPUs     = 4096
)

// maxCorePods is chosen, in real time: every switch has a real connection with some ten
// goroutines, and all share one process.
const maxCorePods = 32

// Validate names what is wrong, and what would do.
func (c *CoreConfig) Validate() error {
	most := maxCorePods
	if c.Virtual {
		most = hal.MaxCrossbarPorts
	}
	if c.Core.Pods > most {
		return &proto.Error{Code: proto.Invalid, Field: "pods", Limit: fmt.Sprintf("2 to %d", most), Reason: fmt.Sprintf("%d is out of range", c.Core.Pods)}
	}
	if ls := c.Core.LeafSpine; ls != nil && (ls.Switches > maxCoreSwitches || ls.Leaves*ls.GPUsPerLeaf > maxCoreGPUs) {
		return &proto.Error{Code: proto.Invalid, Field: "switches", Limit: fmt.Sprintf("at most %d, and %d GPUs", maxCoreSwitches, maxCoreGPUs), Reason: fmt.Sprintf("%d, and %d", ls.Switches, ls.Leaves*ls.GPUsPerLeaf)}
	}
	if c.Core.LeafSpine != nil && slices.ContainsFunc(c.Mix, func(x proto.Collective) bool { return x != proto.CollectiveRing }) {
		return &proto.Error{Code: proto.Invalid, Field: "collectives", Limit: "ring on a leaf-spine core, where what a job owns carries any", Reason: fmt.Sprint(c.Mix)}
	}
	if c.Changes < 0 || c.Changes > maxCoreChanges {
		return &proto.Error{Code: proto.Invalid, Field: "changes", Limit: fmt.Sprintf("0 to %d", maxCoreChanges), Reason: fmt.Sprintf("%d is out of range", c.Changes)}
	}
	return c.Core.Validate()
}

const maxCoreChanges = 1000 // chosen: some minutes

// Core runs broker, planner and a production agent for every switch of a core,
// takes a job list through changes, and judges by the boards' own light.
func Core(ctx context.Context, cfg CoreConfig) (*CoreResult, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Log = limit.Logger(cfg.Log)
	f, err := fabric.New(fabric.Params{Name: "core", Core: cfg.Core})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &coreRun{cfg: cfg, core: cfg.Core, result: newCoreResult(cfg.Core), screen: screen{w: cfg.Screen}, last: map[proto.NodeID]uint32{}, moved: make(chan struct{}, 1)}
	r.screen.coreHead(cfg.Core)
	defer r.close(cancel)
	if err := r.start(ctx, f); err != nil {
		return nil, err
	}
	if err := r.changes(ctx); err != nil {
		return r.result, err
	}
	r.finish()
	if cfg.Finished != nil {
		cfg.Finished(r.result)
	}
	if cfg.Hold {
		r.screen.line("holding on %s until interrupted", r.central.Link().Broker)
		<-ctx.Done()
	}
	return r.result, r.screen.err
}

type coreRun struct {
	cfg      CoreConfig
	core     *fabric.Core
	central  *Central
	cluster  *Cluster
	circuits *circuitLight
	operator *operator
	screen   screen
	result   *CoreResult
	last     map[proto.NodeID]uint32 // by switch: how long its last change took, as it reports
	made     []uint32                // those of all switches

	mu     sync.Mutex
	status proto.CoreStatus
	term   proto.Term
	moved  chan struct{} // the planner has stepped
}

// start brings up broker, planner and switches, and waits for all of them.
func (r *coreRun) start(ctx context.Context, f *fabric.Fabric) error {
	begin := time.Now()
	var err error
	if r.central, err = StartCentral(ctx, f, r.cfg.Listen, "", r.cfg.Log, r.observe); err != nil {
		return err
	}
	to := r.central.Link()
	r.cluster, err = StartCluster(ctx, ClusterConfig{Fabric: f, Seed: r.cfg.Seed, Health: time.Second, Broker: to, State: r.central.State, Log: r.cfg.Log})
	if err != nil {
		return err
	}
	r.circuits = r.cluster.circuits
	r.circuits.Track(r.core.Ports())
	if r.operator, err = newOperator(ctx, to, f.Name, r.hear); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	s := r.now()
	r.screen.line("broker   embedded, %s      planner term %d, %d of %d switch agents after %d ms",
		to.Broker, r.term, s.Online, s.Switches, time.Since(begin).Milliseconds())
	return nil
}

// observe is called by the planner's goroutine after each of its steps.
func (r *coreRun) observe(p *planner.Planner) {
	s := p.Core.Status()
	r.mu.Lock()
	r.status, r.term = s, p.Overview().Term
	r.mu.Unlock()
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

func (r *coreRun) now() proto.CoreStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *coreRun) hear(m *proto.Reported) {
	if m.DarkMicros > 0 && m.DarkMicros != r.last[m.Node] {
		r.last[m.Node] = m.DarkMicros
		r.made = append(r.made, m.DarkMicros)
	}
}

// restLimit is how long a change may take. chosen: twice a stage's patience
// with a switch that is away, and some.
const restLimit = 100 * time.Second

// reach waits until the planner's status is as wanted.
func (r *coreRun) reach(ctx context.Context, ok func(proto.CoreStatus) bool) error {
	limit := time.NewTimer(restLimit)
	defer limit.Stop()
	var reports <-chan proto.Packet
	if r.operator != nil {
		reports = r.operator.Link.Recv()
	}
	for !ok(r.now()) {
		select {
		case <-r.moved:
		case p := <-reports:
			r.operator.Heard(p)
		case <-limit.C:
			return fmt.Errorf("live: not at rest within %v: %+v", restLimit, r.now())
		case err := <-r.central.ran:
			r.central.ran <- err
			return r.central.gone()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// quiet waits until every switch is there and nothing is under way.
func (r *coreRun) quiet(ctx context.Context) error {
	return r.reach(ctx, func(s proto.CoreStatus) bool {
		return s.Quiet && s.Online == s.Switches && int(s.Switches) == r.core.Switches()
	})
}

func (r *coreRun) close(cancel context.CancelFunc) {
	cancel()
	if r.operator != nil {
		r.operator.Link.Close()
	}
	if r.cluster != nil {
		if err := r.cluster.Wait(); err != nil {
			r.cfg.Log.Error("switches", "err", err)
		}
	}
	if r.central != nil {
		r.central.Close()
	}
}

// light is what the boards themselves show of a plan.
type light struct {
	lit   int // circuits planned, between whose ports light passes
	tuned int // circuits planned that the planner knows to be tuned
	stray int // pairs of idle ports that mirrors at rest happen to join
	equal bool
}

// compare says whether the boards' light is what the planner wants, circuit by
// circuit, and whether the planner knows it. Mirrors that nobody has driven yet
// may point at each other by chance; that is no circuit as long as neither port
// has one.
func (r *coreRun) compare(planned []proto.CircuitStatus) light {
	l := light{equal: true}
	for s := range r.core.Switches() {
		usedA, usedB := map[uint16]uint16{}, map[uint16]bool{}
		for i := range planned {
			if x := &planned[i]; x.Switch == proto.FirstSwitch+proto.NodeID(s) {
				usedA[x.A], usedB[x.B] = x.B, true
				if x.State == proto.Tuned {
					l.tuned++
				}
			}
		}
		lit := 0
		for _, p := range r.circuits.Lit(s) {
			b, used := usedA[p.A]
			switch {
			case used && b == p.B:
				lit++
			case used || usedB[p.B]:
				l.equal = false
			default:
				l.stray++
			}
		}
		l.lit += lit
		l.equal = l.equal && lit == len(usedA)
	}
	l.equal = l.equal && l.tuned == len(planned)
	return l
}

// operator asks the planner over the broker, as ocsctl does, and hears what
// switches report on the way.
type operator struct{ mqtt.Asker }

// answerLimit is how long an answer may take; chosen: as ocsctl waits.
const answerLimit = 10 * time.Second

func newOperator(ctx context.Context, to mqtt.Config, fabric string, heard func(*proto.Reported)) (*operator, error) {
	o := &operator{mqtt.Asker{Topics: proto.Topics{Fabric: fabric}, Name: "core-operator", Wait: answerLimit}}
	o.Heard = func(p proto.Packet) {
		topic, err := proto.ParseTopic(p.Topic)
		if p.Kind != proto.Publish || err != nil || topic.Kind != proto.TopicReported {
			return
		}
		m := new(proto.Reported)
		if _, err := proto.Decode(p.Payload, m); err == nil {
			heard(m)
		}
	}
	to.ClientID, to.Ordered = o.Name, true
	to.Subscriptions = []string{o.Topics.Reply(o.Name), o.Topics.EveryNode(proto.TopicReported)}
	var err error
	if o.Link, err = mqtt.Dial(to); err != nil {
		return nil, err
	}
	return o, o.Connect(ctx)
}

// circuits asks for all circuits that are wanted.
func (o *operator) circuits(ctx context.Context) (out []proto.CircuitStatus, err error) {
	err = o.Pages(ctx, proto.OpRequest{Noun: proto.NounCircuits}, func(r *proto.OpReply) { out = append(out, r.Circuits...) })
	return out, err
}
