package fabric

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/proto"
)

// Topology says whether the last node is a neighbour of the first.
type Topology string

const (
	Line Topology = "line"
	Ring Topology = "ring"
)

// SpareLayout says where the nodes go that are kept free.
type SpareLayout string

const (
	Beside SpareLayout = "beside" // spread, so that each ring reaches one
	AtEnd  SpareLayout = "end"    // behind the last ring
)

// Policy says what a side does when its light is lost.
type Policy string

const (
	Bypass Policy = "bypass" // act at once; also when absent
	Hold   Policy = "hold"   // report, act only when told
)

// OnLoss says what becomes of a ring that lost a node for which there is no
// spare.
type OnLoss string

const (
	Keep     OnLoss = "keep"     // it stays closed with fewer GPUs; also when absent
	Dissolve OnLoss = "dissolve" // its nodes become spares
)

// Moves says how many whole rings may be moved so that one more can be whole.
// Each is a job that starts again elsewhere.
type Moves string

const (
	MoveFew  Moves = "few"  // at most 8 at once, 64 as outages teach, more when that is worth their price; also when absent
	MoveNone Moves = "none" // a ring that is whole and runs is left as it is
	MoveAny  Moves = "any"  // as many as it takes: fewest healthy GPUs idle
)

// DefaultMovePriceMS holds where a fabric does not say. chosen: a job goes on
// from its last step with a node exchanged in about that time; then waste and
// moves come to the same within a factor of two, whatever the faults.
const DefaultMovePriceMS = 5000

// Port is one external path of one bundle of one node. As text it is
// "node/bundle/path".
type Port struct {
	Node   proto.NodeID
	Bundle proto.BundleID
	Path   proto.Path // External1 or External2
}

func (p Port) String() string {
	return fmt.Sprintf("%d/%d/%s", p.Node, p.Bundle, p.Path)
}

// MarshalText writes "node/bundle/path".
func (p Port) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads "node/bundle/path".
func (p *Port) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "/")
	if len(parts) != 3 {
		return fmt.Errorf("port %q: want node/bundle/path", text)
	}
	n, err := strconv.ParseUint(parts[0], 10, 32)
	if err != nil {
		return fmt.Errorf("port %q: node: want an integer from 0", text)
	}
	b, err := strconv.ParseUint(parts[1], 10, 8)
	if err != nil {
		return fmt.Errorf("port %q: bundle: want an integer from 0 to 255", text)
	}
	path, err := proto.ParsePath(parts[2])
	if err != nil {
		return fmt.Errorf("port %q: %w", text, err)
	}
	if !path.External() {
		return fmt.Errorf("port %q: a fibre hangs on external1 or external2", text)
	}
	*p = Port{Node: proto.NodeID(n), Bundle: proto.BundleID(b), Path: path}
	return nil
}

// Fibre joins two ports. A crossed one joins upper half to upper half.
type Fibre struct {
	A       Port   `json:"a"`
	B       Port   `json:"b"`
	Crossed bool   `json:"crossed,omitempty"`
	ID      string `json:"id,omitempty"` // the label on it, for people
}

func (x Fibre) String() string {
	s := x.A.String() + " - " + x.B.String()
	if x.ID != "" {
		s = x.ID + " (" + s + ")"
	}
	return s
}

// RingSize is a number of rings of one size.
type RingSize struct {
	TP    int `json:"tp"`    // GPUs of such a ring
	Rings int `json:"rings"` // so many are wanted
}

// Fabric is the whole description. Nodes are numbered in HBD order from 0.
type Fabric struct {
	Name        string      `json:"name"`
	Nodes       int         `json:"nodes" flag:"nodes" usage:"nodes, in HBD order"`
	GPUsPerNode int         `json:"gpus_per_node" flag:"gpus" usage:"GPUs of a node"`
	Bundles     int         `json:"bundles"` // per node
	K           int         `json:"k" flag:"k" usage:"hops that a fibre may span"`
	Spans       Spans       `json:"spans,omitempty" flag:"spans" usage:"hops that fibres span, as 1,2,4, whose last is then -k; none: each from 1 to -k"`
	Topology    Topology    `json:"topology"`
	TP          int         `json:"tp" flag:"tp" usage:"GPUs of a ring"`
	RingSizes   []RingSize  `json:"ring_sizes,omitempty"` // of rings that are not of TP
	Spares      int         `json:"spares" flag:"spares" usage:"nodes kept free, spread beside the rings"`
	SpareLayout SpareLayout `json:"spare_layout"`

	// Which nodes share a switch of the data centre network, as [IHBD] Alg. 3
	// deploys them: node i of the HBD order is under ToR i modulo their number,
	// and NodesPerDomain nodes, as that network numbers them, are under the
	// same aggregation switches. 0: not known.
	NodesPerToR    int `json:"nodes_per_tor,omitempty"`
	NodesPerDomain int `json:"nodes_per_domain,omitempty"`
	// ToRs say the same where racks are not all of one size or stand otherwise.
	ToRs []ToR `json:"tors,omitempty"`
	// Rails says that a ToR is a switch for each GPU of a node, and GPU i of all its
	// nodes is on the i-th: two GPUs share a switch where their numbers are the same.
	Rails bool `json:"rails,omitempty"`

	// What rings do on a loss. Without these: bypass at once, keep the ring
	// with fewer GPUs, no hold-off, not revertive.
	Policy          Policy `json:"policy,omitempty"`
	OnLoss          OnLoss `json:"on_loss,omitempty"`
	Moves           Moves  `json:"moves,omitempty"`
	HoldOffUS       int    `json:"hold_off_us,omitempty"`
	WaitToRestoreMS int    `json:"wait_to_restore_ms,omitempty"`
	// MovePriceMS is for how long rings that could be whole lack nodes, in all,
	// before a whole one moves for them beyond those that may at once, for each of
	// those: what a job that goes on in another order costs, in time of a ring.
	// 0: what jobs said of it, and DefaultMovePriceMS before enough did.
	MovePriceMS int `json:"move_price_ms,omitempty"`
	// Qualify is what a fibre's light and bit errors must keep to.
	Qualify *Qualify `json:"qualify,omitempty"`

	// Core is the layer of optical switches between pods, if there is one; then
	// there may be no nodes.
	Core *Core `json:"core,omitempty"`

	// NodeNames are what people call the nodes, in their order.
	NodeNames []string `json:"node_names,omitempty"`
	// ServerNames are what people call the servers of the core, leaf by leaf.
	ServerNames []string `json:"server_names,omitempty"`
	// GPUTable is what hosts call their GPUs, by node, or one row for every node.
	GPUTable [][]GPU `json:"gpu_table,omitempty"`

	Fibres []Fibre `json:"fibres"` // nil: as by default, see AllFibres

	peers   []end // by port: what hangs on its other end
	offsets []int // by port of a node, where fibres lie as by default: by which span it leads, 0: nowhere
	reach   Spans
	byName  map[string]proto.NodeID
	under   []int32 // by node: its place in ToRs; nil: there are none
}

type end struct {
	port    Port
	crossed bool
	present bool
}

// Link is what one node uses to reach another.
type Link struct {
	Local   Port
	Remote  Port
	Crossed bool
}

// Spans are hops that fibres span, from 1 up.
type Spans []int

// String and Set are those of a flag.
func (s *Spans) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*s), " ", ","), "[]")
}

// Set reads 1,2,4.
func (s *Spans) Set(text string) error {
	*s = nil
	for part := range strings.SplitSeq(text, ",") {
		hops, err := strconv.Atoi(part)
		if err != nil {
			return wrong("spans", "hops such as 1,2,4", "%.40q", text)
		}
		*s = append(*s, hops)
	}
	return nil
}

// Powers are so many spans, each twice the one before: backup fibres to n +- 2^i
// ([IHBD] sec 7).
func Powers(count int) (s Spans) {
	for i := range count {
		s = append(s, 1<<i)
	}
	return s
}

// Reach are the hops that fibres span.
func (f *Fabric) Reach() Spans {
	if f.Spans != nil {
		return f.Spans
	}
	s := make(Spans, min(max(f.K, 0), MaxBundles)) // it is yet to be validated
	for i := range s {
		s[i] = i + 1
	}
	return s
}

// GroupNodes is the number of nodes in one whole ring of TP.
func (f *Fabric) GroupNodes() int {
	if f.Nodes == 0 {
		return 0
	}
	return f.TP / f.GPUsPerNode
}

// Targets are the rings that the fabric carries when every node is well, by
// size: those of RingSizes in their order, and last of TP as many as fit
// beside them and the spares.
func (f *Fabric) Targets() []RingSize {
	if f.Nodes == 0 {
		return nil
	}
	left := f.Nodes - f.Spares
	for _, s := range f.RingSizes {
		left -= s.Rings * s.TP / f.GPUsPerNode
	}
	return append(slices.Clone(f.RingSizes), RingSize{f.TP, left / f.GroupNodes()})
}

// ParseRingSizes reads GPUS:RINGS,.. as flags have it; nothing is no size.
func ParseRingSizes(text string) ([]RingSize, error) {
	if text == "" {
		return nil, nil
	}
	var out []RingSize
	for part := range strings.SplitSeq(text, ",") {
		gpus, rings, ok := strings.Cut(part, ":")
		tp, err := strconv.Atoi(gpus)
		n, err2 := strconv.Atoi(rings)
		if !ok || err != nil || err2 != nil {
			return nil, wrong("ring-sizes", "GPUS:RINGS,..", "%.40q", part)
		}
		out = append(out, RingSize{TP: tp, Rings: n})
	}
	return out, nil
}

// WholeRing reports whether a ring of so many GPUs is whole, of whatever size.
func (f *Fabric) WholeRing(gpus int) bool {
	return gpus == f.TP || slices.ContainsFunc(f.RingSizes, func(s RingSize) bool { return s.TP == gpus })
}

// TargetRings is the number of rings, of any size, that the fabric carries
// when every node is well.
func (f *Fabric) TargetRings() int {
	rings := 0
	for _, s := range f.Targets() {
		rings += s.Rings
	}
	return rings
}

// Distance is the number of hops from a to b in HBD order, the short way
// round on a ring.
func (f *Fabric) Distance(a, b proto.NodeID) int {
	d := int(b) - int(a)
	if d < 0 {
		d = -d
	}
	if f.Topology == Ring && f.Nodes-d < d {
		d = f.Nodes - d
	}
	return d
}

// Has: there is a node or switch of that number.
func (f *Fabric) Has(id proto.NodeID) bool {
	if id.IsSwitch() {
		return f.Core != nil && int(id-proto.FirstSwitch) < f.Core.Switches()
	}
	return int(id) < f.Nodes
}

// At is what the fibre on a port leads to.
func (f *Fabric) At(p Port) (remote Port, crossed, ok bool) {
	i := f.index(p)
	switch {
	case i < 0:
		return Port{}, false, false
	case f.peers != nil:
		return f.peers[i].port, f.peers[i].crossed, f.peers[i].present
	}
	by := f.offsets[i%len(f.offsets)]
	if by == 0 {
		return Port{}, false, false
	}
	return f.wired(int(p.Node), by, f.reach)
}

// Link finds the fibre from a to b.
func (f *Fabric) Link(a, b proto.NodeID) (Link, bool) {
	if int(a) >= f.Nodes {
		return Link{}, false
	}
	for bundle := range f.Bundles {
		for path := proto.External1; path <= proto.External2; path++ {
			p := Port{Node: a, Bundle: proto.BundleID(bundle), Path: path}
			if remote, crossed, ok := f.At(p); ok && remote.Node == b {
				return Link{Local: p, Remote: remote, Crossed: crossed}, true
			}
		}
	}
	return Link{}, false
}

// Label is what people call the fibre of a link, "" where they do not.
func (f *Fabric) Label(l Link) string {
	i := slices.IndexFunc(f.Fibres, func(x Fibre) bool { return x.A == l.Local && x.B == l.Remote || x.A == l.Remote && x.B == l.Local })
	if i < 0 {
		return ""
	}
	return f.Fibres[i].ID
}

// SharedBundle reports whether some node reaches -K and +K over one bundle,
// so that it cannot use both at once.
func (f *Fabric) SharedBundle() bool {
	for n := range f.Nodes {
		left, okLeft := f.Link(proto.NodeID(n), f.offset(n, -f.K))
		right, okRight := f.Link(proto.NodeID(n), f.offset(n, f.K))
		if okLeft && okRight && left.Local.Bundle == right.Local.Bundle {
			return true
		}
	}
	return false
}

// offset is the node at a distance, or one that does not exist.
func (f *Fabric) offset(n, by int) proto.NodeID {
	to := n + by
	if f.Topology == Ring {
		to = ((to % f.Nodes) + f.Nodes) % f.Nodes
	}
	if to < 0 || to >= f.Nodes {
		return noNode
	}
	return proto.NodeID(to)
}

const noNode = ^proto.NodeID(0)

// index is the place of a port in peers, -1 for a port that cannot exist.
func (f *Fabric) index(p Port) int {
	if int(p.Node) >= f.Nodes || int(p.Bundle) >= f.Bundles || !p.Path.External() {
		return -1
	}
	return (int(p.Node)*f.Bundles+int(p.Bundle))*2 + int(p.Path-proto.External1)
}
