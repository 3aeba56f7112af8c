package boardfile

import (
	_ "embed"
	"fmt"
	"slices"

	"ringlight/hal"

	"periph.io/x/conn/v3/physic"
)

//go:embed default.json
var defaultFile string // not bytes: those would lie beside what is written to, and be read at every start

// DefaultFile is the default board: eight bundles of eight modules.
func DefaultFile() (*File, error) {
	f, _, err := Parse([]byte(defaultFile))
	return f, err
}

// Default is the part of the default board with so many bundles and modules.
func Default(gpus, bundles, modules int) (hal.Board, error) {
	f, err := defaultPart(bundles, modules)
	if err != nil {
		return hal.Board{}, err
	}
	return f.of(gpus)
}

// of is the board of a node with this number of GPUs; the fabric limits the number.
func (f *File) of(gpus int) (hal.Board, error) {
	b, err := f.Board()
	b.GPUs = gpus
	return b, err
}

func defaultPart(bundles, modules int) (*File, error) {
	f, err := DefaultFile()
	if err != nil {
		return nil, err
	}
	if err := span(bundles, modules); err != nil {
		return nil, err
	}
	f.Bundles = f.Bundles[:bundles]
	// What only the other bundles use goes with them.
	used := map[string]bool{}
	for i := range f.Bundles {
		used[f.Bundles[i].Latch] = true
		for _, mod := range f.Bundles[i].Modules {
			used[mod.SPI], used[mod.ADC], used[mod.Slow], used[mod.Mux] = true, true, true, true
		}
		f.Bundles[i].Modules = f.Bundles[i].Modules[:modules]
	}
	f.Latches = slices.DeleteFunc(f.Latches, func(l Latch) bool { return !used[l.Name] })
	for _, l := range f.Latches {
		used[l.Bus] = true
	}
	f.Muxes = slices.DeleteFunc(f.Muxes, func(x Mux) bool { return !used[x.Name] })
	f.Buses = slices.DeleteFunc(f.Buses, func(b Bus) bool { return !used[b.Name] })
	return f, nil
}

func span(bundles, modules int) error {
	if bundles < 1 || bundles > hal.MaxBundles {
		return fmt.Errorf("boardfile: bundles %d: want 1 to %d", bundles, hal.MaxBundles)
	}
	if modules < 1 || modules > hal.MaxModules {
		return fmt.Errorf("boardfile: modules %d: want 1 to %d", modules, hal.MaxModules)
	}
	return nil
}

// DefaultOf is the default board with another DAC, whose channels have the cells in
// order.
func DefaultOf(dac hal.Part, gpus, bundles, modules int) (hal.Board, error) {
	f, err := defaultPart(bundles, modules)
	if err != nil {
		return hal.Board{}, err
	}
	part := dac.Data()
	if part.Role != hal.RoleDAC {
		return hal.Board{}, fmt.Errorf("boardfile: %q is no DAC of heaters", part.Name)
	}
	t := &f.Types[0]
	t.DAC, t.Heaters = part.Name, make([][]string, part.PerModule)
	for c := range t.Heaters {
		t.Heaters[c] = make([]string, part.Channels)
	}
	outputs := hal.OutputsInOrder(dac)
	for k, out := range outputs[:hal.BenesCells] {
		t.Heaters[out.Chip][out.Channel] = cellName(k)
	}
	for i := range f.Bundles {
		for j := range f.Bundles[i].Modules {
			mod := &f.Bundles[i].Modules[j]
			mod.Selects = mod.Selects[:0]
			for d := range part.PerModule {
				mod.Selects = append(mod.Selects, j*part.PerModule+d)
			}
		}
	}
	return f.of(gpus)
}

// DefaultCMIS is a board of CMIS modules with the default board's LOS lines.
// Its bundles have no latch: what the latch does on the default board, the
// modules' controllers do. With a mux the modules of a bundle share one
// segment behind it; without, each has a segment of its own.
func DefaultCMIS(gpus, bundles, modules int, mux bool) (hal.Board, error) {
	if err := span(bundles, modules); err != nil {
		return hal.Board{}, err
	}
	o := hal.Standard()
	b := hal.Board{GPUs: gpus, Types: []hal.Optics{o}}
	for range bundles {
		var bundle hal.Bundle
		for m := range modules {
			if m == 0 || !mux {
				n := len(b.Buses)
				b.Buses = append(b.Buses, hal.Bus{Name: fmt.Sprintf("mci%d", n), Kind: hal.I2C, Device: fmt.Sprintf("/dev/i2c-%d", n), Speed: physic.MegaHertz})
			}
			mod := hal.Module{Kind: hal.KindCMIS, MCI: hal.BusID(len(b.Buses) - 1)}
			if mux {
				mod.Mux, mod.MuxPart, mod.MuxChannel = 0x70, hal.PCA9848, uint8(m)
			}
			bundle.Modules = append(bundle.Modules, mod)
		}
		for l := range bundle.LOS {
			bundle.LOS[l] = hal.LineID(len(b.Lines))
			b.Lines = append(b.Lines, hal.Line{Chip: "gpiochip0", Offset: len(b.Lines)})
		}
		b.Bundles = append(b.Bundles, bundle)
	}
	b.Link()
	return b, b.Check()
}
