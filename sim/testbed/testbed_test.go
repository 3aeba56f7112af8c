package testbed

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
)

// Goal: a namespace's name says whose it is, and nothing else does.
// Method: names written and read; names of others.
func TestNamesHoldTheirOwner(t *testing.T) {
	o := owner{4711, 8283887}
	for _, device := range []string{"node3", "leaf12", "pod0-spine1"} {
		got, d, ok := parseName(o.name(device))
		if !ok || got != o || d != device {
			t.Errorf("%s: read as %v, %q, %v", o.name(device), got, d, ok)
		}
	}
	for _, other := range []string{"", "ringlight", "ringlight-", "ringlight-1-2-", "ringlight-x-2-node1", "ringlight-0-2-node1", "ringlight-1-y-node1", "blue"} {
		if _, _, ok := parseName(other); ok {
			t.Errorf("%q is taken for a testbed's", other)
		}
	}
}

// Goal: when a process started is read right whatever its name.
// Method: a stat with a name that looks like fields; this process and one that has ended.
func TestOwnerIsTheProcessThatItWas(t *testing.T) {
	fields := "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20"
	if start, ok := startOf("7 (a) b) " + fields); !ok || start != 4242 {
		t.Errorf("start %d, %v, want 4242", start, ok)
	}
	if _, ok := startOf("7 (short) S 1"); ok {
		t.Error("a start is read where none is")
	}
	self, ok := ownerOf(os.Getpid())
	if !ok || !self.alive() {
		t.Error("this process is not alive")
	}
	self.start++
	if self.alive() {
		t.Error("another process of the same number is taken for it")
	}
}

// Goal: what comes into a node by a port leaves it by another, as light would go on
// through its GPUs, and back.
// Method: all ports of nodes of every shape.
func TestNodesSendOnThroughTheirGPUs(t *testing.T) {
	for gpus := 2; gpus <= 8; gpus++ {
		p := fabric.DefaultParams()
		p.Nodes, p.GPUsPerNode, p.TP, p.Spares = 4, gpus, 4*gpus, 0
		f, err := fabric.New(p)
		if err != nil {
			t.Fatal(err)
		}
		o, err := opticsOf(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range o.ports {
			to := o.through(i, gpus, f.Bundles)
			if o.ports[to].Device != o.ports[i].Device || o.sides[to].Side == o.sides[i].Side || o.through(to, gpus, f.Bundles) != i {
				t.Errorf("%d GPUs: %v sends on by %v, and that by %v", gpus, o.ports[i], o.ports[to], o.ports[o.through(to, gpus, f.Bundles)])
			}
		}
	}
}

// Goal: the port of a spine that sends into a switch hears from the other of its pair,
// where a link's other end sends in.
// Method: every circuit of every pair both ways round.
func TestBothWaysOfALinkEndAtTheSamePorts(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "core", Core: fabric.DefaultCore(4)})
	if err != nil {
		t.Fatal(err)
	}
	o, err := opticsOf(f)
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 * f.Core.SpinesPerPod * f.Core.SpinePorts; len(o.ports) != want {
		t.Fatalf("%d ports, want %d", len(o.ports), want)
	}
	for i, x := range o.from {
		for pod := range f.Core.Pods {
			far := o.arrives[fibre{x.board, pod}]
			back := o.from[far]
			if got := o.arrives[fibre{back.board, x.port}]; got != i {
				t.Errorf("%v sends to %v, which sends to %v", o.ports[i], o.ports[far], o.ports[got])
			}
		}
	}
}

// Goal: a gap is the time without arrivals, wherever the span cuts it.
// Method: arrivals by hand.
func TestGapIsWhatWasMissed(t *testing.T) {
	at := func(times ...int) (came []arrival) {
		for n, x := range times {
			came = append(came, arrival{uint64(n), time.Duration(x)})
		}
		return came
	}
	for _, c := range []struct {
		name           string
		came           []arrival
		from, to, want time.Duration
	}{
		{"none", at(1, 2, 3, 4), 1, 4, 0},
		{"in the middle", at(1, 2, 12, 13), 1, 13, 9},
		{"longer than the span", at(1, 100), 10, 30, 29 - 1},
		{"at its end", at(1, 2, 3), 1, 20, 16},
		{"nothing came", nil, 5, 20, 14},
		{"before it", at(1, 50, 51, 52), 50, 52, 0},
	} {
		if got := gapOf(c.came, 1, c.from, c.to); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := lostOf([]time.Duration{0, 1, 2, 3}, map[uint64]bool{0: true, 2: true}, 1, 2); got != 1 {
		t.Errorf("%d lost of two, want 1", got)
	}
	if got := Quantile([]int64{5, 1, 4, 2, 3}, 500); got != 3 {
		t.Errorf("the middle of 1 to 5 is %d", got)
	}
}

// needs skips where no testbed can be made.
func needs(t *testing.T) {
	if err := Lacks(); err != nil {
		t.Skip(err)
	}
}

// long is for those that take half a minute.
func long(t *testing.T) {
	if needs(t); testing.Short() {
		t.Skip("make test-long runs it")
	}
}

// Goal: what a killed testbed leaves is swept by the next, and nobody else's is.
// Method: namespaces in the name of a process that has ended, of this one and of nobody.
func TestKilledTestbedIsSwept(t *testing.T) {
	needs(t)
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	was, ok := ownerOf(child.Process.Pid)
	if err := child.Process.Kill(); err != nil || !ok {
		t.Fatal(err, ok)
	}
	_ = child.Wait()
	self, _ := ownerOf(os.Getpid())
	left, own, other := was.name("node0"), self.name("node0"), "ringlightsweep-test"
	for _, ns := range []string{left, own, other} {
		if err := ip("", "netns add "+ns); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { _, _ = ip("", "netns del "+own), ip("", "netns del "+other) }()
	// Somebody may still be in it.
	inside := exec.Command("sleep", "60")
	if err := within(left, inside.Start); err != nil {
		t.Fatal(err)
	}
	if gone, err := sweep(); gone < 1 || err != nil {
		t.Errorf("%d swept, %v", gone, err)
	}
	if err := inside.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("who was in it ended with %v", err)
	}
	var names []string
	entries, _ := filepath.Glob(filepath.Join(netnsDir, "*"))
	for _, e := range entries {
		names = append(names, filepath.Base(e))
	}
	if slices.Contains(names, left) || !slices.Contains(names, own) || !slices.Contains(names, other) {
		t.Errorf("there are %v", names)
	}
}

func bedOf(t *testing.T, nodes int) Config {
	t.Helper()
	p := fabric.DefaultParams()
	p.Nodes, p.GPUsPerNode, p.TP, p.Spares = nodes, 2, 2*nodes, 0
	f, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Fabric: f, Modules: 1, Seed: 1, Listen: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// Goal: a connection outlives the power of nodes that it goes through.
// Method: two nodes of a ring, one after the other.
func TestConnectionGoesOnOverTheBypass(t *testing.T) {
	needs(t)
	res, err := Ring(t.Context(), RingConfig{Config: bedOf(t, 4), Cuts: 2, Rate: 500})
	if err != nil {
		t.Fatal(err)
	}
	if res.TCPBroken != "" || res.TCPWrong > 0 || len(res.Cuts) != 2 || res.Hops < 3 {
		t.Errorf("%+v", res)
	}
	for _, c := range res.Cuts {
		if c.LightMicros <= 0 || c.LedgerMicros <= 0 {
			t.Errorf("a cut without a bypass: %+v", c)
		}
	}
}

// Goal: processes that train outlive the power of nodes that their sums go through, and none
// of these is wrong.
// Method: two of four nodes train with gloo, one between loses its power and then its
// fibres; the ring goes on without it until it has them again.
func TestTrainingGoesOnOverTheBypass(t *testing.T) {
	long(t)
	if _, err := Python(); err != nil {
		t.Skip(err)
	}
	res, err := Ring(t.Context(), RingConfig{Config: bedOf(t, 4), Cuts: 2, Rate: 100, Train: true, Fibres: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.StepWrong > 0 || res.Steps == 0 || len(res.Cuts) != 2 {
		t.Errorf("%+v", res)
	}
	for n, c := range res.Cuts {
		if c.StepMicros == 0 || c.WithoutSteps == 0 || c.Fibres != (n == 1) {
			t.Errorf("cut %d: %+v", n, c)
		}
	}
}

// Goal: a step that is under way when a span ends is waited for: the longest are those.
// Method: one that ends some time after the span.
func TestLongestStepIsWaitedFor(t *testing.T) {
	const stall = 30 * time.Millisecond
	x := &trainer{begun: time.Now()}
	x.step(0, "0")
	from := x.now()
	time.AfterFunc(stall, func() { x.step(0, "0") })
	if got, err := x.longest(t.Context(), from, from); err != nil || got < stall.Microseconds() {
		t.Errorf("%d us, %v, want %v and more", got, err, stall)
	}
	x.err = io.ErrUnexpectedEOF
	if _, err := x.longest(t.Context(), from, x.now()); err == nil {
		t.Error("a process that has ended is waited for")
	}
}
