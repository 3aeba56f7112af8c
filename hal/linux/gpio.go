package linux

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"ringlight/hal"
)

// From the kernel's uapi/linux/gpio.h, version 2 of the interface, where
// package unix has the structures and not the names.
const (
	gpioSetConfig = 0xc110b40d
	lineUsed      = 1 << 0
	lineInput     = 1 << 2
	lineOutput    = 1 << 3
	lineRising    = 1 << 4
	lineFalling   = 1 << 5
	// maxRequest is how many lines of a chip one request holds.
	maxRequest = 64
)

// consumer is what others see as the owner of our lines.
const consumer = "ocs-agent"

// gpio is the machine's GPIO chips. Its fields are seams for tests.
type gpio struct {
	paths func() []string
	open  func(path string) (fd uintptr, close func() error, err error)
	call  ioctl
}

func realGPIO() *gpio {
	return &gpio{paths: func() []string {
		paths, _ := filepath.Glob("/dev/gpiochip*") // the pattern is good
		sort.Slice(paths, func(i, k int) bool {
			return len(paths[i]) < len(paths[k]) || len(paths[i]) == len(paths[k]) && paths[i] < paths[k]
		})
		return paths
	}, open: openFile, call: realIoctl}
}

// place is where a line is.
type place struct {
	path   string
	offset uint32
	name   string // as people know it
}

// find looks for a line by its name, or by its chip and offset.
func (g *gpio) find(l hal.Line) (place, error) {
	var found []place
	chip := false
	for _, path := range g.paths() {
		p, lines, err := g.onChip(path, l)
		if err != nil {
			return place{}, err
		}
		chip = chip || lines > 0
		found = append(found, p...)
		if lines > 0 && l.Name == "" && len(p) == 0 {
			return place{}, fmt.Errorf("%w: %s has %d lines, no line %d", hal.ErrOutOfRange, l.Chip, lines, l.Offset)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return place{}, fmt.Errorf("%w: %d GPIO lines are called %q: want a chip, too", hal.ErrOutOfRange, len(found), l.Name)
	case !chip:
		return place{}, fmt.Errorf("%w: no GPIO chip %q", hal.ErrNoDevice, l.Chip)
	}
	return place{}, fmt.Errorf("%w: no GPIO line is called %q", hal.ErrNoDevice, l.Name)
}

// onChip looks for a line on one chip; lines is 0 where it is not the line's.
func (g *gpio) onChip(path string, l hal.Line) (found []place, lines int, err error) {
	fd, closer, err := g.open(path)
	if err != nil {
		return nil, 0, err
	}
	defer closer()
	info := new(unix.GPIOChipInfo)
	if e := g.call(fd, unix.GPIO_GET_CHIPINFO_IOCTL, unsafe.Pointer(info)); e != 0 {
		return nil, 0, fmt.Errorf("%s: %w", path, wrapErrno(e))
	}
	if name := text(info.Name[:]); l.Chip != "" && l.Chip != name && l.Chip != text(info.Label[:]) {
		return nil, 0, nil
	}
	if l.Name == "" {
		if l.Offset < 0 || l.Offset >= int(info.Lines) {
			return nil, int(info.Lines), nil
		}
		return []place{{path, uint32(l.Offset), fmt.Sprintf("%s line %d", l.Chip, l.Offset)}}, int(info.Lines), nil
	}
	for i := range info.Lines {
		if line, err := g.info(fd, i); err != nil {
			return nil, 0, fmt.Errorf("%s line %d: %w", path, i, err)
		} else if text(line.Name[:]) == l.Name {
			found = append(found, place{path, i, l.Name})
		}
	}
	return found, int(info.Lines), nil
}

func (g *gpio) info(fd uintptr, offset uint32) (*unix.GPIOV2LineInfo, error) {
	line := &unix.GPIOV2LineInfo{Offset: offset}
	return line, wrapErrno(g.call(fd, unix.GPIO_V2_GET_LINEINFO_IOCTL, unsafe.Pointer(line)))
}

// request takes lines of one chip. Who holds one that cannot be had is said.
func (g *gpio) request(path string, flags uint64, lines ...place) (fd uintptr, err error) {
	chip, closer, err := g.open(path)
	if err != nil {
		return 0, err
	}
	defer closer()
	r := &unix.GPIOV2LineRequest{Num_lines: uint32(len(lines))}
	r.Config.Flags = flags
	copy(r.Consumer[:], consumer)
	for i, l := range lines {
		r.Offsets[i] = l.offset
		info, err := g.info(chip, l.offset)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", l.name, err)
		}
		if info.Flags&lineUsed != 0 {
			return 0, fmt.Errorf("%s: %w", l.name, heldBy(text(info.Consumer[:])))
		}
	}
	if e := g.call(chip, unix.GPIO_V2_GET_LINE_IOCTL, unsafe.Pointer(r)); e != 0 {
		err := wrapErrno(e)
		if e == syscall.EBUSY {
			err = heldBy("")
		}
		return 0, fmt.Errorf("%s: %w", lines[0].name, err)
	}
	return uintptr(r.Fd), nil
}

func heldBy(who string) error {
	if who == "" {
		who = "another function of its pin"
	}
	return fmt.Errorf("%w: held by %s", hal.ErrInUse, who)
}

// values are the levels of the lines of a request, by bit.
func (g *gpio) values(fd uintptr, lines int, v *unix.GPIOV2LineValues) error {
	*v = unix.GPIOV2LineValues{Mask: 1<<lines - 1}
	return wrapErrno(g.call(fd, unix.GPIO_V2_LINE_GET_VALUES_IOCTL, unsafe.Pointer(v)))
}

func text(b []byte) string { s, _, _ := strings.Cut(string(b), "\x00"); return s }

// wireLine is a line of a bus that is pulled low or let go.
type wireLine struct {
	gpio *gpio
	fd   uintptr
}

// wire takes a line to free a bus by, let go.
func (g *gpio) wire(l hal.Line) (wirePin, error) {
	at, err := g.find(l)
	if err != nil {
		return nil, err
	}
	fd, err := g.request(at.path, lineInput, at)
	if errors.Is(err, hal.ErrInUse) || errors.Is(err, hal.ErrOutOfRange) { // a strict pin controller says EINVAL
		err = fmt.Errorf("%w; a controller frees a bus by its own pins itself: leave scl and sda out, or name two other lines that are wired to the bus", err)
	}
	if err != nil {
		return nil, err
	}
	return &wireLine{g, fd}, nil
}

func (w *wireLine) config(flags uint64) error {
	c := &unix.GPIOV2LineConfig{Flags: flags} // an output starts low
	return wrapErrno(w.gpio.call(w.fd, gpioSetConfig, unsafe.Pointer(c)))
}

func (w *wireLine) pull() error    { return w.config(lineOutput) }
func (w *wireLine) release() error { return w.config(lineInput) }

func (w *wireLine) high() bool {
	v := new(unix.GPIOV2LineValues)
	return w.gpio.values(w.fd, 1, v) != nil || v.Bits&1 != 0 // a line that cannot be read holds nothing
}

func (w *wireLine) close() error { return syscall.Close(int(w.fd)) }
