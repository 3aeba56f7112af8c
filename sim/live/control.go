package live

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"ringlight/hal"
	"ringlight/sim"
	"ringlight/sim/fleet"
	"ringlight/sim/solo"
)

// BoardRecord is what a board says of itself, whatever its agent says.
type BoardRecord struct {
	Powered bool         `json:"powered"`
	Paths   []PathRecord `json:"paths"` // by bundle: loopback, external1, external2
	// Of a board of mirrors: where light passes, and how often a circuit that had
	// been seen lit lost it.
	Circuits []PortPair `json:"circuits,omitempty"`
	Darkened int        `json:"darkened,omitempty"`
}

// PortPair is a port of side A and one of side B.
type PortPair struct {
	A int `json:"a"`
	B int `json:"b"`
}

// PathRecord is the light that comes to one path's receivers.
type PathRecord struct {
	Bundle   int    `json:"bundle"`
	Path     string `json:"path"`
	Selected bool   `json:"selected"` // the receivers that count, with lasers on
	Lit      bool   `json:"lit"`
	Changes  int    `json:"changes"`    // of the light, since the board was made
	AgoUS    int64  `json:"changed_us"` // how long ago the last one was
}

// recorder counts the changes of a board's light as they happen.
type recorder struct {
	mu   sync.Mutex
	last [hal.MaxBundles][hal.NumLOS]time.Duration
	n    [hal.MaxBundles][hal.NumLOS]int

	ports    int // of a side of a board of mirrors
	lit      []PortPair
	darkened int
}

func (r *recorder) watch(b *solo.Board, bundles int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range bundles {
		for path := range hal.NumLOS {
			if at, _ := b.World().LastChange(sim.Port{Board: b.ID(), Bundle: i, Path: path}); at != r.last[i][path] {
				r.last[i][path] = at
				r.n[i][path]++
			}
		}
	}
	r.lit = slices.DeleteFunc(r.lit, func(p PortPair) bool {
		dark := !passes(b, p)
		if dark {
			r.darkened++
		}
		return dark
	})
}

func passes(b *solo.Board, p PortPair) bool { return fleet.Passes(b.World(), b.ID(), p.A, p.B) }

// circuits looks at every pair of ports, and follows those that have light from
// now on.
func (r *recorder) circuits(b *solo.Board) []PortPair {
	r.lit = r.lit[:0]
	for a := range r.ports {
		for to := range r.ports {
			if p := (PortPair{a, to}); passes(b, p) {
				r.lit = append(r.lit, p)
			}
		}
	}
	return slices.Clone(r.lit)
}

var pathNames = [hal.NumLOS]string{"loopback", "external1", "external2"}

func (r *recorder) record(b *solo.Board, bundles int) BoardRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := BoardRecord{Powered: b.World().Powered(b.ID()), Darkened: r.darkened}
	if r.ports > 0 {
		out.Circuits = r.circuits(b)
	}
	for i := range bundles {
		selected, shining := b.World().Selected(b.ID(), i)
		for path := range hal.NumLOS {
			at, lit := b.World().LastChange(sim.Port{Board: b.ID(), Bundle: i, Path: path})
			out.Paths = append(out.Paths, PathRecord{Bundle: i, Path: pathNames[path], Selected: shining && selected == path,
				Lit: lit, Changes: r.n[i][path], AgoUS: (b.Now() - at).Microseconds()})
		}
	}
	return out
}

// control answers one line a connection with a line of JSON.
func control(l net.Listener, obey func(line string) (answer any)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil {
				return
			}
			_ = json.NewEncoder(c).Encode(obey(strings.TrimSpace(line)))
		}()
	}
}

type controlError struct {
	Error string `json:"error"`
}

// obey does what a line asks of one board: record, power on, power off, cut PORT,
// mend PORT.
func obey(line string, board *solo.Live, rec *recorder, bundles int) (answer any) {
	verb, arg, _ := strings.Cut(line, " ")
	var do func(b *solo.Board) error
	switch verb {
	case "record":
		do = func(*solo.Board) error { return nil }
	case "power":
		if arg != "on" && arg != "off" {
			return controlError{fmt.Sprintf("power %q: want on or off", arg)}
		}
		do = func(b *solo.Board) error { b.World().SetSupply(b.ID(), arg == "on"); return nil }
	case "cut", "mend":
		p, err := solo.ParsePort(arg)
		if err != nil {
			return controlError{err.Error()}
		}
		do = func(b *solo.Board) error {
			if verb == "cut" {
				return b.World().Cut(p, sim.Both)
			}
			return b.World().Mend(p, sim.Both)
		}
	default:
		return controlError{fmt.Sprintf("%q: want record, power on, power off, cut PORT or mend PORT", verb)}
	}
	board.With(func(b *solo.Board) {
		if err := do(b); err != nil {
			answer = controlError{err.Error()}
			return
		}
		rec.watch(b, bundles)
		answer = rec.record(b, bundles)
	})
	return answer
}

// obey does what a line asks of a board of many: power on NODE, power off NODE.
func (c *Cluster) obey(line string) (answer any) {
	verb, arg, _ := strings.Cut(line, " ")
	state, name, _ := strings.Cut(arg, " ")
	node, known := c.cfg.Fabric.FindNode(name)
	if verb != "power" || state != "on" && state != "off" || !known {
		return controlError{fmt.Sprintf("%q: want power on NODE or power off NODE", line)}
	}
	board := c.device(node).board
	_ = c.clock.Do(func(time.Duration) error { c.clock.World.SetSupply(board, state == "on"); return nil }) // it has no error
	return BoardRecord{Powered: state == "on"}
}
