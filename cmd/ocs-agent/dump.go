package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"ringlight/agent"
	"ringlight/agent/bench"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/proto"
)

// dumpModule writes the memory of a CMIS module to a file.
func dumpModule(_ context.Context, args []string) error {
	fs, common := newFlags("dump-module -bundle B -module M -o FILE", "write the memory of a CMIS module to a file, as public CMIS tools read it: lower memory,\n"+
		"then page P of bank b at (b*256+P)*128+128; pages that the module has not are zero", "ocs-agent dump-module -bundle 0 -module 3 -o module.bin -config node7.json")
	b := fs.Int("bundle", 0, "`number` of the bundle")
	m := fs.Int("module", 0, "`number` of the module in it")
	out := fs.String("o", "", "`file` to write, - is stdout")
	cfg, err := common.alone(args)
	switch {
	case err != nil:
		return err
	case *out == "":
		return usagef("o: want a file to write")
	case *b < 0 || *b >= cfg.Board.Bundles:
		return usagef("bundle: %d: want 0 to %d", *b, cfg.Board.Bundles-1)
	case *m < 0 || *m >= cfg.Board.Modules:
		return usagef("module: %d: want 0 to %d", *m, cfg.Board.Modules-1)
	}
	image, err := cfg.dumpModule(*b, *m)
	if err != nil {
		return err
	}
	if *out == "-" {
		_, err := os.Stdout.Write(image)
		return err
	}
	f, err := createPrivate(*out)
	if err != nil {
		return cli.AsUsage(err)
	}
	_, err = f.Write(image)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return answer(common.json, map[string]any{"bundle": *b, "module": *m, "file": *out, "bytes": len(image)}, func() {
		fmt.Printf("%s: %d bytes, identifier %#02x, CMIS %d.%d\n", *out, len(image), image[0], image[1]>>4, image[1]&15)
	})
}

// errNoMemory is a module without a memory to dump.
var errNoMemory = errors.New("the modules of this board are of kind chips and have no module memory; peek reads their chips")

func (c *Config) dumpModule(b, m int) ([]byte, error) {
	a, err := c.agentConfig()
	if err != nil {
		return nil, err
	}
	if len(a.Board.Bundles) == 0 {
		return nil, usagef("bundle: this board is a circuit switch and has none")
	}
	if a.Board.Bundles[b].Modules[m].Kind != hal.KindCMIS {
		return nil, cli.AsUsage(errNoMemory)
	}
	ans, err := answered(c.askSocket(agent.Question{Verb: "dump", Bundle: proto.BundleID(b), Module: m}))
	if err == nil {
		return ans.Image, nil
	}
	if !errors.Is(err, agent.ErrNoAgent) {
		return nil, err
	}
	board, shut, err := c.benchBoard(&a)
	if err != nil {
		return nil, err
	}
	image, err := bench.DumpModule(bench.Alone(board), station(&a), b, m)
	return image, errors.Join(err, shut())
}
