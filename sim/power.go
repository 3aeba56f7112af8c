package sim

import (
	"math"
	"time"

	"ringlight/hal"
)

// laserDelay is the time a laser takes to follow its Tx-disable. chosen.
const laserDelay = 2 * time.Microsecond

// latched carries new levels of a latch's pins to its bundles.
func (w *World) latched(b *board, latch int) {
	pins := b.latches[latch].pins()
	for i := range b.bundles {
		hw := &b.hw.Bundles[i]
		if hw.Latch != latch || hw.Modules[0].Kind == hal.KindCMIS {
			continue
		}
		bits := pins >> hw.Shift & hal.LatchMask
		bu := &b.bundles[i]
		nets := [2]bool{bits&hal.LatchToggle0 != 0, bits&hal.LatchToggle1 != 0}
		changed := false
		if nets != bu.nets {
			bu.nets = nets
			for j := range bu.modules {
				if w.toggled(b, &bu.modules[j], nets) {
					changed = true
				}
			}
		}
		on := [2]bool{bits&hal.LatchTxOffHigh == 0, bits&hal.LatchTxOffLow == 0}
		for j := range bu.modules {
			for half := range on {
				if bu.modules[j].tx[half].turn(on[half], int64(w.now), int64(w.now+laserDelay)) {
					changed = true
				}
			}
		}
		if changed {
			w.lightChanged(b, i)
		}
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

// SetPower gives a board its supply or takes it away. Without it, the lasers
// go out one after the other within LaserSkew, every register is lost, what
// was on the buses never completes, and no address answers. With it, the board
// is as after power-on: dark.
func (w *World) SetPower(id BoardID, on bool) {
	b := w.boards[id]
	if b.powered == on {
		return
	}
	b.powered = on
	b.life++
	for i := range b.buses {
		q := &b.buses[i]
		*q = bus{stuck: q.stuck, wire: q.wire}
	}
	if on {
		w.clear(b)
		return
	}
	for i := range b.bundles {
		bu := &b.bundles[i]
		// Supplies of the bundles fall far apart, those of one bundle close
		// together.
		draw := derive(b.seed^uint64(b.life), uint64(i))
		first := time.Duration(between(draw, 0, 0.8*float64(LaserSkew)))
		for j := range bu.modules {
			for half := range bu.modules[j].tx {
				skew := time.Duration(between(derive(draw, uint64(2*j+half)), 0, 0.2*float64(LaserSkew)))
				bu.modules[j].tx[half].turn(false, int64(w.now), int64(w.now+first+skew))
			}
		}
		w.lightChanged(b, i)
	}
	// The rails hold the heaters until the last laser is out.
	w.push(event{at: w.now + LaserSkew, kind: evPower, board: int32(b.id), gen: b.life})
}

// Powered reports whether a board has its supply.
func (w *World) Powered(id BoardID) bool { return w.boards[id].powered }

// clear puts every register of a board to its power-on value and lets its
// heaters cool.
func (w *World) clear(b *board) {
	for i := range b.latches {
		b.latches[i].reset()
	}
	if b.mems != nil {
		b.mems.clear(int64(w.now))
	}
	for i := range b.bundles {
		bu := &b.bundles[i]
		bu.nets = [2]bool{}
		for j := range bu.modules {
			m := &bu.modules[j]
			if m.mci != nil {
				m.mci.reset(m.per)
			}
			m.powerOn()
			w.driveAll(b, m)
			m.guard.reset()
			m.lanes.reset()
			if m.slow != nil {
				m.slow.eeprom.cut(int64(w.now))
				m.slow.reset()
			}
			m.enable = allLanes
			for half := range m.tx {
				m.tx[half] = laserHalf{since: math.MinInt64}
			}
		}
		w.lightChanged(b, i)
	}
}

// SetAmbient sets the air around a board, in thousandths of a degree Celsius;
// the modules follow at once.
func (w *World) SetAmbient(id BoardID, millicelsius int32) {
	b := w.boards[id]
	b.ambientMilli = millicelsius
	for i := range b.bundles {
		for j := range b.bundles[i].modules {
			m := &b.bundles[i].modules[j]
			m.epoch = 0
			if m.mci != nil && b.powered {
				b.mciWarm(m)
			}
		}
		w.lightChanged(b, i)
	}
}
