package linux

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
)

// sysDevices is where the kernel says what an I2C adapter is.
const sysDevices = "/sys/bus/i2c/devices"

// checkAdapter holds an I2C adapter to what the board says of its bus. The clock
// cannot be set from here: it is the device tree's, and the simulator's times and the
// chips' limits rest on it. One that the device tree does not name is the driver's
// own, 100 kHz as a rule, and no chip's trouble. A slower one costs time, which the
// calibration measures.
func checkAdapter(sys string, b *hal.Bus) error {
	if b.Speed == 0 || strings.HasPrefix(b.Device, hal.Registered) {
		return nil // nothing is said of it, or it is no adapter of the kernel's
	}
	at := filepath.Join(sys, filepath.Base(b.Device))
	if raw, err := os.ReadFile(filepath.Join(at, "of_node", "clock-frequency")); err == nil && len(raw) == 4 {
		if hz := physic.Frequency(binary.BigEndian.Uint32(raw)) * physic.Hertz; hz > b.Speed {
			return fmt.Errorf("%w: the device tree clocks it at %v, the board at %v", hal.ErrOutOfRange, hz, b.Speed)
		}
	}
	if _, err := os.Stat(at); err != nil {
		return nil // not a kernel that says
	}
	switch channel := isChannel(sys, b.Device); {
	case channel && !b.Adapter:
		return fmt.Errorf("%w: it is a channel of a mux that the kernel drives; the board file says that it is a bus of its own", hal.ErrOutOfRange)
	case !channel && b.Adapter:
		return fmt.Errorf("%w: it is no channel of a mux that the kernel drives; the board file says that it is one", hal.ErrOutOfRange)
	}
	return nil
}

// Channel reports whether /dev/i2c-N is a channel of a mux that the kernel drives.
func Channel(device string) bool { return isChannel(sysDevices, device) }

func isChannel(sys, device string) bool {
	_, err := os.Stat(filepath.Join(sys, filepath.Base(device), "mux_device"))
	return err == nil
}
