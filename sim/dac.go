package sim

import (
	"ringlight/hal"

	"periph.io/x/conn/v3/physic"
)

// voltages is what drives heaters, as the heaters see it: a DAC, or the
// controller of a module.
type voltages interface {
	// volts is the output of a channel for levels of the toggle nets.
	volts(ch int, nets [2]bool) float64
	// pins takes new levels of the nets and says which channels follow them.
	pins(nets [2]bool) (follow uint16)
	// channels is how many it has.
	channels() int
}

// spiChip is a DAC as its bus sees it.
type spiChip interface {
	// frame is one transfer with the chip select low. It fills back, which
	// nobody may read, and returns the channels whose output may have changed.
	frame(now int64, w, back []byte) (changed uint16)
	// inert reports whether a frame moves no output, whenever it is sent.
	inert(w []byte) bool
}

// plugDACs makes what drives the heaters of a module, as after power-on.
func (m *module) plugDACs() {
	if m.mci != nil {
		m.mci.power = new(controllerPower)
		m.dac = make([]voltages, len(m.mci.power))
		for d := range m.dac {
			m.dac[d] = &m.mci.power[d]
		}
		return
	}
	hw := &m.board.hw.Bundles[m.bundle.place].Modules[m.place]
	m.dac = make([]voltages, len(hw.ChipSelects))
	if hw.DAC.Like() == hal.AD5676R {
		for d := range m.dac {
			m.dac[d] = newAD(d, m.nets())
		}
		return
	}
	chips := make([]ltc, len(m.dac))
	for d := range m.dac {
		chips[d].holds = m.board.togglesHold
		m.dac[d] = &chips[d]
	}
}

// cellVolts is the voltage on heater k for levels of the toggle nets.
func (m *module) cellVolts(k int, nets [2]bool) float64 {
	if m.mci != nil {
		n := m.dac[0].channels()
		return m.dac[k/n].volts(k%n, nets)
	}
	at := m.wired.Heaters[k]
	return m.dac[at.Chip].volts(int(at.Channel), nets)
}

// allChannels of a DAC.
const allChannels = 0xFFFF

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shortMilliampere is the current limit of a DAC output.
const shortMilliampere = 20.0

// toggled carries new levels of the toggle nets to the heaters that follow
// them.
func (m *module) toggled() (moved bool) {
	for d := range m.dac {
		if follow := m.dac[d].pins(m.nets()); follow != 0 && m.drive(d, follow) {
			moved = true
		}
	}
	return moved
}

// drive carries the outputs of the channels in mask of one DAC to their
// heaters, and reports whether any heater goes elsewhere now.
func (m *module) drive(d int, mask uint16) (moved bool) {
	b, nets := m.board, m.nets()
	m.dac[d].pins(nets)
	n := m.dac[d].channels()
	for ch := range n {
		k := d*n + ch // of a controller's own
		if m.mci == nil {
			k = m.wired.CellAt(d, ch)
		}
		if mask>>ch&1 == 0 || k < 0 || k >= m.wired.CellSpan() {
			continue
		}
		v := m.per.phys.bowed(m.dac[d].volts(ch, nets))
		milliamp, milliwatt := m.per.heat(k, v)
		if m.planted != nil {
			switch {
			case m.planted.open>>k&1 != 0:
				milliamp, milliwatt = 0, 0
			case m.planted.short>>k&1 != 0 && v > 0:
				milliamp, milliwatt = shortMilliampere, 0
			}
		}
		b.limits.note(v, milliamp, milliwatt)
		m.milliamp[k] = float32(milliamp)
		if m.setLevel(k, milliwatt/m.per.cells[k].piPower) {
			moved = true
		}
	}
	power, current := 0.0, 0.0
	for k := range m.level {
		power += float64(m.level[k] * m.per.cells[k].piPower)
		current += float64(m.milliamp[k])
	}
	b.limits.Module = max(b.limits.Module, physic.Power(power*float64(physic.MilliWatt)))
	if current != m.rail {
		if now := int64(b.now); now > m.railSince {
			m.railBefore, m.railSince = m.rail, now
		}
		m.rail = current
	}
	return moved
}

// railOver is the mean current of the heater rail from one time to a later one
// in milliamperes, the DACs' own included. It goes back over one change.
func (m *module) railOver(from, to int64) float64 {
	old := min(max(m.railSince-from, 0), to-from)
	part := float64(old) / float64(to-from)
	return m.rail + float64(part*(m.railBefore-m.rail)) + railIdleMilliamp
}

// driveAll does it for all heaters of a module.
func (m *module) driveAll() {
	for d := range m.dac {
		m.drive(d, allChannels)
	}
}

// nets are the levels of the toggle nets at a module.
func (m *module) nets() [2]bool {
	if m.mci != nil {
		return m.mci.nets
	}
	return m.bundle.nets
}

// LimitRecord is the most that any heater or module of a board ever saw.
type LimitRecord struct {
	Volt    physic.ElectricPotential
	Current physic.ElectricCurrent
	Heater  physic.Power
	Module  physic.Power
}

func (l *LimitRecord) note(volt, milliampere, milliwatt float64) {
	l.Volt = max(l.Volt, physic.ElectricPotential(volt*float64(physic.Volt)))
	l.Current = max(l.Current, physic.ElectricCurrent(milliampere*float64(physic.MilliAmpere)))
	l.Heater = max(l.Heater, physic.Power(milliwatt*float64(physic.MilliWatt)))
}

// Limits is the record of a board since it was made.
func (w *World) Limits(id BoardID) LimitRecord { return w.boards[id].limits }
