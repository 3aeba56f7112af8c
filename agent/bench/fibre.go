package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// Port is one end of a fibre pair.
type Port struct {
	Node   proto.NodeID `json:"node"`
	Bundle int          `json:"bundle"`
	Path   proto.Path   `json:"path"` // External1 or External2
}

// String is node:bundle/path, such as 3:0/external1.
func (p Port) String() string { return fmt.Sprintf("%d:%d/%v", p.Node, p.Bundle, p.Path) }

// MarshalText is String.
func (p Port) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// other is the other external path of its bundle.
func (p Port) other() Port {
	p.Path = proto.External1 + proto.External2 - p.Path
	return p
}

func (p Port) compare(q Port) int {
	return cmp.Or(cmp.Compare(p.Node, q.Node), cmp.Compare(p.Bundle, q.Bundle), cmp.Compare(p.Path, q.Path))
}

// Fibre is a pair of ports that a fibre pair joins.
type Fibre struct {
	A Port `json:"a"`
	B Port `json:"b"`
}

func (f Fibre) String() string { return f.A.String() + "-" + f.B.String() }

// errFibre is a fibre that cannot be understood.
var errFibre = errors.New("want two ports, as in 0/external1-1/external2, or 3:0/external1-4:1/external1 with nodes")

// ParseFibre reads two ports; without a node they are of node own.
func ParseFibre(s string, own proto.NodeID) (Fibre, error) {
	left, right, ok := strings.Cut(s, "-")
	a, errA := parsePort(left, own)
	b, errB := parsePort(right, own)
	if !ok || errA != nil || errB != nil || a == b {
		return Fibre{}, fmt.Errorf("fibre %q: %w", s, errFibre)
	}
	return Fibre{a, b}, nil
}

func parsePort(s string, own proto.NodeID) (Port, error) {
	p := Port{Node: own}
	if node, rest, ok := strings.Cut(s, ":"); ok {
		n, err := strconv.ParseUint(node, 10, 32)
		if err != nil {
			return p, err
		}
		p.Node, s = proto.NodeID(n), rest
	}
	bundle, path, _ := strings.Cut(s, "/")
	n, err := strconv.ParseUint(bundle, 10, 8)
	if err != nil || n >= hal.MaxBundles {
		return p, errFibre
	}
	p.Bundle = int(n)
	switch path {
	case "external1":
		p.Path = proto.External1
	case "external2":
		p.Path = proto.External2
	default:
		return p, errFibre
	}
	return p, nil
}

// FibreMap is what coded light found.
type FibreMap struct {
	Found  []Fibre  `json:"found"`   // light in both directions
	OneWay []Fibre  `json:"one_way"` // light from A to B alone
	Dark   []Port   `json:"dark"`    // no light comes in
	Odd    []string `json:"odd"`     // light from no known bundle, or by the wrong fibre
	// Against what is expected; nil: nothing is.
	Expected []Fibre       `json:"expected,omitempty"`
	Missing  []Fibre       `json:"missing,omitempty"` // expected, not found
	Extra    []Fibre       `json:"extra,omitempty"`   // found, not expected
	Steps    []Step        `json:"steps,omitempty"`   // the fewest plugs to move
	Slots    int           `json:"slots"`
	Took     time.Duration `json:"took_ns"`
}

// chosen: a hundred filter times of the LOS comparators and the agent's own
// interrupts, so that every line has come to rest.
const slotTime = 2 * time.Millisecond

// paths are the external ones, in the order of their phases.
var paths = []proto.Path{proto.External1, proto.External2}

// fibreMap finds which port hears which. In one phase every bundle shines only
// on external 1, in the other on external 2. Within a phase each bundle sends
// its place among them, from 1, a bit a slot, every bit followed by its complement: who
// hears light in both slots of a bit, or in neither of one and not of all,
// hears more than one sender or none of ours.
func (l *lab) fibreMap(all []*driven) (*FibreMap, error) {
	began := l.field.Now()
	m := &FibreMap{Found: []Fibre{}, OneWay: []Fibre{}, Dark: []Port{}, Odd: []string{}}
	bits := 1
	for 1<<bits <= len(all) { // number 0 stays unused
		bits++
	}
	from := map[Port]Port{}
	lit := map[Port]bool{}
	for _, phase := range paths {
		heard := map[Port][]bool{}
		for slot := range 2 * bits {
			err := l.sel(all, func(d *driven) proto.Path {
				if on := (1+slices.Index(all, d))>>(slot/2)&1 == 1; on != (slot%2 == 1) {
					return phase
				}
				return proto.Dark
			})
			if err == nil {
				err = l.run(slotTime, nil)
			}
			if err != nil {
				return nil, err
			}
			m.Slots++
			for _, p := range l.ports() {
				high, err := l.hears(p)
				if err != nil {
					return nil, err
				}
				heard[p] = append(heard[p], high)
			}
		}
		for _, p := range l.ports() {
			n, any, good := decodeSlots(heard[p])
			lit[p] = lit[p] || any
			switch {
			case !any:
			case !good || n == 0 || n > len(all):
				m.Odd = append(m.Odd, fmt.Sprintf("%v hears light that is no number of ours while %v shines", p, phase))
			default:
				d := all[n-1]
				src := Port{Node: l.stations[d.station].Node, Bundle: d.bundle, Path: phase}
				if old, ok := from[p]; ok {
					m.Odd = append(m.Odd, fmt.Sprintf("%v hears both %v and %v", p, old, src))
				}
				from[p] = src
			}
		}
	}
	if err := l.sel(all, func(*driven) proto.Path { return proto.Dark }); err != nil {
		return nil, err
	}
	m.join(l.ports(), from, lit)
	m.Took = l.field.Now() - began
	return m, nil
}

// join makes fibres of which port hears which. A bundle whose light leaves by the fibre of
// its other path is told by what comes back: its receivers are at their own fibres.
func (m *FibreMap) join(ports []Port, from map[Port]Port, lit map[Port]bool) {
	found := func(a, b Port) {
		if a.compare(b) > 0 {
			a, b = b, a
		}
		if f := (Fibre{a, b}); !slices.Contains(m.Found, f) {
			m.Found = append(m.Found, f)
		}
	}
	swapped := func(p Port) {
		m.Odd = append(m.Odd, fmt.Sprintf("bundle %d of node %d sends by the other path's fibre what it sends to %v: its Tx taps, or the fibres behind them, are swapped", p.Bundle, p.Node, p.Path))
	}
	for _, p := range ports {
		src, ok := from[p]
		switch back := from[src]; {
		case !lit[p]:
			m.Dark = append(m.Dark, p)
		case !ok:
		case back == p:
			found(p, src)
		case back == p.other():
			found(p, src)
			swapped(p)
		case from[src.other()] == p: // told at the other end
		case from[src.other()] == p.other(): // at both ends
			found(p, src.other())
			swapped(p)
		default:
			m.OneWay = append(m.OneWay, Fibre{src, p})
		}
	}
}

// decodeSlots reads what a port heard. good is false for light that is not one
// number with its complement.
func decodeSlots(heard []bool) (n int, any, good bool) {
	good = true
	for i := 0; i+1 < len(heard); i += 2 {
		any = any || heard[i] || heard[i+1]
		good = good && heard[i] != heard[i+1]
		if heard[i] {
			n |= 1 << (i / 2)
		}
	}
	return n, any, good
}

// ports are all external ports of all stations.
func (l *lab) ports() []Port {
	var out []Port
	for _, d := range l.all() {
		for _, p := range paths {
			out = append(out, Port{l.stations[d.station].Node, d.bundle, p})
		}
	}
	return out
}

func (l *lab) hears(p Port) (bool, error) {
	for s := range l.stations {
		if st := &l.stations[s]; st.Node == p.Node {
			return l.field.Level(s, st.Board.Bundles[p.Bundle].LOS[p.Path-proto.Loopback])
		}
	}
	return false, hal.ErrNoDevice
}

// without are those of a list that are not in the other.
func without[T comparable](list, other []T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return slices.Contains(other, x) })
}

// compareWith fills in what differs from the expected fibres.
func (m *FibreMap) compareWith(expected []Fibre) {
	m.Expected = make([]Fibre, len(expected))
	for i, f := range expected {
		if f.A.compare(f.B) > 0 {
			f.A, f.B = f.B, f.A
		}
		m.Expected[i] = f
	}
	m.Missing, m.Extra = without(m.Expected, m.Found), without(m.Found, m.Expected)
	// Light one way is a fibre, too, if no other is at its ports.
	there := slices.Clone(m.Found)
	taken := func(p Port) bool {
		return slices.ContainsFunc(there, func(f Fibre) bool { return f.A == p || f.B == p })
	}
	for _, f := range m.OneWay {
		if !taken(f.A) && !taken(f.B) {
			there = append(there, f)
		}
	}
	m.Steps = swapsOf(there, m.Expected)
}
