package linux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
)

// Goal: an adapter that is faster than its board says, or that is a mux's channel where
// the board says otherwise, is refused before any chip is spoken to; what the kernel
// does not say is believed.
// Method: adapters as sysfs shows them, with and without a node of the device tree.
func TestAdaptersAreWhatTheBoardSays(t *testing.T) {
	sys := t.TempDir()
	adapter := func(name string, clock []byte, mux bool) {
		dir := filepath.Join(sys, name, "of_node")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if clock != nil {
			if err := os.WriteFile(filepath.Join(dir, "clock-frequency"), clock, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if mux {
			if err := os.Mkdir(filepath.Join(sys, name, "mux_device"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	adapter("i2c-0", []byte{0, 0x0f, 0x42, 0x40}, false) // 1 MHz
	adapter("i2c-1", nil, false)
	adapter("i2c-2", nil, true)
	for _, c := range []struct {
		bus  hal.Bus
		want string
	}{
		{hal.Bus{Device: "/dev/i2c-0", Speed: physic.MegaHertz}, ""},
		{hal.Bus{Device: "/dev/i2c-0", Speed: 400 * physic.KiloHertz}, "clocks it at 1MHz, the board at 400kHz"},
		{hal.Bus{Device: "/dev/i2c-0"}, ""},
		{hal.Bus{Device: "/dev/i2c-1", Speed: 400 * physic.KiloHertz}, ""},
		{hal.Bus{Device: "/dev/i2c-1", Speed: 400 * physic.KiloHertz, Adapter: true}, "it is no channel"},
		{hal.Bus{Device: "/dev/i2c-2", Speed: 400 * physic.KiloHertz, Adapter: true}, ""},
		{hal.Bus{Device: "/dev/i2c-2", Speed: 400 * physic.KiloHertz}, "says that it is a bus of its own"},
		{hal.Bus{Device: "/dev/i2c-9", Speed: 400 * physic.KiloHertz, Adapter: true}, ""},
	} {
		err := checkAdapter(sys, &c.bus)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, hal.ErrOutOfRange) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.bus, err, c.want)
		}
	}
}
