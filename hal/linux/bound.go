package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ringlight/hal"
)

// Driver is the kernel's driver of the chip at an address of /dev/i2c-N; "":
// none. To a message through i2c-dev such a chip is no different: sharing it is
// silent.
func Driver(device string, addr uint16) string { return driverOf(sysDevices, device, addr) }

func driverOf(root, device string, addr uint16) string {
	link, err := os.Readlink(filepath.Join(root, name(device, addr), "driver"))
	if err != nil {
		return "" // no such device, or one without a driver
	}
	return filepath.Base(link)
}

// name is the kernel's for a chip.
func name(device string, addr uint16) string {
	return fmt.Sprintf("%s-%04x", strings.TrimPrefix(device, "/dev/i2c-"), addr)
}

// oursAlone are roles of chips whose state we keep and a driver would change:
// a channel, a page, a level. The others are read, in one message each.
var oursAlone = []hal.Role{hal.RoleMux, hal.RoleLatch, hal.RoleADC, hal.RoleLaneEnable, hal.RoleModule, hal.RoleBridge}

// bound looks for chips of a board that the kernel drives: shared are those
// that both may read.
func bound(root string, board *hal.Board) (shared []string, err error) {
	var errs []error
	for c := range board.Chips() {
		bus := &board.Buses[c.Bus]
		if bus.Kind != hal.I2C {
			continue
		}
		driver := driverOf(root, bus.Device, c.Addr)
		switch {
		case driver == "":
		case slices.Contains(oursAlone, c.Part.Data().Role):
			errs = append(errs, fmt.Errorf("linux: %s: %w", c.Field, Held(bus.Device, c.Addr, driver)))
		default:
			if text := fmt.Sprintf("%s %#x: %s reads it, too", bus.Device, c.Addr, driver); !slices.Contains(shared, text) {
				shared = append(shared, text)
			}
		}
	}
	return shared, errors.Join(errs...)
}

// Held is the error of a chip that a kernel driver has and we would need alone.
func Held(device string, addr uint16, driver string) error {
	out := fmt.Sprintf("unbind it: echo %s > /sys/bus/i2c/drivers/%s/unbind", name(device, addr), driver)
	if driver == "pca954x" {
		out = "use the adapters that it makes of the mux's channels, or " + out
	}
	return fmt.Errorf("%s %#x: %w: held by %s: %s", device, addr, hal.ErrInUse, driver, out)
}
