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
	"ringlight/proto"
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
			out.Paths = append(out.Paths, PathRecord{Bundle: i, Path: hal.LOSNames[path], Selected: shining && selected == path,
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

// obey does what a line asks of a board of many: power on NODE, power off NODE, light,
// bypass LEFT DEAD RIGHT.
func (c *Cluster) obey(line string) (answer any) {
	words := strings.Fields(line)
	var ids []proto.NodeID
	for _, w := range words[min(1, len(words)):] {
		if id, known := c.cfg.Fabric.FindNode(w); known {
			ids = append(ids, id)
		}
	}
	switch {
	case len(words) == 1 && words[0] == "light":
		return c.Light()
	case len(words) == 1 && words[0] == "walk":
		return c.walk()
	case len(words) == 4 && words[0] == "bypass" && len(ids) == 3:
		took, err := c.Bypass(int(ids[0]), int(ids[1]), int(ids[2]), func() error { c.Cut(ids[1]); return nil })
		if err != nil {
			return controlError{err.Error()}
		}
		return map[string]int64{"bypass_us": took.Microseconds()}
	case len(words) == 3 && words[0] == "power" && (words[1] == "on" || words[1] == "off") && len(ids) == 1:
		c.Supply(int(ids[0]), words[1] == "on")
		if words[1] == "on" { // with its agent, where that has ended
			if err := c.Revive(c.ctx, ids[0]); err != nil {
				return controlError{err.Error()}
			}
		}
		return BoardRecord{Powered: words[1] == "on"}
	}
	return controlError{fmt.Sprintf("%q: want light, walk, power on NODE, power off NODE, or bypass LEFT DEAD RIGHT", line)}
}

// walk is the GPUs, [node, gpu], in the order in which light goes through them now: rings
// that it closes, and strands that end.
func (c *Cluster) walk() map[string][][][2]int {
	c.clock.Lock()
	cycles := c.clock.World.Walk(func(b sim.BoardID) bool { return int(b) < c.cfg.Fabric.Nodes && c.clock.World.Powered(b) })
	c.clock.Unlock()
	out := map[string][][][2]int{}
	for name, strands := range map[string][][]sim.GPU{"closed": cycles.Closed, "open": cycles.Open} { // any order: each its own
		out[name] = [][][2]int{}
		for _, s := range strands {
			var order [][2]int
			for _, g := range s {
				order = append(order, [2]int{int(g.Board), g.Index})
			}
			out[name] = append(out[name], order)
		}
	}
	return out
}

// Supply gives a node's optics their power or takes it away.
func (c *Cluster) Supply(node int, on bool) {
	_ = c.Do(proto.NodeID(node), func(w *sim.World, board sim.BoardID) error { w.SetSupply(board, on); return nil }) // it has no error
}

// Cut takes a node's power away, its agent's first.
func (c *Cluster) Cut(node proto.NodeID) {
	c.Kill(node)
	time.Sleep(afterKill)
	c.Supply(int(node), false)
}

// Bypass takes a node out of the light, and says how long it took by the boards' own
// record from the last light that its neighbours lost to the last that each has of the
// other. With a node's power its agent ends, first: one that lived on would try its optics
// later and later, each time that they fail again within ten minutes.
func (c *Cluster) Bypass(left, dead, right int, take func() error) (time.Duration, error) {
	c.clock.Lock()
	var gone, over []sim.Port
	for _, n := range []int{left, right} {
		for b := range c.devices[n].agent.Board.Bundles {
			for path := hal.LOSExternal1; path < hal.NumLOS; path++ {
				p := sim.Port{Board: c.devices[n].board, Bundle: b, Path: path}
				switch far, ok := c.clock.World.Far(p); {
				case !ok:
				case far.Board == c.devices[dead].board && c.clock.World.Lit(p):
					gone = append(gone, p)
				case far.Board == c.devices[left+right-n].board:
					over = append(over, p)
				}
			}
		}
	}
	c.clock.Unlock()
	if len(gone) != 2 || len(over) != 2 {
		return 0, fmt.Errorf("nodes %d, %d, %d: not two lit fibres to the middle and two ends past it", left, dead, right)
	}
	if err := take(); err != nil {
		return 0, err
	}
	last := func(ports []sim.Port, lit bool) (at time.Duration, all bool) {
		all = true
		for _, p := range ports {
			when, is := c.clock.World.LastChange(p)
			at, all = max(at, when), all && is == lit
		}
		return at, all
	}
	for end := time.Now().Add(bypassPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		c.clock.Lock()
		lost, dark := last(gone, false)
		found, bright := last(over, true)
		c.clock.Unlock()
		if dark && bright {
			return found - lost, nil
		}
	}
	return 0, fmt.Errorf("nodes %d and %d have not found each other past %d in %v: %s; %s", left, right, dead, bypassPatience, c.outlook(left), c.outlook(right))
}

// outlook is what a node's board says of its light.
func (c *Cluster) outlook(n int) string {
	text := fmt.Sprintf("node %d:", n)
	c.clock.Lock()
	defer c.clock.Unlock()
	for b := range c.devices[n].agent.Board.Bundles {
		selected, shining := c.clock.World.Selected(c.devices[n].board, b)
		text += fmt.Sprintf(" bundle %d on %s, shining %v, light on", b, hal.LOSNames[selected], shining)
		for path := range hal.NumLOS {
			if c.clock.World.Lit(sim.Port{Board: c.devices[n].board, Bundle: b, Path: path}) {
				text += " " + hal.LOSNames[path]
			}
		}
	}
	return text
}

// bypassPatience bounds a bypass: it is less than the client waits. chosen.
const bypassPatience = 5 * time.Second

// afterKill is how long the machine is left alone with the end of an agent. chosen.
const afterKill = 50 * time.Millisecond
