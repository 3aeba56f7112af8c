package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"ringlight/planner/fabric"
)

const fabricHelp = `ocsctl fabric new | show [flags]

Writes a fabric description with the default wiring, as ocs-planner run
-fabric-file and ocs-sim agents -fabric-file read it. -pods adds optical
switches between pods, -core leaf-spine a core of leaves and spines on which
each job is alone; without -nodes there are then no nodes. show asks the
planner what it runs, and how much of what it heard it had to refuse.

  ocsctl fabric new -nodes 128 -gpus 4 -k 3 -tp 64 -spares 8 -o fabric.json
  ocsctl fabric new -nodes 128 -tp 32 -ring-sizes 64:2,16:4
  ocsctl fabric new -pods 16 -leaves 8 -spines 8 -spine-ports 16 -o core.json
  ocsctl fabric new -core leaf-spine -leaves 16 -spines 8 -queue easy -o core.json
  ocsctl fabric show -json
`

func fabricNoun(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "show" {
		return fabricShow(ctx, args[1:], out)
	}
	p := fabric.DefaultParams()
	fs := flag.NewFlagSet("fabric", flag.ContinueOnError)
	fs.StringVar(&p.Name, "name", p.Name, "fabric's name, a level of every topic")
	fs.IntVar(&p.Nodes, "nodes", p.Nodes, "nodes, in HBD order")
	fs.IntVar(&p.GPUsPerNode, "gpus", p.GPUsPerNode, "GPUs of a node")
	fs.IntVar(&p.K, "k", p.K, "hops that a fibre may span")
	fs.IntVar(&p.TP, "tp", p.TP, "GPUs of a ring")
	sizes := fs.String("ring-sizes", "", "rings that are not of -tp, as GPUS:RINGS,..; those of -tp fill what is left")
	fs.IntVar(&p.NodesPerToR, "nodes-per-tor", 0, "nodes under one ToR switch of the data centre network; 0: not known, rings are placed for the HBD alone")
	fs.IntVar(&p.NodesPerDomain, "nodes-per-domain", 0, "nodes under the same aggregation switches, with -nodes-per-tor")
	fs.IntVar(&p.Spares, "spares", p.Spares, "nodes kept free, spread beside the rings")
	topology := fs.String("topology", string(p.Topology), "line or ring")
	policy := fs.String("policy", string(fabric.Bypass), "on a loss of light: bypass, or hold: report and act only when told")
	onLoss := fs.String("on-loss", string(fabric.Keep), "a ring that lost a node and finds no spare: keep it with fewer GPUs, or dissolve it")
	moves := fs.String("moves", string(fabric.MoveFew), "whole rings that may be moved to make one more whole: none, few (8) or any")
	holdOff := fs.Int("hold-off-us", 0, "microseconds in which a lost light may come back before a side acts")
	restore := fs.Int("wait-to-restore-ms", 0, "milliseconds after which a side goes back to its planned candidate; 0: it stays")
	core := coreFlags(fs)
	file := fs.String("o", "-", "file to write, - for stdout")
	fs.Bool("json", false, "accepted for uniformity: the description is JSON")
	words, err := parse(fs, args)
	if err != nil {
		return help(out, fs, err, fabricHelp)
	}
	if len(words) != 1 || words[0] != "new" {
		return wrongUsage("fabric", "new, or show", "%q", strings.Join(words, " "))
	}
	p.Topology = fabric.Topology(*topology)
	if p.RingSizes, err = fabric.ParseRingSizes(*sizes); err != nil {
		return err
	}
	if p.Core, err = core.of(fs); err != nil {
		return err
	}
	if p.Core != nil && !given(fs, "nodes") {
		p.Nodes = 0
	}
	f, err := fabric.New(p)
	if err != nil {
		return err
	}
	if *policy != string(fabric.Bypass) {
		f.Policy = fabric.Policy(*policy)
	}
	if *onLoss != string(fabric.Keep) {
		f.OnLoss = fabric.OnLoss(*onLoss)
	}
	if *moves != string(fabric.MoveFew) {
		f.Moves = fabric.Moves(*moves)
	}
	f.HoldOffUS, f.WaitToRestoreMS = *holdOff, *restore
	if err := f.Validate(); err != nil {
		return err
	}
	text := f.Encode()
	if *file == "-" {
		_, err := out.Write(text)
		return err
	}
	if err := os.WriteFile(*file, text, 0o644); err != nil {
		return fmt.Errorf("fabric new: %w", err)
	}
	return nil
}
