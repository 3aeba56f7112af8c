package main

import (
	"context"
	"math"
	"strconv"

	"ringlight/ocs"
)

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
