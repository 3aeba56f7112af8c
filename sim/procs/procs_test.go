package procs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"ringlight/planner/fabric"
	"ringlight/sim/live"
	"ringlight/sim/step"
)

// ProcsConfig is a small cluster of processes.
type ProcsConfig struct {
	Bin     string // folder with ocs-agent, ocs-planner, ocs-sim and ocsctl
	Broker  string // the broker's command, started with a mosquitto configuration
	Modules int
	// Floods is how often a node dies quietly and then under a flood; Flood
	// sends one to a fabric's planner and some nodes until ctx ends.
	Floods int
	Flood  func(ctx context.Context, broker, fabric string, nodes []int) (sent int)
	Out    io.Writer
	// Damage is how many journals of agents, and as many stores of the planner, are
	// damaged in place of all that; Kills how often a writer is killed.
	Damage, Kills int
	Seed          uint64 // of Damage and Soak
	Soak          SoakConfig
	Upgrade       UpgradeConfig
	Jobs          JobsConfig
	Keys          KeysConfig
	Lies          int // how many ways of lying are tried, each with a node's own key: those that are known first; 0: none
	Nodes         int // of Upgrade, Jobs, Keys and Lies
}

// ProcsResult is what a run of Procs saw.
type ProcsResult struct {
	Nodes       int        `json:"nodes"`
	Rings       int        `json:"rings"`
	Steps       []ProcStep `json:"steps"`
	LightLost   int        `json:"light_lost"` // selected paths whose light changed where nothing may
	ProcsKilled int        `json:"processes_killed"`

	Flood   *FloodResult   `json:"flood,omitempty"`
	Damage  *DamageResult  `json:"damage,omitempty"`
	Soak    *SoakResult    `json:"soak,omitempty"`
	Upgrade *UpgradeResult `json:"upgrade,omitempty"`
	Jobs    *JobsResult    `json:"jobs,omitempty"`
	Keys    *KeysResult    `json:"keys,omitempty"`
	Lies    *LiesResult    `json:"lies,omitempty"`
}

// ProcStep is one thing that was done to the cluster.
type ProcStep struct {
	What  string `json:"what"`
	TookM int64  `json:"took_ms"`
	Saw   string `json:"saw"`
}

// chosen: rings of four and a spare beside each are enough for a bypass, a
// repair and rings that nothing touches.
var procsParams = fabric.Params{Name: "procs", Nodes: 16, GPUsPerNode: 4, K: 2, TP: 16, Spares: 4, Topology: fabric.Line, SpareLayout: fabric.Beside}

// Waits of a run; the machine may be slow, so they bound hangs, not speed.
const (
	procsService = 90 * time.Second // also after a broker's restart
	procsBypass  = 20 * time.Second
)

type procs struct {
	ProcsConfig
	*processes
	f        *fabric.Fabric
	url      string // of the broker, for planner and operators
	toAgents string // of the broker, for agents
	res      ProcsResult
	fibres   []string // where the light of each node comes in
	keys     *keys    // nil: nothing is encrypted or sealed

	spared                 func(n int) bool // nodes whose power is never lost; nil: none
	edited                 bool             // the store's fabric is another than fabric.json
	agentPath, plannerPath string           // in place of those of Bin; "": those
}

// Procs runs a broker, a planner, 16 boards and 16 agents, each a process of
// its own, kills agents, planner and broker in turn, stops the broker, and takes
// a node's supply away. Boards are never killed: they are the hardware, and
// their own record judges.
func Procs(ctx context.Context, cfg ProcsConfig) (res ProcsResult, err error) {
	h, err := newProcesses(cfg.Bin)
	if err != nil {
		return res, err
	}
	defer func() {
		h.close(err != nil)
		if err != nil {
			err = fmt.Errorf("%w (logs are in %s)", err, h.dir)
		}
	}()
	p := &procs{ProcsConfig: cfg, processes: h}
	params, spoils := procsParams, cfg.Damage > 0 || cfg.Kills > 0
	if cfg.Upgrade.Dir != "" {
		params.Nodes, params.Spares = cfg.Nodes, cfg.Nodes/4
	}
	if cfg.Jobs.Asks > 0 {
		params = jobsParams(cfg.Nodes)
	}
	if cfg.Keys.Cuts > 0 || cfg.Lies > 0 {
		params = keysParams(cfg.Nodes)
	}
	if spoils {
		params.Core = &procsCore
	}
	if p.f, err = fabric.New(params); err != nil {
		return res, err
	}
	p.f.Moves = fabric.MoveNone // so that nothing but the broken ring may change
	p.res.Nodes, p.res.Rings = p.f.Nodes, p.f.TargetRings()
	steps := []func(context.Context){p.build, p.killAgents, p.bounce("planner", 0, p.startPlanner), p.bounce("broker", 3*time.Second, p.startBroker), p.dieUnheard, p.comeBack, p.dieUnderFlood, p.loseSupply}
	if spoils {
		steps = []func(context.Context){p.build, p.spoil}
	}
	if cfg.Upgrade.Dir != "" {
		steps = []func(context.Context){p.upgrade}
	}
	if cfg.Jobs.Asks > 0 {
		steps = []func(context.Context){p.build, p.jobs}
	}
	if cfg.Keys.Cuts > 0 {
		steps = []func(context.Context){p.enrolAndRotate}
	}
	if cfg.Lies > 0 {
		steps = []func(context.Context){p.lieAll}
	}
	if cfg.Soak.Time > 0 {
		steps = []func(context.Context){p.build, p.soak}
	}
	err = step.Attempt(func() {
		for _, step := range steps {
			step(ctx)
		}
	})
	return p.res, err
}

func (p *procs) done(began time.Time, what, saw string, args ...any) {
	s := ProcStep{what, time.Since(began).Milliseconds(), fmt.Sprintf(saw, args...)}
	p.res.Steps = append(p.res.Steps, s)
	fmt.Fprintf(p.Out, "%-52s %6.1f s   %s\n", s.What, float64(s.TookM)/1000, s.Saw)
}

// folder is the state of a node's agent.
func (p *procs) folder(n int) string { return p.path(fmt.Sprintf("node%d", n)) }

func agentName(n int) string { return fmt.Sprintf("agent%d", n) }
func boardName(n int) string { return fmt.Sprintf("board%d", n) }

func (p *procs) startAgent(n int) {
	p.start(agentName(n), cmp.Or(p.agentPath, "ocs-agent"), "run", "-config", p.path(agentName(n)+".json"))
}

// startPlanner leaves the description to the store when that was edited.
func (p *procs) startPlanner() {
	args := []string{"run", "-config", p.path("planner.json")}
	if !p.edited {
		args = append(args, "-fabric-file", p.path("fabric.json"))
	}
	p.start("planner", cmp.Or(p.plannerPath, "ocs-planner"), args...)
}

// procRing is a ring as ocsctl tells of it.
type procRing struct {
	Ring  int    `json:"ring"`
	Nodes []int  `json:"nodes"`
	State string `json:"state"`
}

func (p *procs) rings(ctx context.Context) []procRing {
	var r struct{ Rings []procRing }
	p.ctl(ctx, &r, "ring", "list")
	return r.Rings
}

// ctl has ocsctl answer as JSON.
func (p *procs) ctl(ctx context.Context, answer any, words ...string) {
	step.Must(json.Unmarshal(step.Got(p.once(ctx, "ocsctl", append(words, "-json", "-broker", p.url)...)), answer))
}

// kill ends a process of the product.
func (p *procs) kill(name string) {
	p.signal(name, syscall.SIGKILL)
	p.res.ProcsKilled++
}

// unplug takes a node's supply, of which its agent dies too.
func (p *procs) unplug(n int) {
	p.tell(boardName(n), "power off")
	p.kill(agentName(n))
}

// plugIn gives a node its supply and agent back.
func (p *procs) plugIn(n int) {
	p.tell(boardName(n), "power on")
	p.startAgent(n)
}

// serving waits until every ring that the fabric can carry is in service, every
// node online, and nobody usable out.
func (p *procs) serving(ctx context.Context) {
	err := step.Attempt(func() {
		await(ctx, procsService, "in service", func() (bool, string) {
			rings := p.rings(ctx)
			for _, r := range rings {
				if r.State != "in_service" {
					return false, fmt.Sprintf("ring %d is %s", r.Ring, r.State)
				}
			}
			nodes := p.nodes(ctx)
			if online := online(nodes); online != p.f.Nodes || len(rings) != p.res.Rings {
				return false, fmt.Sprintf("%d rings, %d nodes online", len(rings), online)
			}
			why := p.out(ctx, rings, nodes)
			return why == "", why
		})
	})
	if err != nil && ctx.Err() == nil {
		said, _ := p.once(ctx, "ocsctl", "status", "-broker", p.url)
		err = fmt.Errorf("%w; ocsctl status says:\n%s", err, said)
	}
	step.Must(err)
}

// tried waits until no fibre is held to be cut: those that are tried take nodes in no
// ring from their loopback, which would be the next step's.
func (p *procs) tried(ctx context.Context) {
	await(ctx, procsService, "fibres tried", func() (bool, string) {
		var links struct {
			Links []struct {
				Fibre   string
				NextTry *string `json:"next_try"`
			}
		}
		p.ctl(ctx, &links, "link", "list")
		for _, l := range links.Links {
			if l.NextTry != nil {
				return false, fmt.Sprintf("fibre %s is tried at %s", l.Fibre, *l.NextTry)
			}
		}
		return len(links.Links) > 0, "no fibres"
	})
}

// records are what all boards say.
func (p *procs) records() []live.BoardRecord {
	out := make([]live.BoardRecord, p.f.Nodes)
	for n := range out {
		out[n] = p.tell(boardName(n), "record")
	}
	return out
}

// unchanged counts the selected paths with light whose light changed, or which
// are selected no more, but for nodes that may, and fails with what led to each.
func (p *procs) unchanged(before []live.BoardRecord, what string, may map[int]bool) {
	var changed []string
	for n, is := range p.records() {
		if may[n] {
			continue
		}
		for i, was := range before[n].Paths {
			if is := is.Paths[i]; was.Selected && was.Lit && (is.Changes != was.Changes || !is.Selected || !is.Lit) {
				p.res.LightLost++
				why, _ := p.once(context.Background(), "ocsctl", "why", fmt.Sprint(n), "-all", "-broker", p.url)
				changed = append(changed, fmt.Sprintf("node %d bundle %d %s: light changed %d times, selected %v, lit %v\n%s", n, was.Bundle, was.Path, is.Changes-was.Changes, is.Selected, is.Lit, why))
			}
		}
	}
	if changed != nil {
		step.Fail("%s: %s", what, strings.Join(changed, ""))
	}
}

func (p *procs) killAgents(ctx context.Context) {
	p.tried(ctx)
	began := time.Now()
	before := p.records()
	for n := range p.f.Nodes {
		p.kill(agentName(n))
		p.unchanged(before, "agent killed", nil)
		p.startAgent(n)
	}
	p.serving(ctx)
	p.unchanged(before, "agents started again", nil)
	p.done(began, "16 agents killed with -9 in turn, started again", "no light changed; all adopted, in service")
}

// bounce is the step that kills a process, leaves it away for a while and starts it
// again.
func (p *procs) bounce(name string, away time.Duration, start func()) func(context.Context) {
	return func(ctx context.Context) {
		p.tried(ctx)
		began := time.Now()
		before := p.records()
		p.kill(name)
		time.Sleep(away)
		start()
		p.serving(ctx)
		p.unchanged(before, name+" killed", nil)
		p.done(began, fmt.Sprintf("%s killed with -9, away %v, started again", name, away), "no light changed; in service")
	}
}
