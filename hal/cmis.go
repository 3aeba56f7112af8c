package hal

import (
	"fmt"

	"periph.io/x/conn/v3/physic"
)

// DefaultCMIS is a board of CMIS modules with the default board's LOS lines.
// Its bundles have no latch: what the latch does on the default board, the
// modules' controllers do. With a mux the modules of a bundle share one
// segment behind it; without, each has a segment of its own.
func DefaultCMIS(gpus, bundles, modules int, mux bool) (Board, error) {
	if bundles < 1 || bundles > MaxBundles {
		return Board{}, fmt.Errorf("hal: bundles %d: want 1 to %d", bundles, MaxBundles)
	}
	if modules < 1 || modules > MaxModules {
		return Board{}, fmt.Errorf("hal: modules %d: want 1 to %d", modules, MaxModules)
	}
	b := Board{GPUs: gpus}
	for range bundles {
		var bundle Bundle
		for m := range modules {
			if m == 0 || !mux {
				b.Buses = append(b.Buses, Bus{Kind: I2C, Device: fmt.Sprintf("/dev/i2c-%d", len(b.Buses)), Speed: physic.MegaHertz})
			}
			mod := Module{Kind: KindCMIS, MCI: BusID(len(b.Buses) - 1)}
			if mux {
				mod.Mux, mod.MuxChannel = defaultMuxAddr, uint8(m)
			}
			bundle.Modules = append(bundle.Modules, mod)
		}
		for l := range bundle.LOS {
			bundle.LOS[l] = LineID(len(b.Lines))
			b.Lines = append(b.Lines, Line{Chip: "gpiochip0", Offset: len(b.Lines)})
		}
		b.Bundles = append(b.Bundles, bundle)
	}
	return b, nil
}
