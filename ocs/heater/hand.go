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

// Register finds a register of a chip: toggles, settingN, codeNa or codeNb.
func (d Driver) Register(chip int, name string) (r Register, ok bool) {
	if chip < 0 || chip >= d.Chips() {
		return r, false
	}
	r = Register{chip: chip, Cell: -1, kind: registerToggles}
	if name == "toggles" {
		return r, true
	}
	number, ok := strings.CutPrefix(name, "setting")
	if ok {
		r.kind = registerSetting
	} else if number, ok = strings.CutPrefix(name, "code"); ok && number != "" {
		r.kind, r.bank = registerCode, strings.IndexByte("ab", number[len(number)-1])
		number = number[:len(number)-1]
	}
	n, err := strconv.ParseUint(number, 10, 8)
	if !ok || err != nil || n >= uint64(d.channels) || r.bank < 0 || r.bank >= d.registers {
		return r, false
	}
	r.channel = int(n)
	if cell := chip*d.channels + r.channel; r.kind == registerCode && cell < hal.CellsPerMod {
		r.Cell = cell
	}
	return r, true
}

// Peek reads what every chip holds, and leaves the chips as Set expects them.
func (d Driver) Peek() []hal.Msg {
	msgs := d.ReadBack(nil)
	for n := range msgs {
		msgs[n].W = d.chip.frames(msgs[n].W, n, &order{action: actRest})
		msgs[n].R = make([]byte, len(msgs[n].W))
	}
	return msgs
}

func (d Driver) peeked(n int, m *hal.Msg) state {
	return d.chip.state(n, d.nets, m.R[:d.reads])
}

// Value of a register, of what Peek has read.
func (d Driver) Value(r Register, read []hal.Msg) uint16 {
	s := d.peeked(r.chip, &read[r.chip])
	switch r.kind {
	case registerToggles:
		return s.toggles
	case registerSetting:
		return s.settings[r.channel]
	}
	return s.codes[r.channel][r.bank]
}

// Allow is the setting of a heater's register, all others having what Peek has
// read. What the limits would cut is refused.
func (d Driver) Allow(r Register, code uint16, read []hal.Msg) (Setting, error) {
	var l Limits
	for cell := range hal.CellsPerMod {
		n, ch := cell/d.channels, cell%d.channels
		s := d.peeked(n, &read[n])
		if s.ranges>>ch&1 == 0 {
			return Setting{}, fmt.Errorf("channel %d of DAC %d has another span than its heater's: %w", ch, n, hal.ErrUnsupported)
		}
		for register, code := range s.codes[ch] {
			l.Holds(cell, register, code)
		}
	}
	s := l.Allow(r.Cell, r.bank, code)
	if s.code < code {
		return s, fmt.Errorf("%#x: want 0 to %#x: at most %d mV, %d uA and %d uW a heater and %d uW a module: %w", code, s.code,
			hal.HeaterMaxMillivolt, hal.HeaterMaxMicroampere, hal.HeaterMaxMicrowatt, hal.ModuleMaxMicrowatt, hal.ErrOutOfRange)
	}
	return s, nil
}

// Pattern writes a test pattern that no two neighbouring channels share into every
// input register, as the limits let it pass; nothing moves.
func (d Driver) Pattern(pattern uint16) []hal.Msg {
	var l Limits
	msgs := make([]hal.Msg, d.Chips())
	for n, cs := range d.hw.ChipSelects {
		msgs[n] = hal.Msg{Addr: cs, Frame: d.frame, W: d.chip.frames(nil, n, &order{action: actPattern, pattern: d.pattern(&l, pattern, n)})}
	}
	return msgs
}

// pattern of a chip; channels without a heater take anything.
func (d Driver) pattern(l *Limits, pattern uint16, n int) (codes [maxChannels]uint16) {
	for ch := range d.channels {
		codes[ch] = pattern
		if pattern != 0 {
			codes[ch] ^= uint16(ch) << 4
		}
		if cell := n*d.channels + ch; cell < hal.CellsPerMod {
			codes[ch] = l.Allow(cell, 0, codes[ch]).code
		}
	}
	return codes
}

// PatternHeld compares what ReadBack has read with a test pattern: how many
// registers were looked at, how many are wrong, and the first of those.
func (d Driver) PatternHeld(pattern uint16, read []hal.Msg) (looked, wrong int, first error) {
	var l Limits
	for n := range read {
		s, want := d.peeked(n, &read[n]), d.pattern(&l, pattern, n)
		for ch := range d.channels {
			looked++
			if got := s.codes[ch][0]; got != want[ch] {
				if wrong++; first == nil {
					first = fmt.Errorf("DAC %d channel %d: wrote %#04x, read %#04x", n, ch, want[ch], got)
				}
			}
		}
	}
	return looked, wrong, first
}
