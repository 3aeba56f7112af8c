package boardfile

import (
	"cmp"
	"fmt"
	"time"

	"ringlight/hal"
)

// Names of what hangs on channels.
var (
	cellNames  = names(hal.CellsPerMod, cellName)
	guardNames = map[string]int{"loopback/upper": hal.GuardLoopUpper, "loopback/lower": hal.GuardLoopLower, "external1/upper": hal.GuardExt1Upper,
		"external1/lower": hal.GuardExt1Lower, "external2/upper": hal.GuardExt2Upper, "external2/lower": hal.GuardExt2Lower, "tap/1": hal.GuardTap1, "tap/2": hal.GuardTap2}
	laneNames = names(hal.Lanes, func(l int) string { return fmt.Sprintf("lane/%d", l) })
)

func names(n int, name func(int) string) map[string]int {
	out := make(map[string]int, n)
	for i := range n {
		out[name(i)] = i
	}
	return out
}

func cellName(k int) string {
	switch {
	case k < hal.CellMZI2:
		return fmt.Sprintf("mzi1/%d", k-hal.CellMZI1)
	case k < hal.CellMatrix:
		return fmt.Sprintf("mzi2/%d", k-hal.CellMZI2)
	}
	return fmt.Sprintf("matrix/%d", k-hal.CellMatrix)
}

// Bounds of what a maker may state. chosen: beyond every heater of the literature, and
// what a code can say.
const (
	maxOhm      = 100_000
	maxMV       = hal.HeaterFullScaleMicrovolt / 1000
	maxUA       = 100_000
	maxUW       = 1_000_000
	maxModuleUW = 10_000_000
	maxSettleUS = 20_000
	minMDBm     = -40_000
	maxMDBm     = 30_000
	maxShunt    = 10_000
)

// kind compiles a type of modules.
func (m *maker) kind(i int) {
	t := &m.f.Types[i]
	at := fmt.Sprintf("types[%d].", i)
	o := hal.Optics{Name: t.Name, RailShuntMilliohm: t.Shunt, LOSAssertMilliDBm: t.LOSAssert, LOSClearMilliDBm: t.LOSClear, Settle: time.Duration(t.SettleUS) * time.Microsecond}
	if o.LaneCount = cmp.Or(t.LaneCount, hal.Lanes); o.LaneCount < 2 || o.LaneCount > hal.Lanes || o.LaneCount%2 != 0 {
		m.bad(at+"lane_count", "2, 4, 6 or 8", "%d", t.LaneCount)
		o.LaneCount = hal.Lanes
	}
	m.matrix(at, t, &o)
	m.span(at+"cells", int64(t.Cells), int64(o.Cells()), int64(o.Cells()))
	m.span(at+"los_assert_mdbm", int64(t.LOSAssert), minMDBm, maxMDBm)
	m.span(at+"los_clear_mdbm", int64(t.LOSClear), int64(t.LOSAssert)+1, maxMDBm)
	m.span(at+"settle_us", t.SettleUS, 1, maxSettleUS)
	if h := t.Heater; h == nil {
		m.bad(at+"heater", "its limits", "there is none")
	} else {
		m.span(at+"heater.max_mv", h.MaxMV, 1, maxMV)
		m.span(at+"heater.max_ua", h.MaxUA, 1, maxUA)
		m.span(at+"heater.max_uw", h.MaxUW, 1, maxUW)
		m.span(at+"heater.module_uw", h.ModuleUW, h.MaxUW, maxModuleUW)
		m.span(at+"heater.least_ohm", h.LeastOhm, 1, maxOhm)
		m.span(at+"heater.most_ohm", h.MostOhm, h.LeastOhm, maxOhm)
		usual := hal.Standard().Heater
		h.LeastPi, h.MostPi = cmp.Or(h.LeastPi, usual.LeastPiMicrowatt), cmp.Or(h.MostPi, usual.MostPiMicrowatt)
		h.HeatUS = cmp.Or(h.HeatUS, usual.MostSettle.Microseconds())
		m.span(at+"heater.least_pi_uw", h.LeastPi, 1, maxUW)
		m.span(at+"heater.most_pi_uw", h.MostPi, h.LeastPi, maxUW)
		m.span(at+"heater.heat_us", h.HeatUS, 1, maxSettleUS)
		o.Heater = hal.HeaterLimits{LeastPiMicrowatt: h.LeastPi, MostPiMicrowatt: h.MostPi, MostSettle: time.Duration(h.HeatUS) * time.Microsecond,
			MaxMillivolt: h.MaxMV, MaxMicroampere: h.MaxUA, MaxMicrowatt: h.MaxUW, ModuleMicrowatt: h.ModuleUW, LeastOhm: h.LeastOhm, MostOhm: h.MostOhm}
	}
	switch t.Control {
	case "chips":
		m.chips(at, t, &o)
	case "cmis":
		for _, x := range []struct {
			field string
			set   bool
		}{
			{"dac", t.DAC != ""}, {"adc", t.ADC != ""}, {"temperature", t.Temperature != ""}, {"rail", t.Rail != ""},
			{"lane_enable", t.LaneEnable != ""}, {"heaters", t.Heaters != nil}, {"guard", t.Guard != nil}, {"lanes", t.Lanes != nil}, {"rail_shunt_milliohm", t.Shunt != 0},
		} {
			m.when(x.set, at+x.field, "none", "of control cmis, whose controller has it")
		}
		if t.Memory != "" {
			m.part(at+"memory", t.Memory, hal.RoleMemory)
		}
		usual := hal.Standard()
		o.Heaters, o.Guard, o.Lanes, o.RailShuntMilliohm = usual.Heaters, usual.Guard, usual.Lanes, usual.RailShuntMilliohm
	default:
		m.bad(at+"control", "chips or cmis", "%q", t.Control)
	}
	m.b.Types = append(m.b.Types, o)
}

// matrix compiles the loopback matrix.
func (m *maker) matrix(at string, t *Type, o *hal.Optics) {
	o.Couplers = hal.Benes
	switch {
	case t.Matrix == "couplers" && t.Control == "chips":
		m.span(at+"couplers", int64(len(t.Couplers)), 1, hal.MatrixCells)
		var couplers [][2]uint8
		for c, pair := range t.Couplers {
			if len(pair) != 2 || pair[0] == pair[1] || min(pair[0], pair[1]) < 0 || max(pair[0], pair[1]) >= o.LaneCount {
				m.bad(fmt.Sprintf("%scouplers[%d]", at, c), fmt.Sprintf("two of lanes 0 to %d", o.LaneCount-1), "%v", pair)
				continue
			}
			couplers = append(couplers, [2]uint8{uint8(pair[0]), uint8(pair[1])})
		}
		if n := len(couplers); n > 0 && n == len(t.Couplers) && n <= hal.MatrixCells {
			o.Couplers = couplers
		}
	case t.Matrix != "benes-8x8":
		m.bad(at+"matrix", "benes-8x8, or with control chips couplers", "%q", t.Matrix)
	case t.Couplers != nil:
		m.bad(at+"couplers", "none", "of benes-8x8, which has its own")
	case o.LaneCount != hal.Lanes:
		m.bad(at+"lane_count", "8 with benes-8x8", "%d", t.LaneCount)
	}
}

// chips compiles what hangs on which channel.
func (m *maker) chips(at string, t *Type, o *hal.Optics) {
	dac := m.part(at+"dac", t.DAC, hal.RoleDAC)
	m.part(at+"adc", t.ADC, hal.RoleADC)
	m.part(at+"memory", t.Memory, hal.RoleMemory)
	m.part(at+"temperature", t.Temperature, hal.RoleTemperature)
	m.part(at+"rail", t.Rail, hal.RoleRail)
	m.part(at+"lane_enable", t.LaneEnable, hal.RoleLaneEnable)
	m.span(at+"rail_shunt_milliohm", t.Shunt, 1, maxShunt)
	if dac != hal.NoPart {
		m.heaters(at+"heaters", t.Heaters, dac, o)
	}
	senses := func(field string, list []Sense, want map[string]int, out []hal.Sense, most int) {
		if len(list) != most {
			m.bad(field, fmt.Sprintf("%d channels", most), "%d", len(list))
			return
		}
		seen := map[int]bool{}
		for ch, s := range list {
			f := fmt.Sprintf("%s[%d].", field, ch)
			n, ok := want[s.Sees]
			if !ok || seen[n] || n >= most {
				m.bad(f+"sees", "each light once", "%q", s.Sees)
				continue
			}
			seen[n] = true
			m.span(f+"full_scale_mdbm", int64(s.FullScale), minMDBm, maxMDBm)
			out[n] = hal.Sense{Channel: uint8(ch), FullScaleMilliDBm: s.FullScale}
		}
	}
	senses(at+"guard", t.Guard, guardNames, o.Guard[:], len(guardNames))
	senses(at+"lanes", t.Lanes, laneNames, o.Lanes[:], o.LaneCount)
	for l := o.LaneCount; l < hal.Lanes; l++ { // channels that see nothing
		o.Lanes[l] = hal.Sense{Channel: uint8(l), FullScaleMilliDBm: o.Lanes[0].FullScaleMilliDBm}
	}
}

// heaters compiles which cell hangs on which channel.
func (m *maker) heaters(field string, chips [][]string, dac hal.Part, o *hal.Optics) {
	part := dac.Data()
	if m.span(field, int64(len(chips)), 1, int64(part.PerModule)); len(chips) > part.PerModule {
		return
	}
	seen := map[int]bool{}
	for c, cells := range chips {
		f := fmt.Sprintf("%s[%d]", field, c)
		if len(cells) != part.Channels {
			m.bad(f, fmt.Sprintf("%d channels of %s", part.Channels, part.Name), "%d", len(cells))
			continue
		}
		for ch, name := range cells {
			k, ok := cellNames[name]
			switch net := part.ByNet && c < 2; {
			case name == "":
				continue
			case !ok || seen[k] || !o.Has(k):
				m.bad(fmt.Sprintf("%s[%d]", f, ch), fmt.Sprintf("each of %d cells once", o.Cells()), "%q", name)
				continue
			case part.ByNet && (k < hal.CellMatrix) != net, net && k/hal.CellMZI2 != c:
				m.bad(fmt.Sprintf("%s[%d]", f, ch), "mzi1 on the first, mzi2 on the second, matrix on the others", "%q: %s loads all its channels at an edge of one net", name, part.Name)
			}
			seen[k] = true
			o.Heaters[k] = hal.Output{Chip: uint8(c), Channel: uint8(ch)}
		}
	}
	m.when(len(seen) < o.Cells(), field, fmt.Sprintf("all %d cells", o.Cells()), "%d have a channel", len(seen))
}

func (m *maker) bundle(i int) {
	bu := &m.f.Bundles[i]
	at := fmt.Sprintf("bundles[%d].", i)
	var out hal.Bundle
	for p, l := range []*Line{&bu.LOS.Loopback, &bu.LOS.External1, &bu.LOS.External2} {
		out.LOS[p] = hal.LineID(len(m.b.Lines))
		m.b.Lines = append(m.b.Lines, m.line(at+"los."+hal.LOSNames[p], l))
	}
	m.span(at+"modules", int64(len(bu.Modules)), 1, hal.MaxModules)
	control := ""
	for j := range bu.Modules {
		mod, kind := m.module(fmt.Sprintf("%smodules[%d].", at, j), &bu.Modules[j])
		if control == "" {
			control = kind
		} else if kind != control {
			m.bad(fmt.Sprintf("%smodules[%d].type", at, j), "control "+control+" as module 0", "control %s", kind)
		}
		out.Modules = append(out.Modules, mod)
	}
	if control == "cmis" {
		m.when(bu.Latch != "", at+"latch", "none", "its controllers do what a latch does")
	} else if l, ok := m.known(at+"latch", "latches", m.latch, bu.Latch); ok {
		out.Latch, out.Shift = l, uint8(bu.FirstPin)
		pins := 8 * m.b.Latches[l].Part.Data().Channels
		if n := len(m.f.Latches[l].Lines); n > 0 {
			pins = n
		}
		m.when(bu.FirstPin%4 != 0 || bu.FirstPin < 0 || bu.FirstPin > pins-4, at+"first_pin", fmt.Sprintf("0, 4 and so on to %d", pins-4), "%d", bu.FirstPin)
		for j := range m.b.Bundles {
			if o := &m.f.Bundles[j]; o.Latch == bu.Latch && o.FirstPin == bu.FirstPin {
				m.bad(at+"first_pin", "pins of its own", "pin %d of %q is of bundles[%d]", bu.FirstPin, bu.Latch, j)
			}
		}
	}
	m.b.Bundles = append(m.b.Bundles, out)
}

// module compiles one module and says how it is controlled.
func (m *maker) module(at string, mod *Module) (out hal.Module, control string) {
	n, ok := m.known(at+"type", "types", m.types, mod.Type)
	if !ok {
		return out, ""
	}
	t := &m.f.Types[n]
	out.Type = uint8(n)
	chips := t.Control == "chips"
	for _, x := range []struct {
		field     string
		set, want bool
	}{
		{"spi", mod.SPI != "", chips}, {"selects", mod.Selects != nil, chips}, {"adc", mod.ADC != "", chips}, {"slow", mod.Slow != "", chips}, {"mci", mod.MCI != "", !chips},
		{"guard", mod.Guard != 0, chips}, {"lanes", mod.Lanes != 0, chips}, {"temperature", mod.Temperature != 0, chips},
		{"eeprom", mod.EEPROM != 0, t.Memory != ""}, {"rail", mod.Rail != 0, chips}, {"lane_enable", mod.LaneEnable != 0, chips},
		{"pattern", mod.Pattern != 0, mod.Pattern != 0 && chips},
	} {
		m.when(x.set != x.want, at+x.field, map[bool]string{true: "a value", false: "none"}[x.want], "of control %s", t.Control)
	}
	slow, field := mod.Slow, "slow"
	if !chips {
		slow, field = mod.MCI, "mci"
	}
	if slow == "" || chips && (mod.SPI == "" || mod.ADC == "") {
		return out, t.Control
	}
	out.Slow = m.onBus(at+field, slow, "i2c")
	m.behind(at, mod, slow, &out)
	if !chips {
		out.Kind, out.MCI, out.Slow = hal.KindCMIS, out.Slow, 0
		out.Memory, out.EEPROM = hal.PartOf(t.Memory), uint16(mod.EEPROM)
		return out, t.Control
	}
	out.SPI, out.ADC = m.onBus(at+"spi", mod.SPI, "spi"), m.onBus(at+"adc", mod.ADC, "i2c")
	out.DAC, out.Diodes, out.Memory = hal.PartOf(t.DAC), hal.PartOf(t.ADC), hal.PartOf(t.Memory)
	out.TempPart, out.RailPart, out.EnablePart = hal.PartOf(t.Temperature), hal.PartOf(t.Rail), hal.PartOf(t.LaneEnable)
	out.Guard, out.LaneADC = uint16(mod.Guard), uint16(mod.Lanes)
	out.Temp, out.EEPROM, out.Rail, out.LaneEnable, out.Pattern = uint16(mod.Temperature), uint16(mod.EEPROM), uint16(mod.Rail), uint16(mod.LaneEnable), uint16(mod.Pattern)
	if want := len(t.Heaters); len(mod.Selects) != want {
		m.bad(at+"selects", fmt.Sprintf("%d, one for each %s", want, out.DAC), "%d", len(mod.Selects))
	}
	for d, cs := range mod.Selects {
		m.span(fmt.Sprintf("%sselects[%d]", at, d), int64(cs), 0, maxSelect)
		out.ChipSelects = append(out.ChipSelects, uint16(cs))
	}
	return out, t.Control
}

// maxSelect is the highest chip select. chosen: eight modules of five chips, and as
// many again.
const maxSelect = 79

// behind puts a module behind its mux.
func (m *maker) behind(at string, mod *Module, bus string, out *hal.Module) {
	if mod.Mux == "" {
		m.when(mod.Channel != 0, at+"channel", "none", "channel %d of no mux", mod.Channel)
		return
	}
	n, ok := m.known(at+"mux", "muxes", m.muxes, mod.Mux)
	if !ok {
		return
	}
	x := &m.f.Muxes[n]
	switch {
	case x.Kernel:
		m.bad(at+"mux", "none: the bus of its channel is enough", "the kernel drives %q", mod.Mux)
	case x.Bus != bus:
		m.bad(at+"mux", fmt.Sprintf("a mux on %q", bus), "%q is on %q", mod.Mux, x.Bus)
	}
	m.span(at+"channel", int64(mod.Channel), 0, m.channels(n))
	out.Mux, out.MuxPart, out.MuxChannel = uint16(x.Addr), hal.PartOf(x.Part), uint8(mod.Channel)
}
