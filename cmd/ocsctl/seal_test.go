package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
	"ringlight/sim/live"
)

// guarded is a fabric on its way to sealed messages: four nodes whose boards keep their
// light whatever becomes of the agents, a planner that is started anew at every step,
// and an operator.
type guarded struct {
	t       *testing.T
	dir     string
	trust   string
	broker  string
	cluster *live.Cluster
	agents  atomic.Pointer[map[proto.NodeID]stage]
	ctx     context.Context // of the agents
	stop    func()
}

// stage is how far a program is.
type stage struct {
	mode       guard.Mode
	reports    bool
	old        bool   // of a release that knows no seals
	trust, key string // others than it should have
}

func (g *guarded) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *guarded) folder(name string) *pki.Folder {
	f, err := pki.Init(filepath.Join(g.dir, name), "lab", "cluster.example")
	g.must(err)
	names := []proto.Holder{{Fabric: "lab", Kind: proto.HolderPlanner, ID: "a"}}
	_, err = f.Issue(pki.Request{Names: names, Role: proto.RolePlanner, Days: 30})
	g.must(err)
	_, err = f.Issue(pki.Request{Names: []proto.Holder{{Fabric: "lab", Kind: proto.HolderOperator, ID: "alice"}}, Role: proto.RoleAdmin, Days: 30})
	g.must(err)
	names = nil
	for n := range 4 {
		names = append(names, proto.Topics{Fabric: "lab"}.NodeHolder(proto.NodeID(n)))
	}
	_, err = f.Issue(pki.Request{Names: names, Role: proto.RoleNode, Days: 30})
	g.must(err)
	return f
}

func (g *guarded) file(folder, name string) string { return filepath.Join(g.dir, folder, "lab-"+name) }

// planner starts it, in the place of the one before.
func (g *guarded) planner(f *fabric.Fabric, s stage) {
	g.t.Helper()
	if g.stop != nil {
		g.stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	cfg := server.Config{Fabric: f, State: filepath.Join(g.dir, "p.db"), Listen: cmp.Or(strings.TrimPrefix(g.broker, "mqtt://"), "127.0.0.1:0"), Log: slog.New(slog.DiscardHandler),
		Ready: func(b string, _ planner.Config) { ready <- b }}
	if s.mode.On() {
		cfg.CertFile, cfg.KeyFile = g.file("pki", "planner-a.pem"), g.file("pki", "planner-a.key")
		cfg.Seals = server.Seals{Mode: s.mode, TrustFile: g.trust, Kept: filepath.Join(g.dir, "p.trust"), Reports: s.reports}
	}
	go func() { ended <- server.Run(ctx, cfg) }()
	select {
	case g.broker = <-ready:
	case err := <-ended:
		g.t.Fatal(err)
	}
	g.stop = func() { cancel(); <-ended }
}

// guard is what an agent gets that starts now.
func (g *guarded) guard(n proto.NodeID) (live.Guard, error) {
	s := (*g.agents.Load())[n]
	if s.old {
		return live.Guard{}, nil
	}
	out := live.Guard{Features: guard.Features(s.mode, s.reports)}
	if !s.mode.On() {
		return out, nil
	}
	cfg := guard.Config{Mode: s.mode, Fabric: "lab", Role: proto.RoleNode, TrustFile: g.trust, Reports: s.reports, KeyFile: g.file("pki", fmt.Sprintf("n-%d.key", n))}
	if s.trust != "" {
		cfg.TrustFile = s.trust
	}
	if s.key != "" {
		cfg.KeyFile = s.key
	}
	at, err := guard.New(cfg)
	out.Guard = at
	return out, err
}

// restart starts agents anew as far as they are to be.
func (g *guarded) restart(all stage, but map[proto.NodeID]stage) {
	g.t.Helper()
	stages := map[proto.NodeID]stage{}
	for n := range proto.NodeID(4) {
		stages[n] = all
		if s, is := but[n]; is {
			stages[n] = s
		}
	}
	g.agents.Store(&stages)
	if g.cluster == nil {
		return
	}
	for n := range proto.NodeID(4) {
		g.cluster.Kill(n)
		g.must(g.cluster.Revive(g.ctx, n))
	}
}

// settles waits until seal check says so: the next step, and who would be refused by
// each of the five; and until the ring has its light.
func (g *guarded) settles(next int, refused ...string) {
	g.t.Helper()
	ask := func(args ...string) (int, string) {
		code, out, errs := ctl(g.t, append(args, "-json", "-broker", g.broker, "-cert", g.file("pki", "op-alice.pem"), "-key", g.file("pki", "op-alice.key"))...)
		return code, out + errs
	}
	last := ""
	for end := time.Now().Add(40 * time.Second); ; <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("next %d, refused %q: never, but %s", next, refused, last)
		}
		code, rings := ask("ring", "list")
		if code != 0 || !strings.Contains(rings, `"in_service"`) || !strings.Contains(rings, `"links_confirmed":2`) {
			last = rings
			continue
		}
		var j sealJSON
		if code, last = ask("seal", "check"); json.NewDecoder(strings.NewReader(last)).Decode(&j) != nil || j.Next != next || j.Offline != 0 {
			continue
		}
		good := len(j.Steps) == 5
		for i, s := range j.Steps {
			var who []string
			for _, r := range s.Refused {
				who = append(who, r.Who)
			}
			good = good && strings.Join(who, " ") == refused[i]
		}
		if wantCode := 0; good {
			if next != 0 && refused[next-1] != "" {
				wantCode = 1
			}
			if code != wantCode {
				g.t.Fatalf("exit %d: %s", code, last)
			}
			return
		}
	}
}

// Goal: a fabric that runs comes from no seals to enforced ones without a change of
// light, and who would be refused is known before each step: agents that cannot read
// seals, that trust another root, that seal with a key that nobody trusts.
// Method: real agents and planner, each started anew at its step with one of those
// faults, which is mended when it was named.
func TestSealsComeStepByStep(t *testing.T) {
	t.Parallel()
	f, err := fabric.New(fabric.Params{Name: "lab", Nodes: 4, GPUsPerNode: 4, K: 2, TP: 12, Spares: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, dir: t.TempDir()}
	_, g.trust = g.folder("pki").Files()
	_, foreign := g.folder("other").Files()
	off, warn := stage{mode: guard.Off}, stage{mode: guard.Warn, reports: true}
	g.planner(f, off)
	g.restart(off, map[proto.NodeID]stage{3: {old: true}})
	ctx, cancel := context.WithCancel(context.Background())
	g.ctx = ctx
	g.cluster, err = live.StartCluster(ctx, live.ClusterConfig{Fabric: f, Modules: 1, Seed: 1, Health: time.Hour, Guard: g.guard, Progress: io.Discard, Log: slog.New(slog.DiscardHandler),
		Broker: mqtt.Config{Broker: g.broker, MinReconnect: 10 * time.Millisecond, MaxReconnect: 100 * time.Millisecond}})
	g.must(err)
	over := func() {
		g.stop()
		cancel()
		g.must(g.cluster.Wait())
	}
	defer func() { over() }()
	const all = "node 0 node 1 node 2 node 3"
	g.settles(1, "node 3", "", "", all, all)
	formed := time.Now()
	g.restart(off, nil)
	g.settles(1, "", "", "", all, all)
	g.planner(f, stage{mode: guard.Warn})
	g.settles(2, "", "", "", all, all)
	g.restart(warn, map[proto.NodeID]stage{1: {mode: guard.Warn, reports: true, trust: foreign}, 2: {mode: guard.Warn, reports: true, key: g.file("other", "n-2.key")}})
	g.settles(3, "", "", "", "node 1", "")
	g.planner(f, warn)
	g.settles(4, "", "", "", "node 1", "2")
	g.restart(warn, map[proto.NodeID]stage{2: {mode: guard.Warn, reports: true, key: g.file("other", "n-2.key")}})
	g.settles(4, "", "", "", "", "2")
	g.restart(stage{mode: guard.Enforce, reports: true}, nil)
	g.planner(f, warn) // whose doubts are over at once then
	g.settles(5, "", "", "", "", "")
	g.planner(f, stage{mode: guard.Enforce, reports: true})
	g.settles(0, "", "", "", "", "")
	over()
	over = func() {}
	if light := g.cluster.Light(); light.SinceChange < time.Since(formed) {
		t.Errorf("the light changed %v ago, the ring was formed %v ago", light.SinceChange, time.Since(formed))
	}
}
