package solo

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/sim"
)

// Fibre joins two ports of the board.
type Fibre struct{ A, B sim.Port }

// Lead is a fibre from a port of the board to one of a board elsewhere; who
// carries the light uses sim.World's Sent and Receive.
type Lead struct {
	Port  sim.Port
	Fibre sim.Fibre
}

// ParsePort reads a port of the board, such as 0/external1.
func ParsePort(s string) (sim.Port, error) {
	p, err := parsePort(s)
	if err != nil {
		return p, fmt.Errorf("port %q: want bundle/external1 or bundle/external2", s)
	}
	return p, nil
}

// parseFibre reads two ports, such as 0/external1-1/external2.
func parseFibre(s string) (Fibre, error) {
	left, right, ok := strings.Cut(s, "-")
	a, errA := parsePort(left)
	b, errB := parsePort(right)
	if !ok || errA != nil || errB != nil {
		return Fibre{}, fmt.Errorf("fibre %q: want two ports, as in 0/external1-1/external2", s)
	}
	return Fibre{A: a, B: b}, nil
}

func parsePort(s string) (sim.Port, error) {
	bundle, path, _ := strings.Cut(s, "/")
	n, err := strconv.ParseUint(bundle, 10, 8)
	p := sim.Port{Bundle: int(n), Path: hal.LOSExternal1}
	switch path {
	case "external1":
	case "external2":
		p.Path = hal.LOSExternal2
	default:
		err = fmt.Errorf("path %q", path)
	}
	return p, err
}

// Config makes a board.
type Config struct {
	Board   *hal.Board
	Seed    uint64
	Physics *sim.Physics // nil: sim.DefaultPhysics
	Faults  []sim.Fault
	Fibres  []Fibre
	Leads   []Lead        // fibres to boards in other processes
	Costs   sim.Costs     // zero: sim.DefaultCosts
	MCI     sim.MCITiming // of modules of kind cmis; zero: sim.DefaultMCITiming
	// State is the folder that keeps the EEPROMs; "": they are forgotten.
	State string
}

// Board is a board on the virtual clock. It is not safe for concurrent use.
type Board struct {
	cfg   Config
	world *sim.World
	id    sim.BoardID
}

// New makes a board and switches it on: dark, as a board is.
func New(cfg Config) (*Board, error) {
	b := &Board{cfg: cfg, world: sim.NewWorld(sim.WorldConfig{Seed: cfg.Seed, Costs: cfg.Costs})}
	var err error
	if b.id, err = b.world.AddBoard(sim.BoardConfig{Board: *cfg.Board, Seed: cfg.Seed, Physics: cfg.Physics, Faults: cfg.Faults, Powered: true, MCI: cfg.MCI}); err != nil {
		return nil, err
	}
	for _, f := range cfg.Fibres {
		f.A.Board, f.B.Board = b.id, b.id
		if err := b.world.Connect(f.A, f.B, sim.Fibre{}); err != nil {
			return nil, err
		}
	}
	for _, l := range cfg.Leads {
		l.Port.Board = b.id
		if err := b.world.Lead(l.Port, l.Fibre); err != nil {
			return nil, err
		}
	}
	return b, b.restore()
}

// World is the world, for a look at the truth.
func (b *Board) World() *sim.World { return b.world }

// ID is the board's number in its world.
func (b *Board) ID() sim.BoardID { return b.id }

// Now is the virtual time.
func (b *Board) Now() time.Duration { return b.world.Now() }

// Submit submits op now.
func (b *Board) Submit(bus hal.BusID, op *hal.Op) error { return b.SubmitAt(b.world.Now(), bus, op) }

// SubmitAt submits op at a time that has not passed.
func (b *Board) SubmitAt(at time.Duration, bus hal.BusID, op *hal.Op) error {
	return b.world.Submit(at, b.id, bus, op)
}

// Level is the level of an input line now.
func (b *Board) Level(line hal.LineID) (bool, error) {
	if int(line) >= len(b.cfg.Board.Lines) {
		return false, fmt.Errorf("solo: line %d: %w", line, hal.ErrNoDevice)
	}
	return b.world.Level(b.id, line), nil
}

// Advance moves time on to the next thing that the board has to tell, but not
// beyond limit, and returns it. ok is false when limit came first.
func (b *Board) Advance(limit time.Duration) (ev hal.Event, ok bool) {
	_, ev, ok = b.world.Advance(limit)
	return ev, ok
}

// Do carries out op and lets the virtual clock run until it has ended, for a driver
// that has the board to itself: whatever else happens meanwhile is not told.
func (b *Board) Do(bus hal.BusID, op *hal.Op) error {
	if err := b.Submit(bus, op); err != nil {
		return err
	}
	for {
		ev, ok := b.Advance(hal.Never)
		if !ok {
			return fmt.Errorf("solo: bus %d: %w: the op never ended", bus, hal.ErrTimeout)
		}
		if c := ev.Completion; c != nil && c.Op == op {
			return c.Err
		}
	}
}

// Close keeps the EEPROMs.
func (b *Board) Close() error {
	if b.cfg.State == "" {
		return nil
	}
	kept := map[string]string{}
	for i := range b.cfg.Board.Bundles {
		for m := range b.cfg.Board.Bundles[i].Modules {
			for _, p := range b.world.Memory(b.id, i, m) {
				kept[fmt.Sprintf("%d/%d/%d", i, m, p.Number)] = hex.EncodeToString(p.Data[:])
			}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	raw, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.cfg.State, 0o700); err != nil {
		return fmt.Errorf("solo: %w", err)
	}
	tmp := b.memoryFile() + ".tmp"
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return fmt.Errorf("solo: %w", err)
	}
	return os.Rename(tmp, b.memoryFile())
}

func (b *Board) memoryFile() string { return filepath.Join(b.cfg.State, "eeprom.json") }

func (b *Board) restore() error {
	if b.cfg.State == "" {
		return nil
	}
	raw, err := os.ReadFile(b.memoryFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("solo: %w", err)
	}
	kept := map[string]string{}
	if err := json.Unmarshal(raw, &kept); err != nil {
		return fmt.Errorf("solo: %s: %w", b.memoryFile(), err)
	}
	pages := map[[2]int][]sim.Page{}
	for k, v := range kept { // any order: pages of a module are independent
		var at [3]uint64
		words := strings.Split(k, "/")
		bad := len(words) != len(at)
		for i := 0; i < len(at) && !bad; i++ {
			at[i], err = strconv.ParseUint(words[i], 10, 16)
			bad = err != nil
		}
		bundle, mod, p := int(at[0]), int(at[1]), sim.Page{Number: uint16(at[2])}
		if bad || bundle >= len(b.cfg.Board.Bundles) || mod >= len(b.cfg.Board.Bundles[bundle].Modules) {
			return fmt.Errorf("solo: %s: %q is no page of this board", b.memoryFile(), k)
		}
		if n, err := hex.Decode(p.Data[:], []byte(v)); err != nil || n != len(p.Data) {
			return fmt.Errorf("solo: %s: page %q: %d bytes, want %d", b.memoryFile(), k, n, len(p.Data))
		}
		pages[[2]int{bundle, mod}] = append(pages[[2]int{bundle, mod}], p)
	}
	for at, p := range pages { // any order: as above
		b.world.Remember(b.id, at[0], at[1], p)
	}
	return nil
}
