package linux

import (
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
)

// attrValues says that an attribute of a line's configuration is the level of an
// output. From the kernel's uapi/linux/gpio.h.
const attrValues = 2

// pin is one line as a gpio.PinIO and a hal.StampedPin. The kernel is asked for it when
// it is first used, as it stands, and whoever has it else is named.
type pin struct {
	gpio   *gpioChips
	at     place
	mu     sync.Mutex
	fd     uintptr // 0: not asked for
	flags  uint64
	values unix.GPIOV2LineValues
	event  unix.GPIOV2LineEvent
	fds    [1]unix.PollFd
	config unix.GPIOV2LineConfig
}

// use configures the line; level counts for an output.
func (p *pin) use(flags uint64, level gpio.Level) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd == 0 {
		if p.fd, err = p.gpio.request(p.at.path, 0, p.at); err != nil {
			return err
		}
	}
	p.config = unix.GPIOV2LineConfig{Flags: flags}
	if level {
		p.config.Num_attrs = 1
		p.config.Attrs[0] = unix.GPIOV2LineConfigAttribute{Attr: unix.GPIOV2LineAttribute{Id: attrValues, Flags: 1}, Mask: 1}
	}
	if e := p.gpio.call(p.fd, gpioSetConfig, unsafe.Pointer(&p.config)); e != 0 {
		return fmt.Errorf("%s: %w", p.at.name, wrapErrno(e))
	}
	p.flags = flags
	return nil
}

// asItStands asks for the line and leaves it as it is, to be read.
func (p *pin) asItStands() error {
	_, chip, closer, err := p.gpio.chip(p.at.path)
	if err != nil {
		return err
	}
	defer closer()
	info, err := p.gpio.info(chip, p.at.offset)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flags = lineInput; info.Flags&lineOutput != 0 {
		p.flags = lineOutput
	}
	p.fd, err = p.gpio.request(p.at.path, 0, p.at)
	return err
}

// In makes it an input. Pull resistors are the board's.
func (p *pin) In(pull gpio.Pull, edge gpio.Edge) error {
	if pull != gpio.PullNoChange {
		return fmt.Errorf("%s: %w: pull %v", p.at.name, hal.ErrUnsupported, pull)
	}
	flags := uint64(lineInput)
	if edge == gpio.RisingEdge || edge == gpio.BothEdges {
		flags |= lineRising
	}
	if edge == gpio.FallingEdge || edge == gpio.BothEdges {
		flags |= lineFalling
	}
	return p.use(flags, gpio.Low)
}

// Out makes it an output of a level.
func (p *pin) Out(l gpio.Level) error { return p.use(lineOutput, l) }

// Read is the level; a line that cannot be read is high, as one that nobody pulls.
func (p *pin) Read() gpio.Level {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fd == 0 || p.gpio.values(p.fd, 1, &p.values) != nil || p.values.Bits&1 != 0
}

// WaitForEdge waits for the next edge that In asked for; under 0: without end. false:
// none came.
func (p *pin) WaitForEdge(timeout time.Duration) bool {
	p.mu.Lock()
	fd := p.fd
	p.mu.Unlock()
	if fd == 0 {
		return false
	}
	p.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	var until *unix.Timespec
	if timeout >= 0 {
		ts := unix.NsecToTimespec(int64(timeout))
		until = &ts
	}
	for {
		n, err := unix.Ppoll(p.fds[:], until, nil)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return false
		}
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&p.event)), unsafe.Sizeof(p.event))
		n, err = unix.Read(int(fd), raw)
		return err == nil && n == len(raw)
	}
}

// LastEdge has the kernel's stamp and number.
func (p *pin) LastEdge() (high bool, at time.Duration, number uint32) {
	return p.event.Id == unix.GPIO_V2_LINE_EVENT_RISING_EDGE, time.Duration(p.event.Timestamp_ns), p.event.Line_seqno
}

// Halt gives the line back as it stands.
func (p *pin) Halt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd == 0 {
		return nil
	}
	fd := p.fd
	p.fd, p.flags = 0, 0
	return unix.Close(int(fd))
}

func (p *pin) String() string { return p.at.name }
func (p *pin) Name() string   { return p.at.name }
func (p *pin) Number() int    { return int(p.at.offset) }

// Function is what it is used for, in periph's words.
func (p *pin) Function() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.flags&lineOutput != 0:
		return "OUT"
	case p.flags&lineInput != 0:
		return "IN"
	}
	return ""
}

func (p *pin) Pull() gpio.Pull        { return gpio.PullNoChange }
func (p *pin) DefaultPull() gpio.Pull { return gpio.PullNoChange }

// PWM is refused.
func (p *pin) PWM(gpio.Duty, physic.Frequency) error {
	return fmt.Errorf("%s: %w: PWM", p.at.name, hal.ErrUnsupported)
}
