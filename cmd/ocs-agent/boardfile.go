package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/proto"
)

// readBoard takes the board in from its file, where there is one.
func (b *BoardConfig) readBoard() error {
	if b.File == "" {
		return nil
	}
	raw, err := readLimited(b.File, boardfile.MaxBytes)
	if err != nil {
		return &proto.Error{Code: proto.Invalid, Field: "board.file", Reason: err.Error()}
	}
	_, board, err := parseBoard(raw)
	if err != nil {
		return fmt.Errorf("board.file: %s: %w", b.File, err)
	}
	b.Take(&board)
	return nil
}

// parseBoard reads a board that can be calibrated.
func parseBoard(raw []byte) (*boardfile.File, hal.Board, error) {
	f, b, err := boardfile.Parse(raw)
	if err == nil {
		err = ocs.CheckMatrices(&b)
	}
	return f, b, err
}

// benchOf is a board on which the maker of CMIS modules calibrates them: the same
// modules, their chips within reach.
func benchOf(cmis *hal.Board) (*hal.Board, error) {
	var its boardfile.Config
	its.Take(cmis)
	b, err := boardfile.Default(its.GPUs, its.Bundles, its.Modules)
	if err != nil {
		return nil, err
	}
	usual := b.Types[0]
	b.Types = nil
	for _, o := range cmis.Types {
		its := usual
		its.Heater, its.Settle = o.Heater, o.Settle
		b.Types = append(b.Types, its)
	}
	for i := range b.Bundles {
		b.Bundles[i].Modules = b.Bundles[i].Modules[:len(cmis.Bundles[i].Modules)]
		for j := range b.Bundles[i].Modules {
			b.Bundles[i].Modules[j].Type = cmis.Bundles[i].Modules[j].Type
		}
	}
	b.Link()
	return &b, nil
}

// boardCommand checks and shows board files.
func boardCommand(_ context.Context, args []string) error {
	_, common := newFlags("board check|show", "look at a board file; show default is the default board, with -json as a file to begin with", "ocs-agent board check board.json")
	words, err := common.words(args, 2)
	if err != nil {
		return err
	}
	if len(words) != 2 || words[0] != "check" && words[0] != "show" {
		return usagef("board: want check FILE or show FILE; -h explains")
	}
	var f *boardfile.File
	var b hal.Board
	if name := words[1]; words[0] == "show" && name == "default" {
		if f, err = boardfile.DefaultFile(); err == nil {
			b, err = f.Board()
		}
	} else {
		var raw []byte
		if raw, err = readLimited(name, boardfile.MaxBytes); err != nil {
			return cli.AsUsage(err)
		}
		f, b, err = parseBoard(raw)
	}
	if err != nil {
		return common.boardFault(words[1], err)
	}
	if words[0] == "check" {
		advice := append([]string{}, b.Advice()...)
		for _, a := range advice {
			fmt.Fprintln(os.Stderr, "advice:", a)
		}
		said := map[string]any{"name": f.Name, "buses": len(b.Buses), "bundles": len(b.Bundles), "modules": b.Modules(), "ports": b.Ports(), "problems": []string{}, "advice": advice}
		return answer(common.json, said, func() {
			if b.Mirrors != nil {
				fmt.Printf("%s: %d buses, %d ports of mirrors: good\n", f.Name, len(b.Buses), b.Ports())
			} else {
				fmt.Printf("%s: %d buses, %d bundles, %d modules: good\n", f.Name, len(b.Buses), len(b.Bundles), b.Modules())
			}
		})
	}
	return answer(common.json, f, func() { showBoard(f, &b) })
}

// boardFault tells all that is wrong with a file, each by its field.
func (c *common) boardFault(file string, err error) error {
	problems := []*hal.Problem{}
	for _, one := range flatten(err) {
		var p *hal.Problem
		if !errors.As(one, &p) {
			p = &hal.Problem{Text: one.Error()}
		}
		problems = append(problems, p)
	}
	err = cli.AsUsage(fmt.Errorf("%s: %s:\n%w", file, proto.Count(len(problems), "problem"), err))
	if c.json {
		return cmp.Or(printJSON(map[string]any{"problems": problems}), cli.Answered(err))
	}
	return err
}

// flatten is the errors that were joined.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}

// showBoard prints what is on every bus.
func showBoard(f *boardfile.File, b *hal.Board) {
	if b.Mirrors != nil {
		fmt.Printf("%s: %d ports of mirrors\n", f.Name, b.Ports())
	} else {
		fmt.Printf("%s: %d GPUs, %d bundles\n", f.Name, b.GPUs, len(b.Bundles))
	}
	for i := range b.Buses {
		bus := &b.Buses[i]
		of := ""
		if bus.Adapter {
			of = ", a channel of a mux on " + b.Buses[bus.Root].Name
		}
		fmt.Printf("bus %d %s: %s at %v%s\n", i, bus.Name, bus.Device, bus.Speed, of)
		for c := range b.Chips() {
			if int(c.Bus) != i {
				continue
			}
			at := fmt.Sprintf("%#02x", c.Addr)
			if c.Part.Data().Bus == hal.SPI {
				at = fmt.Sprintf("select %d, mode %d", c.Addr, c.Part.Data().SPIMode)
			} else if c.Mux != 0 {
				at += fmt.Sprintf(" behind %#02x.%d", c.Mux, c.Channel)
			}
			fmt.Printf("  %-9s %-22s %s\n", c.Part, at, c.Field)
		}
	}
	for i := range b.Bundles {
		var los []string
		for _, l := range b.Bundles[i].LOS {
			los = append(los, b.Lines[l].String())
		}
		fmt.Printf("bundle %d: light by %s\n", i, strings.Join(los, ", "))
	}
}
