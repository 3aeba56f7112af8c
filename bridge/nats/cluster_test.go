package nats

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"ringlight/planner"
	"ringlight/planner/fabric"
	planning "ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim/freeport"
	"ringlight/sim/live"
)

const asServer = "RINGLIGHT_NATS_SERVER" // this process is a nats-server: its configuration

// TestMain lets the test's own binary be a server, which can be killed with -9.
func TestMain(m *testing.M) {
	file := os.Getenv(asServer)
	if file == "" {
		os.Exit(m.Run())
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		panic(err)
	}
	s, err := server.NewServer(opts)
	if err != nil {
		panic(err)
	}
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
}

// cluster is nats-servers that are processes.
type cluster struct {
	t     *testing.T
	files []string
	urls  []string
	procs []*exec.Cmd
}

func startServers(t *testing.T, count int) *cluster {
	t.Helper()
	c := &cluster{t: t, procs: make([]*exec.Cmd, count)}
	dir := t.TempDir()
	var routes []string
	for range count {
		routes = append(routes, freeport.Address())
	}
	for i := range count {
		at, file := freeport.Address(), filepath.Join(dir, fmt.Sprintf("n%d.conf", i))
		text := fmt.Sprintf("server_name: n%d\nlisten: 127.0.0.1:-1\nmax_payload: 131072\nlog_file: %q\njetstream { store_dir: %q }\nmqtt { listen: %q }\n",
			i, file+".log", filepath.Join(dir, fmt.Sprint("js", i)), at)
		if count > 1 {
			text += fmt.Sprintf("cluster { name: c, listen: %q, routes: [nats://%s] }\n", routes[i], strings.Join(routes, ", nats://"))
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.files, c.urls = append(c.files, file), append(c.urls, "mqtt://"+at)
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.procs {
			c.kill(i)
		}
	})
	for i := range count {
		c.ready(i)
	}
	return c
}

func (c *cluster) start(i int) {
	c.t.Helper()
	p := exec.Command(os.Args[0])
	p.Env = append(os.Environ(), asServer+"="+c.files[i])
	p.Stderr = os.Stderr
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.procs[i] = p
}

func (c *cluster) kill(i int) {
	if p := c.procs[i]; p != nil {
		_ = p.Process.Kill()
		_ = p.Wait()
		c.procs[i] = nil
	}
}

// ready waits until one of the servers lets clients in and gives them subscriptions.
func (c *cluster) ready(i int) {
	c.t.Helper()
	l, err := mqtt.Dial(mqtt.Config{Broker: c.urls[i], ClientID: "ready", Uncached: true, Subscriptions: []string{"ready"}, MinReconnect: 50 * time.Millisecond, MaxReconnect: 500 * time.Millisecond})
	if err != nil {
		c.t.Fatal(err)
	}
	defer l.Close()
	for end := time.After(2 * time.Minute); ; {
		select {
		case p := <-l.Recv():
			if p.Kind == proto.LinkUp {
				return
			}
		case <-end:
			log, _ := os.ReadFile(c.files[i] + ".log")
			c.t.Fatalf("server %d lets nobody in: %v\n%s", i, l.Err(), log[max(0, len(log)-2000):])
		}
	}
}

// Goal: what nats-server lacks is what docs/copies.md says. Method: the checks of
// ocs-sim broker-check, a server alone and three.
func TestWhatNATSLacks(t *testing.T) {
	for _, count := range []int{1, 3} {
		c := startServers(t, count)
		for _, f := range live.CheckBroker(t.Context(), mqtt.Config{Broker: strings.Join(c.urls, ",")}, "check") {
			t.Logf("%d: %-48s has %-5v %5d ms  %s", count, f.Ask, f.Has, f.TookMS, f.Saw)
			if f.Needed && !f.Has {
				t.Errorf("%d servers lack what nothing works without: %s", count, f.Ask)
			}
		}
	}
}

// Goal: what a cluster loses with a server that is killed with -9 is known: the wills of its
// clients, always, so that presence is a hint. Method: a client with a will on that server,
// a listener on another. When this fails, NATS has become better than the page says.
func TestWillsDieWithTheirServer(t *testing.T) {
	c := startServers(t, 3)
	dial := func(i int, will string, subs ...string) *mqtt.Link {
		cfg := mqtt.Config{Broker: c.urls[i], ClientID: fmt.Sprint("c", i), Uncached: true, Subscriptions: subs}
		if will != "" {
			cfg.Will = &proto.Packet{Topic: will, Payload: []byte("gone")}
		}
		l, err := mqtt.Dial(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Abandon)
		for p := range l.Recv() {
			if p.Kind == proto.LinkUp {
				break
			}
		}
		return l
	}
	to, by := dial(0, "", "t/will", "t/sure"), dial(2, "")
	dial(1, "t/will")
	<-time.After(time.Second) // interest has spread
	c.kill(1)
	<-time.After(3 * time.Second)
	_ = by.Send(proto.Packet{Topic: "t/sure"}) // who listens notices what is missing
	for p := range to.Recv() {
		switch p.Topic {
		case "t/will":
			t.Error("the will came")
		case "t/sure":
			return
		}
	}
}

// watch is who hears all agents, and when.
type watch struct {
	mu    sync.Mutex
	from  time.Time   // what was heard before is over
	heard []time.Time // first since then
	links []*mqtt.Link
	quiet planner.Overview
	at    time.Time // of quiet
	told  *witness
}

func (w *watch) listen(ctx context.Context, l *mqtt.Link) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-l.Recv():
			if topic, err := proto.ParseTopic(p.Topic); p.Kind == proto.Publish && err == nil && int(topic.Node) < len(w.heard) {
				w.mu.Lock()
				if w.heard[topic.Node].Before(w.from) {
					w.heard[topic.Node] = time.Now()
				}
				w.mu.Unlock()
				if e := new(proto.Event); topic.Kind == proto.TopicEvent {
					if _, err := proto.Decode(p.Payload, e); err == nil {
						w.told.event(e)
					}
				}
			}
		}
	}
}

// see is told by the planner, which is looked at twice a second.
func (w *watch) see(p *planner.Planner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.at) > 500*time.Millisecond {
		w.quiet, w.at = p.Overview(), now
	}
}

// back says when the last of the agents was heard again, zero while not all are.
func (w *watch) back(since time.Time) (last time.Time, missing int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = since
	for _, at := range w.heard {
		if at.Before(since) {
			missing++
		} else if at.After(last) {
			last = at
		}
	}
	return last, missing
}

// late is how many were heard again only after a moment.
func (w *watch) late(than time.Time) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.heard {
		if at.After(than) {
			n++
		}
	}
	return n
}

func (w *watch) serves(f *fabric.Fabric) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.quiet
	return q.Online == f.Nodes && q.Quiet && q.Rings > 0 && q.InService == q.Rings && q.LinksConfirmed == q.LinksTotal
}

// inRings is how many agents have a ring, unless RINGLIGHT_RINGED says another number; all
// others are kept free and say and hear what such nodes do. chosen: all boards share one
// simulated world in real time, and where thousands of them move light at once, each is
// seconds late.
const inRings = 320

// Goal: agents, a planner and three servers; each server killed with -9 in turn: all agents
// are heard again, the planner has all of them, and no light changes; the same when two
// servers, the quorum, are gone and come back. Method: production agents on simulated
// boards, whose own record judges light; a stranger to both, on the cluster, hears them.
// Times are printed and judged by people. RINGLIGHT_CLUSTER is the number of agents.
func TestClusterIsKilledInTurn(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("RINGLIGHT_CLUSTER"))
	if count == 0 {
		t.Skip("make bench-broker-cluster runs it")
	}
	ringed := inRings
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_RINGED")); err == nil {
		ringed = n
	}
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: count, GPUsPerNode: 4, K: 2, TP: 32, Spares: max(0, count-ringed)})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c := startServers(t, 3)
	list := strings.Join(c.urls, ",")
	ctx, cancel := context.WithCancel(t.Context())
	w := &watch{heard: make([]time.Time, count), told: newWitness()}
	health := 5 * time.Second
	if count <= 200 {
		health = 2 * time.Second
	}
	topics := proto.Topics{Fabric: "f1"}
	// One at each server, so that two hear those who come back from the third at once.
	for i, url := range c.urls {
		l, err := mqtt.Dial(mqtt.Config{Broker: url, ClientID: fmt.Sprint("watch", i), Uncached: true, MinReconnect: 100 * time.Millisecond, MaxReconnect: time.Second, Queue: 1 << 16,
			Subscriptions: []string{topics.EveryNode(proto.TopicHealth), topics.EveryNode(proto.TopicPresence), topics.EveryNode(proto.TopicReported), topics.EveryNode(proto.TopicEvent)}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Abandon()
		w.links = append(w.links, l)
		go w.listen(ctx, l)
	}
	var record live.LightRecord
	var ended time.Time
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var failed atomic.Bool
	all.Go(func() {
		err := planning.Run(ctx, planning.Config{Fabric: f, Broker: list, Uncached: true, State: filepath.Join(t.TempDir(), "planner.db"), Log: w.told.log(), Observe: w.see})
		if err != nil && ctx.Err() == nil {
			failed.Store(true)
			t.Error(err)
		}
	})
	agents := make(chan struct{})
	go func() {
		defer close(agents)
		err := live.Agents(ctx, live.ClusterConfig{Fabric: f, Modules: 1, Seed: 1, Health: health, Log: w.told.log(),
			Broker: mqtt.Config{Broker: list, Uncached: true}, Ended: func(r live.LightRecord) { record, ended = r, time.Now() }})
		if err != nil && ctx.Err() == nil {
			failed.Store(true)
			t.Error(err)
		}
	}()
	const patience = 8 * time.Minute
	var quiet time.Time // since when nothing may change
	await := func(what string, since time.Time) {
		t.Helper()
		var heard, served time.Duration
		for tick := time.NewTicker(50 * time.Millisecond); heard == 0 || served == 0; <-tick.C {
			last, missing := w.back(since)
			if missing == 0 && heard == 0 {
				heard = max(1, last.Sub(since))
			}
			if heard != 0 && served == 0 && w.serves(f) {
				served = time.Since(since)
			}
			if failed.Load() || time.Since(since) > patience {
				w.told.account(t, nil, time.Now(), time.Now())
				t.Fatalf("%s: %d of %d agents not heard again after %v, the planner has %+v", what, missing, count, time.Since(since).Round(time.Second), w.quiet)
			}
		}
		word := ""
		if heard > 15*time.Second && !quiet.IsZero() {
			word = fmt.Sprintf("  %d of them AFTER 15 s", w.late(since.Add(15*time.Second)))
		}
		t.Logf("%-44s all %d agents heard after %5.1f s (telemetry goes every %v), planner has all of them after %5.1f s%s", what, count, heard.Seconds(), health, served.Seconds(), word)
	}
	await("start", time.Now())
	<-time.After(3 * time.Second)
	quiet = time.Now()
	for i := range c.procs {
		since := time.Now()
		c.kill(i)
		await(fmt.Sprintf("server %d killed", i), since)
		c.start(i)
		c.ready(i)
		<-time.After(3 * time.Second) // its JetStream follows again
	}
	c.kill(0)
	c.kill(1)
	<-time.After(10 * time.Second)
	t.Logf("two of three gone for 10 s: who listens at the third is up: %v", w.links[2].Up())
	since := time.Now()
	c.start(0)
	c.start(1)
	await("quorum back", since)
	watched := time.Since(quiet)
	cancel()
	<-agents
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Error(err)
	}
	t.Logf("%d agents in %d rings; agents, boards, planner and listener took %v of processor time in %v", count, f.TargetRings(), time.Duration(used.Utime.Nano()+used.Stime.Nano()).Round(time.Second), time.Since(began).Round(time.Second))
	t.Logf("light: %d paths on %d nodes lit, last change %v ago, %v watched", record.PathsLit, record.Nodes, record.SinceChange.Round(time.Millisecond), watched.Round(time.Millisecond))
	if record.SinceChange < watched || record.PathsLit == 0 {
		t.Error("light changed")
		w.told.account(t, record.Paths, ended, quiet)
	}
}
