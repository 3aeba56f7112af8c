package heater

import "ringlight/hal"

// action is what a DAC is to do with codes.
type action uint8

const (
	actCold    action = iota // 0 V everywhere, no toggling, ready for actSet
	actStage                 // from any state to the codes of all paths; outputs move at the end, at once
	actLoad                  // codes to the input registers: nothing moves
	actTake                  // input registers to the outputs
	actSet                   // the settings, at once, for chips made cold
	actMove                  // the settings to the input registers, and then to the outputs at once
	actPoke                  // one setting by hand, in whatever the chip was doing
	actRest                  // after a look by hand: as actSet expects it
	actPattern               // a test pattern to the input registers
)

// order is an action and what it is about.
type order struct {
	action   action
	codes    *Codes
	settings []Setting
	pattern  [maxChannels]uint16
}

// chip is a kind of DAC. The n-th of a module has the cells from n times its
// number of channels on.
type chip interface {
	// frames appends the frames of an order, none where it has nothing to do.
	frames(dst []byte, n int, o *order) []byte
	// readBack appends frames that read all it holds and change nothing that is
	// seen outside.
	readBack(dst []byte) []byte
	// state is what the reply to readBack says of the n-th.
	state(n int, reply []byte) state
}

// maxChannels of any chip.
const maxChannels = 16

// state is what a chip holds.
type state struct {
	ready    bool   // set up as its heaters need it
	ranges   uint16 // bit by channel: has the range of a heater
	toggles  uint16
	settings [maxChannels]uint16
	codes    [maxChannels][2]uint16
}

// Driver makes the bus work of one module's heaters. Its messages go over
// Module.SPI, one to a chip, in the order of the chips.
type Driver struct {
	hw       *hal.Module
	chip     chip
	channels int
	frame    uint8 // bytes
}

// For is the driver of a module of kind chips.
func For(m *hal.Module) Driver {
	return Driver{hw: m, chip: ltc{}, channels: ltcChannels, frame: ltcFrame}
}

// Chips is how many DACs the module has.
func (d Driver) Chips() int { return len(d.hw.ChipSelects) }

func (d Driver) messages(o *order) []hal.Msg {
	msgs := make([]hal.Msg, 0, len(d.hw.ChipSelects))
	for n, cs := range d.hw.ChipSelects {
		if w := d.chip.frames(nil, n, o); len(w) > 0 {
			msgs = append(msgs, hal.Msg{Addr: cs, Frame: d.frame, W: w})
		}
	}
	return msgs
}

// Cold takes every heater to 0 V, whatever held it, and leaves the DACs ready for
// Set.
func (d Driver) Cold() []hal.Msg { return d.messages(&order{action: actCold}) }

// Stage brings the DACs from any state to the codes of all paths.
func (d Driver) Stage(codes *Allowed) []hal.Msg {
	return d.messages(&order{action: actStage, codes: &codes.codes})
}

// Load writes codes where Take finds them; nothing moves.
func (d Driver) Load(codes *Allowed) []hal.Msg {
	return d.messages(&order{action: actLoad, codes: &codes.codes})
}

// Take brings what was loaded to the heaters.
func (d Driver) Take() []hal.Msg { return d.messages(&order{action: actTake}) }

// Change is Load and Take in one.
func (d Driver) Change(codes *Allowed) []hal.Msg {
	msgs := d.Load(codes)
	for n := range msgs {
		msgs[n].W = d.chip.frames(msgs[n].W, n, &order{action: actTake})
	}
	return msgs
}

// Set drives heaters of a module made cold, in the order of their cells.
func (d Driver) Set(settings []Setting) []hal.Msg {
	return d.messages(&order{action: actSet, settings: settings})
}

// Move changes codes in force, all of a chip at once, in the order of their cells.
func (d Driver) Move(settings []Setting) []hal.Msg {
	return d.messages(&order{action: actMove, settings: settings})
}

// Poke writes one code by hand.
func (d Driver) Poke(s Setting) []hal.Msg {
	return d.messages(&order{action: actPoke, settings: []Setting{s}})
}

// ReadBack reads what every chip holds, behind the messages given, if any.
func (d Driver) ReadBack(msgs []hal.Msg) []hal.Msg {
	if msgs == nil {
		for _, cs := range d.hw.ChipSelects {
			msgs = append(msgs, hal.Msg{Addr: cs, Frame: d.frame})
		}
	}
	for n := range msgs {
		msgs[n].W = d.chip.readBack(msgs[n].W)
		msgs[n].R = make([]byte, len(msgs[n].W))
	}
	return msgs
}

// state is what the reply to ReadBack says of chip n.
func (d Driver) state(n int, reply []byte) state {
	return d.chip.state(n, reply[len(reply)-len(d.chip.readBack(nil)):])
}

// Holds reports whether the reply to ReadBack is what codes want of chip n.
func (d Driver) Holds(n int, reply []byte, codes *Codes) bool {
	s := d.state(n, reply)
	for ch := range d.channels {
		for register, code := range s.codes[ch] {
			s.ready = s.ready && code == codeOf(codes, n*d.channels+ch, register)
		}
	}
	return s.ready
}

// Codes takes the codes of chip n out of the reply to ReadBack, and reports whether
// it is set up as its heaters need it.
func (d Driver) Codes(n int, reply []byte, codes *Codes) bool {
	s := d.state(n, reply)
	for ch := range d.channels {
		if cell := n*d.channels + ch; cell < hal.CellsPerMod {
			codes[cell] = s.codes[ch]
		}
	}
	return s.ready
}
