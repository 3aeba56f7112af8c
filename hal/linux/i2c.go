package linux

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

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

// i2cBus is one /dev/i2c-N. Everything that the kernel sees is part of it or
// hangs on it by real pointers, so it lives on the heap and stays put.
type i2cBus struct {
	shut func() error
	fd   uintptr
	call ioctl
	msgs [2]i2cMsg
	data i2cRDWR
	w, r []byte
}

// openI2C leaves the adapter's own timeout and retries as they are: they are
// its own, not the file's, can be written and not read, and so could not be
// given back to its other users.
func openI2C(device string) (*i2cBus, error) {
	fd, closer, err := openFile(device)
	if err != nil {
		return nil, err
	}
	return &i2cBus{fd: fd, shut: closer, call: realIoctl}, nil
}

func (b *i2cBus) transfer(m *hal.Msg) error {
	if len(m.W) == 0 && len(m.R) == 0 || len(m.W) > maxTransfer || len(m.R) > maxTransfer || m.Addr > 0x3ff {
		return fmt.Errorf("%w: address %#x, %d bytes out, %d back", hal.ErrOutOfRange, m.Addr, len(m.W), len(m.R))
	}
	flags := uint16(0)
	if m.Addr > 0x7f {
		flags = flagTen
	}
	b.w = append(b.w[:0], m.W...)
	if cap(b.r) < len(m.R) {
		b.r = make([]byte, len(m.R), maxTransfer)
	}
	b.r = b.r[:len(m.R)]
	n := 0
	if len(b.w) > 0 {
		b.msgs[n] = i2cMsg{m.Addr, flags, uint16(len(b.w)), unsafe.Pointer(&b.w[0])}
		n++
	}
	if len(b.r) > 0 {
		b.msgs[n] = i2cMsg{m.Addr, flags | flagRead, uint16(len(b.r)), unsafe.Pointer(&b.r[0])}
		n++
	}
	b.data = i2cRDWR{unsafe.Pointer(&b.msgs[0]), uint32(n)}
	e := b.call(b.fd, ioctlRDWR, unsafe.Pointer(&b.data))
	runtime.KeepAlive(b)
	return wrapErrno(e)
}

// read is what the last transfer read.
func (b *i2cBus) read() []byte { return b.r }

func (b *i2cBus) close() error { return b.shut() }
