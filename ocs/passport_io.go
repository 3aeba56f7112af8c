package ocs

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/pca9548"
	"ringlight/ocs/work"
)

// passportStep is where the access to one module's passport stands.
//
//	ioHeads -> ioSlot -> (ioSlot of the other) -> ioDone
//	                  `-> ioWrite -> ioCheck -> ioDone
type passportStep uint8

const (
	ioHeads passportStep = iota // identity and the heads of both slots
	ioSlot                      // a whole slot, the newer first
	ioWrite                     // the other one is written, its head last
	ioCheck                     // and read back
	ioDone
)

const (
	// chosen: 6 ms of a 400 kHz bus, a quarter of the deadline.
	passportChunk = 256
	// While it programs, the chip does not acknowledge: the next page's write
	// asks again. chosen: three times to its maximum and once beyond.
	programPoll  = at24.ProgramMicros * time.Microsecond * 2 / 5
	programPolls = 4
)

// errPassportReadBack is an EEPROM that does not keep what was written.
var errPassportReadBack = errors.New("EEPROM does not keep what was written")

// passportIO reads the passport of one module, and writes a new one behind it.
type passportIO struct {
	hw    *hal.Module
	chip  at24.Chip
	token uint64
	write *passport // nil: only read

	step   passportStep
	tries  int
	polls  int
	wake   time.Duration
	serial string             // of the identity; "" where it cannot be read
	order  [passportSlots]int // newest first
	next   int                // in order
	slot   int                // being read or written
	at     int                // bytes of it done
	buf    []byte             // of ioSlot and ioCheck
	image  []byte             // of ioWrite
	pages  []int              // where in image each page begins
	found  *passport
	from   int // slot of found
	err    error

	op    hal.Op
	first int // message of op that is the EEPROM's
	w     []byte
}

func (p *passportIO) begin(q *work.Queue) {
	p.step, p.wake, p.from = ioHeads, hal.Never, -1
	p.buf = make([]byte, hal.IdentityBytes+passportSlots*passportHead)
	rest := p.buf[hal.IdentityBytes:]
	p.chip = at24.Of(p.hw.Memory)
	identity := hal.Msg{W: p.chip.AppendRead(nil, 0), R: p.buf[:hal.IdentityBytes]}
	if !hasRoom(p.chip) {
		p.submit(q, identity)
		return
	}
	p.submit(q, identity,
		hal.Msg{W: p.chip.AppendRead(nil, slotAddr(0)), R: rest[:passportHead]},
		hal.Msg{W: p.chip.AppendRead(nil, slotAddr(1)), R: rest[passportHead:]})
}

// submit puts messages for the EEPROM out, behind the choice of its channel.
func (p *passportIO) submit(q *work.Queue, msgs ...hal.Msg) {
	for i := range msgs {
		msgs[i].Addr = p.hw.EEPROM
	}
	p.op = hal.Op{Token: p.token, Class: hal.ClassHousekeeping, Msgs: pca9548.Behind(p.hw.Mux, p.hw.MuxChannel, msgs...)}
	if p.first = 1; p.hw.Mux == 0 {
		p.first = 0
	}
	q.Put(p.hw.Slow, &p.op)
}

// due asks again after a chip that was programming.
func (p *passportIO) due(q *work.Queue, now time.Duration) {
	if now >= p.wake {
		p.wake = hal.Never
		q.Put(p.hw.Slow, &p.op)
	}
}

// asks reports whether a completion is the answer of a chip that programs.
func (p *passportIO) asks(c *hal.Completion) bool {
	return p.step >= ioWrite && p.polls < programPolls && c.Msg == p.first && errors.Is(c.Err, hal.ErrAddressNACK)
}

// completed takes the end of one piece of bus work.
func (p *passportIO) completed(q *work.Queue, now time.Duration, c *hal.Completion) {
	if c.Err != nil {
		busy := p.asks(c)
		switch {
		case busy:
			p.polls++
			p.wake = now + programPoll
		case p.tries+1 < work.MaxTries:
			p.tries++
			q.Put(p.hw.Slow, &p.op)
		default:
			p.end(c.Err)
		}
		return
	}
	p.tries, p.polls = 0, 0
	switch p.step {
	case ioHeads:
		p.headsRead(q)
	case ioSlot, ioCheck:
		if p.at += passportChunk; p.at < len(p.buf) {
			p.readChunk(q)
		} else {
			p.slotRead(q)
		}
	case ioWrite:
		p.pages = p.pages[1:]
		p.writePage(q)
	}
}

func (p *passportIO) end(err error) { p.step, p.err, p.wake = ioDone, err, hal.Never }

func (p *passportIO) headsRead(q *work.Queue) {
	// An identity that cannot be read does not make the passport beside it
	// worse.
	p.serial, _ = hal.ParseIdentity(p.buf[:hal.IdentityBytes])
	first, ok0 := passportNumber(p.buf[hal.IdentityBytes:])
	second, ok1 := passportNumber(p.buf[hal.IdentityBytes+passportHead:])
	p.order = [passportSlots]int{0, 1}
	if !ok0 || ok1 && second > first {
		p.order = [passportSlots]int{1, 0}
	}
	p.buf = nil
	if !hasRoom(p.chip) && p.write != nil {
		p.end(nil) // there is nowhere to write it
		return
	}
	if !ok0 && !ok1 {
		p.err = errNoPassport
		p.judged(q)
		return
	}
	p.read(q, p.order[0])
}

// read begins to read a slot.
func (p *passportIO) read(q *work.Queue, slot int) {
	p.slot, p.at = slot, 0
	if p.buf == nil {
		p.buf = make([]byte, passportMost+max(p.hw.Optics().CellSpan()-hal.BenesCells, 0)*passportCell) // the most that one takes
	}
	if p.step != ioCheck {
		p.step = ioSlot
	}
	p.readChunk(q)
}

func (p *passportIO) readChunk(q *work.Queue) {
	p.w = p.chip.AppendRead(p.w[:0], slotAddr(p.slot)+uint16(p.at))
	p.submit(q, hal.Msg{W: p.w, R: p.buf[p.at:min(p.at+passportChunk, len(p.buf))]})
}

// slotRead judges a slot that was read.
func (p *passportIO) slotRead(q *work.Queue) {
	if p.step == ioCheck {
		p.end(nil)
		if !bytes.HasPrefix(p.buf, p.image) {
			p.err = errPassportReadBack
		}
		return
	}
	found, err := parsePassport(p.buf)
	if err == nil && p.serial != "" && found.module.Serial != p.serial {
		err = fmt.Errorf("passport: %w: it is of %q, the module is %q", ErrCalibrationForeign, found.module.Serial, p.serial)
	}
	if err == nil {
		p.found, p.from, p.err = found, p.slot, nil
		p.judged(q)
		return
	}
	if p.err == nil {
		p.err = err // of the newer slot: the cause to tell
	}
	if p.next++; p.next < passportSlots {
		p.read(q, p.order[p.next])
		return
	}
	p.judged(q)
}

// judged goes on when it is known what the EEPROM holds.
func (p *passportIO) judged(q *work.Queue) {
	if p.write == nil {
		p.step, p.wake = ioDone, hal.Never
		return
	}
	// hal.Never over the only valid one.
	p.slot = 0
	if p.from == 0 {
		p.slot = 1
	}
	if p.found != nil {
		p.write.number = p.found.number + 1
	}
	image, err := appendPassport(nil, p.write)
	if err != nil {
		p.end(err)
		return
	}
	p.image = image
	// The head goes last: until then the slot is what it was, or nothing.
	for at := p.chip.PageBytes; at < len(image); at += p.chip.PageBytes {
		p.pages = append(p.pages, at)
	}
	p.pages = append(p.pages, 0)
	p.step = ioWrite
	p.writePage(q)
}

func (p *passportIO) writePage(q *work.Queue) {
	if len(p.pages) == 0 {
		p.step = ioCheck
		p.read(q, p.slot)
		return
	}
	at := p.pages[0]
	p.w, _ = p.chip.AppendWrite(p.w[:0], slotAddr(p.slot)+uint16(at), p.image[at:])
	p.submit(q, hal.Msg{W: p.w})
}
