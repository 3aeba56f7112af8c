package linux

import (
	"fmt"
	"strings"
	"syscall"

	"ringlight/hal"
)

// causeOf says what an errno of i2c-dev, spidev or a GPIO chip means. The kernel's
// Documentation/i2c/fault-codes.rst gives the meanings; drivers keep to them
// more or less: on i.MX an absent device shows as a timeout.
func causeOf(e syscall.Errno) error {
	switch e {
	case 0:
		return nil
	case syscall.ENXIO, syscall.EREMOTEIO:
		return hal.ErrAddressNACK
	case syscall.EIO, syscall.EPROTO: // the bit-bang and many other drivers: a data byte was refused
		return hal.ErrByteNACK
	case syscall.ETIMEDOUT, syscall.ETIME:
		return hal.ErrTimeout
	case syscall.EAGAIN:
		return hal.ErrArbitrationLost
	case syscall.EBUSY:
		return hal.ErrBusStuck
	case syscall.EBADMSG:
		return hal.ErrCRC
	case syscall.EINVAL, syscall.EOVERFLOW, syscall.EMSGSIZE:
		return hal.ErrOutOfRange
	case syscall.EOPNOTSUPP, syscall.ENOTTY, syscall.ENOSYS:
		return hal.ErrUnsupported
	case syscall.ESHUTDOWN:
		return hal.ErrClosed
	}
	return hal.ErrNoDevice
}

// wrapErrno is nil or an error that matches the cause and the errno.
func wrapErrno(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return fmt.Errorf("%w (%w)", causeOf(e), e)
}

// lastErrno is the highest that Linux has.
const lastErrno = 133

// errnoIn is the errno with whose text an error's text ends, 0: none.
func errnoIn(text string) syscall.Errno {
	for e := syscall.Errno(1); e <= lastErrno; e++ {
		if strings.HasSuffix(text, ": "+e.Error()) {
			return e
		}
	}
	return 0
}
