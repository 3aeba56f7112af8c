package sim

import (
	"math"
	"time"

	"ringlight/hal"
)

// laserDelay is the time a laser takes to follow its Tx-disable. chosen.
const laserDelay = 2 * time.Microsecond

// latched carries new levels of a latch's pins to its bundles.
func (b *board) latched(latch int) {
	pins := b.latches[latch].pins()
	for i := range b.bundles {
		hw := &b.hw.Bundles[i]
		if hw.Latch == latch && hw.Modules[0].Kind != hal.KindCMIS {
			b.bundles[i].latched(uint16(pins >> hw.Shift & hal.LatchMask))
		}
	}
}

// latched takes the levels of a bundle's own pins.
func (bu *bundle) latched(bits uint16) {
	now := bu.board.now
	nets := [2]bool{bits&hal.LatchToggle0 != 0, bits&hal.LatchToggle1 != 0}
	changed := false
	if nets != bu.nets {
		bu.nets = nets
		for j := range bu.modules {
			changed = bu.modules[j].toggled() || changed
		}
	}
	on := [2]bool{bits&hal.LatchTxOffHigh == 0, bits&hal.LatchTxOffLow == 0}
	for j := range bu.modules {
		for half := range on {
			changed = bu.modules[j].tx[half].turn(on[half], int64(now), int64(now+laserDelay)) || changed
		}
	}
	if changed {
		bu.changed(allModules)
	}
}

// turn switches the supply of a half from a time on.
func (l *laserHalf) turn(on bool, now, at int64) bool {
	if l.on == on {
		return false
	}
	if l.at(now) == on {
		*l = laserHalf{on: on, since: math.MinInt64} // it had not happened yet
	} else {
		*l = laserHalf{on: on, since: at}
	}
	return true
}

// SetPower gives a board its supply or takes it away, its host with it. Without
// it, what was on the buses never completes; the rest is as for SetSupply, but
// for the edges, which nobody hears.
func (w *World) SetPower(id BoardID, on bool) {
	b := w.boards[id]
	if b.powered == on {
		return
	}
	b.life++
	for i := range b.buses {
		q := &b.buses[i]
		*q = bus{board: b, id: q.id, stuck: q.stuck, wire: q.wire}
	}
	b.supply(on)
}

// SetSupply gives the optics of a board their supply or takes it away, while the
// host lives on. Without it, the lasers go out one after the other within
// LaserSkew, every register is lost, the LOS lines fall, and no address answers
// what is on the buses or comes to them. With it, the board is as after
// power-on: dark.
func (w *World) SetSupply(id BoardID, on bool) {
	b := w.boards[id]
	if b.powered == on {
		return
	}
	for i := range b.buses {
		b.buses[i].mux = [muxes]uint8{}
	}
	b.supply(on)
	for i := range b.bundles {
		for path := range b.bundles[i].los {
			if c := &b.bundles[i].los[path]; c.out {
				c.tell(on)
			}
		}
	}
}

// supply comes or goes.
func (b *board) supply(on bool) {
	b.powered = on
	b.outage++
	if on {
		b.clear()
		return
	}
	for i := range b.bundles {
		b.bundles[i].fade()
	}
	// The rails hold the heaters until the last laser is out.
	b.events.Push(b.now+LaserSkew, event{kind: evPower, board: int32(b.id), gen: b.outage})
}

// fade is the loss of a bundle's supply. Those of the bundles fall far apart,
// those of one bundle close together.
func (bu *bundle) fade() {
	b := bu.board
	draw := derive(b.seed^uint64(b.life), uint64(bu.place))
	first := time.Duration(between(draw, 0, 0.8*float64(LaserSkew)))
	for j := range bu.modules {
		for half := range bu.modules[j].tx {
			skew := time.Duration(between(derive(draw, uint64(2*j+half)), 0, 0.2*float64(LaserSkew)))
			bu.modules[j].tx[half].turn(false, int64(b.now), int64(b.now+first+skew))
		}
	}
	bu.changed(allModules)
}

// Powered reports whether a board has its supply.
func (w *World) Powered(id BoardID) bool { return w.boards[id].powered }

// clear puts every register of a board to its power-on value and lets its
// heaters cool.
func (b *board) clear() {
	for i := range b.latches {
		b.latches[i].reset()
	}
	if b.mems != nil {
		b.mems.clear(int64(b.now))
		b.mems.moved(b)
	}
	for i := range b.bundles {
		bu := &b.bundles[i]
		bu.nets = [2]bool{}
		for j := range bu.modules {
			m := &bu.modules[j]
			if m.mci != nil {
				m.mci.reset()
			}
			m.powerOn()
			m.dim()
			if m.slow != nil {
				m.slow.eeprom.cut(int64(b.now), m.memory())
				m.slow.reset()
			}
		}
		bu.changed(allModules)
	}
}

// powerOn puts the chips that move light and see it to where they are after
// power-on: cold, and every lane enabled.
func (m *module) powerOn() {
	m.plugDACs()
	m.driveAll()
	for i := range m.adc {
		m.adc[i].reset()
	}
	m.read = nil
	if fresh := readADCs[m.board.hw.Bundles[m.bundle.place].Modules[m.place].Diodes.Like()]; fresh != nil {
		for range numADCs {
			m.read = append(m.read, fresh())
		}
	}
	m.enable, m.patterns = allLanes, nil
}

// dim puts the lasers out without delay.
func (m *module) dim() { m.tx = [2]laserHalf{{since: math.MinInt64}, {since: math.MinInt64}} }

// SetAmbient sets the air around a board, in thousandths of a degree Celsius;
// the modules follow at once.
func (w *World) SetAmbient(id BoardID, millicelsius int32) {
	b := w.boards[id]
	b.ambientMilli = millicelsius
	for i := range b.bundles {
		bu := &b.bundles[i]
		for j := range bu.modules {
			bu.modules[j].warmed()
		}
		bu.changed(allModules)
	}
}

// warmed takes another case temperature.
func (m *module) warmed() {
	m.epoch = 0
	if m.mci != nil && m.board.powered {
		m.mci.warmed()
	}
}
