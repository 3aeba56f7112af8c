package hal

import (
	"fmt"

	"periph.io/x/conn/v3/physic"
)

// The two sides of a crossbar: light comes in at a port of side A and leaves
// at one of side B, if the mirror of each points at the other's.
const (
	SideA = iota
	SideB
	NumSides
)

// The four electrodes of a mirror. The two of an axis pull against each other.
const (
	ElectrodeXPlus = iota
	ElectrodeXMinus
	ElectrodeYPlus
	ElectrodeYMinus
	NumElectrodes
)

// MirrorDACChannels is how many electrodes hang on one mirror DAC.
const MirrorDACChannels = 32

// MirrorDAC is where one mirror DAC is.
type MirrorDAC struct {
	SPI        BusID
	ChipSelect uint16
}

// Mirror says where the electrodes of one mirror hang: at channel
// Electrodes[i]%MirrorDACChannels of DAC Electrodes[i]/MirrorDACChannels.
type Mirror struct {
	Electrodes [NumElectrodes]uint16
}

// Monitor is the power monitor of one port: one channel of an ADC.
type Monitor struct {
	Bus     BusID
	Addr    uint16
	Channel uint8
}

// Mirrors is the optics of a MEMS board: two arrays of mirrors with a fibre and
// a power monitor at each.
type Mirrors struct {
	Ports    int // of each side
	DAC, ADC Part
	DACs     []MirrorDAC
	Arrays   [NumSides][]Mirror  // by port
	Monitors [NumSides][]Monitor // by port: what comes in at A, what leaves at B
	Temp     MirrorTemp
}

// Ports is how many a circuit switch has of each side, 0: it is the board of a node.
func (b *Board) Ports() int {
	if b.Mirrors == nil {
		return 0
	}
	return b.Mirrors.Ports
}

// MirrorTemp is the sensor on the mirror arrays' carrier.
type MirrorTemp struct {
	Part Part
	Bus  BusID
	Addr uint16
}

// What a driver of a MEMS board must know of its analogue part. chosen: none
// is a datasheet figure.
const (
	// The reference of the mirror DACs: a full scale of 200 V.
	MirrorReferenceMillivolt = 4000
	// MirrorBias is the code that both electrodes of an axis stand at when it
	// is at rest, 70 V: with V1 = bias + d and V2 = bias - d the torque, which
	// goes with V1^2 - V2^2, is 4 bias d.
	MirrorBias = 5734
	// MirrorMaxDrive is the largest d, 48 V. The guard of the driver clamps
	// here: with the overshoot of a step that ends there it stays under 80 % of
	// the travel, beyond which a mirror is pulled in.
	MirrorMaxDrive = 3968
	// A monitor's full scale, the tap's own ratio allowed for.
	MonitorFullScaleMilliDBm = 6000
)

const (
	monitorsPerChip = 8
	chipsPerSegment = 8
	// MaxCrossbarPorts is the most that DefaultMEMS builds: the ports of the
	// largest box that is sold ([LUMOS] names one of 576, and counts on 512), and
	// bus numbers enough.
	MaxCrossbarPorts = 576
	// Chip selects of one SPI bus; the mirrors of a bulk move go out over all
	// buses at once.
	mirrorDACsPerBus = 16
)

// DefaultMEMS is the MEMS board that the simulator builds: ports fibres on
// either side, four electrodes a mirror, 16 DACs to a SPI bus, 64 monitors to
// an I2C segment of their own.
func DefaultMEMS(ports int) (Board, error) {
	if ports < 1 || ports > MaxCrossbarPorts {
		return Board{}, fmt.Errorf("hal: crossbar ports %d: want 1 to %d", ports, MaxCrossbarPorts)
	}
	var b Board
	m := &Mirrors{Ports: ports, DAC: AD5535B, ADC: ADS7138}
	b.Buses = append(b.Buses, Bus{Kind: I2C, Device: "/dev/i2c-0", Speed: 400 * physic.KiloHertz})
	m.Temp = MirrorTemp{Part: TMP102, Bus: 0, Addr: 0x48}
	dacs := (NumSides*ports*NumElectrodes + MirrorDACChannels - 1) / MirrorDACChannels
	for d := range dacs {
		if d%mirrorDACsPerBus == 0 {
			b.Buses = append(b.Buses, Bus{Kind: SPI, Device: fmt.Sprintf("/dev/spidev%d.", d/mirrorDACsPerBus), Speed: 20 * physic.MegaHertz})
		}
		m.DACs = append(m.DACs, MirrorDAC{SPI: BusID(len(b.Buses) - 1), ChipSelect: uint16(d % mirrorDACsPerBus)})
	}
	segments := 0
	channel, place := uint16(0), 0
	for side := range NumSides {
		for range ports {
			var mirror Mirror
			for e := range mirror.Electrodes {
				mirror.Electrodes[e] = channel
				channel++
			}
			m.Arrays[side] = append(m.Arrays[side], mirror)
			if place%(monitorsPerChip*chipsPerSegment) == 0 {
				segments++
				b.Buses = append(b.Buses, Bus{Kind: I2C, Device: fmt.Sprintf("/dev/i2c-%d", segments), Speed: physic.MegaHertz})
			}
			m.Monitors[side] = append(m.Monitors[side], Monitor{
				Bus: BusID(len(b.Buses) - 1), Addr: 0x10 + uint16(place/monitorsPerChip%chipsPerSegment), Channel: uint8(place % monitorsPerChip),
			})
			place++
		}
		// The next side begins with a chip of its own.
		place = (place + monitorsPerChip - 1) / monitorsPerChip * monitorsPerChip
	}
	b.Mirrors = m
	return b, nil
}
