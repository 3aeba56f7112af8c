package sim

import (
	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/ina219"
	"ringlight/hal/pca953x"
	"ringlight/hal/tmp102"
)

// moduleOf is the module that a chip belongs to.
func (b *board) moduleOf(c *chip) *module { return &b.bundles[c.bundle].modules[c.module] }

// away: a chip is busy with itself and does not acknowledge its address.
func (b *board) away(c *chip) bool {
	switch c.kind {
	case chipMCI:
		return b.moduleOf(c).mci.busy > int64(b.now)
	case chipEEPROM:
		return b.moduleOf(c).slowly().eeprom.busy > int64(b.now)
	}
	return false
}

// listen gives a chip the bytes of a write and returns how many it
// acknowledged.
func (q *bus) listen(c *chip, in []byte) int {
	b := q.board
	now := int64(b.now)
	switch c.kind {
	case chipLatch:
		if b.latches[c.latch].write(in) {
			b.latched(c.latch)
		}
		return len(in)
	case chipMux:
		q.mux[c.addr-firstMux] = in[len(in)-1]
		return len(in)
	case chipMonitor:
		return b.mems.chips[c.latch].adc.write(now, in)
	case chipMirrorTemp:
		b.mems.temp.write(in)
		return len(in)
	}
	m := b.moduleOf(c)
	switch c.kind {
	case chipMCI:
		return m.mci.hear(in)
	case chipPattern:
		m.patterned().write(m, in)
	case chipADC:
		if m.read != nil {
			return m.read[c.adc].write(in)
		}
		return m.adc[c.adc].write(now, in)
	case chipTemp:
		m.slowly().temp.write(in)
	case chipEEPROM:
		m.slowly().eeprom.write(now, m.memory(), in)
	case chipRail:
		m.slowly().rail.write(in)
	case chipEnable:
		if s := m.slowly(); s.enable.write(in) && uint8(s.enable.pins()) != m.enable {
			m.enable = uint8(s.enable.pins())
			m.changed()
		}
	}
	return len(in)
}

// say fills the bytes of a read; after tells that it followed a write in the
// same message.
func (q *bus) say(c *chip, r []byte, after bool) {
	b := q.board
	switch c.kind {
	case chipLatch:
		b.latches[c.latch].read(r)
		return
	case chipMux:
		for i := range r {
			r[i] = q.mux[c.addr-firstMux]
		}
		return
	case chipMonitor:
		b.mems.chips[c.latch].adc.answer(b.mems.monitor(c.latch, int64(b.now), b.carrier()), r, after)
		return
	case chipMirrorTemp:
		b.mems.temp.read(r, b.carrier())
		return
	}
	m := b.moduleOf(c)
	switch c.kind {
	case chipMCI:
		m.mci.say(r)
	case chipPattern:
		m.patterned().read(m, r)
	case chipADC:
		if m.read != nil {
			b.seen = moduleInputs{m: m, which: c.adc}
			m.read[c.adc].answer(&b.seen, r, after, int64(clocks(2*9, q.hw().Speed)))
			return
		}
		m.adc[c.adc].answer(m.inputs(c.adc), r, after)
	case chipTemp:
		m.slowly().temp.read(r, m.caseMilli())
	case chipEEPROM:
		m.slowly().eeprom.read(m.memory(), m.per, r)
	case chipRail:
		m.slowly().rail.read(m, r)
	case chipEnable:
		m.slowly().enable.read(r)
	}
}

// repeat16 fills a read with a register of 16 bits, high byte first.
func repeat16(r []byte, v uint16) {
	for i := range r {
		r[i] = byte(v >> (8 * ((i + 1) & 1)))
	}
}

// expander is one I/O expander of the PCA953x family: a latch of the board, or what
// lets a module's lasers shine.
type expander struct {
	part  pca953x.Chip
	pulls uint32 // levels of pins that nothing drives
	reg   [pca953x.MostRegs]byte
	at    byte // command byte: the register addressed
}

func (x *expander) reset() {
	*x = expander{part: x.part, pulls: x.pulls}
	for port := range x.part.Ports {
		x.reg[x.part.Reg(pca953x.Output, port)] = pca953x.ResetOutput
		x.reg[x.part.Reg(pca953x.Config, port)] = pca953x.ResetConfig
	}
}

func (x *expander) write(in []byte) (changed bool) {
	x.at = in[0]
	for _, v := range in[1:] {
		function, port := x.part.At(x.at)
		if function != pca953x.Input && port < x.part.Ports { // the inputs cannot be written
			reg := x.part.Reg(function, port)
			changed = changed || x.reg[reg] != v
			x.reg[reg] = v
		}
		x.at = x.part.Next(x.at)
	}
	return changed
}

// latchPulls: the board pulls toggles down and Tx-disables up. enablePulls: it
// pulls up what lets lasers shine.
const (
	latchPulls  = (hal.LatchTxOffHigh | hal.LatchTxOffLow) * 0x111111
	enablePulls = 0xFF
)

// all ports of a function.
func (x *expander) all(function byte) uint32 { return x.part.Value(x.reg[x.part.Reg(function, 0):]) }

func (x *expander) pins() uint32 {
	out, in := x.all(pca953x.Output), x.all(pca953x.Config)
	return out&^in | x.pulls&in
}

func (x *expander) read(r []byte) {
	pins := x.pins() ^ x.all(pca953x.Polarity)
	for i := range r {
		function, port := x.part.At(x.at)
		r[i] = x.reg[x.part.Reg(function, port)]
		if function == pca953x.Input {
			r[i] = byte(pins >> (8 * port))
		}
		x.at = x.part.Next(x.at)
	}
}

// slowChips are a module's chips behind the switch.
type slowChips struct {
	temp   tempChip
	eeprom eepromChip
	rail   railChip
	enable expander
}

// slowly are the slow chips, made at their first use.
func (m *module) slowly() *slowChips {
	if m.slow == nil {
		m.slow = new(slowChips)
		m.slow.reset()
	}
	return m.slow
}

// memory is what the module's EEPROM is.
func (m *module) memory() at24.Chip {
	return at24.Of(m.board.hw.Bundles[m.bundle.place].Modules[m.place].Memory)
}

// reset is a loss of power; what the EEPROM holds stays.
func (s *slowChips) reset() {
	pages := s.eeprom.pages
	*s = slowChips{}
	s.eeprom.pages = pages
	s.temp.reset()
	s.rail.reg[ina219.RegConfig] = ina219.ResetConfig
	s.enable = expander{part: pca953x.TCA9534, pulls: enablePulls}
	s.enable.reset()
}

// tempChip is one TMP102.
type tempChip struct {
	reg [4]uint16
	at  byte
}

func (t *tempChip) reset() {
	*t = tempChip{reg: [4]uint16{tmp102.RegConfig: tmp102.ResetConfig, tmp102.RegLow: tmp102.ResetLow, tmp102.RegHigh: tmp102.ResetHigh}}
}

func (t *tempChip) write(in []byte) {
	t.at = in[0] & tmp102.PointerMask
	if len(in) >= 3 && t.at != tmp102.RegTemperature {
		t.reg[t.at] = uint16(in[1])<<8 | uint16(in[2])
	}
}

func (t *tempChip) read(r []byte, milli int32) {
	v := t.reg[t.at]
	if t.at == tmp102.RegTemperature {
		v = tmp102.Reading(milli, t.reg[tmp102.RegConfig])
	}
	repeat16(r, v)
}

// eepromChip is one 24-series EEPROM. What was never written holds the module's
// identity or nothing.
type eepromChip struct {
	pages map[uint16]*[StorePage]byte
	at    uint16
	busy  int64

	before [StorePage]byte // as it was before what is being programmed
	torn   uint16          // which
	from   uint16          // the chip's own page in it
}

// StorePage is how much of a memory is kept together: a whole number of pages of every
// part.
const StorePage = 32

func (e *eepromChip) write(now int64, c at24.Chip, in []byte) {
	addr, data, ok := c.Parse(in)
	if !ok {
		return
	}
	e.at = addr
	if len(data) == 0 {
		return
	}
	page, size := e.at/StorePage, uint16(c.PageBytes)
	if e.pages == nil {
		e.pages = map[uint16]*[StorePage]byte{}
	}
	p := e.pages[page]
	if p == nil {
		p = new([StorePage]byte)
		for i := range p {
			p[i] = 0xFF
		}
		e.pages[page] = p
	}
	from := e.at / size * size
	e.before, e.torn, e.from = *p, page, from%StorePage
	for _, v := range data {
		p[e.at%StorePage] = v
		e.at = from + (e.at+1)%size // wraps inside the page
	}
	e.busy = now + at24.ProgramMicros*1000
}

// cut is a loss of power: of a page that was being programmed the second half
// is what it was.
func (e *eepromChip) cut(now int64, c at24.Chip) {
	if p := e.pages[e.torn]; p != nil && now < e.busy {
		half := int(e.from) + c.PageBytes/2
		copy(p[half:int(e.from)+c.PageBytes], e.before[half:])
	}
}

func (e *eepromChip) read(c at24.Chip, per *Personality, r []byte) {
	for i := range r {
		page, at := e.at/StorePage, e.at%StorePage
		r[i] = 0xFF
		if p := e.pages[page]; p != nil {
			r[i] = p[at]
		} else if page == 0 {
			r[i] = per.identity[at]
		}
		e.at = (e.at + 1) % uint16(c.Size)
	}
}

// railChip is one INA219 on the heater rail.
type railChip struct {
	reg [ina219.NumRegs]uint16
	at  byte
}

func (c *railChip) write(in []byte) {
	c.at = in[0] % ina219.NumRegs
	if len(in) < 3 {
		return
	}
	v := uint16(in[1])<<8 | uint16(in[2])
	switch c.at {
	case ina219.RegConfig:
		if v&ina219.ConfigReset != 0 {
			c.reg = [ina219.NumRegs]uint16{ina219.RegConfig: ina219.ResetConfig}
			return
		}
		c.reg[c.at] = v
	case ina219.RegCalibration:
		c.reg[c.at] = v &^ 1
	}
}

// The heater rail. chosen.
const (
	railMillivolt      = 12_000
	railIdleMilliamp   = 30 // the three DACs themselves
	railNoiseMicrovolt = 4.0
)

func (c *railChip) read(m *module, r []byte) {
	config := c.reg[ina219.RegConfig]
	v := c.reg[c.at]
	switch c.at {
	case ina219.RegShunt, ina219.RegCurrent, ina219.RegPower:
		// The newest conversion averages the current over its time.
		length := ina219.ConversionMicros(config) * 1000
		end := int64(m.board.now) / length * length
		uv := float64(m.railOver(end-length, end)*float64(m.wired.RailShuntMilliohm)) + float64(railNoiseMicrovolt*normal(derive(derive(m.seed, seedRail), uint64(end))))
		full := float64(ina219.FullScaleMicrovolt(config))
		shunt := int64(min(max(uv, -full), full)) / ina219.ShuntStepMicrovolt
		v = uint16(int16(shunt))
		if c.at != ina219.RegShunt {
			current := shunt * int64(c.reg[ina219.RegCalibration]) / 4096
			v = uint16(current)
			if c.at == ina219.RegPower {
				v = uint16(current * (railMillivolt / ina219.BusStepMillivolt) / 5000)
			}
		}
	case ina219.RegBus:
		v = railMillivolt/ina219.BusStepMillivolt<<3 | ina219.BusReady
	}
	repeat16(r, v)
}
