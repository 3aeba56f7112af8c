package linux

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"ringlight/hal"
)

// causeOf says what an errno of i2c-dev, spidev or a GPIO chip means. The kernel's
// Documentation/i2c/fault-codes.rst gives the meanings; drivers keep to them
// more or less: on i.MX an absent device shows as a timeout.
func causeOf(e syscall.Errno) error { return cmp.Or(causes[e], hal.ErrNoDevice) }

var causes = map[syscall.Errno]error{
	syscall.ENXIO: hal.ErrAddressNACK, syscall.EREMOTEIO: hal.ErrAddressNACK,
	syscall.EIO: hal.ErrByteNACK, syscall.EPROTO: hal.ErrByteNACK, // the bit-bang and many other drivers: a data byte was refused
	syscall.ETIMEDOUT: hal.ErrTimeout, syscall.ETIME: hal.ErrTimeout,
	syscall.EAGAIN: hal.ErrArbitrationLost, syscall.EBUSY: hal.ErrBusStuck, syscall.EBADMSG: hal.ErrCRC,
	syscall.EINVAL: hal.ErrOutOfRange, syscall.EOVERFLOW: hal.ErrOutOfRange, syscall.EMSGSIZE: hal.ErrOutOfRange,
	syscall.EOPNOTSUPP: hal.ErrUnsupported, syscall.ENOTTY: hal.ErrUnsupported, syscall.ENOSYS: hal.ErrUnsupported,
	syscall.ESHUTDOWN: hal.ErrClosed,
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
