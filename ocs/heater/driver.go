package heater

import (
	"errors"
	"slices"

	"ringlight/hal"
)

// ErrReadBack is a module that has other codes than it was given.
var ErrReadBack = errors.New("DAC does not keep what was written")

// action is what a DAC is to do with codes.
type action uint8

const (
	actCold    action = iota // 0 V everywhere, no toggling, ready for actSet
	actStage                 // from any state to the codes of all paths; outputs move at the end, at once
	actLoad                  // codes to the input registers: nothing moves
	actTake                  // input registers to the outputs
	actArm                   // what the next toggle brings into force, for chips that cannot hold both codes of a cell
	actSet                   // the settings, at once, for chips made cold
	actMove                  // the settings to the input registers, and then to the outputs at once
	actPoke                  // one setting by hand, in whatever the chip was doing
	actRest                  // after a look by hand: as actSet expects it
	actPattern               // a test pattern to the input registers
)

// order is an action and its object.
type order struct {
	action   action
	nets     [2]bool  // levels of the toggle nets
	codes    *Allowed // nil where the action has none
	settings []Setting
}

// chip is a kind of DAC; the module's optics say which cell is on which channel.
type chip interface {
	// frames appends the frames of an order, none where it has nothing to do.
	frames(dst []byte, n int, o *order) []byte
	// readBack appends frames that read all it holds and change nothing that is
	// seen outside.
	readBack(dst []byte) []byte
	// state is what the reply to readBack says of the n-th.
	state(n int, nets [2]bool, reply []byte) state
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
	unknown  [2]bool // registers that cannot be read
}

// Driver makes the bus work of one module's heaters, and has its limits. Its messages
// go over Module.SPI, one to a chip, in the order of the chips. A module with a
// controller has none to make, and limits all the same.
type Driver struct {
	hw       *hal.Module
	wired    *hal.Optics
	nets     [2]bool
	chip     chip
	channels int
	// registers of a channel that can be read, and poked: A and B, or A alone for
	// what is in force.
	registers int
	plain     bool  // codes are all the registers there are
	frame     uint8 // bytes
	reads     int   // bytes of readBack
	limits    limits
}

// For makes the driver of a module, which knows nothing yet of what that holds.
func For(m *hal.Module) *Driver {
	d := of(m.DAC, m.Optics())
	d.hw, d.limits.unknown = m, true
	return &d
}

// of makes the driver for one type of DAC.
func of(dac hal.Part, wired *hal.Optics) Driver {
	d := Driver{chip: ltc{wired}, channels: ltcChannels, registers: 2, frame: ltcFrame, reads: ltcReads}
	if dac.Like() == hal.AD5676R {
		d = Driver{chip: ad{wired}, channels: adChannels, registers: 1, plain: true, frame: adFrame, reads: adReads}
	}
	d.wired, d.limits.bears = wired, &wired.Heater
	return d
}

// At is the driver while the toggle nets have these levels. DACs that hold both
// codes of a cell do not ask.
func (d *Driver) At(nets [2]bool) *Driver {
	d.nets = nets
	return d
}

// HoldsBoth reports whether the DACs hold both codes of a cell, and can be read.
func (d *Driver) HoldsBoth() bool { return d.registers == 2 }

// Chips is how many DACs the module has.
func (d *Driver) Chips() int { return len(d.hw.ChipSelects) }

func (d *Driver) messages(o *order) []hal.Msg {
	o.nets = d.nets
	d.check(o.codes, o.settings)
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
func (d *Driver) Cold() []hal.Msg {
	d.limits.cold()
	return d.messages(&order{action: actCold})
}

// Stage brings the DACs from any state to the codes of all paths.
func (d *Driver) Stage(codes *Allowed) []hal.Msg {
	return d.messages(&order{action: actStage, codes: codes})
}

// Load writes codes where Take finds them; nothing moves.
func (d *Driver) Load(codes *Allowed) []hal.Msg {
	return d.messages(&order{action: actLoad, codes: codes})
}

// Take brings what was loaded to the heaters.
func (d *Driver) Take() []hal.Msg { return d.messages(&order{action: actTake}) }

// Arm writes what the next edge of a toggle net is to bring into force. There is
// nothing to do where the DACs hold both codes of a cell; elsewhere no net may
// toggle between Load, or an edge, and the end of it.
func (d *Driver) Arm(codes *Allowed) []hal.Msg {
	return d.messages(&order{action: actArm, codes: codes})
}

// Change is Load, Take and Arm in one.
func (d *Driver) Change(codes *Allowed) []hal.Msg {
	msgs := d.Load(codes)
	for n := range msgs {
		for _, a := range []action{actTake, actArm} {
			msgs[n].W = d.chip.frames(msgs[n].W, n, &order{action: a, nets: d.nets, codes: codes})
		}
	}
	return msgs
}

// Set drives heaters of a module made cold, in the order of their cells.
func (d *Driver) Set(settings []Setting) []hal.Msg {
	return d.messages(&order{action: actSet, settings: settings})
}

// Move changes codes in force, all of a chip at once, in the order of their cells;
// codes are what the other registers are to hold.
func (d *Driver) Move(settings []Setting, codes *Allowed) []hal.Msg {
	return d.messages(&order{action: actMove, settings: settings, codes: codes})
}

// Poke writes one code by hand.
func (d *Driver) Poke(s Setting) []hal.Msg {
	return d.messages(&order{action: actPoke, settings: []Setting{s}})
}

// ReadBack reads what every chip holds, behind the messages given, if any.
func (d *Driver) ReadBack(msgs []hal.Msg) []hal.Msg {
	if msgs == nil {
		msgs = make([]hal.Msg, len(d.hw.ChipSelects))
		for n, cs := range d.hw.ChipSelects {
			msgs[n] = hal.Msg{Addr: cs, Frame: d.frame}
		}
	}
	for n := range msgs {
		msgs[n].W = d.chip.readBack(slices.Grow(msgs[n].W, d.reads))
		msgs[n].R = make([]byte, len(msgs[n].W))
	}
	return msgs
}

// state is what the reply to ReadBack says of chip n.
func (d *Driver) state(n int, reply []byte) state {
	return d.chip.state(n, d.nets, reply[len(reply)-d.reads:])
}

// Holds reports whether the reply to ReadBack is what codes want of chip n.
func (d *Driver) Holds(n int, reply []byte, codes *Codes) bool {
	s := d.state(n, reply)
	for ch := range d.channels {
		for register, code := range s.codes[ch] {
			s.ready = s.ready && (s.unknown[register] || code == codeOf(codes, d.wired.CellAt(n, ch), register))
		}
	}
	return s.ready
}

// Codes takes the codes of chip n out of the reply to ReadBack, but for those that
// cannot be read, and reports whether it is set up as its heaters need it.
func (d *Driver) Codes(n int, reply []byte, codes *Codes) bool {
	s := d.state(n, reply)
	for ch := range d.channels {
		cell := d.wired.CellAt(n, ch)
		for register, code := range s.codes[ch] {
			if cell >= 0 && !s.unknown[register] {
				codes[cell][register] = code
			}
		}
	}
	return s.ready
}
