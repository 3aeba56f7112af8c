package hal

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Chip is a part at its place on a board.
type Chip struct {
	Part Part
	Bus  BusID
	Addr uint16 // or chip select
	// Mux is the address of the mux that it is behind, with a channel; 0: of none.
	Mux     uint16
	Channel uint8
	// Field names it as board files do, such as bundles[0].modules[2].guard.
	Field string
}

// Chips are all chips of a board but the muxes that the kernel drives. A mux that
// several modules name comes once.
func (b *Board) Chips() iter.Seq[Chip] {
	return func(yield func(Chip) bool) {
		for i := range b.Buses {
			if c, ok := b.muxOf(i); ok && !yield(c) {
				return
			}
			if v := b.Buses[i].Bridge; v != nil && !yield(Chip{Part: v.Part, Bus: b.Buses[i].Root, Addr: v.Addr, Field: fmt.Sprintf("buses[%d].bridge", i)}) {
				return
			}
		}
		for i, l := range b.Latches {
			if !yield(Chip{Part: l.Part, Bus: l.Bus, Addr: l.Addr, Field: fmt.Sprintf("latches[%d].addr", i)}) {
				return
			}
		}
		seen := map[Chip]bool{} // muxes
		for i := range b.Bundles {
			for j := range b.Bundles[i].Modules {
				m := &b.Bundles[i].Modules[j]
				field := fmt.Sprintf("bundles[%d].modules[%d].", i, j)
				for _, c := range m.chips() {
					c.Field = field + c.Field
					if c.Part.Data().Role == RoleMux {
						at := Chip{Bus: c.Bus, Addr: c.Addr}
						if seen[at] {
							continue
						}
						seen[at] = true
					}
					if !yield(c) {
						return
					}
				}
			}
		}
		if b.Mirrors != nil {
			b.Mirrors.chips(yield)
		}
	}
}

// muxOf is the mux of ours whose channel a bus is, for the first of its channels.
func (b *Board) muxOf(bus int) (Chip, bool) {
	via := b.Buses[bus].Via
	if len(via) == 0 {
		return Chip{}, false
	}
	last := via[len(via)-1]
	for i := range bus {
		if v := b.Buses[i].Via; len(v) == len(via) && b.Buses[i].Root == b.Buses[bus].Root && slices.Equal(v[:len(v)-1], via[:len(via)-1]) && v[len(v)-1].Addr == last.Addr {
			return Chip{}, false
		}
	}
	on := b.Buses[bus].Root
	for i := range b.Buses {
		if o := &b.Buses[i]; len(via) > 1 && o.Root == on && slices.Equal(o.Via, via[:len(via)-1]) {
			on = BusID(i)
			break
		}
	}
	return Chip{Part: last.Part, Bus: on, Addr: last.Addr, Field: fmt.Sprintf("buses[%d].mux", bus)}, true
}

// chips of a module, its mux first.
func (m *Module) chips() (out []Chip) {
	slow := m.Slow
	if m.Kind == KindCMIS {
		slow = m.MCI
	}
	if m.Mux != 0 {
		out = append(out, Chip{Part: m.MuxPart, Bus: slow, Addr: m.Mux, Field: "mux"})
	}
	behind := func(p Part, addr uint16, field string) {
		out = append(out, Chip{Part: p, Bus: slow, Addr: addr, Mux: m.Mux, Channel: m.MuxChannel, Field: field})
	}
	if m.Kind == KindCMIS {
		behind(CMIS, MCIAddr, "mci")
		if m.EEPROM != 0 { // of its cage
			behind(m.Memory, m.EEPROM, "eeprom")
		}
		return out
	}
	for d, cs := range m.ChipSelects {
		out = append(out, Chip{Part: m.DAC, Bus: m.SPI, Addr: cs, Field: fmt.Sprintf("selects[%d]", d)})
	}
	out = append(out, Chip{Part: m.Diodes, Bus: m.ADC, Addr: m.Guard, Field: "guard"}, Chip{Part: m.Diodes, Bus: m.ADC, Addr: m.LaneADC, Field: "lanes"})
	behind(cmp.Or(m.TempPart, TMP102), m.Temp, "temperature")
	behind(m.Memory, m.EEPROM, "eeprom")
	behind(cmp.Or(m.RailPart, INA219), m.Rail, "rail")
	behind(cmp.Or(m.EnablePart, TCA9534), m.LaneEnable, "lane_enable")
	if m.Pattern != 0 {
		behind(CMISPattern, m.Pattern, "pattern")
	}
	return out
}

func (m *Mirrors) chips(yield func(Chip) bool) {
	if !yield(Chip{Part: m.Temp.Part, Bus: m.Temp.Bus, Addr: m.Temp.Addr, Field: "mirrors.temperature"}) {
		return
	}
	for i, d := range m.DACs {
		if !yield(Chip{Part: m.DAC, Bus: d.SPI, Addr: d.ChipSelect, Field: fmt.Sprintf("mirrors.dacs[%d]", i)}) {
			return
		}
	}
	seen := map[Chip]bool{}
	for side := range m.Monitors {
		for i, mon := range m.Monitors[side] {
			if at := (Chip{Bus: mon.Bus, Addr: mon.Addr}); !seen[at] {
				seen[at] = true
				if !yield(Chip{Part: m.ADC, Bus: mon.Bus, Addr: mon.Addr, Field: fmt.Sprintf("mirrors.%c[%d].adc", "ab"[side], i)}) {
					return
				}
			}
		}
	}
}

// Problem is what is wrong with one field of a board.
type Problem struct {
	Field string `json:"field"`
	Limit string `json:"limit"`
	Text  string `json:"message"`
}

func (p *Problem) Error() string {
	if p.Limit == "" {
		return p.Field + ": " + p.Text
	}
	return fmt.Sprintf("%s: %s: want %s", p.Field, p.Text, p.Limit)
}

// Check finds every chip that is where it cannot be: on a bus of another kind or
// faster than it bears, at an address that it has not, or that another chip answers
// to at the same time.
func (b *Board) Check() error {
	var errs []error
	bad := func(field, limit, format string, args ...any) {
		errs = append(errs, &Problem{field, limit, fmt.Sprintf(format, args...)})
	}
	var all []Chip
	for c := range b.Chips() {
		part := c.Part.Data()
		switch {
		case int(c.Bus) >= len(b.Buses):
			bad(c.Field, fmt.Sprintf("a bus of %d", len(b.Buses)), "bus %d", c.Bus)
			continue
		case c.Part == NoPart:
			bad(c.Field, "a part", "nobody knows this chip")
			continue
		case part.Bus != b.Buses[c.Bus].Kind:
			bad(c.Field, "a bus of its kind", "%s cannot be on bus %q", part.Name, b.Buses[c.Bus].Name)
			continue
		case part.Bus == I2C && (c.Addr < part.FirstAddr || c.Addr > part.LastAddr):
			bad(c.Field, fmt.Sprintf("%#02x to %#02x", part.FirstAddr, part.LastAddr), "%#02x is no address of %s", c.Addr, part.Name)
		case b.Buses[c.Bus].Bridge != nil && int(c.Addr) >= b.Buses[c.Bus].Bridge.Part.Data().Channels:
			bad(c.Field, fmt.Sprintf("0 to %d", b.Buses[c.Bus].Bridge.Part.Data().Channels-1), "select %d of bridge %q", c.Addr, b.Buses[c.Bus].Name)
		case c.Mux != 0 && c.Channel >= 8:
			bad(c.Field, "0 to 7", "channel %d of the mux", c.Channel)
		}
		if bus := &b.Buses[c.Bus]; bus.Speed > part.MaxClock {
			bad(fmt.Sprintf("buses[%d].hz", c.Bus), fmt.Sprintf("at most %s", part.MaxClock), "%q runs at %s, too fast for %s %s", bus.Name, bus.Speed, part.Name, c.Field)
		}
		for _, o := range all {
			if b.together(&o, &c) {
				bad(c.Field, "an address of its own", "%s answers at %#02x of bus %q too", o.Field, c.Addr, b.Buses[c.Bus].Name)
				break
			}
		}
		all = append(all, c)
	}
	return errors.Join(errs...)
}

// Advice lists what is allowed on a board and unwise.
func (b *Board) Advice() (out []string) {
	for i, l := range b.Latches {
		bus := &b.Buses[l.Bus]
		if len(bus.Lines) > 0 {
			out = append(out, fmt.Sprintf("latches[%d]: made of GPIO lines: whether their levels outlive the agent is up to their controller", i))
			continue
		}
		others := 0
		for c := range b.Chips() {
			if o := &b.Buses[c.Bus]; c.Part.Data().Role != RoleLatch && (c.Bus == l.Bus || bus.Adapter && (c.Bus == bus.Root || o.Adapter && o.Root == bus.Root)) {
				others++
			}
		}
		if others > 0 {
			out = append(out, fmt.Sprintf("latches[%d]: %d other chips share its wires: every switch of a path waits for them", i, others))
		}
	}
	return out
}

// together reports whether two chips can answer to one address at a time: on the
// same wires, and not behind different channels.
func (b *Board) together(x, y *Chip) bool {
	if x.Addr != y.Addr || x.Part.Data().Bus != y.Part.Data().Bus {
		return false
	}
	if x.Bus == y.Bus {
		return x.Mux == 0 || y.Mux == 0 || x.Mux == y.Mux && x.Channel == y.Channel
	}
	bx, by := &b.Buses[x.Bus], &b.Buses[y.Bus]
	if len(bx.Via) > 0 && len(by.Via) > 0 { // one lies on the way to the other
		n := min(len(bx.Via), len(by.Via))
		return bx.Root == by.Root && slices.Equal(bx.Via[:n], by.Via[:n])
	}
	// A chip on the wires of a mux hides behind no channel.
	return bx.Adapter && !by.Adapter && bx.Root == y.Bus || by.Adapter && !bx.Adapter && by.Root == x.Bus
}

// SPIMode is how the part at a chip select takes its bits; of a select that the
// board does not name, mode 0.
func (b *Board) SPIMode(bus BusID, sel uint16) uint8 {
	for c := range b.Chips() {
		if c.Bus == bus && c.Addr == sel && c.Part.Data().Bus == SPI {
			return c.Part.Data().SPIMode
		}
	}
	return 0
}
