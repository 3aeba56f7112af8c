package sim

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/ina219"
)

// Running ahead. While an operation is on a bus, the registers of the chips
// there are nobody else's: a message that only reads and writes registers, and
// moves no light and measures nothing, has the same effect whenever in the
// operation it is carried out. Such messages are carried out as soon as the
// operation reaches them, each with its own time, and cost no event. Faults
// that make a chip silent or warm in the midst of an operation show from the
// next message on that has an event.

// ahead carries out the message that an operation is at before its time, if
// it may be. It returns the error that the message ends with.
func (q *bus) ahead(msg *hal.Msg, at time.Duration) (ok bool, err error) {
	b := q.board
	if !b.powered || b.mems != nil || len(b.gone) > 0 || len(b.buses[q.on].wire) > 0 {
		return false, nil
	}
	isSPI := q.hw().Kind == hal.SPI
	if isSPI && !q.inertSPI(msg) || !isSPI && !q.inertI2C(msg) {
		return false, nil
	}
	now := b.now
	b.now = at
	if isSPI {
		q.spi(msg)
	} else {
		err = q.i2c(msg)
	}
	b.now = now
	return true, err
}

// inertSPI: no frame of a message moves an output.
func (q *bus) inertSPI(msg *hal.Msg) bool {
	b := q.board
	for _, s := range b.lay.selects[q.id] {
		if s.cs != msg.Addr {
			continue
		}
		dac := b.bundles[s.bundle].modules[s.module].dac[s.dac].(spiChip)
		for at, n := 0, int(msg.Frame); at < len(msg.W); at += n {
			if !dac.inert(msg.W[at : at+n]) {
				return false
			}
		}
	}
	return true
}

// inertI2C: what a message does and brings back is a matter of registers alone
// that only this bus can change.
func (q *bus) inertI2C(msg *hal.Msg) bool {
	b := q.board
	for _, i := range b.lay.at(q.on, msg.Addr) {
		c := &b.lay.chips[q.on][i]
		if !q.reaches(c) {
			continue
		}
		switch c.kind {
		case chipMux, chipTemp:
		case chipEEPROM:
			if _, data, _ := b.moduleOf(c).memory().Parse(msg.W); len(data) > 0 {
				return false // programs a page
			}
		case chipEnable:
			if len(msg.W) > 1 {
				return false // may move light
			}
		case chipRail:
			if len(msg.R) > 0 && (b.moduleOf(c).slow == nil || len(msg.W) != 1 || !still219(msg.W[0])) {
				return false
			}
		case chipADC:
			if read := b.moduleOf(c).read; read != nil {
				if len(msg.R) > 0 && !read[c.adc].inert(msg.W) {
					return false // a result
				}
				continue
			}
			if len(msg.R) > 0 && (len(msg.W) != 2 || msg.W[0] != ads7138.OpRead && msg.W[0] != ads7138.OpReadBlock ||
				int(msg.W[1])+len(msg.R) > ads7138.RegMax) {
				return false // a result
			}
		default:
			return false
		}
	}
	return true
}

// still219: a register of the rail sensor that does not follow the current.
func still219(reg byte) bool {
	switch reg % ina219.NumRegs {
	case ina219.RegConfig, ina219.RegBus, ina219.RegCalibration:
		return true
	}
	return false
}

// reaches: a chip is on the bus, or behind an open channel of its switch.
func (q *bus) reaches(c *chip) bool {
	return c.mux == 0 || q.mux[c.mux-firstMux]>>c.channel&1 != 0
}
