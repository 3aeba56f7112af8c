package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"ringlight/agent"
	"ringlight/agent/bench"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/ocs"
)

// peek reads one register of a chip.
func peek(_ context.Context, args []string) error {
	_, common := newFlags("peek REGISTER", "read one register of a chip: BUNDLE/MODULE/CHIP/REGISTER\n  "+ocs.RegisterForms,
		"ocs-agent peek 0/3/dac1/code5b -config node7.json")
	words, err := common.words(args, 1)
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return usagef("peek: want one register; -h lists them")
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	return cfg.reach(words[0], false, 0, common.json)
}

// reach reads or writes a register through the running agent, or on the board
// opened for it.
func (c *Config) reach(name string, poke bool, value uint32, asJSON bool) error {
	a, err := c.agentConfig()
	if err != nil {
		return err
	}
	reg, err := ocs.FindRegister(a.Board, name)
	if err != nil {
		return cli.AsUsage(err)
	}
	verb := "peek"
	if poke {
		verb = "poke"
		if _, err := reg.Poke(value); err != nil { // what needs no board to be refused
			return cli.AsUsage(err)
		}
	}
	ans, err := answered(c.askSocket(agent.Question{Verb: verb, Text: name, Value: value}))
	switch {
	case err == nil:
		value = ans.Value
	case errors.Is(err, agent.ErrNoAgent):
		if value, err = c.reachBoard(&a, reg, poke, value); err != nil {
			return err
		}
	default:
		return err
	}
	meaning := reg.Meaning(value)
	return answer(asJSON, map[string]any{"register": name, "bits": reg.Bits, "value": value, "meaning": meaning}, func() {
		text := fmt.Sprintf("%s  0x%0*x  %d", name, reg.Bits/4, value, value)
		if meaning != "" {
			text += "  " + meaning
		}
		fmt.Println(text)
	})
}

func (c *Config) reachBoard(a *agent.Config, reg *ocs.Register, poke bool, value uint32) (uint32, error) {
	board, shut, err := c.benchBoard(a)
	if err != nil {
		return 0, err
	}
	v, err := bench.Reach(bench.Alone(board), station(a), reg, poke, value)
	if errors.Is(err, bench.ErrInService) || errors.Is(err, hal.ErrOutOfRange) {
		err = cli.AsUsage(err)
	}
	return v, errors.Join(err, shut())
}

func station(a *agent.Config) bench.Station {
	return bench.Station{Node: a.Node, Board: a.Board, Calibrations: a.Calibrations, Seed: a.Seed}
}

// poke writes one register of a chip.
func poke(_ context.Context, args []string) error {
	_, common := newFlags("poke REGISTER VALUE", "write one register of a chip of a dark bundle, within its limits, and read it back:\n"+
		"heater codes, limits, thresholds, lanes, the last page of a memory\n  "+ocs.RegisterForms,
		"ocs-agent poke 0/3/temp/high 0x4b00 -config node7.json")
	words, err := common.words(args, 2)
	if err != nil {
		return err
	}
	if len(words) != 2 {
		return usagef("poke: want a register and a value; -h lists them")
	}
	v, err := strconv.ParseUint(words[1], 0, 32)
	if err != nil {
		return usagef("value: %q: want a number from 0 to %d", words[1], uint32(math.MaxUint32))
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	return cfg.reach(words[0], true, uint32(v), common.json)
}
