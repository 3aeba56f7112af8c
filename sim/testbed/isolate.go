package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ringlight/proto"
)

// Routings of jobs on leaves and spines.
const (
	RoutedAlone  = "tables" // as circuit tables has it
	RoutedSource = "source" // each port of a leaf its own uplink, whosever it is
	RoutedECMP   = "ecmp"   // by hash
)

// IsolateConfig is an experiment: jobs on leaves and spines send all at once ([VCLOS] 8).
type IsolateConfig struct {
	Config
	Ocsctl   string
	Jobs     []int         // GPUs of each
	Routings []string      // one after the other; of those behind the first, places of two: the planner's, and any
	Mbit     int           `flag:"mbit" usage:"Mb/s of every link"`
	Bytes    int64         // that each rank sends in a step
	For      time.Duration `flag:"for" usage:"TIME that jobs send under each routing" takes:"TIME"`
}

// IsolateResult is what one routing came to.
type IsolateResult struct {
	Routing string          `json:"routing"`
	Jobs    int             `json:"jobs"` // that the planner gave a place
	GPUs    int             `json:"gpus"`
	Mbit    map[int]float64 `json:"gpu_mbit"` // a second, that each GPU of a job sends, by the job's number
	Used    int             `json:"links_used"`
	Shared  int             `json:"links_shared"` // by two jobs and more
	Frames  uint64          `json:"frames"`
}

// Mean is over all jobs.
func (r *IsolateResult) Mean() (sum float64) {
	for _, x := range r.Mbit {
		sum += x / float64(len(r.Mbit))
	}
	return sum
}

// Isolate has the planner give jobs places on a core and measures them under each routing.
func Isolate(ctx context.Context, cfg IsolateConfig) (out []IsolateResult, err error) {
	if l := cfg.Fabric.Core.LeafSpine; l.FixedLinks() > 1 {
		return nil, errors.New("testbed: want one fixed link of a leaf to a spine")
	}
	b, err := Start(ctx, cfg.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := errors.Join(b.addressLeaves(), b.shape(cfg.Mbit)); err != nil {
		return nil, err
	}
	var list []string
	for i, gpus := range cfg.Jobs {
		list = append(list, fmt.Sprintf(`{"id":%d,"gpus_total":%d}`, i+1, gpus))
	}
	places, err := b.place(ctx, cfg.Ocsctl, list)
	if err != nil {
		return nil, err
	}
	for i, routing := range cfg.Routings {
		of := []map[int][]int{places}
		if i > 0 {
			of = append(of, b.scatter(places, cfg.Seed))
		}
		for _, places := range of {
			r, err := b.isolated(ctx, &cfg, routing, places)
			if err != nil {
				return out, fmt.Errorf("%s: %w", routing, err)
			}
			out = append(out, *r)
		}
	}
	return out, nil
}

// scatter gives jobs as many servers, any that are idle, as who shares links may.
func (b *Bed) scatter(places map[int][]int, seed uint64) map[int][]int {
	out, n := map[int][]int{}, b.fabric.Core.GPUsPerServer
	idle := rand.New(rand.NewPCG(seed, 0x5c)).Perm(b.fabric.Core.Servers())
	for _, id := range slices.Sorted(maps.Keys(places)) {
		for i := range places[id] {
			out[id] = append(out[id], idle[i/n]*n+i%n)
		}
		idle = idle[(len(places[id])+n-1)/n:]
	}
	return out
}

// isolated is one routing.
func (b *Bed) isolated(ctx context.Context, cfg *IsolateConfig, routing string, places map[int][]int) (r *IsolateResult, err error) {
	words, err := b.routing(ctx, cfg.Ocsctl, routing)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.unroute(words)) }()
	if err := b.tell(words); err != nil {
		return nil, err
	}
	t := newTally(len(b.optics.ports), len(cfg.Jobs)+1, map[netip.Addr]int{})
	meshes := map[int]*mesh{}
	r = &IsolateResult{Routing: routing, Jobs: len(places), Mbit: map[int]float64{}}
	for id, gpus := range places { // any order: each its own
		var ranks []rank
		for _, g := range gpus {
			t.of[hostAddress(g)] = id
			ranks = append(ranks, rank{b.NS(serverName(g / b.fabric.Core.GPUsPerServer)), []netip.Addr{hostAddress(g)}})
		}
		r.GPUs += len(gpus)
		if meshes[id], err = newMesh(ctx, ranks, func(int, int) int { return 0 }); err != nil {
			return nil, err
		}
		defer meshes[id].close()
	}
	b.relay.tally.Store(t)
	defer b.relay.tally.Store(nil)
	var mu sync.Mutex
	var all sync.WaitGroup
	for id, m := range meshes {
		all.Go(func() {
			mbit, wrong := pairwise(ctx, m, cfg)
			mu.Lock()
			defer mu.Unlock()
			r.Mbit[id], err = mbit, errors.Join(err, wrong)
		})
	}
	all.Wait()
	r.Used, r.Shared, r.Frames, _ = t.links()
	return r, err
}

// pairwise has a job exchange between all pairs, step by step, for a while: what each GPU
// sends, Mb/s.
func pairwise(ctx context.Context, m *mesh, cfg *IsolateConfig) (float64, error) {
	begun, sent, n := time.Now(), int64(0), len(m.out)
	for by := 1; time.Since(begun) < cfg.For; by = by%(n-1) + 1 {
		if err := errors.Join(ctx.Err(), m.exchange(cfg.Bytes, shifted(n, by))); err != nil {
			return 0, err
		}
		sent += cfg.Bytes
	}
	return float64(8*sent) / float64(time.Since(begun).Microseconds()), nil
}

// jumbo is what a packet may have. chosen: as RDMA networks have it, and few packets for
// those that pass a machine's user space.
const jumbo = 9000

// addressLeaves gives every GPU its address, a way out by its own cable, its leaf the way
// to it, and spines that have a fixed link to each leaf.
func (b *Bed) addressLeaves() error {
	c := b.fabric.Core
	for s := range c.Servers() {
		lines := []string{"route add default dev gpu0"}
		for g := range c.GPUsPerServer {
			lines = append(lines, fmt.Sprintf("addr add %v/32 dev gpu%d", hostAddress(s*c.GPUsPerServer+g), g),
				fmt.Sprintf("rule add from %v lookup %d", hostAddress(s*c.GPUsPerServer+g), 100+g), fmt.Sprintf("route add default dev gpu%d table %d", g, 100+g))
		}
		if err := ip(b.NS(serverName(s)), append(b.plain(serverName(s)), lines...)...); err != nil {
			return err
		}
		if err := within(b.NS(serverName(s)), func() error { return setting("ipv4/tcp_slow_start_after_idle", "0") }); err != nil {
			return err
		}
	}
	for l := range c.Leaves() {
		lines := b.plain(leafName(l))
		for g := range c.GPUsPerLeaf {
			lines = append(lines, fmt.Sprintf("route add %v/32 dev gpu%d", hostAddress(l*c.GPUsPerLeaf+g), g))
		}
		if err := ip(b.NS(leafName(l)), lines...); err != nil {
			return err
		}
	}
	for s := range c.Spines {
		at := fmt.Sprintf("spine%d", s)
		lines := b.plain(at)
		for n := range c.Leaves() * c.GPUsPerLeaf * min(1, c.FixedLinks()) {
			lines = append(lines, fmt.Sprintf("route add %v/32 dev port%d", hostAddress(n), n/c.GPUsPerLeaf))
		}
		if err := ip(b.NS(at), lines...); err != nil {
			return err
		}
	}
	return nil
}

// faces are the interfaces of a device of a core, cables to GPUs too.
func (b *Bed) faces(device string) (out []string) {
	c := b.fabric.Core
	for _, p := range b.optics.ports {
		if p.Device == device {
			out = append(out, p.Name)
		}
	}
	n := 0
	switch {
	case c.LeafSpine == nil:
	case strings.HasPrefix(device, "server"):
		n = c.GPUsPerServer
	case strings.HasPrefix(device, "leaf"):
		n = c.GPUsPerLeaf
	}
	return append(out, numbered("gpu", n)...)
}

// plain has all interfaces of a device take any packet: who is at the other end the light
// says, nobody asks.
func (b *Bed) plain(device string) []string {
	return each(b.faces(device), func(name string) string {
		return fmt.Sprintf("link set %s address %s arp off mtu %d", name, lane, jumbo)
	})
}

// shape gives all links the same rate, both ways.
func (b *Bed) shape(mbit int) error {
	for _, d := range b.made {
		lines := each(b.faces(d), func(name string) string {
			return fmt.Sprintf("qdisc add dev %s root tbf rate %dmbit burst 20k limit %d", name, mbit, 20*jumbo)
		})
		cmd := exec.Command("tc", "-n", b.NS(d), "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("testbed: tc: %w: %s", err, out)
		}
	}
	return nil
}

// errBusy is what passes: the planner is looking round, or does not show itself yet. All
// else is a refusal.
var errBusy = errors.New("busy, or not there")

// ocsctl runs the command of operators, and reads its answer.
func (b *Bed) ocsctl(ctx context.Context, command string, answer any, words ...string) error {
	out, err := exec.CommandContext(ctx, command, append(words, "-json", "-broker", b.Link().Broker)...).Output()
	if err != nil {
		var failed *exec.ExitError
		var said struct{ Error struct{ Code string } }
		if errors.As(err, &failed) && json.Unmarshal(out, &said) == nil && (said.Error.Code == proto.Busy.String() || said.Error.Code == "failed") {
			err = errBusy
		} else if failed != nil {
			out = append(out, failed.Stderr...)
		}
		return fmt.Errorf("testbed: ocsctl %s: %w: %s", strings.Join(words, " "), err, out)
	}
	return json.Unmarshal(out, answer)
}

// jobList is what circuit list says of jobs.
type jobList struct {
	Jobs []jobState
}

type jobState struct {
	Job   int
	State string
}

// apply has a list of jobs be wanted, and waits until each that runs has light.
func (b *Bed) apply(ctx context.Context, ocsctl string, jobs []string) (list jobList, err error) {
	file := filepath.Join(b.State, "jobs.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"jobs":[%s]}`, strings.Join(jobs, ",")), 0o600); err != nil {
		return list, err
	}
	var change json.RawMessage
	taken := func() bool {
		err = b.ocsctl(ctx, ocsctl, &change, "circuit", "apply", "-prune", file)
		return !errors.Is(err, errBusy)
	}
	if late := until(ctx, "a list of jobs taken", taken); late != nil || err != nil {
		return list, errors.Join(late, err)
	}
	rests := func() bool {
		err = b.ocsctl(ctx, ocsctl, &list, "circuit", "list")
		return err != nil && !errors.Is(err, errBusy) || err == nil && !slices.ContainsFunc(list.Jobs, func(j jobState) bool {
			return j.State == proto.JobPlacing.String() || j.State == proto.JobShort.String()
		})
	}
	return list, errors.Join(until(ctx, "light for all jobs", rests), err)
}

// place is which GPUs each job has that runs, in the order of its ranks.
func (b *Bed) place(ctx context.Context, ocsctl string, jobs []string) (map[int][]int, error) {
	list, err := b.apply(ctx, ocsctl, jobs)
	if err != nil {
		return nil, err
	}
	c, places := b.fabric.Core, map[int][]int{}
	for _, j := range list.Jobs {
		if j.State != proto.JobRealised.String() {
			continue
		}
		var one struct{ Seats [][3]int }
		if err := b.ocsctl(ctx, ocsctl, &one, "circuit", "show", fmt.Sprint(j.Job)); err != nil {
			return nil, err
		}
		for _, s := range one.Seats {
			for g := range s[2] {
				places[j.Job] = append(places[j.Job], (s[0]*c.LeafServers()+s[1])*c.GPUsPerServer+g)
			}
		}
	}
	return places, nil
}

// routing is what ip is told on each device.
func (b *Bed) routing(ctx context.Context, ocsctl, routing string) (map[string][]string, error) {
	words := map[string][]string{}
	if routing == RoutedAlone {
		var said struct{ Devices []struct{ At, Text string } }
		if err := b.ocsctl(ctx, ocsctl, &said, "circuit", "tables", "-o", "iproute2"); err != nil {
			return nil, err
		}
		for _, d := range said.Devices {
			words[d.At] = append(words[d.At], d.Text)
		}
		return words, nil
	}
	const own, behind = 500, 40_000 // tables, and the preference of what is behind the main table's
	l := b.fabric.Core.LeafSpine
	for leaf := range l.Leaves {
		at, ways := leafName(leaf), ""
		for g := range l.GPUsPerLeaf {
			ways += fmt.Sprintf(" nexthop dev up%d", g)
			words[at] = append(words[at], fmt.Sprintf("route replace default dev up%d table %d", g, own+g),
				fmt.Sprintf("rule add pref %d from %v lookup %d", behind, hostAddress(leaf*l.GPUsPerLeaf+g), own+g))
		}
		if routing == RoutedECMP {
			words[at] = []string{fmt.Sprintf("route replace default table %d%s", own, ways), fmt.Sprintf("rule add pref %d lookup %d", behind, own)}
		}
	}
	return words, nil
}

// tell has ip do what each device is told.
func (b *Bed) tell(words map[string][]string) error {
	for _, d := range slices.Sorted(maps.Keys(words)) {
		if err := ip(b.NS(d), words[d]...); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}
	return nil
}

// unroute takes the rules away that devices were told; tables without are nobody's.
func (b *Bed) unroute(words map[string][]string) error {
	gone := map[string][]string{}
	for d, lines := range words { // any order: each its own
		for line := range strings.SplitSeq(strings.Join(lines, "\n"), "\n") {
			if rule, ok := strings.CutPrefix(line, "rule add"); ok {
				gone[d] = append(gone[d], "rule del"+rule)
			}
		}
	}
	return b.tell(gone)
}
