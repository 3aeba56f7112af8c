package linux

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
)

// From the kernel's uapi/linux/i2c-dev.h and i2c.h.
const (
	ioctlRDWR   = 0x0707
	flagRead    = 0x0001
	flagTen     = 0x0010
	maxTransfer = 8192 // bytes of one message
)

// i2cMsg is struct i2c_msg: the kernel's layout on 32 and 64 bits, since the
// compiler pads the pointer as C does.
type i2cMsg struct {
	addr, flags, length uint16
	buf                 unsafe.Pointer
}

// i2cRDWR is struct i2c_rdwr_ioctl_data.
type i2cRDWR struct {
	msgs  unsafe.Pointer
	count uint32
}

// ioctl is the seam for tests.
type ioctl func(fd uintptr, request uintptr, arg unsafe.Pointer) syscall.Errno

func realIoctl(fd, request uintptr, arg unsafe.Pointer) syscall.Errno {
	_, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg))
	return e
}

// i2cBus is one /dev/i2c-N, an i2c.BusCloser. What the kernel reads lies in it, and
// the caller's buffers hang on it by real pointers: all of it is on the heap and stays
// put, where a pointer kept as a number would not follow a stack that moves.
type i2cBus struct {
	device string
	shut   func() error
	fd     uintptr
	call   ioctl

	mu   sync.Mutex // several drivers may share a bus
	msgs [2]i2cMsg
	data i2cRDWR
}

// openI2C leaves the adapter's own timeout and retries as they are: they are
// its own, not the file's, can be written and not read, and so could not be
// given back to its other users.
func openI2C(device string) (i2c.BusCloser, error) {
	fd, closer, err := openFile(device)
	if err != nil {
		return nil, err
	}
	return &i2cBus{device: device, fd: fd, shut: closer, call: realIoctl}, nil
}

// Tx is one I2C_RDWR: w, and after a repeated start r; one of the two may be empty.
// Its errors match a cause of package hal and the kernel's errno. An address over
// 0x7f is sent as one of ten bits.
func (b *i2cBus) Tx(addr uint16, w, r []byte) error {
	if len(w) == 0 && len(r) == 0 || len(w) > maxTransfer || len(r) > maxTransfer || addr > 0x3ff {
		return fmt.Errorf("%w: address %#x, %d bytes out, %d back", hal.ErrOutOfRange, addr, len(w), len(r))
	}
	flags := uint16(0)
	if addr > 0x7f {
		flags = flagTen
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	if len(w) > 0 {
		b.msgs[n] = i2cMsg{addr, flags, uint16(len(w)), unsafe.Pointer(&w[0])}
		n++
	}
	if len(r) > 0 {
		b.msgs[n] = i2cMsg{addr, flags | flagRead, uint16(len(r)), unsafe.Pointer(&r[0])}
		n++
	}
	b.data = i2cRDWR{unsafe.Pointer(&b.msgs[0]), uint32(n)}
	e := b.call(b.fd, ioctlRDWR, unsafe.Pointer(&b.data))
	runtime.KeepAlive(b)
	return wrapErrno(e)
}

// SetSpeed is refused: the clock of an adapter is the device tree's.
func (b *i2cBus) SetSpeed(physic.Frequency) error {
	return fmt.Errorf("%s: %w: the clock is the device tree's", b.device, hal.ErrUnsupported)
}

func (b *i2cBus) String() string { return b.device }

// Close lets go of the device.
func (b *i2cBus) Close() error { return b.shut() }
