package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/planner/hostlist"
	"ringlight/proto"
)

// Topology is what a scheduler places jobs by: every ring and every node as they
// stand, whosever they are.
type Topology struct {
	Fabric      string       `json:"fabric"`
	GPUsPerNode int          `json:"gpus_per_node"`
	TP          int          `json:"tp"` // GPUs of a ring that nobody asked for
	Rings       []FabricRing `json:"rings"`
	Nodes       []FabricNode `json:"nodes"` // in HBD order
	// Servers of a core, leaf by leaf; tor is the leaf.
	Servers []FabricNode `json:"servers,omitempty"`
}

// FabricRing is a ring as it stands.
type FabricRing struct {
	Ring       proto.RingID     `json:"ring"`
	Job        string           `json:"job,omitempty"`   // that has it; absent: unassigned
	Owner      string           `json:"owner,omitempty"` // of the job
	State      string           `json:"state"`
	Generation proto.Generation `json:"generation"`
	TP         int              `json:"tp"`    // GPUs that it is to have
	GPUs       int              `json:"gpus"`  // of nodes that carry it now
	Nodes      []string         `json:"nodes"` // left to right
}

// Standing is whether a node may carry a ring.
type Standing string

const (
	Well    Standing = "well"
	Silent  Standing = "silent"  // it cannot be told anything now; light that it has, it keeps
	Lost    Standing = "lost"    // its light or its host is out
	Drained Standing = "drained" // an operator keeps it out
)

func standing(s proto.NodeStatus, lost bool) Standing {
	switch {
	case s.Usable:
		return Well
	case s.Drain != nil || s.Mode == proto.ModeDrained:
		return Drained
	case lost:
		return Lost
	}
	return Silent
}

// FabricNode is a node as it stands.
type FabricNode struct {
	Host     string       `json:"host"`
	Node     proto.NodeID `json:"node"`
	Ring     proto.RingID `json:"ring,omitempty"`     // absent: in none
	Position *int         `json:"position,omitempty"` // in the ring's nodes
	ToR      *int         `json:"tor,omitempty"`      // the switch above it, where the fabric says
	State    Standing     `json:"state"`
	Cause    string       `json:"cause,omitempty"` // why it is not well
}

// Topology is how the fabric stands.
func (t *Table) Topology() *Topology {
	f := t.fab()
	out := &Topology{Fabric: f.Name, GPUsPerNode: f.GPUsPerNode, TP: f.TP, Rings: []FabricRing{}, Nodes: make([]FabricNode, 0, f.Nodes)}
	for id := range proto.NodeID(f.Nodes) {
		s, lost := t.rings.Node(id)
		n := FabricNode{Host: t.name(id), Node: id, Ring: s.Ring, State: standing(s, lost)}
		if n.State != Well {
			n.Cause = s.Reason
		}
		if f.KnowsToRs() {
			n.ToR = new(f.ToR(id))
		}
		out.Nodes = append(out.Nodes, n)
	}
	for _, id := range t.rings.All() {
		l, _ := t.rings.Lent(id)
		r := FabricRing{Ring: id, Job: l.Owner, State: l.State.String(), Generation: l.Generation, TP: l.Size * f.GPUsPerNode, GPUs: int(l.GPUs), Nodes: []string{}}
		if x := t.jobs[l.Owner]; x != nil {
			r.Owner = x.wish.Owner
		}
		for at, n := range l.Nodes {
			r.Nodes = append(r.Nodes, t.name(n))
			out.Nodes[n].Position = &at
		}
		out.Rings = append(out.Rings, r)
	}
	for s := 0; t.core != nil && s < f.Core.Servers(); s++ {
		n := FabricNode{Host: f.ServerName(s), Node: proto.NodeID(s), State: Well}
		if why, is := t.core.Out(s); is {
			n.State, n.Cause = Drained, why
		}
		if k := f.Core.LeafServers(); k > 0 {
			n.ToR = new(s / k)
		}
		out.Servers = append(out.Servers, n)
	}
	return out
}

// TopologyFormats are the forms that a topology is written in.
var TopologyFormats = []string{"json", "labels", "slurm-tree", "slurm-block", "slurm-ring", "slurm-tree.yaml", "slurm-block.yaml", "slurm-ring.yaml"}

// maxSlurmRing is the most nodes that Slurm takes in a ring (topology.conf(5) of 26.05).
const maxSlurmRing = 16

// Text writes a topology in one of the forms.
func (t *Topology) Text(format string) (text []byte, kind string, err error) {
	switch {
	case !slices.Contains(TopologyFormats, format):
		return nil, "", proto.Wrong("format", strings.Join(TopologyFormats, ", "), "%.40q", format)
	case format == "json":
		text, err = json.Marshal(t)
		return text, "application/json", err
	case format == "labels":
		text, err = json.Marshal(t.Labels(LabelDomain))
		return text, "application/json", err
	}
	shape, yaml := strings.CutSuffix(strings.TrimPrefix(format, "slurm-"), ".yaml")
	rows, err := t.slurm(shape)
	if err != nil {
		return nil, "", err
	}
	if yaml {
		return t.yaml(shape, rows), "application/yaml", nil
	}
	return t.conf(shape, rows), "text/plain; charset=utf-8", nil
}

// LabelDomain is what the keys of labels begin with where nobody names another, and
// acceleratorDomain the key by which topograph knows nodes that share an interconnect
// (NVIDIA topograph 1.0, "Node labels and annotations").
const (
	LabelDomain       = "ringlight.dev"
	acceleratorDomain = "accelerator.topograph.run/domain"
)

// LabelKeys are the labels of nodes that Labels may give: of no others is it the owner.
func LabelKeys(domain string) []string {
	keys := []string{acceleratorDomain}
	for _, name := range [...]string{"state", "ring", "position", "tor"} {
		keys = append(keys, domain+"/"+name)
	}
	return keys
}

// Labels are those of each host, for schedulers that place by them.
func (t *Topology) Labels(domain string) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, n := range t.Nodes {
		l := map[string]string{domain + "/state": string(n.State)}
		if n.Position != nil {
			ring := strconv.FormatUint(uint64(n.Ring), 10)
			l[domain+"/ring"], l[domain+"/position"], l[acceleratorDomain] = ring, strconv.Itoa(*n.Position), "ring-"+ring
		}
		if n.ToR != nil {
			l[domain+"/tor"] = strconv.Itoa(*n.ToR)
		}
		out[n.Host] = l
	}
	return out
}

// row is a group of nodes, or of rows by name, as Slurm is told of it.
type row struct {
	name  string
	nodes []string
	rows  []string
}

// list is what is in a row, as Slurm writes it.
func (r *row) list() string { return hostlist.Print(append(r.nodes, r.rows...)) }

// slurm gives the rings of the fabric's size as a shape takes them: the members
// that carry one, and nodes in none with the nearest, where they can step in, unless
// they are out: Slurm places on nodes that follow one another in its ring. A tree
// has them on leaves of their own: tried with Slurm 22.05, a job of so many rings
// gets rings then, and one of a node more the node beside. On the ring's own leaf,
// what is left of two rings would be given to one job.
func (t *Topology) slurm(shape string) (rows []row, err error) {
	if len(t.Nodes) == 0 {
		return t.leaves(shape)
	}
	at := map[string]int{} // of the nodes
	for i, n := range t.Nodes {
		if n.Host == strconv.Itoa(int(n.Node)) || strings.Contains(n.Host, "/") {
			return nil, &proto.Error{Code: proto.Conflict, Field: "node_names", Limit: "a host name for every node, for Slurm", Reason: fmt.Sprintf("node %d is called %q", n.Node, n.Host)}
		}
		at[n.Host] = i
	}
	var rings []FabricRing
	of := slices.Repeat([]int{-1}, len(t.Nodes)) // by node: which of them, -1: none
	for _, r := range t.Rings {
		nodes := slices.DeleteFunc(slices.Clone(r.Nodes), func(h string) bool { s := t.Nodes[at[h]].State; return s == Lost || s == Drained })
		if r.TP != t.TP || len(nodes) == 0 || shape == "block" && len(nodes) < t.TP/t.GPUsPerNode { // Slurm refuses a block below the base size
			continue
		}
		for _, h := range nodes {
			of[at[h]] = len(rings)
		}
		r.Nodes = nodes
		rings = append(rings, r)
	}
	near := nearest(of)
	var beside []row
	for i, r := range rings {
		var free, all []string
		for k, n := range t.Nodes {
			if near[k] != i {
				continue
			}
			if n.State != Lost && n.State != Drained { // a gap that light has closed, Slurm closes too
				all = append(all, n.Host)
			}
			if of[k] < 0 {
				free = append(free, n.Host)
			}
		}
		number := strconv.Itoa(int(r.Ring))
		switch {
		case shape == "ring" && len(all) > maxSlurmRing:
			return nil, &proto.Error{Code: proto.Conflict, Field: "format", Limit: fmt.Sprintf("slurm-ring: %d nodes of a ring", maxSlurmRing), Reason: fmt.Sprintf("ring %d has %d with those beside it: slurm-block takes it", r.Ring, len(all))}
		case shape != "tree":
			rows = append(rows, row{name: "ring" + number, nodes: all})
			continue
		}
		rows = append(rows, row{name: "ring" + number, nodes: r.Nodes})
		if free != nil {
			beside = append(beside, row{name: "free" + number, nodes: free})
		}
	}
	if shape == "tree" {
		rows = append(rows, beside...)
		root := row{name: "fabric"}
		for _, r := range rows {
			root.rows = append(root.rows, r.name)
		}
		if rows == nil {
			for _, n := range t.Nodes {
				root.nodes = append(root.nodes, n.Host)
			}
		}
		rows = append(rows, root)
	}
	return rows, nil
}

// leaves are a core's as a tree of Slurm's.
func (t *Topology) leaves(shape string) (rows []row, err error) {
	if shape != "tree" {
		return nil, &proto.Error{Code: proto.Conflict, Field: "format", Limit: "slurm-tree, of a core", Reason: "slurm-" + shape + " is of rings"}
	}
	root := row{name: "fabric"}
	for _, s := range t.Servers {
		if s.ToR == nil {
			root.nodes = append(root.nodes, s.Host)
			continue
		}
		if *s.ToR == len(rows) {
			rows = append(rows, row{name: fmt.Sprintf("leaf%d", len(rows))})
			root.rows = append(root.rows, rows[*s.ToR].name)
		}
		rows[*s.ToR].nodes = append(rows[*s.ToR].nodes, s.Host)
	}
	return append(rows, root), nil
}

// nearest gives each node in no ring (-1) the ring of the nearest that is in one,
// the left one of two.
func nearest(of []int) []int {
	out, far := slices.Clone(of), make([]int, len(of))
	last := -1
	for i := range of {
		if of[i] >= 0 {
			last = i
		} else if far[i] = len(of); last >= 0 {
			out[i], far[i] = of[last], i-last
		}
	}
	last = -1
	for i := len(of) - 1; i >= 0; i-- {
		if of[i] >= 0 {
			last = i
		} else if last >= 0 && last-i < far[i] {
			out[i] = of[last]
		}
	}
	return out
}

// conf is topology.conf.
func (t *Topology) conf(shape string, rows []row) []byte {
	var b strings.Builder
	key := map[string]string{"tree": "SwitchName", "block": "BlockName", "ring": "RingName"}[shape]
	for _, r := range rows {
		kind := "Nodes"
		if r.rows != nil {
			kind = "Switches"
		}
		fmt.Fprintf(&b, "%s=%s %s=%s\n", key, r.name, kind, r.list())
	}
	if shape == "block" {
		fmt.Fprintf(&b, "BlockSizes=%d\n", t.TP/t.GPUsPerNode)
	}
	return []byte(b.String())
}

// yaml is topology.yaml.
func (t *Topology) yaml(shape string, rows []row) []byte {
	var b strings.Builder
	list, item := shape+"s", shape
	if shape == "tree" {
		list, item = "switches", "switch"
	}
	fmt.Fprintf(&b, "---\n- topology: ringlight\n  cluster_default: true\n  %s:\n", shape)
	if shape == "block" {
		fmt.Fprintf(&b, "    block_sizes:\n      - %d\n", t.TP/t.GPUsPerNode)
	}
	fmt.Fprintf(&b, "    %s:\n", list)
	for _, r := range rows {
		kind := "nodes"
		if r.rows != nil {
			kind = "children"
		}
		fmt.Fprintf(&b, "      - %s: %s\n        %s: %s\n", item, r.name, kind, r.list())
	}
	return []byte(b.String())
}
