package linux

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/gpio"

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

// gpioChips is the machine's GPIO chips. Its fields are seams for tests.
type gpioChips struct {
	paths func() []string
	open  func(path string) (fd uintptr, close func() error, err error)
	call  ioctl
}

func realGPIO() *gpioChips {
	return &gpioChips{paths: func() []string {
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
func (g *gpioChips) find(l hal.Line) (place, error) {
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

// chip opens a chip and says what it is.
func (g *gpioChips) chip(path string) (*unix.GPIOChipInfo, uintptr, func() error, error) {
	fd, closer, err := g.open(path)
	if err != nil {
		return nil, 0, nil, err
	}
	info := new(unix.GPIOChipInfo)
	if e := g.call(fd, unix.GPIO_GET_CHIPINFO_IOCTL, unsafe.Pointer(info)); e != 0 {
		return nil, 0, nil, errors.Join(fmt.Errorf("%s: %w", path, wrapErrno(e)), closer())
	}
	return info, fd, closer, nil
}

// onChip looks for a line on one chip; lines is 0 where it is not the line's.
func (g *gpioChips) onChip(path string, l hal.Line) (found []place, lines int, err error) {
	info, fd, closer, err := g.chip(path)
	if err != nil {
		return nil, 0, err
	}
	defer closer()
	if name := text(info.Name[:]); l.Chip != "" && l.Chip != name && l.Chip != text(info.Label[:]) {
		return nil, 0, nil
	}
	if l.Name == "" {
		if l.Offset < 0 || l.Offset >= int(info.Lines) {
			return nil, int(info.Lines), nil
		}
		return []place{{path, uint32(l.Offset), fmt.Sprintf("%s line %d", l.Chip, l.Offset)}}, int(info.Lines), nil
	}
	names, err := g.names(path, fd, int(info.Lines))
	for i, name := range names {
		if name == l.Name {
			found = append(found, place{path, uint32(i), name})
		}
	}
	return found, int(info.Lines), err
}

// names are what the device tree calls the lines of an open chip, by offset.
func (g *gpioChips) names(path string, fd uintptr, lines int) ([]string, error) {
	names := make([]string, lines)
	for i := range names {
		line, err := g.info(fd, uint32(i))
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", path, i, err)
		}
		names[i] = text(line.Name[:])
	}
	return names, nil
}

func (g *gpioChips) info(fd uintptr, offset uint32) (*unix.GPIOV2LineInfo, error) {
	line := &unix.GPIOV2LineInfo{Offset: offset}
	return line, wrapErrno(g.call(fd, unix.GPIO_V2_GET_LINEINFO_IOCTL, unsafe.Pointer(line)))
}

// request takes lines of one chip. The error names the holder of a line that is taken.
func (g *gpioChips) request(path string, flags uint64, lines ...place) (fd uintptr, err error) {
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
	return fmt.Errorf("%w: held by %s", hal.ErrInUse, cmp.Or(who, "another function of its pin"))
}

// values are the levels of the lines of a request, by bit.
func (g *gpioChips) values(fd uintptr, lines int, v *unix.GPIOV2LineValues) error {
	*v = unix.GPIOV2LineValues{Mask: 1<<lines - 1}
	return wrapErrno(g.call(fd, unix.GPIO_V2_LINE_GET_VALUES_IOCTL, unsafe.Pointer(v)))
}

func text(b []byte) string { s, _, _ := strings.Cut(string(b), "\x00"); return s }

// wire takes a line to free a bus by, let go.
func (g *gpioChips) wire(l hal.Line) (gpio.PinIO, error) {
	p, err := g.pinIO(l)
	if err != nil {
		return nil, err
	}
	if err = letGo(p); errors.Is(err, hal.ErrInUse) || errors.Is(err, hal.ErrOutOfRange) { // a strict pin controller says EINVAL
		err = fmt.Errorf("%w; a controller frees a bus by its own pins itself: leave scl and sda out, or name two other lines that are wired to the bus", err)
	}
	if err != nil {
		return nil, errors.Join(err, p.Halt())
	}
	return p, nil
}

// pinIO is a line of this machine, or one of periph's registry.
func (g *gpioChips) pinIO(l hal.Line) (gpio.PinIO, error) {
	if name, ok := strings.CutPrefix(l.Name, hal.Registered); ok {
		return registeredPin(name)
	}
	at, err := g.find(l)
	if err != nil {
		return nil, err
	}
	return &pin{gpio: g, at: at}, nil
}
