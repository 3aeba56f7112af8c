package linux

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
)

// From the kernel's uapi/linux/spi/spidev.h and spi.h.
const (
	spiReadMode32  = 0x80046b05
	spiWriteMode32 = 0x40046b05
	spiMessage     = 0x40006b00 // and the size of the transfers from bit 16 on
	spiModeBits    = 3          // CPHA, CPOL; the others are the board's wiring
	spiBits        = 8
	// What one call may carry: spidev copies through a buffer of one page, unless
	// its module is told otherwise.
	maxFrames   = 64
	maxSPIBytes = 4096
)

// spiTransfer is struct spi_ioc_transfer. Its addresses are numbers: what they
// point at must be held elsewhere.
type spiTransfer struct {
	tx, rx      uint64
	length, hz  uint32
	delayMicros uint16
	bits        uint8
	csChange    uint8 // raise the select after this one, too
	_           [4]uint8
}

// chipSelect is one /dev/spidevN.M, opened at first use.
type chipSelect struct {
	fd    uintptr
	close func() error
}

// spiBus is one SPI controller. As with i2cBus, all that the kernel sees lies
// on the heap and hangs on it.
type spiBus struct {
	prefix    string
	mode      func(chipSelect uint16) uint8
	hz        uint32
	open      func(path string) (fd uintptr, close func() error, err error)
	call      ioctl
	chips     map[uint16]*chipSelect
	transfers [maxFrames]spiTransfer
	flags     uint32
	w, r      []byte
}

// openSPI takes a bus whose device is "/dev/spidev1.", to which chip selects
// are appended; mode is that of the chip at one.
func openSPI(b hal.Bus, mode func(chipSelect uint16) uint8) (*spiBus, error) {
	number, ok := strings.CutPrefix(b.Device, "/dev/spidev")
	number, dot := strings.CutSuffix(number, ".")
	if _, err := strconv.Atoi(number); !ok || !dot || err != nil {
		return nil, fmt.Errorf("%w: SPI device %q, want \"/dev/spidevN.\"", hal.ErrNoDevice, b.Device)
	}
	return &spiBus{prefix: b.Device, mode: mode, hz: uint32(b.Speed / physic.Hertz), open: openFile, call: realIoctl, chips: map[uint16]*chipSelect{}}, nil
}

// openFile opens a device. What cannot be opened is no device to us, whatever
// the errno is.
func openFile(path string) (uintptr, func() error, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("%w (%w)", hal.ErrNoDevice, err)
	}
	return f.Fd(), f.Close, nil
}

// chip opens a chip select and sets its clock's polarity and phase; its other
// flags are how the board is wired and stay as found.
func (b *spiBus) chip(number uint16) (*chipSelect, error) {
	if c, ok := b.chips[number]; ok {
		return c, nil
	}
	fd, closer, err := b.open(b.prefix + strconv.Itoa(int(number)))
	if err != nil {
		return nil, err
	}
	mode := b.mode(number)
	e := b.call(fd, spiReadMode32, unsafe.Pointer(&b.flags))
	if e == 0 {
		b.flags = b.flags&^spiModeBits | uint32(mode)
		e = b.call(fd, spiWriteMode32, unsafe.Pointer(&b.flags))
	}
	if e != 0 {
		return nil, errors.Join(fmt.Errorf("mode %d: %w", mode, wrapErrno(e)), closer())
	}
	c := &chipSelect{fd: fd, close: closer}
	b.chips[number] = c
	return c, nil
}

// transfer sends the frames of m, the chip select raised after each.
func (b *spiBus) transfer(m *hal.Msg) error {
	frame := int(m.Frame)
	if frame == 0 || len(m.W) == 0 || len(m.W)%frame != 0 || m.R != nil && len(m.R) != len(m.W) {
		return fmt.Errorf("%w: %d bytes out, %d back in frames of %d", hal.ErrOutOfRange, len(m.W), len(m.R), frame)
	}
	c, err := b.chip(m.Addr)
	if err != nil {
		return err
	}
	b.w = append(b.w[:0], m.W...)
	if cap(b.r) < len(m.R) {
		b.r = make([]byte, len(m.R))
	}
	b.r = b.r[:len(m.R)]
	for at := 0; at < len(b.w); {
		n := 0
		for ; n < maxFrames && (n+1)*frame <= maxSPIBytes && at < len(b.w); n++ {
			t := spiTransfer{tx: addressOf(b.w, at), length: uint32(frame), hz: b.hz, bits: spiBits, csChange: 1}
			if m.R != nil {
				t.rx = addressOf(b.r, at)
			}
			b.transfers[n] = t
			at += frame
		}
		// After the last it rises by itself; asked for there, it would stay low.
		b.transfers[n-1].csChange = 0
		size := uintptr(n) * unsafe.Sizeof(spiTransfer{})
		e := b.call(c.fd, spiMessage|size<<16, unsafe.Pointer(&b.transfers[0]))
		runtime.KeepAlive(b)
		if e != 0 {
			return wrapErrno(e)
		}
	}
	return nil
}

func addressOf(b []byte, at int) uint64 { return uint64(uintptr(unsafe.Pointer(&b[at]))) }

func (b *spiBus) read() []byte { return b.r }

func (b *spiBus) close() error {
	var errs []error
	for _, c := range b.chips { // any order: independent files
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}
