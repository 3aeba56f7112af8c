package linux

import (
	"fmt"
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

func wrapErrno(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return fmt.Errorf("%w (%v)", causeOf(e), e)
}
