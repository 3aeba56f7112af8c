package live

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// Goal: the production loops bring simulated nodes into service in real time,
// and a broker that dies and comes back changes nothing but the time.
// A board loses its power and gets it back through the control socket.
// Method: eight nodes and a spare, a planner and a broker in one process; the
// planner's own word is waited for.
func TestAgentsComeIntoService(t *testing.T) {
	p := fabric.DefaultParams()
	p.Nodes, p.TP, p.Spares = 9, 32, 1
	f, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	broker, err := server.StartBroker("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a bound on a hang, on any machine
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	breaker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer breaker.Close()
	quiet := make(chan planner.Overview, 1)
	all.Go(func() {
		err := server.Run(ctx, server.Config{Fabric: f, Broker: broker.URL(), State: filepath.Join(t.TempDir(), "planner.db"),
			MinReconnect: minReconnect, MaxReconnect: maxReconnect,
			Observe: func(p *planner.Planner) {
				o := p.Overview()
				select {
				case <-quiet: // only the last word counts
				default:
				}
				quiet <- o
			}})
		if err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		err := Agents(ctx, ClusterConfig{Fabric: f, Modules: 1, Seed: 1, Health: 10 * time.Second, Log: slog.New(slog.DiscardHandler), Control: breaker,
			Broker: mqtt.Config{Broker: broker.URL(), MinReconnect: minReconnect, MaxReconnect: maxReconnect}})
		if err != nil {
			t.Error(err)
		}
	})
	wait := func(what string, ok func(planner.Overview) bool) planner.Overview {
		for {
			select {
			case o := <-quiet:
				if ok(o) {
					return o
				}
			case <-ctx.Done():
				t.Fatalf("waited in vain for %s", what)
			}
		}
	}
	inService := func(o planner.Overview) bool { return o.InService == 1 && o.Online == 9 && o.LinksConfirmed == 7 }
	first := wait("service", inService)
	before := reports(t, ctx, f, broker.URL(), func(r *proto.Reported) bool { // the spare node's loopbacks are no link
		return r.Generation != 0 && !slices.ContainsFunc(r.Bundles, func(b proto.BundleReport) bool { return !b.State.Lit() })
	})
	if err := broker.Close(); err != nil {
		t.Fatal(err)
	}
	if broker, err = server.StartBroker(broker.Addr(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	after := reports(t, ctx, f, broker.URL(), func(*proto.Reported) bool { return true })
	again := wait("service after the broker's restart", inService)
	if again.Generation != first.Generation || again.EventsSeen < first.EventsSeen {
		t.Errorf("before %+v, after %+v", first, again)
	}
	for n, b := range before {
		for i, x := range b.Bundles {
			y := after[n].Bundles[i]
			if x.Path != y.Path || x.SinceMicros != y.SinceMicros || x.Flaps != y.Flaps {
				t.Errorf("node %d: bundle %d was %v since %d us and is %v since %d us", n, i, x.Path, x.SinceMicros, y.Path, y.SinceMicros)
			}
		}
	}
	say := func(line, want string) {
		t.Helper()
		c, err := net.Dial("tcp", breaker.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), want) {
			t.Fatalf("%s: %s, %v; want %s", line, got, err, want)
		}
	}
	for _, line := range []string{"power off 9", "power 3", "cut 3"} {
		say(line, `{"error":`)
	}
	say("power off 3", `{"powered":false`)
	wait("the spare in the place of node 3", func(o planner.Overview) bool { return inService(o) && o.Generation > again.Generation && o.Spares == 0 })
	say("power on 3", `{"powered":true`)
	wait("node 3 as a spare", func(o planner.Overview) bool { return inService(o) && o.Spares == 1 })
}

// reports waits for a report of every node at a broker that is as it should be.
func reports(t *testing.T, ctx context.Context, f *fabric.Fabric, url string, ok func(*proto.Reported) bool) map[proto.NodeID]*proto.Reported {
	t.Helper()
	link, err := mqtt.Dial(mqtt.Config{Broker: url, ClientID: "looker-on", MinReconnect: minReconnect, MaxReconnect: maxReconnect,
		Subscriptions: []string{proto.Topics{Fabric: f.Name}.EveryNode(proto.TopicReported)}})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	got := map[proto.NodeID]*proto.Reported{}
	for len(got) < f.Nodes {
		select {
		case p := <-link.Recv():
			if p.Kind != proto.Publish {
				continue
			}
			r := new(proto.Reported)
			if _, err := proto.Decode(p.Payload, r); err != nil {
				t.Fatal(err)
			}
			if ok(r) {
				got[r.Node] = r
			}
		case <-ctx.Done():
			t.Fatalf("%d of %d nodes report", len(got), f.Nodes)
		}
	}
	return got
}
