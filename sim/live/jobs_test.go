package live

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
	"ringlight/planner/server"
	"ringlight/proto/mqtt"
)

// Goal: a job is ready soon after it is asked for, is one job however often it is,
// and is the same after its planner was gone; whoever watches hears each event
// once and in order over that.
// Method: production agents on simulated boards and a planner in real time, over
// its socket; watchers from the beginning, the planner ended and begun anew, a
// node replaced before and after. RINGLIGHT_WATCHERS sets how many watch.
func TestJobsOverHTTP(t *testing.T) {
	watchers := 40
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_WATCHERS")); err == nil {
		watchers = n
	}
	p := fabric.DefaultParams()
	p.Nodes, p.TP, p.Spares = 20, 16, 2
	f, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	broker, err := server.StartBroker("127.0.0.1:0", quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second) // a bound on a hang, on any machine
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	dir, err := os.MkdirTemp("", "ringlight") // short: a socket's path has a limit
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := "unix:" + filepath.Join(dir, "jobs")
	life, end := context.WithCancel(ctx)
	var planner sync.WaitGroup
	begin := func() {
		life, end = context.WithCancel(ctx)
		planner.Go(func() {
			if err := server.Run(life, server.Config{Fabric: f, Broker: broker.URL(), State: filepath.Join(dir, "planner.db"), HTTP: socket,
				MinReconnect: minReconnect, MaxReconnect: maxReconnect, Log: quiet}); err != nil {
				t.Error(err)
			}
		})
	}
	begin()
	defer func() { end(); planner.Wait() }()
	all.Go(func() {
		if err := Agents(ctx, ClusterConfig{Fabric: f, Modules: 1, Seed: 1, Health: 10 * time.Second, Log: quiet,
			Broker: mqtt.Config{Broker: broker.URL(), MinReconnect: minReconnect, MaxReconnect: maxReconnect}}); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(client.Config{URL: socket, Retry: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	wish := &job.Wish{TP: 16, Rings: 2, Spares: 2, Prefer: job.Compact, Policy: job.Wait, HoldMS: 600_000}
	if _, err := c.Put(ctx, "watched", wish); err != nil {
		t.Fatal(err)
	}
	heard := make([][]uint64, watchers)
	var following sync.WaitGroup
	for i := range heard {
		following.Go(func() {
			own, err := client.New(client.Config{URL: socket, Retry: time.Minute})
			if err == nil {
				err = own.Follow(ctx, "watched", 0, func(e *job.Event) bool {
					heard[i] = append(heard[i], e.Generation)
					return e.Event != string(job.Released)
				})
			}
			if err != nil {
				t.Errorf("watcher %d: %v", i, err)
			}
		})
	}
	ready := func(id string) *job.View {
		t.Helper()
		for {
			v, err := c.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if v.State == job.Ready {
				return v
			}
			if err := c.Follow(ctx, id, v.Generation, func(*job.Event) bool { return false }); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := ready("watched")
	if again, err := c.Put(ctx, "watched", wish); err != nil || again.Generation != first.Generation {
		t.Errorf("asked for twice: %+v, %v", again, err)
	}
	var took []time.Duration
	for i := range 10 {
		id := fmt.Sprintf("short-%d", i)
		began := time.Now()
		if _, err := c.Put(ctx, id, &job.Wish{TP: 8 << (i % 2), Rings: 1}); err != nil {
			t.Fatal(err)
		}
		ready(id)
		took = append(took, time.Since(began))
		if _, err := c.Release(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(took)
	t.Logf("asked for to ready: least %v, middle %v, most %v", took[0], took[5], took[9])
	for i := range 2 {
		v := ready("watched")
		out := v.Rings[i].Nodes[1]
		if _, err := c.Replace(ctx, "watched", out, "test"); err != nil {
			t.Fatal(err)
		}
		after := ready("watched")
		if slices.Contains(after.Rings[i].Nodes, out) || after.GPUsTotal != v.GPUsTotal {
			t.Errorf("node %s was to be replaced: %+v", out, after)
		}
		if i == 1 {
			break
		}
		end()
		planner.Wait()
		begin()
		same := ready("watched")
		if fmt.Sprint(same.Rings) != fmt.Sprint(after.Rings) {
			t.Errorf("a planner began anew: %+v, before %+v", same.Rings, after.Rings)
		}
	}
	last, err := c.Release(ctx, "watched")
	if err != nil {
		t.Fatal(err)
	}
	following.Wait()
	for i := range heard {
		for n, gen := range heard[i] {
			if gen != uint64(n+1) {
				t.Fatalf("watcher %d heard %v", i, heard[i])
			}
		}
		if uint64(len(heard[i])) != last.Generation {
			t.Errorf("watcher %d heard %d events of %d", i, len(heard[i]), last.Generation)
		}
	}
	t.Logf("%d watchers heard %d events each, once and in order", watchers, last.Generation)
}
