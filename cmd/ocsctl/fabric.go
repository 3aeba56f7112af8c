package main

import (
	"context"
	"flag"
	"io"
	"os"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
)

// maxFabric bounds a description that is read. chosen: a million fibres.
const maxFabric = 128 << 20

// fabricFile reads a description.
func fabricFile(name string) (*fabric.Fabric, error) {
	data, err := readInput(os.Stdin, name, maxFabric)
	if err != nil {
		return nil, err
	}
	return fabric.Parse(data)
}

// write puts a text into a file, - is stdout.
func write(out io.Writer, name string, text []byte) error {
	if name == "-" {
		_, err := out.Write(text)
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// fabricCabling turns a sheet into fibres, or fibres into a sheet.
func fabricCabling(_ context.Context, args []string, out io.Writer) error {
	fs := cli.NewFlags("fabric cabling")
	file := fs.String("o", "-", "file to write, - for stdout")
	fs.Bool("json", false, "accepted for uniformity: errors are JSON, too")
	ofCore := fs.Bool("core", false, "the fibres of the core's optical switches; so it is where there are no nodes")
	old := fs.String("was", "", "with -core: file of another description, whose fibres are left out")
	words, err := cli.Parse(fs, args, help("fabric"))
	if err != nil {
		return err
	}
	if len(words) < 1 || len(words) > 2 {
		return wrongUsage("cabling", "FABRIC [SHEET]", "%q", strings.Join(words, " "))
	}
	f, err := fabricFile(words[0])
	if err != nil {
		return err
	}
	if *ofCore || *old != "" || f.Nodes == 0 {
		was := new(fabric.Fabric)
		if *old != "" {
			if was, err = fabricFile(*old); err != nil {
				return err
			}
		}
		if f.Core == nil || f.Core.Mirrors() == 0 || *old != "" && was.Core == nil || len(words) > 1 {
			return wrongUsage("core", "FABRIC, and -was OLD, with optical switches of a core, and no SHEET", "%q", strings.Join(words, " "))
		}
		return write(out, *file, f.Core.CoreCabling(was.Core))
	}
	if len(words) == 1 {
		return write(out, *file, f.Cabling())
	}
	if f, err = recable(f, words[1]); err != nil {
		return err
	}
	return write(out, *file, f.Encode())
}

// recable takes the fibres of a description from a sheet, "" is none.
func recable(f *fabric.Fabric, sheet string) (*fabric.Fabric, error) {
	if sheet == "" {
		return f, nil
	}
	data, err := readInput(os.Stdin, sheet, maxFabric)
	if err != nil {
		return nil, err
	}
	return f.Recable(data)
}

func fabricNew(_ context.Context, args []string, out io.Writer) error {
	p := fabric.DefaultParams()
	fs := cli.NewFlags("fabric new")
	fs.StringVar(&p.Name, "name", p.Name, "fabric's name, a level of every topic")
	cli.Options(fs, &p)
	sizes := fs.String("ring-sizes", "", "rings that are not of -tp, as GPUS:RINGS,..; those of -tp fill what is left")
	fs.IntVar(&p.NodesPerToR, "nodes-per-tor", 0, "nodes under one ToR switch of the data centre network; 0: not known, rings are placed for the HBD alone")
	fs.IntVar(&p.NodesPerDomain, "nodes-per-domain", 0, "nodes under the same aggregation switches, with -nodes-per-tor")
	tors := fs.String("tors", "", "CSV file with lines of NODE,TOR[,DOMAIN], where racks are not all of one size; instead of -nodes-per-tor")
	fs.BoolVar(&p.Rails, "rails", false, "a ToR is a switch for each GPU of a node: GPU i of all its nodes is on the i-th")
	topology := fs.String("topology", string(p.Topology), "line or ring")
	policy := fs.String("policy", string(fabric.Bypass), "on a loss of light: bypass, or hold: report and act only when told")
	onLoss := fs.String("on-loss", string(fabric.Keep), "a ring that lost a node and finds no spare: keep it with fewer GPUs, or dissolve it")
	moves := fs.String("moves", string(fabric.MoveFew), "whole rings that may be moved to make one more whole: none, few (8, up to 64 as outages teach) or any")
	price := fs.Int("move-price-ms", 0, "with moves few: for how long a ring lacks nodes, for each whole one that moves for it beyond those that may at once; 0: what jobs say that it costs them, and 5000 before they do")
	holdOff := fs.Int("hold-off-us", 0, "microseconds in which a lost light may come back before a side acts")
	restore := fs.Int("wait-to-restore-ms", 0, "milliseconds after which a side goes back to its planned candidate; 0: it stays")
	core := fabric.CoreFlags(fs, "core", fabric.DefaultCore(0), fabric.DefaultLeafSpine())
	names := fs.String("names", "", "file with the names of the nodes, one a line in HBD order; of a core without nodes, of its servers, leaf by leaf")
	sheet := fs.String("cabling", "", "CSV file with the fibres; default: those of the default wiring")
	file := fs.String("o", "-", "file to write, - for stdout")
	fs.Bool("json", false, "accepted for uniformity: the description is JSON")
	_, err := cli.ParseNone(fs, args, help("fabric"))
	if err != nil {
		return err
	}
	if *names != "" {
		data, err := readInput(os.Stdin, *names, maxFabric)
		if err != nil {
			return err
		}
		p.NodeNames = fabric.ParseNames(data)
	}
	p.Topology = fabric.Topology(*topology)
	if p.RingSizes, err = fabric.ParseRingSizes(*sizes); err != nil {
		return err
	}
	if p.Core, err = core(); err != nil {
		return err
	}
	rails := p.Rails
	p.Rails = rails && *tors == ""
	if p.Core != nil && !given(fs, "nodes") {
		p.Nodes, p.NodeNames, p.ServerNames = 0, nil, p.NodeNames
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
	f.MovePriceMS, f.HoldOffUS, f.WaitToRestoreMS = *price, *holdOff, *restore
	if *tors != "" {
		list, err := readInput(os.Stdin, *tors, maxFabric)
		if err != nil {
			return err
		}
		if f, err = f.ReadToRs(list); err != nil {
			return err
		}
		f.Rails = rails
	}
	if f, err = recable(f, *sheet); err != nil {
		return err
	}
	if err := f.Validate(); err != nil {
		return err
	}
	return write(out, *file, f.Encode())
}

// given reports whether a flag stands on the command line.
func given(fs *flag.FlagSet, name string) bool {
	found := false
	fs.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
