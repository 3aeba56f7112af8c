package heater

import (
	"fmt"
	"strconv"
	"strings"

	"ringlight/hal"
)

// What an engineer's hands need of the DACs. It never goes past the limits.

// Register is one register of a module's DACs.
type Register struct {
	Cell    int // of a heater's code, -1: none
	chip    int
	channel int
	bank    int
	kind    registerKind
}

type registerKind uint8

const (
	registerCode registerKind = iota
	registerSetting
	registerToggles
)

// Forms says what the registers of the module's DACs are called: of each channel the
// codes A and B, or what is in force where that is all a chip tells.
func (d *Driver) Forms() string {
	chip := fmt.Sprintf("dac0..%d/", (d.wired.Cells()-1)/d.channels)
	if d.plain {
		return fmt.Sprintf("%scode0..%da", chip, d.channels-1)
	}
	return fmt.Sprintf("%[1]scode0..%[2]da|b, %[1]ssetting0..%[2]d, %[1]stoggles", chip, d.channels-1)
}

// Forms are those of every kind of DACs.
func Forms() string {
	wired := hal.Standard()
	a, b := of(hal.LTC2688, &wired), of(hal.AD5676R, &wired)
	return a.Forms() + " (LTC2688), " + b.Forms() + " (AD5676R)"
}

// Register finds a register of a chip by one of the names in Forms.
func (d *Driver) Register(chip int, name string) (r Register, ok bool) {
	if chip < 0 || chip >= d.Chips() {
		return r, false
	}
	r = Register{chip: chip, Cell: -1, kind: registerToggles}
	if name == "toggles" {
		return r, !d.plain
	}
	number, ok := strings.CutPrefix(name, "setting")
	if ok {
		r.kind = registerSetting
	} else if number, ok = strings.CutPrefix(name, "code"); ok && number != "" {
		r.kind, r.bank = registerCode, strings.IndexByte("ab", number[len(number)-1])
		number = number[:len(number)-1]
	}
	n, err := strconv.ParseUint(number, 10, 8)
	if !ok || err != nil || d.plain && r.kind != registerCode || n >= uint64(d.channels) || r.bank < 0 || r.bank >= d.registers {
		return r, false
	}
	r.channel = int(n)
	if r.kind == registerCode {
		r.Cell = d.wired.CellAt(chip, r.channel)
	}
	return r, true
}

// Peek reads what every chip holds, and leaves the chips as Set expects them.
func (d *Driver) Peek() []hal.Msg {
	msgs := d.ReadBack(nil)
	for n := range msgs {
		msgs[n].W = d.chip.frames(msgs[n].W, n, &order{action: actRest})
		msgs[n].R = make([]byte, len(msgs[n].W))
	}
	return msgs
}

func (d *Driver) peeked(n int, m *hal.Msg) state {
	return d.chip.state(n, d.nets, m.R[:d.reads])
}

// Value of a register, of what Peek has read.
func (d *Driver) Value(r Register, read []hal.Msg) uint16 {
	s := d.peeked(r.chip, &read[r.chip])
	switch r.kind {
	case registerToggles:
		return s.toggles
	case registerSetting:
		return s.settings[r.channel]
	}
	return s.codes[r.channel][r.bank]
}

// AllowPoke is the setting of a heater's register, all others having what Peek has
// read. What the limits would cut is refused.
func (d *Driver) AllowPoke(r Register, code uint16, read []hal.Msg) (Setting, error) {
	d.limits.cold()
	for cell := range d.wired.All {
		n, ch := int(d.wired.Heaters[cell].Chip), d.wired.Heaters[cell].Channel
		s := d.peeked(n, &read[n])
		if s.ranges>>ch&1 == 0 {
			d.limits.unknown = true
			return Setting{}, fmt.Errorf("channel %d of DAC %d has another span than its heater's: %w", ch, n, hal.ErrUnsupported)
		}
		for register, code := range s.codes[ch] {
			d.limits.hold(cell, register, code)
		}
	}
	if most := d.limits.fit(r.Cell, code); most < code {
		return Setting{}, fmt.Errorf("%#x: want 0 to %#x: at most %d mV, %d uA and %d uW a heater and %d uW a module: %w", code, most,
			d.limits.bears.MaxMillivolt, d.limits.bears.MaxMicroampere, d.limits.bears.MaxMicrowatt, d.limits.bears.ModuleMicrowatt, hal.ErrOutOfRange)
	}
	return d.Allow(r.Cell, r.bank, code), nil
}

// Pattern writes a test pattern that no two neighbouring channels share into every
// register A, as the limits let it pass: codes. Where a chip has input registers that
// can be read, nothing moves.
func (d *Driver) Pattern(pattern uint16) (msgs []hal.Msg, codes *Allowed) {
	unknown := d.limits.unknown
	for cell := range d.wired.All {
		d.Allow(cell, 0, patternOf(pattern, int(d.wired.Heaters[cell].Channel)))
	}
	codes = d.allowed(pattern)
	msgs = d.messages(&order{action: actPattern, codes: codes})
	d.limits.unknown = unknown // register B is what it was
	return msgs, codes
}

// patternOf a channel.
func patternOf(pattern uint16, ch int) uint16 {
	if pattern == 0 {
		return 0
	}
	return pattern ^ uint16(ch)<<4
}

// test is what a channel is to hold of a test pattern; one without a heater, cell
// -1, takes anything.
func (a *Allowed) test(cell, ch int) uint16 {
	if cell >= 0 {
		return a.codes[cell][0]
	}
	return patternOf(a.spare, ch)
}

// PatternHeld compares what ReadBack has read with the codes of a test pattern: how
// many registers were looked at, how many are wrong, and the first of those.
func (d *Driver) PatternHeld(codes *Allowed, read []hal.Msg) (looked, wrong int, first error) {
	for n := range read {
		s := d.peeked(n, &read[n])
		for ch := range d.channels {
			looked++
			if want, got := codes.test(d.wired.CellAt(n, ch), ch), s.codes[ch][0]; got != want {
				if wrong++; first == nil {
					first = fmt.Errorf("DAC %d channel %d: wrote %#04x, read %#04x", n, ch, want, got)
				}
			}
		}
	}
	return looked, wrong, first
}
