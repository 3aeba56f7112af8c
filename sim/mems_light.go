package sim

import (
	"fmt"
	"slices"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/mzi/detmath"
)

// InputLight is what comes in at a port of side A.
type InputLight struct {
	Lit      bool
	MilliDBm int32
	MilliTHz int32 // 0: DefaultMilliTHz
}

// DefaultMilliTHz is the optical frequency of light that nobody said more
// about: the middle of the grid of dense systems.
const DefaultMilliTHz = 193_100

// Loss of a path when its mirrors point exactly. chosen: of the order of
// commercial mirror switches; the slopes only show in the last tenth of a dB.
const (
	memsLeastLoss   = 1.5
	memsLossSpread  = 0.5
	memsLossPerTHz  = 0.02
	memsLossPerK    = 0.003
	memsFactoryErr  = 0.03 // dB, of the factory's own measurement
	memsNoLightLoss = 60.0 // dB: less than this is no light
	carrierAdd      = 3000 // millikelvin that the arrays are above the air
)

func (m *mems) setInput(port int, in InputLight) {
	if in.MilliTHz == 0 {
		in.MilliTHz = DefaultMilliTHz
	}
	m.inputs[port], m.lamps[port] = in, 0
	if in.Lit {
		m.lamps[port] = detmath.FromDB(float64(in.MilliDBm) / 1000)
	}
}

// pathLoss is the loss in dB of a path whose mirrors point exactly.
func (m *mems) pathLoss(a, b int, milliTHz, millicelsius int32) float64 {
	h := derive(derive(m.seed, seedPathLoss), uint64(a)<<16|uint64(b))
	f := float64(milliTHz-DefaultMilliTHz) / 1000
	if f < 0 {
		f = -f
	}
	loss := memsLeastLoss + float64(memsLossSpread*unit(h))
	loss += float64(memsLossPerTHz * f)
	return loss + float64(memsLossPerK*(float64(millicelsius-referenceMillicelsius)/1000))
}

// coupling is what pointing errors add: a Gaussian beam into a Gaussian mode,
// quadratic in dB. An error of mirror A brings the beam in beside the centre,
// one of mirror B tilted, and each a little of both.
func (m *mems) coupling(now int64, a, b int, millicelsius int32) float64 {
	want := m.aim(a, b)
	const toB = 2 * memsDistance / memsWaist // a longer throw has a wider beam
	ma, mb := &m.arrays[hal.SideA][a], &m.arrays[hal.SideB][b]
	sum := 0.0
	for i := range ma.axes {
		ua := toB * (ma.axes[i].points(now, millicelsius) - want[hal.SideA][i])
		ub := toB * (mb.axes[i].points(now, millicelsius) - want[hal.SideB][i])
		sum += float64(ua*ua) + float64(ub*ub)
		sum += float64(2 * memsCoupled * float64(ua*ub))
	}
	loss := 8.68 * sum
	return loss + float64(m.ph.Quartic*float64(loss*loss))
}

func (m *mems) loss(now int64, a, b int, millicelsius int32) float64 {
	return m.pathLoss(a, b, m.inputs[a].MilliTHz, millicelsius) + m.coupling(now, a, b, millicelsius)
}

// leaves is the light in milliwatts that leaves at port b.
func (m *mems) leaves(now int64, b int, millicelsius int32) float64 {
	sum := 0.0
	for a, in := range m.lamps {
		if in == 0 {
			continue
		}
		if add := m.coupling(now, a, b, millicelsius); add < memsNoLightLoss {
			sum += float64(in * detmath.FromDB(-add-m.pathLoss(a, b, m.inputs[a].MilliTHz, millicelsius)))
		}
	}
	return sum
}

// monitorChip is one ADS7138 with the monitors of up to eight ports. It keeps
// no history: MAX and MIN are the newest result.
type monitorChip struct {
	adc  adc
	side int
	port [ads7138.Channels]int // -1 = nothing connected
}

// monitorAt is where a monitor chip answers.
type monitorAt struct {
	bus  hal.BusID
	addr uint16
}

// monitorsOf are the monitor chips of a board, in the order of their ports.
func monitorsOf(hw *hal.Mirrors) (chips []monitorChip, at []monitorAt, err error) {
	for side := range hw.Monitors {
		if len(hw.Monitors[side]) != hw.Ports {
			return nil, nil, fmt.Errorf("sim: %d monitors for %d ports", len(hw.Monitors[side]), hw.Ports)
		}
		for port, mo := range hw.Monitors[side] {
			i := slices.Index(at, monitorAt{mo.Bus, mo.Addr})
			if i < 0 {
				i = len(chips)
				at = append(at, monitorAt{mo.Bus, mo.Addr})
				chips = append(chips, monitorChip{side: side, port: [ads7138.Channels]int{-1, -1, -1, -1, -1, -1, -1, -1}})
			}
			if c := &chips[i]; c.side != side || mo.Channel >= ads7138.Channels || c.port[mo.Channel] >= 0 {
				return nil, nil, fmt.Errorf("sim: monitor of port %d/%d: input %d taken or not there", side, port, mo.Channel)
			}
			chips[i].port[mo.Channel] = port
		}
	}
	return chips, at, nil
}

// addMirrors puts the monitor chips and the thermometer of a MEMS board on
// their buses.
func (l *layout) addMirrors(hw *hal.Mirrors) error {
	_, at, err := monitorsOf(hw)
	if err != nil {
		return err
	}
	for i, a := range at {
		if err := l.add(a.bus, chip{kind: chipMonitor, addr: a.addr, latch: i}); err != nil {
			return err
		}
	}
	return l.add(hw.Temp.Bus, chip{kind: chipMirrorTemp, addr: hw.Temp.Addr})
}

var monitorFull = detmath.FromDB(hal.MonitorFullScaleMilliDBm / 1000.0)

// monitorInputs is what a monitor chip sees at one time.
type monitorInputs struct {
	m            *mems
	place        int
	now          int64
	millicelsius int32
}

func (m *mems) monitor(place int, now int64, millicelsius int32) monitorInputs {
	return monitorInputs{m, place, now, millicelsius}
}

func (in monitorInputs) sample(c *adc, ch int) uint16 { return in.convert(c, ch, in.now) }

func (in monitorInputs) result(c *adc, _, ch int) uint16 {
	from, _, _, _, ok := c.window(ch, in.now)
	if !ok {
		return 0
	}
	return in.convert(c, ch, from)
}

// convert is one averaged result of a channel sampled from from on.
func (in monitorInputs) convert(c *adc, ch int, from int64) uint16 {
	chip := &in.m.chips[in.place]
	p := probe{points: 1, noise: in.m.noise, seed: derive(derive(in.m.seed, seedMonitor), uint64(in.place))}
	if p.noise == 0 {
		p.noise = adcNoiseCodes
	}
	if port := chip.port[ch]; port >= 0 {
		light := in.m.lamps[port]
		if chip.side == hal.SideB {
			light = in.m.leaves(in.now, port, in.millicelsius)
		}
		p.at[0][ch] = light * (ads7138.CodeFull / monitorFull)
	}
	return p.convert(ch, from, ads7138.CycleNanos(c.reg[ads7138.RegOpMode]), c.oversample())
}
