package main

import (
	"fmt"
	"os"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim/solo"
)

// isSwitch tells whether the board is a circuit switch and not a node's.
func (b *BoardConfig) isSwitch() bool { return b.Ports > 0 }

func (b *BoardConfig) validateMirrors(bad func(key, format string, args ...any)) {
	if b.Ports < 0 || b.Ports > hal.MaxCrossbarPorts {
		bad("board.ports", "%d: want 0 to %d", b.Ports, hal.MaxCrossbarPorts)
	}
	switch {
	case b.Factory != "" && !b.isSwitch():
		bad("board.factory", "goes with board.ports")
	case b.Factory == "" && b.isSwitch() && b.Kind != "sim":
		bad("board.factory", "want the file that came with the board")
	}
}

// id is the number under which this board's agent is addressed: a switch's
// may be given from 0, as in the fabric description.
func (c *Config) id() proto.NodeID {
	n := proto.NodeID(c.Node)
	if c.Board.isSwitch() && !n.IsSwitch() {
		n += proto.FirstSwitch
	}
	return n
}

// factory is what the maker of a board of mirrors measured; the simulated
// maker measures when it is asked.
func (c *Config) factory(board *hal.Board) (*ocs.Factory, error) {
	if c.Board.Factory != "" {
		raw, err := os.ReadFile(c.Board.Factory)
		if err != nil {
			return nil, usageError{fmt.Errorf("board.factory: %w", err)}
		}
		f, err := ocs.DecodeFactory(raw)
		if err != nil {
			return nil, fmt.Errorf("board.factory: %s: %w", c.Board.Factory, err)
		}
		return f, nil
	}
	b, err := solo.New(solo.Config{Board: board, Seed: c.Board.Seed})
	if err != nil {
		return nil, usageError{err}
	}
	w, id := b.World(), b.ID()
	return ocs.Survey{
		Drive: func(a, b int) [4]int16 { return w.FactoryDrive(id, a, b) },
		Park:  func(side, port int) [2]int16 { return w.FactoryPark(id, side, port) },
		Loss: func(a, b int, milliTHz, millicelsius int32) int32 {
			return w.FactoryLoss(id, a, b, milliTHz, millicelsius)
		},
	}.Factory(board.Mirrors.Ports, ocs.UsualConditions()), nil
}

func printSwitch(s *agent.SwitchStatus) {
	state := ""
	if s.Busy {
		state = "  moving"
	}
	if s.Reason != "" {
		state += "  out of service: " + s.Reason
	}
	fmt.Printf("switch of %d ports a side, %d circuits%s\n", s.Ports, len(s.Circuits), state)
	for _, c := range s.Circuits {
		fmt.Printf("circuit %-9s job %-6d %-7s", c.Circuit, c.Job, c.State)
		if c.Loss != proto.NoPower && c.Loss != 0 {
			fmt.Printf(" loses %.2f dB (factory %.2f), tuned in %d moves, %.1f ms", float64(c.Loss)/1000, float64(c.Factory)/1000, c.Moves, float64(c.TookUS)/1000)
		}
		if c.Reason != "" {
			fmt.Printf("  (%s)", c.Reason)
		}
		fmt.Println()
	}
	for _, h := range s.Held {
		fmt.Printf("port %s\n", h)
	}
}
