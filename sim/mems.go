package sim

import (
	"fmt"

	"ringlight/hal"
	"ringlight/hal/ad5535b"

	"periph.io/x/conn/v3/physic"
)

// mems is the optics of a MEMS board: two arrays of mirrors that face each
// other. A beam from a fibre of side A is thrown by that port's mirror across
// to side B, and enters a fibre there when the mirror of that port stands so
// that it points back.
type mems struct {
	hw     *hal.Mirrors
	seed   uint64
	length float64 // between the arrays, millimetres
	dacs   []mirrorDAC
	arrays [hal.NumSides][]mirror
	inputs []InputLight
	lamps  []float64 // milliwatts that come in, from inputs
	chips  []monitorChip
	temp   tempChip
	noise  float64 // of the monitors, codes rms; 0: as it is
	ph     MirrorPhysics
	links  links // of fibres to transceivers
}

// mirrorDAC is one AD5535B: nothing of it can be read.
type mirrorDAC struct {
	code   [ad5535b.Channels]uint16
	mirror [ad5535b.Channels]electrode
}

// electrode is what hangs on a channel.
type electrode struct {
	used       bool
	side, port int
	index      int
}

// mirror is two axes with their four electrodes.
type mirror struct {
	volt  [hal.NumElectrodes]float64
	axes  [2]axis
	stuck bool
}

// Geometry of the arrays. chosen: a square grid of 1 mm pitch, 100 mm from the
// other, further where the grid is so large that the corners would otherwise
// be out of reach; a beam of 0.3 mm on the far array, and wider in proportion on
// one further off.
const (
	memsPitch     = 1.0   // millimetres
	memsDistance  = 100.0 // millimetres
	memsReach     = 11    // pitches that memsDistance allows for
	memsWaist     = 0.3   // millimetres
	memsCoupled   = 0.3   // a beam that comes in off centre also leaves tilted
	memsParkAngle = 0.056 // radian: beyond every port
)

// Parts of a MEMS board's seed.
const (
	seedMirror = 2000 + iota
	seedMonitor
	seedPathLoss
	seedFactory
)

// MirrorPhysics is what mirrors of another make are like; zero is the default
// board's.
type MirrorPhysics struct {
	Quartic float64 // loss that pointing errors add besides, of the square of the usual one, per dB
	Ageing  float64 // times what mirrors have moved since the factory; 0: once
	Damping float64 // of every mirror; 0: each its own
}

func newMems(hw *hal.Board, seed uint64, ph MirrorPhysics) (*mems, error) {
	m := &mems{hw: hw.Mirrors, seed: seed, ph: ph}
	if m.hw.Ports < 1 || len(m.hw.Arrays[hal.SideA]) != m.hw.Ports || len(m.hw.Arrays[hal.SideB]) != m.hw.Ports {
		return nil, fmt.Errorf("sim: %d ports with %d and %d mirrors", m.hw.Ports, len(m.hw.Arrays[hal.SideA]), len(m.hw.Arrays[hal.SideB]))
	}
	m.length = memsDistance * max(1, float64(m.side()-1)/memsReach)
	m.dacs = make([]mirrorDAC, len(m.hw.DACs))
	for i, d := range m.hw.DACs {
		if int(d.SPI) >= len(hw.Buses) || hw.Buses[d.SPI].Kind != hal.SPI {
			return nil, fmt.Errorf("sim: mirror DAC %d: bus %d is no SPI bus", i, d.SPI)
		}
		if hw.Buses[d.SPI].Speed > ad5535b.MaxHertz*physic.Hertz {
			return nil, fmt.Errorf("sim: mirror DAC %d: bus %d is too fast for it", i, d.SPI)
		}
	}
	for side := range m.arrays {
		m.arrays[side] = make([]mirror, m.hw.Ports)
		for port := range m.arrays[side] {
			mi := &m.arrays[side][port]
			for i := range mi.axes {
				mi.axes[i].draw(derive(derive(seed, seedMirror), uint64(side)<<20|uint64(port)<<2|uint64(i)), &ph)
			}
			for e, at := range m.hw.Arrays[side][port].Electrodes {
				d, ch := int(at)/hal.MirrorDACChannels, at%hal.MirrorDACChannels
				if d >= len(m.dacs) || m.dacs[d].mirror[ch].used {
					return nil, fmt.Errorf("sim: electrode %d of mirror %d/%d: channel %d taken or not there", e, side, port, at)
				}
				m.dacs[d].mirror[ch] = electrode{true, side, port, e}
			}
		}
	}
	var err error
	if m.chips, _, err = monitorsOf(m.hw); err != nil {
		return nil, err
	}
	m.lamps = make([]float64, m.hw.Ports)
	m.inputs = make([]InputLight, m.hw.Ports)
	for p := range m.inputs {
		m.setInput(p, InputLight{Lit: true, MilliTHz: DefaultMilliTHz})
	}
	return m, nil
}

// side is the length of an edge of the grid.
func (m *mems) side() int {
	n := 1
	for n*n < m.hw.Ports {
		n++
	}
	return n
}

// place is where a port lies on its array in millimetres.
func (m *mems) place(port int) (at [2]float64) {
	n := m.side()
	middle := float64(n-1) / 2
	at[0] = memsPitch * (float64(port%n) - middle)
	at[1] = memsPitch * (float64(port/n) - middle)
	return at
}

// aim is the deflection that each mirror needs on each axis for a path from a
// to b: a mirror turns a beam by twice its own angle.
func (m *mems) aim(a, b int) (angle [hal.NumSides][2]float64) {
	from, to := m.place(a), m.place(b)
	for i := range from {
		angle[hal.SideA][i] = (to[i] - from[i]) / (2 * m.length)
		angle[hal.SideB][i] = -angle[hal.SideA][i]
	}
	return angle
}

// clear is power-on: every output of every DAC at 0, every monitor unset.
func (m *mems) clear(now int64) {
	for d := range m.dacs {
		m.dacs[d].code = [ad5535b.Channels]uint16{}
	}
	for side := range m.arrays {
		for p := range m.arrays[side] {
			mi := &m.arrays[side][p]
			mi.volt = [hal.NumElectrodes]float64{}
			mi.pull(now)
		}
	}
	for i := range m.chips {
		m.chips[i].adc.reset()
	}
	m.temp.reset()
}

// spi carries out one message: every frame with the chip select low. The reply
// line is not connected.
func (m *mems) spi(now int64, bus hal.BusID, msg *hal.Msg) {
	for d := range m.dacs {
		if m.hw.DACs[d].SPI != bus || m.hw.DACs[d].ChipSelect != msg.Addr {
			continue
		}
		for at := 0; at < len(msg.W); at += int(msg.Frame) {
			ch, code, err := ad5535b.Decode(msg.W[at : at+int(msg.Frame)])
			if err != nil {
				continue // the chip never saw a nineteenth clock
			}
			m.write(now, d, ch, code)
		}
	}
}

func (m *mems) write(now int64, d, ch int, code uint16) {
	c := &m.dacs[d]
	c.code[ch] = code
	e := c.mirror[ch]
	if !e.used {
		return
	}
	mi := &m.arrays[e.side][e.port]
	mi.volt[e.index] = float64(ad5535b.Microvolt(code, hal.MirrorReferenceMillivolt)) * 1e-6
	mi.pull(now)
}

// pull gives both axes the torque of the electrodes as they are.
func (mi *mirror) pull(now int64) {
	if mi.stuck {
		return
	}
	for i := range mi.axes {
		plus, minus := mi.volt[2*i], mi.volt[2*i+1]
		mi.axes[i].drive(now, float64(plus*plus)-float64(minus*minus))
	}
}
