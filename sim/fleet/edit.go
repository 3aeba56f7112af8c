package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// An edit of the fabric is written as what differs, words with an = between key
// and value, and as what an operator allows.
//
//	nodes=N k=K tp=GPUS spares=N sizes=GPUSxRINGS,.. moves=none|few|any
//	hold_off_us=N    wiring is the default one, as far as the boards' bundles go
//	pods=N spines=N spine_ports=N leaves=N servers=N   of the core, by its kind
//	recable=N        the fibre from N two hops to the right goes over bundle 2
//	end=RING,..  drain  move

// change is an edit as somebody has written it.
type change struct {
	params  map[string]int
	sizes   []fabric.RingSize
	moves   fabric.Moves
	recable []proto.NodeID
	ends    []proto.RingID
	drain   bool
	move    bool
}

var changeKeys = []string{"nodes", "k", "tp", "spares", "hold_off_us", "pods", "spines", "spine_ports", "leaves", "servers"}

func parseChange(text string) (c change, err error) {
	c.params = map[string]int{}
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case slices.Contains(changeKeys, key):
			c.params[key], err = number(value, fabric.MaxNodes)
		case word == "drain":
			c.drain = true
		case word == "move":
			c.move = true
		case key == "moves":
			c.moves = fabric.Moves(value)
		case key == "sizes":
			c.sizes = []fabric.RingSize{}
			for part := range strings.SplitSeq(value, ",") {
				var s fabric.RingSize
				if _, wrong := fmt.Sscanf(part, "%dx%d", &s.TP, &s.Rings); wrong != nil && value != "none" {
					err = errors.Join(err, fmt.Errorf("size %q: want GPUSxRINGS", part))
				} else if wrong == nil {
					c.sizes = append(c.sizes, s)
				}
			}
		case key == "recable", key == "end":
			for part := range strings.SplitSeq(value, ",") {
				n, wrong := strconv.ParseUint(part, 10, 31)
				err = errors.Join(err, wrong)
				if key == "end" {
					c.ends = append(c.ends, proto.RingID(n))
				} else {
					c.recable = append(c.recable, proto.NodeID(n))
				}
			}
		default:
			err = fmt.Errorf("%q: want nodes, k, tp, spares, hold_off_us, pods, spines, spine_ports, leaves, servers, sizes, moves, recable, end, drain or move", word)
		}
		if err != nil {
			return c, fmt.Errorf("edit %q: %w", word, err)
		}
	}
	return c, nil
}

// of is the description that an edit of another one comes to.
func (c *change) of(f *fabric.Fabric) (*fabric.Fabric, error) {
	p := fabric.Params{Name: f.Name, Nodes: f.Nodes, GPUsPerNode: f.GPUsPerNode, K: f.K, Spans: f.Spans, TP: f.TP, RingSizes: f.RingSizes, Spares: f.Spares,
		Topology: f.Topology, SpareLayout: f.SpareLayout, Moves: f.Moves, MovePriceMS: f.MovePriceMS, Core: f.Core}
	hold := f.HoldOffUS
	if f.Core != nil {
		p.Core = c.core(f.Core)
	}
	set(c.params, map[string]*int{"nodes": &p.Nodes, "k": &p.K, "tp": &p.TP, "spares": &p.Spares, "hold_off_us": &hold})
	if c.sizes != nil {
		p.RingSizes = c.sizes
	}
	if c.moves != "" {
		p.Moves = c.moves
	}
	to, err := fabric.New(p)
	if err != nil {
		return nil, err
	}
	to.Bundles, to.HoldOffUS = f.Bundles, hold
	if len(c.recable) > 0 {
		to.Fibres = slices.Clone(to.AllFibres())
	}
	for _, n := range c.recable {
		i := slices.IndexFunc(to.Fibres, func(x fabric.Fibre) bool { return x.A.Node == n && x.B.Node == n+2 })
		if i < 0 || f.Bundles < 3 || to.K != 2 {
			return nil, fmt.Errorf("recable=%d: want K 2, a third bundle and a node two hops away", n)
		}
		x := &to.Fibres[i]
		x.A.Bundle, x.A.Path, x.B.Bundle, x.B.Path = 2, proto.External2, 2, proto.External1
	}
	return fabric.Parse(to.Encode())
}

// set gives fields the numbers of their keys.
func set(params map[string]int, to map[string]*int) {
	for key, n := range params { // any order: each is its own field
		if at := to[key]; at != nil {
			*at = n
		}
	}
}

// core is what an edit of one comes to; fibres hang where they did.
func (c *change) core(k *fabric.Core) *fabric.Core {
	to, rows := *k, k.Rows()
	switch {
	case k.LeafSpine != nil:
		l := *k.LeafSpine
		to.LeafSpine, l.FirstSpinePort, l.PortsPerSpine = &l, rows["spine_port"], rows["ports_per_spine"]
		set(c.params, map[string]*int{"leaves": &l.Leaves, "spines": &l.Spines})
	case k.Direct != nil:
		d := *k.Direct
		to.Direct, d.SecondPort = &d, rows["second_port"]
		set(c.params, map[string]*int{"servers": &d.Servers})
	default:
		set(c.params, map[string]*int{"pods": &to.Pods, "spines": &to.SpinesPerPod, "spine_ports": &to.SpinePorts})
	}
	return &to
}

// lay puts what an edit counts on into the world, as a person does before: boards
// of new nodes, which start, and fibres, where no ring has one in their place.
func (in *injector) lay(to *fabric.Fabric) error {
	r := in.Run
	for n := len(r.nodes); n < to.Nodes; n++ {
		if err := r.grow(n); err != nil {
			return err
		}
	}
	if r.mirrors != nil && to.Core != nil {
		if err := r.audit.circuits.lay(to.Core); err != nil {
			return err
		}
	}
	for _, x := range to.NewFibres(r.cfg.Fabric) {
		if !in.inUse(x.A) && !in.inUse(x.B) { // else when the edit is made
			if err := r.plug(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// inUse: a port's fibre may be one of a ring's.
func (in *injector) inUse(at fabric.Port) bool {
	far, _, used := in.cfg.Fabric.At(at)
	return used && slices.ContainsFunc([]proto.NodeID{at.Node, far.Node}, func(id proto.NodeID) bool {
		st := in.nodes[id]
		return st.host != nil && len(in.audit.reportOf(st).Rings) > 0
	})
}

// plug lays a fibre, or what a planted defect makes of it, in place of whatever is
// in its ports.
func (r *Run) plug(x fabric.Fibre) error {
	loss := fibreLoss
	if m := r.cfg.mutant; m != nil && m.lay != nil {
		x, loss = m.lay(x)
	}
	r.world.Unplug(SimPort(x.A))
	r.world.Unplug(SimPort(x.B))
	return r.world.Connect(SimPort(x.A), SimPort(x.B), simFibre(x, loss))
}

// grow adds a board without power for a new node, and its place everywhere.
func (r *Run) grow(n int) error {
	if len(r.switches) > 0 {
		return errors.New("fleet: nodes are not added beside circuit switches")
	}
	id, calibrations, err := r.cfg.Optics.add(r.world, r.board, n, r.cfg.Modules, r.cfg.Seed)
	if err != nil {
		return err
	}
	st := r.addNode(proto.NodeID(id), calibrations)
	r.nodes = r.stations
	r.net.nodes++
	r.queue.Grow()
	r.net.join(&st.client)
	r.audit.stamp = append(r.audit.stamp, make([]uint32, r.cfg.Fabric.GPUsPerNode)...)
	r.measure.wasted = append(r.measure.wasted, 0)
	r.inject.powerOn(st, bootTime)
	return nil
}

// lay adds boards with power for new switches, and light on new ports.
func (c *circuits) lay(core *fabric.Core) error {
	r := c.r
	var dead func(s, port int) bool
	if m := r.cfg.mutant; m != nil {
		dead = m.dead
	}
	was := len(r.switches)
	if err := r.mirrors.lay(r.world, core, r.cfg.Seed, dead); err != nil {
		return err
	}
	for s := was; s < core.Switches(); s++ {
		st := r.add(proto.FirstSwitch + proto.NodeID(s))
		st.boot = 1
		r.switches, r.nodes = r.stations[len(r.nodes):], r.stations[:len(r.nodes)]
		r.queue.Grow()
		r.net.join(&st.client)
		c.grow()
		if err := st.start(); err != nil {
			return err
		}
	}
	return nil
}

// edited is told that the planner plans for another description from now on.
// Fibres that are no more in it are pulled, and those laid that could not be before.
func (r *Run) edited(to *fabric.Fabric) error {
	was := r.cfg.Fabric
	r.cfg.Fabric, r.reach = to, max(r.reach, to.K)
	for _, x := range was.NewFibres(to) {
		if far, laid := r.world.Far(SimPort(x.A)); laid && far == SimPort(x.B) {
			r.world.Unplug(far)
		}
	}
	for _, x := range to.NewFibres(was) {
		if _, laid := r.world.Far(SimPort(x.A)); !laid {
			if err := r.plug(x); err != nil {
				return err
			}
		}
	}
	r.measure.replan()
	if r.audit.circuits != nil {
		r.audit.circuits.core = to.Core
	}
	r.tracer.text("fabric " + strings.Join(was.Changes(to), "; "))
	return nil
}

// widest is how many nodes the fabric has at most.
func widest(cfg *Config) (nodes int, err error) {
	nodes = cfg.Fabric.Nodes
	for i := range cfg.Faults {
		if f := &cfg.Faults[i]; f.Verb == FabricEdit {
			c, err := parseChange(f.Edit)
			if err != nil {
				return 0, err
			}
			nodes = max(nodes, c.params["nodes"])
		}
	}
	return nodes, nil
}

func (r *Run) addNode(id proto.NodeID, calibrations []*ocs.Calibration) *station {
	st := r.add(id)
	st.dark, st.calibrations = true, calibrations
	st.clock.drift = int64(r.drifts.below(2*maxDrift+1)) - maxDrift
	return st
}

// planned are the devices that the planner plans for: after an edit there may be
// others.
func (r *Run) planned() []*station {
	if len(r.switches) > 0 {
		return r.stations
	}
	return r.nodes[:r.cfg.Fabric.Nodes]
}

// join adds a device's client.
func (n *network) join(c *client) {
	n.devices, n.desired, n.presence, n.reported = append(n.devices, c), append(n.desired, retained{}), append(n.presence, retained{}), append(n.reported, retained{})
}
