package procs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/freeport"
	"ringlight/sim/step"
)

// startBroker starts the one that is not the planner's.
func (p *procs) startBroker() {
	if p.keys != nil && p.Keys.Embedded {
		return
	}
	p.start("broker", p.Broker, "-c", p.path("broker.conf"))
}

// build writes the configurations, calibrates every board on its virtual clock
// and starts all processes.
func (p *procs) build(ctx context.Context) {
	p.lay(ctx)
	began := time.Now()
	p.startBoards(ctx)
	for n := range p.f.Nodes {
		p.startAgent(n)
	}
	for n := range p.switches() {
		p.buildSwitch(ctx, n)
	}
	p.serving(ctx)
	p.done(began, fmt.Sprintf("broker, planner, %d boards, %d agents started", p.f.Nodes, p.f.Nodes), "%s in service, %s", proto.Count(p.res.Rings, "ring"), proto.Count(p.switches(), "circuit switch"))
}

// lay writes the configurations and calibrates.
func (p *procs) lay(ctx context.Context) {
	began := time.Now()
	broker := freeport.Address()
	for range p.f.Nodes {
		p.fibres = append(p.fibres, freeport.Address())
	}
	p.url = "mqtt://" + broker
	p.toAgents = p.url
	config := fmt.Sprintf("listener %s 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 200\nmax_queued_messages 20000\n", strings.TrimPrefix(broker, "127.0.0.1:"))
	planner := map[string]any{"broker": p.url, "state": p.path("planner.db"), "http": "unix:" + p.path("planner.http")}
	if p.keys != nil {
		config = p.keys.lay(ctx, planner)
	}
	step.Must(os.WriteFile(p.path("broker.conf"), []byte(config), 0o644))
	step.Must(os.WriteFile(p.path("fabric.json"), p.f.Encode(), 0o644))
	p.write("planner.json", planner)
	for n := range p.f.Nodes {
		p.configure(ctx, n)
	}
	p.done(began, fmt.Sprintf("%d boards calibrated from nothing", p.f.Nodes), "on their virtual clocks, %d modules a bundle", p.Modules)
}

// startBoards starts broker, planner and boards.
func (p *procs) startBoards(ctx context.Context) {
	p.startBroker()
	p.startPlanner()
	for n := range p.f.Nodes {
		p.startBoard(boardName(n), "-fibres", p.fibres[n])
	}
	for n := range p.f.Nodes {
		p.answers(ctx, boardName(n))
	}
}

// startBoard starts a board by its configuration.
func (p *procs) startBoard(name string, more ...string) {
	at := p.path(name)
	p.start(name, "ocs-sim", append([]string{"board", "-config", at + ".json", "-listen", "unix:" + at + ".sock", "-control", "unix:" + at + ".ctl"}, more...)...)
}

// answers waits until a board does.
func (p *procs) answers(ctx context.Context, name string) {
	await(ctx, procsBypass, name, func() (bool, string) {
		p.tell(name, "record")
		return true, ""
	})
}

// agentOf is a node's agent's configuration, on a board.
func (p *procs) agentOf(n int, state string, board map[string]any) map[string]any {
	cfg := map[string]any{"fabric": p.f.Name, "node": n, "broker": p.toAgents, "state": p.path(state), "board": board}
	if p.keys != nil {
		maps.Copy(cfg, p.keys.agentOf(n))
	}
	return cfg
}

// configure writes a board's and an agent's configuration and calibrates.
func (p *procs) configure(ctx context.Context, n int) {
	layout := map[string]any{"kind": "sim", "gpus": p.f.GPUsPerNode, "bundles": p.f.Bundles, "modules": p.Modules, "seed": 1000 + n}
	state := fmt.Sprintf("node%d", n)
	p.write("calibrate.json", p.agentOf(n, state, layout))
	step.Got(p.once(ctx, "ocs-agent", "calibrate", "-config", p.path("calibrate.json")))
	var leads []string
	for b := range p.f.Bundles {
		for path := proto.External1; path <= proto.External2; path++ {
			far, crossed, ok := p.f.At(fabric.Port{Node: proto.NodeID(n), Bundle: proto.BundleID(b), Path: path})
			if !ok {
				continue
			}
			lead := fmt.Sprintf("%d/%v=%s/%d/%v", b, path, p.fibres[far.Node], far.Bundle, far.Path)
			if crossed {
				lead += "/crossed"
			}
			leads = append(leads, lead)
		}
	}
	socket := map[string]any{"kind": "socket", "path": p.path(boardName(n) + ".sock"), "gpus": p.f.GPUsPerNode, "bundles": p.f.Bundles, "modules": p.Modules}
	p.write(agentName(n)+".json", p.agentOf(n, state, socket))
	layout["leads"] = leads
	p.write(boardName(n)+".json", layout)
}

// write writes a configuration.
func (p *procs) write(name string, v any) {
	raw := step.Got(json.MarshalIndent(v, "", "  "))
	step.Must(os.WriteFile(p.path(name), raw, 0o644))
}
