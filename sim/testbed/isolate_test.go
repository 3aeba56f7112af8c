package testbed

import (
	"math"
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ringlight/planner/fabric"
)

// Goal: a link that carries frames of two jobs is counted as one, and only that.
// Method: frames by hand, of three jobs over three ports, one of nobody and one of no IP.
func TestTallyFindsSharedLinks(t *testing.T) {
	a, b := hostAddress(0), hostAddress(255)
	if a.String() != "10.0.0.1" || b.String() != "10.0.1.0" {
		t.Fatalf("%v, %v", a, b)
	}
	c := newTally(3, 2, map[netip.Addr]int{a: 0, b: 1})
	frame := func(from netip.Addr) []byte {
		out := make([]byte, 60)
		out[12] = 8
		copy(out[26:], from.AsSlice())
		return out
	}
	arp := frame(b)
	arp[13] = 6
	for port, frames := range [][][]byte{{frame(a), frame(b)}, {frame(a), frame(a), arp, frame(b)[:20], frame(hostAddress(7))}, {}} {
		for _, f := range frames {
			c.count(port, f)
		}
	}
	if used, shared, n, bytes := c.links(); used != 2 || shared != 1 || n != 4 || bytes != 4*46 {
		t.Errorf("%d links, %d shared, %d frames, %d bytes: want 2, 1, 4, 184", used, shared, n, bytes)
	}
}

// commands builds ocsctl.
func commands(t *testing.T) string {
	ocsctl := filepath.Join(t.TempDir(), "ocsctl")
	if out, err := exec.Command("go", "build", "-o", ocsctl, "ringlight/cmd/ocsctl").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return ocsctl
}

// Goal: jobs that the planner isolates share no link by the frames on each, over circuits
// and over fixed links, by the tables that operators are given.
// Method: three jobs of six GPUs on six leaves of four, real TCP between all pairs.
func TestIsolatedJobsShareNoLink(t *testing.T) {
	long(t)
	cfg := IsolateConfig{Config: bedOf(t, 4), Ocsctl: commands(t), Jobs: []int{6, 6, 8}, Routings: []string{RoutedAlone}, Mbit: 20, Bytes: 50_000, For: time.Second}
	for _, switches := range []int{4, 0} {
		core := fabric.DefaultLeafSpine()
		core.GPUsPerServer = 2
		core.LeafSpine = &fabric.LeafSpine{Leaves: 6, Spines: 4, GPUsPerLeaf: 4, Switches: switches, AnyToAny: switches > 0}
		if switches > 0 {
			core.Spines = 2
		}
		var err error
		if cfg.Fabric, err = fabric.New(fabric.Params{Name: "isolate", Core: core}); err != nil {
			t.Fatal(err)
		}
		out, err := Isolate(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out {
			if r.Jobs != len(cfg.Jobs) || r.Shared > 0 || r.Used == 0 || r.Frames == 0 || r.Mean() <= 0 {
				t.Errorf("%d switches: %+v", switches, r)
			}
		}
	}
}

// Goal: servers reach all others by the planner's tables, a collective's bytes are those that
// the search has for it, and a flip changes no route.
// Method: six servers of two interfaces, real TCP, two flips under datagrams.
func TestServersSendOnAndFlip(t *testing.T) {
	long(t)
	core := fabric.DefaultDirect()
	core.GPUsPerServer, core.Direct.Servers, core.Direct.Degree = 1, 6, 2
	cfg := DirectConfig{Config: bedOf(t, 4), Ocsctl: commands(t), Mbit: 20, Bytes: 20_000, For: time.Second, Flips: 2, Rate: 100}
	var err error
	if cfg.Fabric, err = fabric.New(fabric.Params{Name: "direct", Core: core}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Ask(0); err != nil {
		t.Fatal(err)
	}
	res, err := Direct(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(res.AllReduce.Tax-1) > 0.02 || math.Abs(res.AllToAll.Tax-res.Hops) > 0.05 || len(res.Flips) != cfg.Flips {
		t.Errorf("%+v", res)
	}
	for _, f := range res.Flips {
		if f.Routes || f.LightMicros <= 0 {
			t.Errorf("%+v", f)
		}
	}
}
