package live

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// startBroker starts the one that is not the planner's.
func (p *procs) startBroker() error {
	if p.keys != nil && p.Keys.Embedded {
		return nil
	}
	return p.start("broker", p.Broker, "-c", p.path("broker.conf"))
}

// build writes the configurations, calibrates every board on its virtual clock
// and starts all processes.
func (p *procs) build(ctx context.Context) error {
	if err := p.lay(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := p.startBoards(ctx); err != nil {
		return err
	}
	for n := range p.f.Nodes {
		if err := p.startAgent(n); err != nil {
			return err
		}
	}
	for n := range p.switches() {
		if err := p.buildSwitch(ctx, n); err != nil {
			return err
		}
	}
	if err := p.serving(ctx); err != nil {
		return err
	}
	p.done(began, fmt.Sprintf("broker, planner, %d boards, %d agents started", p.f.Nodes, p.f.Nodes), "%s in service, %s", proto.Count(p.res.Rings, "ring"), proto.Count(p.switches(), "circuit switch"))
	return nil
}

// lay writes the configurations and calibrates.
func (p *procs) lay(ctx context.Context) error {
	began := time.Now()
	ports, err := freePorts(p.f.Nodes)
	if err != nil {
		return err
	}
	tcp, err := freePort()
	if err != nil {
		return err
	}
	p.ports, p.url = ports, fmt.Sprintf("mqtt://127.0.0.1:%d", tcp)
	p.toAgents = p.url
	broker := fmt.Sprintf("listener %d 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 200\nmax_queued_messages 20000\n", tcp)
	planner := map[string]any{"broker": p.url, "state": p.path("planner.db"), "http": "unix:" + p.path("planner.http")}
	if p.keys != nil {
		if broker, err = p.keys.lay(ctx, planner); err != nil {
			return err
		}
	}
	if err := os.WriteFile(p.path("broker.conf"), []byte(broker), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(p.path("fabric.json"), p.f.Encode(), 0o644); err != nil {
		return err
	}
	if err := p.write("planner.json", planner); err != nil {
		return err
	}
	for n := range p.f.Nodes {
		if err := p.configure(ctx, n); err != nil {
			return err
		}
	}
	p.done(began, fmt.Sprintf("%d boards calibrated from nothing", p.f.Nodes), "on their virtual clocks, %d modules a bundle", p.Modules)
	return nil
}

// startBoards starts broker, planner and boards.
func (p *procs) startBoards(ctx context.Context) error {
	if err := p.startBroker(); err != nil {
		return err
	}
	if err := p.startPlanner(); err != nil {
		return err
	}
	for n := range p.f.Nodes {
		if err := p.start(boardName(n), "ocs-sim", "board", "-config", p.path(boardName(n)+".json"), "-listen", "unix:"+p.path(boardName(n)+".sock"),
			"-control", "unix:"+p.path(boardName(n)+".ctl"), "-fibres", fmt.Sprintf("127.0.0.1:%d", p.ports[n])); err != nil {
			return err
		}
	}
	for n := range p.f.Nodes {
		if _, err := await(ctx, procsBypass, boardName(n), func() (bool, string) {
			_, err := p.tell(boardName(n), "record")
			return err == nil, fmt.Sprint(err)
		}); err != nil {
			return err
		}
	}
	return nil
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
func (p *procs) configure(ctx context.Context, n int) error {
	layout := map[string]any{"kind": "sim", "gpus": p.f.GPUsPerNode, "bundles": p.f.Bundles, "modules": p.Modules, "seed": 1000 + n}
	state := fmt.Sprintf("node%d", n)
	if err := p.write("calibrate.json", p.agentOf(n, state, layout)); err != nil {
		return err
	}
	if _, err := p.once(ctx, "ocs-agent", "calibrate", "-config", p.path("calibrate.json")); err != nil {
		return err
	}
	var leads []string
	for b := range p.f.Bundles {
		for path := proto.External1; path <= proto.External2; path++ {
			far, crossed, ok := p.f.At(fabric.Port{Node: proto.NodeID(n), Bundle: proto.BundleID(b), Path: path})
			if !ok {
				continue
			}
			lead := fmt.Sprintf("%d/%v=127.0.0.1:%d/%d/%v", b, path, p.ports[far.Node], far.Bundle, far.Path)
			if crossed {
				lead += "/crossed"
			}
			leads = append(leads, lead)
		}
	}
	socket := map[string]any{"kind": "socket", "path": p.path(boardName(n) + ".sock"), "gpus": p.f.GPUsPerNode, "bundles": p.f.Bundles, "modules": p.Modules}
	if err := p.write(agentName(n)+".json", p.agentOf(n, state, socket)); err != nil {
		return err
	}
	layout["leads"] = leads
	return p.write(boardName(n)+".json", layout)
}

// write writes a configuration.
func (p *procs) write(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(p.path(name), raw, 0o644)
}
