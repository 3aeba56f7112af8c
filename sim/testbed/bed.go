package testbed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/fleet"
	"ringlight/sim/live"
)

// Config says what stands on a testbed.
type Config struct {
	Fabric  *fabric.Fabric
	Modules int    // of a bundle
	Seed    uint64 `flag:"seed" usage:"seed of optics and mirrors"`
	Listen  string // of the broker
	HTTP    string // where the live view is served; "": nowhere
	Log     *slog.Logger
	Observe func(*planner.Planner) // after each of the planner's steps
	Used    func(Used)             // what it took, as it ends; nil: nobody asks
}

// Bed is a testbed that runs.
type Bed struct {
	*live.Central
	Cluster *live.Cluster
	Swept   int // namespaces of others that were gone

	fabric *fabric.Fabric
	begun  time.Time
	told   func(Used)
	owner  owner
	optics *optics
	relay  *relay
	made   []string        // devices that have a namespace
	router *routers        // of pods; nil: none route
	ctx    context.Context // of agents that are started anew
	stop   context.CancelFunc
}

// Start makes namespaces and interfaces, dark, and then light. Close takes all away
// again, also of one that did not start.
func Start(ctx context.Context, cfg Config) (*Bed, error) {
	if err := Lacks(); err != nil {
		return nil, err
	}
	b := &Bed{fabric: cfg.Fabric, begun: time.Now(), told: cfg.Used}
	var err error
	if b.optics, err = opticsOf(cfg.Fabric); err != nil {
		return nil, err
	}
	if b.Swept, err = sweep(); err != nil {
		return nil, err
	}
	b.owner, _ = ownerOf(os.Getpid())
	precede()
	b.ctx, b.stop = context.WithCancel(ctx)
	err = b.lay()
	if err == nil {
		err = b.light(b.ctx, cfg)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// devices are all of a fabric, with the ports of each at which light ends.
func devices(f *fabric.Fabric, o *optics) (names []string, ports map[string][]int) {
	ports = map[string][]int{}
	for i, p := range o.ports {
		ports[p.Device] = append(ports[p.Device], i)
	}
	switch c := f.Core; {
	case c != nil && c.LeafSpine != nil:
		for s := range c.Servers() {
			ports[serverName(s)] = nil
		}
	case c != nil:
		for l := range c.Leaves() {
			ports[leafName(l)] = nil
		}
	}
	return slices.Sorted(maps.Keys(ports)), ports
}

// lay makes a namespace for every device, its interfaces in it, and the cables between
// leaves and spines of a pod, which are no light.
func (b *Bed) lay() error {
	names, ports := devices(b.fabric, b.optics)
	b.made = names
	if err := ip("", each(names, func(d string) string { return "netns add " + b.NS(d) })...); err != nil {
		return err
	}
	b.relay = newRelay(len(b.optics.ports)) // which closes what was opened, whatever comes
	for _, d := range names {
		err := within(b.NS(d), func() error {
			for _, i := range ports[d] {
				var err error
				p := &b.relay.ports[i]
				if p.file, err = tap(b.optics.ports[i].Name); err != nil {
					return err
				}
				if p.control, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
					return err
				}
			}
			return forwarding()
		})
		if err != nil {
			return err
		}
	}
	b.relay.start()
	for i, to := range b.optics.fixed {
		b.relay.changed(i, to)
	}
	if err := b.cables(); err != nil {
		return err
	}
	for _, d := range names {
		if err := ip(b.NS(d), "link set group default up"); err != nil { // all there are
			return err
		}
	}
	return nil
}

// forwarding has the namespace of this thread send on anything from anywhere, and where it
// has two ways each flow by its ports too.
func forwarding() error {
	var errs []error
	for key, value := range map[string]string{"ipv4/ip_forward": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0", "ipv4/conf/all/accept_local": "1",
		"ipv4/conf/all/send_redirects": "0", "ipv4/fib_multipath_hash_policy": "1", "ipv6/conf/all/forwarding": "1"} { // any order: each its own
		errs = append(errs, setting(key, value))
	}
	return errors.Join(errs...)
}

// cables joins leaves and spines of each pod, or leaves and their servers.
func (b *Bed) cables() error {
	c := b.fabric.Core
	if c == nil || c.Direct != nil {
		return nil
	}
	var lines []string
	if l := c.LeafSpine; l != nil {
		for n := range l.Leaves * l.GPUsPerLeaf {
			lines = append(lines, fmt.Sprintf("link add gpu%d netns %s type veth peer name gpu%d netns %s",
				n%l.GPUsPerLeaf, b.NS(leafName(n/l.GPUsPerLeaf)), n%c.GPUsPerServer, b.NS(serverName(n/c.GPUsPerServer))))
		}
		return ip("", lines...)
	}
	for l := range c.Leaves() {
		for h := range c.SpinesPerPod {
			for t := range c.LeafLinks {
				lines = append(lines, fmt.Sprintf("link add up%d netns %s type veth peer name down%d netns %s",
					h*c.LeafLinks+t, b.NS(leafName(l)), l%c.LeavesPerPod*c.LeafLinks+t, b.NS(spineName(l/c.LeavesPerPod, h))))
			}
		}
	}
	return ip("", lines...)
}

// light starts broker, planner and agents.
func (b *Bed) light(ctx context.Context, cfg Config) error {
	observe := cfg.Observe
	if observe == nil {
		observe = func(*planner.Planner) {}
	}
	var err error
	if b.Central, err = live.StartCentral(ctx, cfg.Fabric, cfg.Listen, cfg.HTTP, cfg.Log, observe); err != nil {
		return err
	}
	l := lookout{optics: b.optics, now: make([]int, len(b.optics.ports)), restless: map[sim.BoardID]time.Duration{}, changed: b.relay.changed}
	for i := range l.now {
		l.now[i] = nowhere
	}
	b.Cluster, err = live.StartCluster(ctx, live.ClusterConfig{Fabric: cfg.Fabric, Modules: cfg.Modules, Seed: cfg.Seed, Health: time.Second,
		Broker: b.Link(), State: b.State, Log: cfg.Log, Watch: l.look})
	return err
}

// Close ends agents, planner and broker, and takes namespaces and interfaces away.
func (b *Bed) Close() error {
	if b.told != nil {
		b.told(b.used())
	}
	b.stop()
	var errs []error
	if b.Cluster != nil {
		errs = append(errs, b.Cluster.Wait())
	}
	if b.Central != nil {
		b.Central.Close()
	}
	if b.relay != nil {
		b.relay.stop()
	}
	errs = append(errs, each(b.made, func(d string) error { return remove(b.NS(d)) })...)
	if b.router != nil {
		errs = append(errs, b.router.leave())
	}
	return errors.Join(errs...)
}

// NS is the namespace of a device.
func (b *Bed) NS(device string) string { return b.owner.name(device) }

// Devices are those that have a namespace.
func (b *Bed) Devices() []string { return b.made }

// power takes a node's power away, its agent's first, or gives it back to both.
func (b *Bed) power(node int, on bool) error {
	if !on {
		b.Cluster.Cut(proto.NodeID(node))
		return nil
	}
	b.Cluster.Supply(node, true)
	return b.Cluster.Revive(b.ctx, proto.NodeID(node))
}

// fibres cuts all of a node, or mends them; its agent is started anew then, which would
// try its optics later and later.
func (b *Bed) fibres(node int, whole bool) error {
	id := proto.NodeID(node)
	err := b.Cluster.Do(id, func(w *sim.World, _ sim.BoardID) (err error) {
		for _, x := range b.fabric.AllFibres() {
			switch at := fleet.SimPort(x.A); {
			case x.A.Node != id && x.B.Node != id:
			case whole:
				err = errors.Join(err, w.Mend(at, sim.Both))
			default:
				err = errors.Join(err, w.Cut(at, sim.Both))
			}
		}
		return err
	})
	if err != nil || !whole {
		return err
	}
	b.Cluster.Kill(id)
	return b.Cluster.Revive(b.ctx, id)
}
