package fabric

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ringlight/proto"
)

// Limits of a description.
const (
	MaxNodes       = 1 << 20    // chosen: four million GPUs; one planner's store and memory
	MaxGPUsPerNode = 16         // chosen: twice the largest node of [IHBD]
	MaxBundles     = 8          // a board's latches and buses hold no more
	MaxGroupNodes  = 256        // a ring's members fit into one array on the wire
	MaxNameLength  = 64         // one level of a topic
	maxMovePriceMS = 86_400_000 // chosen: a day; nothing is short for longer and not looked after
	maxHoldOffUS   = 1_000_000  // chosen: a light that is gone for a second is lost
	maxRestoreMS   = 3_600_000  // chosen: ITU-T asks for 5 to 12 minutes; an hour is no protection
	maxRingSizes   = 8          // powers of two up to MaxGroupNodes, beside TP
	maxErrors      = 20         // enough to mend a file, few enough to read
)

// Error is one thing wrong with a description.
type Error struct {
	Field   string // the key
	Limit   string // what would have been right
	Message string
}

func (e *Error) Error() string { return e.Field + ": " + e.Message }

// Refused gives the key and what would have been right.
func (e *Error) Refused() (field, limit string) { return e.Field, e.Limit }

func wrong(field, limit, format string, args ...any) error {
	return &Error{field, limit, fmt.Sprintf(format, args...) + ": want " + limit}
}

// Parse reads a description strictly and validates it.
func Parse(data []byte) (*Fabric, error) {
	f := new(Fabric)
	if err := proto.DecodeFile(data, f); err != nil {
		return nil, &Error{"fabric", "one JSON object of the documented keys", err.Error()}
	}
	f.SpareLayout = cmp.Or(f.SpareLayout, Beside)
	if f.Core != nil && f.Nodes == 0 && len(f.Fibres) == 0 {
		*f = Fabric{Name: f.Name, Core: f.Core, ServerNames: f.ServerNames, Topology: Line, SpareLayout: Beside}
	}
	if f.Fibres == nil {
		f.Fibres = []Fibre{} // a file names them all
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	f.connect()
	return f, nil
}

// Encode writes the description as JSON, one fibre a line.
func (f *Fabric) Encode() []byte {
	head := *f
	head.Fibres = nil
	text, err := json.MarshalIndent(&head, "", "  ")
	if err != nil {
		panic("fabric: a description always encodes: " + err.Error())
	}
	var out bytes.Buffer
	out.Write(bytes.TrimSuffix(text, []byte("null\n}")))
	out.WriteString("[")
	for i, x := range f.AllFibres() {
		line, err := json.Marshal(x)
		if err != nil {
			panic("fabric: a fibre always encodes: " + err.Error())
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(line)
	}
	out.WriteString("\n  ]\n}\n")
	return out.Bytes()
}

// Validate joins everything that is wrong; each error is an *Error.
func (f *Fabric) Validate() error {
	if err := f.validateSizes(); err != nil {
		return err // the fibres cannot be judged without them
	}
	if err := f.validateCore(); err != nil {
		return err
	}
	return f.validateFibres()
}

func (f *Fabric) validateCore() error {
	servers := 0
	if f.Core != nil {
		if err := f.Core.Validate(); err != nil {
			return err
		}
		servers = f.Core.Servers()
	}
	return errors.Join(validateNames("server", f.ServerNames, servers)...)
}

func (f *Fabric) validateSizes() error {
	var errs []error
	if !validName(f.Name) {
		errs = append(errs, wrong("name", "1 to 64 of a-z, 0-9 and -", "%q", f.Name))
	}
	if f.Core != nil && f.Nodes == 0 {
		// Circuits only: what describes nodes is not looked at.
		return errors.Join(errs...)
	}
	span := func(field string, v, lo, hi int) bool {
		if v < lo || v > hi {
			errs = append(errs, wrong(field, fmt.Sprintf("%d to %d", lo, hi), "%d", v))
			return false
		}
		return true
	}
	okNodes := span("nodes", f.Nodes, 1, MaxNodes)
	okGPUs := span("gpus_per_node", f.GPUsPerNode, 1, MaxGPUsPerNode)
	okK := span("k", f.K, 1, MaxBundles)
	span("bundles", f.Bundles, 1, MaxBundles)
	if n := len(f.Spans); f.Spans != nil {
		rises := slices.IsSortedFunc(f.Spans, func(a, b int) int { return cmp.Or(cmp.Compare(a, b), -1) })
		if !rises || n == 0 || f.Spans[0] != 1 || f.Spans[n-1] != f.K {
			errs = append(errs, wrong("spans", fmt.Sprintf("rising, from 1 to k (%d)", f.K), "%v", f.Spans))
			okK = false
		}
		if f.NodesPerToR > 0 || len(f.ToRs) > 0 {
			errs = append(errs, wrong("spans", "absent, where tors or nodes_per_tor is given: rings under ToRs are placed over fibres of each length", "%v", f.Spans))
		}
	}
	if need := defaultBundles(len(f.Reach())); okGPUs && okK && need > f.GPUsPerNode {
		errs = append(errs, wrong("k", fmt.Sprintf("at most gpus_per_node (%d), at least 2 GPUs", f.GPUsPerNode),
			"%d spans need %d bundles, and a node has one gap per GPU", len(f.Reach()), need))
	}
	if okGPUs && f.Bundles > f.GPUsPerNode {
		errs = append(errs, wrong("bundles", fmt.Sprintf("at most gpus_per_node (%d)", f.GPUsPerNode), "%d", f.Bundles))
	}
	if f.Topology != Line && f.Topology != Ring {
		errs = append(errs, wrong("topology", "line or ring", "%q", f.Topology))
	}
	if f.SpareLayout != Beside && f.SpareLayout != AtEnd {
		errs = append(errs, wrong("spare_layout", "beside or end", "%q", f.SpareLayout))
	}
	if f.Policy != "" && f.Policy != Bypass && f.Policy != Hold {
		errs = append(errs, wrong("policy", "bypass or hold", "%q", f.Policy))
	}
	if f.OnLoss != "" && f.OnLoss != Keep && f.OnLoss != Dissolve {
		errs = append(errs, wrong("on_loss", "keep or dissolve", "%q", f.OnLoss))
	}
	if f.Moves != "" && f.Moves != MoveFew && f.Moves != MoveNone && f.Moves != MoveAny {
		errs = append(errs, wrong("moves", "none, few or any", "%q", f.Moves))
	}
	span("hold_off_us", f.HoldOffUS, 0, maxHoldOffUS)
	span("wait_to_restore_ms", f.WaitToRestoreMS, 0, maxRestoreMS)
	span("move_price_ms", f.MovePriceMS, 0, maxMovePriceMS)
	q := f.Qualifies()
	span("qualify.errors_per_1e12", q.ErrorsPer1e12, 10, 1_000_000_000) // of fewer a result takes minutes
	span("qualify.budget_mdb", q.BudgetMDB, 0, 30_000)
	span("qualify.bias_percent", q.BiasPercent, 1, 1000)
	span("qualify.heater_percent", q.HeaterPercent, 1, 100)
	span("qualify.ageing_days", q.AgeingDays, 1, 365)
	if q.ConfidencePercent != 90 && q.ConfidencePercent != 99 {
		errs = append(errs, wrong("qualify.confidence_percent", "90 or 99", "%d", q.ConfidencePercent))
	}
	if okNodes && okK && f.Topology == Ring && f.Nodes < 2*f.K+1 {
		errs = append(errs, wrong("nodes", fmt.Sprintf("at least 2k+1 = %d on a ring", 2*f.K+1), "%d", f.Nodes))
	}
	if okGPUs && okNodes {
		errs = append(errs, f.validateGroups()...)
		errs = append(errs, validateNames("node", f.NodeNames, f.Nodes)...)
		errs = append(errs, f.validateGPUs()...)
	}
	return errors.Join(errs...)
}

func (f *Fabric) validateGroups() []error {
	if f.TP < f.GPUsPerNode || f.TP%f.GPUsPerNode != 0 {
		return []error{wrong("tp", fmt.Sprintf("a multiple of gpus_per_node (%d)", f.GPUsPerNode), "%d", f.TP)}
	}
	var errs []error
	m := f.GroupNodes()
	if most := min(f.Nodes, MaxGroupNodes); m > most {
		errs = append(errs, wrong("tp", fmt.Sprintf("at most %d GPUs", most*f.GPUsPerNode), "%d", f.TP))
	}
	errs = append(errs, f.validateDCN()...)
	if f.Spares < 0 || m <= f.Nodes && f.Spares > f.Nodes-m { // of a ring too large that is said
		errs = append(errs, wrong("spares", fmt.Sprintf("0 to %d, room for one ring", max(0, f.Nodes-m)), "%d", f.Spares))
	} else if len(errs) == 0 {
		errs = f.validateRingSizes()
	}
	return errs
}

// ValidateRingSizes checks the rings that are not of TP, where all other sizes
// are right. Sizes must divide one another: then planner/ring knows the most
// groups there can be.
func (f *Fabric) ValidateRingSizes() error { return errors.Join(f.validateRingSizes()...) }

func (f *Fabric) validateRingSizes() []error {
	if n := len(f.RingSizes); n > maxRingSizes {
		return []error{wrong("ring_sizes", fmt.Sprintf("at most %d sizes beside tp", maxRingSizes), "%d", n)}
	}
	var errs []error
	room := f.Nodes - f.Spares
	for i, s := range f.RingSizes {
		key := fmt.Sprintf("ring_sizes[%d]", i)
		bad := func(part, limit, format string, args ...any) {
			errs = append(errs, wrong(key+"."+part, limit, format, args...))
		}
		if s.TP < f.GPUsPerNode || s.TP%f.GPUsPerNode != 0 || s.TP > min(f.Nodes, MaxGroupNodes)*f.GPUsPerNode {
			bad("tp", fmt.Sprintf("a multiple of gpus_per_node (%d) up to %d", f.GPUsPerNode, min(f.Nodes, MaxGroupNodes)*f.GPUsPerNode), "%d", s.TP)
			continue
		}
		for _, other := range append([]RingSize{{TP: f.TP}}, f.RingSizes[:i]...) {
			if large, small := max(s.TP, other.TP), min(s.TP, other.TP); large == small || small > 0 && large%small != 0 {
				bad("tp", "different sizes that divide one another", "%d beside %d", s.TP, other.TP)
			}
		}
		most := room * f.GPUsPerNode / s.TP
		if s.Rings < 1 || s.Rings > most {
			bad("rings", fmt.Sprintf("1 to %d, beside the spares and the sizes before", most), "%d", s.Rings)
			continue
		}
		room -= s.Rings * s.TP / f.GPUsPerNode
	}
	return errs
}

func (f *Fabric) validateFibres() error {
	if f.Fibres != nil && len(f.Fibres) == 0 && f.Nodes > 1 {
		return wrong("fibres", `each as {"a": "0/1/external1", "b": "1/0/external1"}; ocsctl fabric new writes those of the default wiring`, "none")
	}
	var errs []error
	add := func(err error) bool {
		errs = append(errs, err)
		return len(errs) < maxErrors
	}
	used := make([]bool, f.Nodes*f.Bundles*2)
	for i, x := range f.Fibres {
		for _, p := range [2]Port{x.A, x.B} {
			at := f.index(p)
			if at < 0 {
				if !add(wrong(fmt.Sprintf("fibres[%d]", i), fmt.Sprintf("node below %d, bundle below %d", f.Nodes, f.Bundles), "no port %s", p)) {
					return errors.Join(errs...)
				}
				continue
			}
			if used[at] {
				if !add(wrong(fmt.Sprintf("fibres[%d]", i), "one fibre a port", "port %s is taken", p)) {
					return errors.Join(errs...)
				}
			}
			used[at] = true
		}
		if x.ID != "" && !validLabel(x.ID) && !add(wrong(fmt.Sprintf("fibres[%d].id", i), "1 to 64 letters, digits and . _ - /", "%.80q", x.ID)) {
			return errors.Join(errs...)
		}
		if x.A.Node == x.B.Node && !add(wrong(fmt.Sprintf("fibres[%d]", i), "two different nodes", "node %d to itself", x.A.Node)) {
			return errors.Join(errs...)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return f.validateReach()
}

// validateReach checks that every pair of nodes up to K apart has a fibre,
// that left and right never share a bundle but for -K and +K, and the seam.
func (f *Fabric) validateReach() error {
	g := *f
	g.connect()
	var errs []error
	var seam, crossed int
	for n := 0; n < f.Nodes && len(errs) < maxErrors; n++ {
		for _, hop := range f.Reach() {
			to := f.offset(n, hop)
			if to == noNode {
				continue
			}
			link, ok := g.Link(proto.NodeID(n), to)
			if !ok {
				errs = append(errs, wrong("fibres", fmt.Sprintf("a fibre between any two nodes %v apart", f.Reach()), "none from node %d to node %d", n, to))
				continue
			}
			if int(to) < n {
				seam++
				if link.Crossed {
					crossed++
				}
			}
			for _, back := range f.Reach() {
				left, ok := g.Link(proto.NodeID(n), f.offset(n, -back))
				if ok && left.Local.Bundle == link.Local.Bundle && (hop != f.K || back != f.K) {
					errs = append(errs, wrong("fibres", "left and right on different bundles, but for -k and +k",
						"node %d reaches nodes %d and %d over bundle %d", n, left.Remote.Node, to, link.Local.Bundle))
				}
			}
		}
	}
	if crossed != 0 && crossed != seam {
		errs = append(errs, wrong("fibres", "every link over the seam crossed, or none", "%d of %d", crossed, seam))
	}
	return errors.Join(errs...)
}

// SeamCrossed reports whether a closed ring over the seam would be one GPU
// cycle. Without it every ring must stay a line with loopback ends.
func (f *Fabric) SeamCrossed() bool {
	if f.Topology != Ring {
		return false
	}
	for _, hop := range f.Reach() {
		for n := f.Nodes - hop; n < f.Nodes; n++ {
			if link, ok := f.Link(proto.NodeID(n), f.offset(n, hop)); !ok || !link.Crossed {
				return false
			}
		}
	}
	return true
}

func validName(s string) bool {
	return s != "" && len(s) <= MaxNameLength && !strings.ContainsFunc(s, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' })
}
