package bench

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
	"ringlight/hal/pca953x"
)

// Answer is a latch that answers the edges of a line by writes that move
// nothing: they set the polarity of its inputs, and no pin is an input in
// service. On the bus they take as long as a switch.
type Answer struct {
	Board hal.Board
	chip  pca953x.Chip
	write hal.Op
	read  hal.Op
	msgs  [2]hal.Msg
	reply [3]byte
	cmd   [4]byte
	ask   [1]byte
}

// errAnswer is a line or latch that cannot be understood.
var errAnswer = errors.New("want -line NAME or CHIP:OFFSET, as in gpiochip0:12, and -latch PART=DEVICE@ADDRESS, as in pcal6524=/dev/i2c-0@0x20")

// NewAnswer reads a line and a latch as a person writes them; deadline is of
// one message.
func NewAnswer(line, latch string, deadline time.Duration) (*Answer, error) {
	l := hal.Line{Name: line}
	if chip, offset, ok := strings.Cut(line, ":"); ok {
		n, err := strconv.ParseUint(offset, 10, 16)
		if err != nil || chip == "" {
			return nil, fmt.Errorf("line %q: %w", line, errAnswer)
		}
		l = hal.Line{Chip: chip, Offset: int(n)}
	}
	name, at, ok := strings.Cut(latch, "=")
	part := hal.PartOf(name)
	device, text, at2 := strings.Cut(at, "@")
	if line == "" || !ok || !at2 || device == "" || part == hal.NoPart || part.Data().Role != hal.RoleLatch {
		return nil, fmt.Errorf("latch %q: %w", latch, errAnswer)
	}
	addr, err := parseAddr(text)
	if err != nil {
		return nil, fmt.Errorf("latch %q: %w", latch, err)
	}
	a := &Answer{chip: pca953x.Of(part)}
	a.Board = hal.Board{Buses: []hal.Bus{{Kind: hal.I2C, Device: device, Speed: 400 * physic.KiloHertz}},
		Lines: []hal.Line{l}, Latches: []hal.Latch{{Part: part, Bus: 0, Addr: addr}}}
	a.msgs[0] = hal.Msg{Addr: addr, W: a.cmd[:1+a.chip.Ports]}
	a.msgs[1] = hal.Msg{Addr: addr, W: a.ask[:], R: a.reply[:a.chip.Ports]}
	a.write = hal.Op{Class: hal.ClassSwitch, Deadline: deadline, Msgs: a.msgs[:1]}
	a.read = hal.Op{Class: hal.ClassVerify, Deadline: deadline, Msgs: a.msgs[1:]}
	a.chip.AppendRead(a.ask[:0], pca953x.Polarity)
	return a, nil
}

// Write is the op that answers a level. It is one and the same each time.
func (a *Answer) Write(high bool) *hal.Op {
	v := uint32(0)
	if high {
		v = 1
	}
	a.chip.AppendWriteAll(a.cmd[:0], pca953x.Polarity, v)
	return &a.write
}

// Read is the op that reads what stands there; Stands is what it has read.
func (a *Answer) Read() *hal.Op { return &a.read }

// Stands is the level that the last Read found.
func (a *Answer) Stands() bool { return a.chip.Value(a.reply[:])&1 != 0 }
