package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"ringlight/planner"
	"ringlight/proto"
)

// PodsConfig is an experiment: light between pods goes and comes whose leaves and spines
// route by BGP, while datagrams go between all pods ([LUMOS] A.9.3).
type PodsConfig struct {
	Config
	Ocsctl  string     // the command of operators
	Drain   bool       // it has routers drain ports, where the fabric says so
	Parts   [][]string // of the core: those of one are taken out, then let in, then those of the next
	Changes int        `flag:"changes" usage:"times that light goes or comes"`
	Flows   int        `flag:"flows" usage:"streams of datagrams from each pod to each other"`
	Rate    int        `flag:"rate" usage:"datagrams a second of each"`
	Kill    bool       `flag:"kill" usage:"at each change, in turn: kill three switches' agents and a spine's bgpd as light moves, or the planner, and start them again; or a spine's bgpd hangs until light moves past it"`
	Told    func(PodsChange)
}

// PodsChange is what one change of light came to.
type PodsChange struct {
	Moved          int    `json:"links_moved"` // that lead elsewhere, or have light or none, after it
	Stray          int    `json:"links_stray"` // that lead where they did, and did not all the time
	Links          int    `json:"links"`       // that there can be
	Step           int    `json:"step"`        // which of the parts were taken out
	In             bool   `json:"in"`          // they were let in again
	AskedMicros    int64  `json:"asked_us"`    // from the operator's word to the first light that went, or came
	LightMicros    int64  `json:"light_us"`    // from that to the last change of light
	ConvergeMicros int64  `json:"converge_us"` // and to the last route that changed in any kernel; 0: that was before
	Routes         int64  `json:"routes"`      // changes of routes in all kernels
	Sent           int    `json:"sent"`        // datagrams meanwhile
	Lost           int    `json:"lost"`
	Struck         string `json:"struck,omitempty"` // who was killed, or hung
}

// pods is what stands in an experiment.
type pods struct {
	*Bed
	cfg     *PodsConfig
	shell   string // on router $ROUTER
	routes  *routeWatch
	streams []*stream

	mu      sync.Mutex
	gen     proto.Generation
	quiet   bool
	lit     bool // circuits have their light
	drained bool // a router is asked for something
}

func (p *pods) observe(pl *planner.Planner) {
	s := pl.Core.Status()
	asked := false
	for _, r := range pl.Jobs.Routers() {
		asked = asked || len(r.Ports) > 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lit = s.Tuned == s.Circuits
	p.gen, p.quiet, p.drained = s.Generation, s.Quiet && p.lit, asked
}

func (p *pods) generation() proto.Generation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gen
}

// rests: nothing is under way beyond a generation.
func (p *pods) rests(beyond proto.Generation) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quiet && !p.drained && p.gen > beyond
}

// Pods moves light between pods and says what packets made of it.
func Pods(ctx context.Context, cfg PodsConfig) (changes []PodsChange, err error) {
	p, err := newPods(ctx, &cfg)
	if p != nil {
		defer func() { err = errors.Join(err, p.end()) }()
	}
	if err != nil {
		return nil, err
	}
	if err := p.stream(ctx); err != nil {
		return nil, err
	}
	for n := range cfg.Changes {
		c, err := p.change(ctx, n)
		if err != nil {
			return changes, fmt.Errorf("change %d: %w", n, err)
		}
		changes = append(changes, *c)
		if cfg.Told != nil {
			cfg.Told(*c)
		}
	}
	return changes, ctx.Err()
}

// newPods starts pods whose routes have converged; what has begun when it fails is returned too.
func newPods(ctx context.Context, cfg *PodsConfig) (p *pods, err error) {
	if err := LacksRouters(); err != nil {
		return nil, err
	}
	b := &pods{cfg: cfg}
	cfg.Observe = b.observe
	if b.Bed, err = Start(ctx, cfg.Config); err != nil {
		return nil, err
	}
	if b.routes, err = b.watchRoutes(); err != nil {
		return b, err
	}
	if b.shell, err = b.StartRouters(); err != nil {
		return b, err
	}
	if err := until(ctx, "all light between pods", func() bool { return b.rests(0) }); err != nil {
		return b, err
	}
	if cfg.Drain {
		b.drains()
	}
	return b, b.settle(ctx)
}

// turn takes the n-th part of the core out, or after that lets it in.
func (p *pods) turn(ctx context.Context, n int) error {
	return p.operate(ctx, map[bool]string{true: "undrain", false: "drain"}[n%2 == 1], p.cfg.Parts[n/2%len(p.cfg.Parts)])
}

func (p *pods) end() error {
	errs := append(each(p.streams, (*stream).Stop), p.Close())
	if p.routes != nil {
		p.routes.stop()
	}
	return errors.Join(errs...)
}

// drains has the command for operators ask routers to drain. It ends with this process:
// the kernel ends a child with the thread that began it, which stays for that.
func (p *pods) drains() {
	cmd := exec.CommandContext(p.ctx, p.cfg.Ocsctl, "routes", "drain", "-http", p.View, "-exec", p.shell)
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	go func() {
		runtime.LockOSThread()
		if err := cmd.Run(); p.ctx.Err() == nil {
			p.cfg.Log.Error("routes drain has ended", "reason", err)
		}
	}()
}

// calm is how long no route may have changed until routing has converged; chosen: longer
// than bgpd gathers updates. rested is between looks at the neighbours of all spines.
const calm, rested = 3 * time.Second, 300 * time.Millisecond

// settle waits until every port with light has a neighbour, and since then no route has
// changed for a while.
func (p *pods) settle(ctx context.Context) error {
	since := time.Time{}
	for end := time.Now().Add(patience); ; {
		switch {
		case !p.router.settled():
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= calm && p.routes.since() >= calm:
			return nil
		}
		if err := pause(ctx, rested); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("testbed: routes have not converged within %v", patience)
		}
	}
}

// stream sends datagrams from leaves of each pod to leaves of each other.
func (p *pods) stream(ctx context.Context) error {
	c := p.fabric.Core
	at := map[string]int{}
	for n, d := range p.made {
		at[d] = n
	}
	port := 20_000
	for a := range c.Pods {
		for b := range c.Pods {
			for f := range p.cfg.Flows {
				if a == b {
					continue
				}
				from, to := leafName(a*c.LeavesPerPod+f%c.LeavesPerPod), leafName(b*c.LeavesPerPod+(f+1)%c.LeavesPerPod)
				port++
				s, err := newStream(ctx, "udp4", p.NS(from), p.NS(to), "", net.JoinHostPort(routerAddress(at[to]), strconv.Itoa(port)), time.Second/time.Duration(p.cfg.Rate))
				if err != nil {
					return err
				}
				p.streams = append(p.streams, s)
			}
		}
	}
	return nil
}

// change takes parts of the core out, or lets them in.
func (p *pods) change(ctx context.Context, n int) (*PodsChange, error) {
	if err := pause(ctx, afterward); err != nil {
		return nil, err
	}
	before, moved := make([]int32, len(p.optics.ports)), make([]int64, len(p.optics.ports))
	for i := range before {
		before[i], moved[i] = p.relay.ports[i].to.Load(), p.relay.ports[i].moved.Load()
	}
	from := each(p.streams, (*stream).Now)
	gen := p.generation()
	p.relay.first.Store(0)
	routes, asked := p.routes.changes.Load(), time.Since(p.relay.begun)
	c := &PodsChange{}
	if p.cfg.Kill && n%strikes == 2 {
		if err := p.router.signal(p.hung(), syscall.SIGSTOP); err != nil {
			return nil, err
		}
	}
	if err := p.turn(ctx, n); err != nil {
		return nil, err
	}
	if p.cfg.Kill {
		if err := p.strike(ctx, n, c); err != nil {
			return nil, err
		}
	}
	if err := until(ctx, "light where it is wanted", func() bool { return p.rests(gen) }); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	c.Links, c.Step, c.In, c.Routes = len(p.optics.ports)/2, n/2%len(p.cfg.Parts), n%2 == 1, p.routes.changes.Load()-routes
	for i, was := range before {
		if p.relay.ports[i].to.Load() != was {
			c.Moved++ // each of its two ends
		} else if p.relay.ports[i].moved.Load() != moved[i] {
			c.Stray++
		}
	}
	c.Moved, c.Stray = c.Moved/2, (c.Stray+1)/2
	if went := time.Duration(p.relay.first.Load()); went > 0 {
		last := p.routes.begun.Add(time.Duration(p.routes.last.Load())).Sub(p.relay.begun)
		c.AskedMicros, c.LightMicros, c.ConvergeMicros = (went - asked).Microseconds(), (time.Duration(p.relay.last.Load()) - went).Microseconds(), max(0, (last-went).Microseconds())
	}
	to := each(p.streams, (*stream).Now)
	if err := pause(ctx, afterward); err != nil { // the last ones are under way
		return nil, err
	}
	for i, s := range p.streams {
		sent, lost := s.between(from[i], to[i])
		c.Sent, c.Lost = c.Sent+sent, c.Lost+lost
	}
	return c, nil
}

// operate takes parts out, or lets them in, all at once.
func (p *pods) operate(ctx context.Context, verb string, parts []string) error {
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			if out, err := exec.CommandContext(ctx, p.cfg.Ocsctl, "circuit", verb, part, "-broker", p.Link().Broker).CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("testbed: circuit %s %s: %w: %s", verb, part, err, out)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
