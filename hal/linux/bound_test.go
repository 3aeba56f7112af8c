package linux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/boardfile"
)

func TestChipsOfTheKernelAreSeen(t *testing.T) {
	// Goal: a chip that a driver of the kernel has is named: refused, with the way
	// out, where we must be alone with it, shared where both only read.
	// Method: a folder as sysfs has it.
	board, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	slow := board.Bundles[0].Modules[0].Slow
	bus := strings.TrimPrefix(board.Buses[slow].Device, "/dev/i2c-")
	for _, tc := range []struct {
		chip, driver string
		shared       string
		refused      []string
	}{
		{chip: "0050", driver: "at24", shared: "/dev/i2c-" + bus + " 0x50: at24 reads it, too"},
		{chip: "0070", driver: "pca954x", refused: []string{"0x70", "held by pca954x", "adapters", "echo " + bus + "-0070 > /sys/bus/i2c/drivers/pca954x/unbind"}},
		{chip: "0051", driver: "at24"}, // not ours
		{chip: "0070", driver: ""},     // a device, but no driver
	} {
		root := t.TempDir()
		dir := filepath.Join(root, bus+"-"+tc.chip)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if tc.driver != "" {
			if err := os.Symlink("../../../bus/i2c/drivers/"+tc.driver, filepath.Join(dir, "driver")); err != nil {
				t.Fatal(err)
			}
		}
		shared, err := bound(root, &board)
		if strings.Join(shared, ";") != tc.shared || (err != nil) != (tc.refused != nil) || err != nil && !errors.Is(err, hal.ErrInUse) {
			t.Errorf("%+v: %q, %v", tc, shared, err)
		}
		for _, want := range tc.refused {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%v: no %q", err, want)
			}
		}
	}
}
