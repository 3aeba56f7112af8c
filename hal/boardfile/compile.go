package boardfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ringlight/hal"
	"ringlight/hal/sc18is602"
	"ringlight/proto"

	"periph.io/x/conn/v3/physic"
)

// MaxBytes bounds a file. chosen: ten times the default board.
const MaxBytes = 1 << 18

// Parse reads a file, strictly, and makes the board of it.
func Parse(data []byte) (*File, hal.Board, error) {
	f := new(File)
	if len(data) > MaxBytes {
		return nil, hal.Board{}, fmt.Errorf("%d bytes: want at most %d", len(data), MaxBytes)
	}
	if err := proto.DecodeFile(data, f); err != nil {
		return nil, hal.Board{}, err
	}
	b, err := f.Board()
	return f, b, err
}

// maker is a board being made.
type maker struct {
	f     *File
	b     hal.Board
	errs  []error
	buses map[string]int
	muxes map[string]int
	latch map[string]int
	types map[string]int
}

func (m *maker) bad(field, limit, format string, args ...any) {
	m.errs = append(m.errs, &hal.Problem{Field: field, Limit: limit, Text: fmt.Sprintf(format, args...)})
}

// when notes it where that is so.
func (m *maker) when(wrong bool, field, limit, format string, args ...any) {
	if wrong {
		m.bad(field, limit, format, args...)
	}
}

func (m *maker) span(field string, v, low, high int64) {
	if v < low || v > high {
		m.bad(field, fmt.Sprintf("%d to %d", low, high), "%d", v)
	}
}

// Board is the board that the file describes, or all that is wrong with it.
func (f *File) Board() (hal.Board, error) {
	m := &maker{f: f, b: hal.Board{GPUs: f.GPUs}}
	if f.Format != Format {
		m.bad("format", fmt.Sprint(Format), "%d", f.Format)
		return hal.Board{}, errors.Join(m.errs...)
	}
	m.when(f.Name == "", "name", "a name", "there is none")
	m.buses = m.names("buses", len(f.Buses), func(i int) string { return f.Buses[i].Name })
	m.muxes = m.names("muxes", len(f.Muxes), func(i int) string { return f.Muxes[i].Name })
	m.latch = m.names("latches", len(f.Latches), func(i int) string { return f.Latches[i].Name })
	m.types = m.names("types", len(f.Types), func(i int) string { return f.Types[i].Name })
	m.span("buses", int64(len(f.Buses)), 1, maxBuses)
	of := int64(1)
	if f.Mirrors != nil {
		of = 0
		m.span("gpus", int64(f.GPUs), 0, 0)
		m.span("latches", int64(len(f.Latches)), 0, 0)
	} else {
		m.span("gpus", int64(f.GPUs), 2, 8)
	}
	m.span("types", int64(len(f.Types)), of, of*maxTypes)
	m.span("bundles", int64(len(f.Bundles)), of, of*hal.MaxBundles)
	for i := range f.Buses {
		m.bus(i)
	}
	for i := range f.Muxes {
		m.mux(i)
	}
	m.wires()
	for i := range f.Latches {
		l := &f.Latches[i]
		at := fmt.Sprintf("latches[%d].", i)
		part := m.part(at+"part", l.Part, hal.RoleLatch)
		if part == hal.GPIOLatch {
			m.gpioLatch(at, l)
			continue
		}
		m.span(at+"lines", int64(len(l.Lines)), 0, 0)
		m.b.Latches = append(m.b.Latches, hal.Latch{Bus: m.onBus(at+"bus", l.Bus, "i2c"), Addr: uint16(l.Addr), Part: part})
	}
	for i := range f.Types {
		m.kind(i)
	}
	if len(m.errs) > 0 { // what follows would only say it again
		return hal.Board{}, errors.Join(m.errs...)
	}
	for i := range f.Bundles {
		m.bundle(i)
	}
	if f.Mirrors != nil {
		m.mirrors(f.Mirrors)
	}
	m.lines()
	if len(m.errs) > 0 {
		return hal.Board{}, errors.Join(m.errs...)
	}
	m.b.Link()
	m.bound()
	return m.b, errors.Join(append(m.errs, m.b.Check())...)
}

// bound refuses chips at the address of a mux that the kernel drives, on its wires or
// behind it.
func (m *maker) bound() {
	for i, x := range m.f.Muxes {
		root := hal.BusID(m.buses[x.Bus])
		for c := range m.b.Chips() {
			on := c.Bus == root || m.b.Buses[c.Bus].Adapter && m.b.Buses[c.Bus].Root == root
			if x.Kernel && on && c.Addr == uint16(x.Addr) && c.Part.Data().Bus == hal.I2C {
				m.bad(c.Field, "an address of its own", "muxes[%d] answers at %#02x of bus %q too", i, c.Addr, x.Bus)
			}
		}
	}
}

// Bounds of a file. chosen: eight bundles with a bus for every module's every use.
const (
	maxBuses = 200
	maxTypes = 8
)

// names maps the names of a list to its places.
func (m *maker) names(list string, n int, name func(int) string) map[string]int {
	at := make(map[string]int, n)
	for i := range n {
		field := fmt.Sprintf("%s[%d].name", list, i)
		if name(i) == "" {
			m.bad(field, "a name", "there is none")
		} else if first, twice := at[name(i)]; twice {
			m.bad(field, "a name of its own", "%q is %s[%d]", name(i), list, first)
		} else {
			at[name(i)] = i
		}
	}
	return at
}

// known finds a name in a list.
func (m *maker) known(field, list string, in map[string]int, name string) (int, bool) {
	i, ok := in[name]
	switch {
	case name == "":
		m.bad(field, "one of "+list, "there is none")
	case !ok:
		m.bad(field, "one of "+list, "%q is none", name)
	}
	return i, ok
}

// onBus finds a bus of a kind by its name.
func (m *maker) onBus(field, name, kind string) hal.BusID {
	i, ok := m.known(field, "buses", m.buses, name)
	if ok && m.f.Buses[i].Kind != kind {
		m.bad(field, "a bus of kind "+kind, "%q is of kind %s", name, m.f.Buses[i].Kind)
	}
	return hal.BusID(i)
}

// part finds a part in a role by its name.
func (m *maker) part(field, name string, role hal.Role) hal.Part {
	p := hal.PartOf(name)
	if p == hal.NoPart || p.Data().Role != role {
		var names []string
		for _, p := range hal.Parts() {
			if p.Data().Role == role {
				names = append(names, p.String())
			}
		}
		m.bad(field, strings.Join(names, " or "), "%q", name)
		return hal.NoPart
	}
	return p
}

var kinds = map[string]hal.BusKind{"i2c": hal.I2C, "spi": hal.SPI}

// isDevice reports whether a device is a path of a kind of bus, or a name in periph's
// registries, where a colon has no place.
func isDevice(kind hal.BusKind, device string) bool {
	path := "/dev/i2c-"
	if kind == hal.SPI {
		var dot bool
		path = "/dev/spidev"
		if device, dot = strings.CutSuffix(device, "."); !dot {
			return false
		}
	}
	if name, ok := strings.CutPrefix(device, hal.Registered); ok {
		return name != "" && !strings.Contains(name, ":")
	}
	digits, ok := strings.CutPrefix(device, path)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func (m *maker) bus(i int) {
	b := &m.f.Buses[i]
	at := fmt.Sprintf("buses[%d].", i)
	kind, ok := kinds[b.Kind]
	m.when(!ok, at+"kind", "i2c or spi", "%q", b.Kind)
	ours := false // a channel of a mux of ours
	if j, known := m.muxes[b.Mux]; known {
		ours = !m.f.Muxes[j].Kernel
	}
	m.when(ours && b.Device != "", at+"device", "none", "mux %q is the agent's to switch, and its channel no device", b.Mux)
	m.when(b.Bridge != nil && (b.Device != "" || kind != hal.SPI), at+"bridge", "an SPI bus without a device", "%s %q", b.Kind, b.Device)
	m.when(ok && !ours && b.Bridge == nil && !isDevice(kind, b.Device), at+"device", map[hal.BusKind]string{hal.I2C: "/dev/i2c-N or periph:NAME", hal.SPI: "/dev/spidevN. or periph:NAME."}[kind], "%q", b.Device)
	if j := slices.IndexFunc(m.f.Buses[:i], func(o Bus) bool { return o.Device == b.Device }); j >= 0 && b.Device != "" {
		m.bad(at+"device", "a device of its own", "%s is that of buses[%d]", b.Device, j)
	}
	out := hal.Bus{Name: b.Name, Kind: kind, Device: b.Device, Speed: physic.Frequency(b.Hz) * physic.Hertz}
	if b.Mux == "" {
		low, high := int64(minHz), int64(maxHz)
		if b.Bridge != nil {
			low, high = sc18is602.MinHertz, sc18is602.MaxHertz
		}
		m.span(at+"hz", b.Hz, low, high)
	} else if b.Hz != 0 {
		m.bad(at+"hz", "none", "the clock is that of the wires of mux %q", b.Mux)
	}
	m.when(b.Mux == "" && b.Channel != 0, at+"channel", "none", "channel %d of no mux", b.Channel)
	if r := b.Recovery; r != nil {
		m.when(kind != hal.I2C || b.Mux != "", at+"recovery", "an I2C bus that is no channel of a mux", "nothing to free")
		scl, sda := m.line(at+"recovery.scl", &r.SCL), m.line(at+"recovery.sda", &r.SDA)
		out.SCL, out.SDA = &scl, &sda
	}
	m.b.Buses = append(m.b.Buses, out)
}

// Clocks that are believed: SMBus's least, and beyond the fastest part.
const (
	minHz = 10_000
	maxHz = 100_000_000
)

func (m *maker) mux(i int) {
	x := &m.f.Muxes[i]
	at := fmt.Sprintf("muxes[%d].", i)
	m.part(at+"part", x.Part, hal.RoleMux)
	bus := m.onBus(at+"bus", x.Bus, "i2c")
	if j, ok := m.buses[x.Bus]; ok {
		if outer, behind := m.muxes[m.f.Buses[j].Mux]; behind && m.f.Muxes[outer].Kernel != x.Kernel {
			m.bad(at+"kernel", fmt.Sprintf("%v, as of mux %q in front of it", !x.Kernel, m.f.Buses[j].Mux), "%v", x.Kernel)
		}
	}
	if p := hal.PartOf(x.Part); p != hal.NoPart && p.Data().Role == hal.RoleMux {
		data := p.Data()
		if a := uint16(x.Addr); a < data.FirstAddr || a > data.LastAddr {
			m.bad(at+"addr", fmt.Sprintf("%#02x to %#02x", data.FirstAddr, data.LastAddr), "%#02x is no address of %s", a, x.Part)
		}
		if _, known := m.buses[x.Bus]; known && m.b.Buses[bus].Speed > data.MaxClock {
			m.bad(fmt.Sprintf("buses[%d].hz", bus), "at most "+data.MaxClock.String(), "%q runs at %s, too fast for %s muxes[%d]", x.Bus, m.b.Buses[bus].Speed, x.Part, i)
		}
	}
	for j, o := range m.f.Muxes[:i] {
		if o.Bus == x.Bus && o.Addr == x.Addr {
			m.bad(at+"addr", "an address of its own", "muxes[%d] answers at %#02x of bus %q too", j, uint16(x.Addr), x.Bus)
		}
	}
}

// via is the way to a bus through muxes, and the bus with wires of its own at its end.
func (m *maker) via(bus, depth int) (root int, hops []hal.Via, ok bool) {
	b := &m.f.Buses[bus]
	if b.Mux == "" {
		return bus, nil, true
	}
	j, known := m.muxes[b.Mux]
	if !known || depth == maxHops {
		return 0, nil, false
	}
	x := &m.f.Muxes[j]
	on, known := m.buses[x.Bus]
	if !known {
		return 0, nil, false
	}
	root, hops, ok = m.via(on, depth+1)
	return root, append(hops, hal.Via{Part: hal.PartOf(x.Part), Addr: uint16(x.Addr), Channel: uint8(b.Channel)}), ok
}

// maxHops bounds how many muxes lie one behind the other. chosen: each is a message before
// every op.
const maxHops = 3

// wires gives buses that are channels of a mux the clock of its wires, and the way there.
func (m *maker) wires() {
	for i := range m.f.Buses {
		b := &m.f.Buses[i]
		at := fmt.Sprintf("buses[%d].", i)
		if b.Bridge != nil {
			m.bridge(at+"bridge.", i, b.Bridge)
		}
		if b.Mux == "" {
			continue
		}
		j, ok := m.known(at+"mux", "muxes", m.muxes, b.Mux)
		if !ok {
			continue
		}
		m.span(at+"channel", int64(b.Channel), 0, m.channels(j))
		for k, o := range m.f.Buses[:i] {
			if o.Mux == b.Mux && o.Channel == b.Channel {
				m.bad(at+"channel", "a channel of its own", "channel %d of %q is buses[%d]", b.Channel, b.Mux, k)
			}
		}
		root, hops, ok := m.via(i, 0)
		if !ok {
			m.bad(at+"mux", fmt.Sprintf("at most %d muxes one behind the other", maxHops), "%q leads to no wires", b.Mux)
			continue
		}
		out := &m.b.Buses[i]
		out.Adapter, out.Root, out.Speed = true, hal.BusID(root), m.b.Buses[root].Speed
		if !m.f.Muxes[j].Kernel {
			out.Via = hops
		}
	}
}

// bridge gives an SPI bus that has no device what makes it.
func (m *maker) bridge(at string, bus int, b *Bridge) {
	on := m.onBus(at+"bus", b.Bus, "i2c")
	if j, known := m.buses[b.Bus]; known && m.f.Buses[j].Device == "" {
		m.bad(at+"bus", "a bus with a device", "%q has none", b.Bus)
	}
	m.b.Buses[bus].Root, m.b.Buses[bus].Bridge = on, &hal.Via{Part: m.part(at+"part", b.Part, hal.RoleBridge), Addr: uint16(b.Addr)}
}

// channels is the last channel of a mux.
func (m *maker) channels(mux int) int64 {
	return int64(hal.PartOf(m.f.Muxes[mux].Part).Data().Channels) - 1
}

func (m *maker) line(field string, l *Line) hal.Line {
	switch {
	case l.Line == "" && l.Chip == "":
		m.bad(field, "line, or chip and offset", "there is none")
	case l.Line != "" && (l.Chip != "" || l.Offset != 0):
		m.bad(field, "line, or chip and offset", "%q and %s both", l.Line, l.Chip)
	case l.Offset < 0:
		m.bad(field+".offset", "0 and up", "%d", l.Offset)
	}
	return hal.Line{Name: l.Line, Chip: l.Chip, Offset: l.Offset, ActiveLow: l.ActiveLow}
}

// gpioLatch makes a latch of lines, on a bus of its own.
func (m *maker) gpioLatch(at string, l *Latch) {
	m.when(l.Bus != "" || l.Addr != 0, at+"bus", "none", "lines of the machine are on no bus")
	m.span(at+"lines", int64(len(l.Lines)), 4, 16)
	bus := hal.Bus{Name: l.Name, Kind: hal.I2C, Device: "gpio " + l.Name, Speed: hal.GPIOLatchClock}
	for i := range l.Lines {
		bus.Lines = append(bus.Lines, m.line(fmt.Sprintf("%slines[%d]", at, i), &l.Lines[i]))
	}
	m.b.Latches = append(m.b.Latches, hal.Latch{Bus: hal.BusID(len(m.b.Buses)), Addr: hal.GPIOLatchAddr, Part: hal.GPIOLatch})
	m.b.Buses = append(m.b.Buses, bus)
}

// lines refuses a line that is used twice.
func (m *maker) lines() {
	seen := map[hal.Line]string{}
	use := func(field string, l hal.Line) {
		l.ActiveLow = false
		if first, twice := seen[l]; twice {
			m.bad(field, "a line of its own", "%s is that of %s", l, first)
			return
		}
		seen[l] = field
	}
	for i := range m.b.Buses {
		if b := &m.b.Buses[i]; b.SCL != nil {
			use(fmt.Sprintf("buses[%d].recovery.scl", i), *b.SCL)
			use(fmt.Sprintf("buses[%d].recovery.sda", i), *b.SDA)
		}
	}
	for i := range m.b.Buses {
		for j, l := range m.b.Buses[i].Lines {
			use(fmt.Sprintf("latch %q.lines[%d]", m.b.Buses[i].Name, j), l)
		}
	}
	for i := range m.b.Bundles {
		for p, id := range m.b.Bundles[i].LOS {
			use(fmt.Sprintf("bundles[%d].los.%s", i, hal.LOSNames[p]), m.b.Lines[id])
		}
	}
}
