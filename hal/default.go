package hal

import (
	"fmt"

	"periph.io/x/conn/v3/physic"
)

// Addresses of the default board; every one is in the range its chip allows.
const (
	defaultLatchAddr   = 0x20 // PCA9535, one per four bundles
	defaultGuardAddr   = 0x10 // ADS7138, + 2 * place on the segment
	defaultLaneADCAddr = 0x11
	defaultMuxAddr     = 0x70 // PCA9548
	defaultTempAddr    = 0x48
	defaultEEPROMAddr  = 0x50
	defaultRailAddr    = 0x40
	defaultLaneEnable  = 0x38 // TCA9534A
	bundlesPerLatch    = 4
	modulesPerSegment  = 4
	segmentsPerBundle  = 2
)

// Limits of Default; the addresses above allow no more.
const (
	MaxBundles = 8
	MaxModules = modulesPerSegment * segmentsPerBundle
)

// Default is the board that the simulator builds: one I2C segment for the
// latches alone, and for each bundle one SPI bus, two I2C segments for the
// ADCs and one for everything slow, behind a mux.
func Default(gpus, bundles, modules int) (Board, error) {
	return DefaultOf(LTC2688, gpus, bundles, modules)
}

// DefaultOf is the default board with another DAC.
func DefaultOf(dac DAC, gpus, bundles, modules int) (Board, error) {
	if bundles < 1 || bundles > MaxBundles {
		return Board{}, fmt.Errorf("hal: bundles %d: want 1 to %d", bundles, MaxBundles)
	}
	if modules < 1 || modules > MaxModules {
		return Board{}, fmt.Errorf("hal: modules %d: want 1 to %d", modules, MaxModules)
	}
	b := Board{GPUs: gpus}
	b.Buses = append(b.Buses, Bus{Kind: I2C, Device: "/dev/i2c-0", Speed: physic.MegaHertz})
	for i := 0; i < (bundles+bundlesPerLatch-1)/bundlesPerLatch; i++ {
		b.Latches = append(b.Latches, Latch{Bus: 0, Addr: defaultLatchAddr + uint16(i)})
	}
	for i := range bundles {
		first := BusID(len(b.Buses))
		b.Buses = append(b.Buses, Bus{Kind: SPI, Device: fmt.Sprintf("/dev/spidev%d.", i), Speed: 20 * physic.MegaHertz})
		for s := range segmentsPerBundle {
			b.Buses = append(b.Buses, Bus{Kind: I2C, Device: fmt.Sprintf("/dev/i2c-%d", 1+3*i+s), Speed: physic.MegaHertz})
		}
		b.Buses = append(b.Buses, Bus{Kind: I2C, Device: fmt.Sprintf("/dev/i2c-%d", 3+3*i), Speed: 400 * physic.KiloHertz})
		bundle := Bundle{Latch: i / bundlesPerLatch, Shift: uint8(4 * (i % bundlesPerLatch))}
		for m := range modules {
			place := uint16(m % modulesPerSegment)
			mod := Module{
				SPI: first, DAC: dac,
				ADC: first + 1 + BusID(m/modulesPerSegment), Guard: defaultGuardAddr + 2*place, LaneADC: defaultLaneADCAddr + 2*place,
				Slow: first + 1 + segmentsPerBundle, Mux: defaultMuxAddr, MuxChannel: uint8(m),
				Temp: defaultTempAddr, EEPROM: defaultEEPROMAddr, Rail: defaultRailAddr, LaneEnable: defaultLaneEnable,
			}
			for d := range dacChips[dac] {
				mod.ChipSelects = append(mod.ChipSelects, uint16(m*dacChips[dac]+d))
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
