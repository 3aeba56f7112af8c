package hal_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/boardfile"
)

// Goal: a thermometer, rail or lane-enable chip that was added with addresses of its own may
// stand at these, and the part whose registers it has may not.
// Method: a board by file with each chip of its first module at another address.
func TestAddedPartsStandAtTheirAddresses(t *testing.T) {
	file, err := os.ReadFile("boardfile/testdata/riser.json")
	if err != nil {
		t.Fatal(err)
	}
	riser := string(file)
	for _, c := range []struct {
		like               hal.Part
		field, addr, moved string
	}{{hal.TMP102, "temperature", "0x49", "0x4f"}, {hal.INA219, "rail", "0x41", "0x3e"}, {hal.TCA9534, "lane_enable", "0x39", "0x60"}} {
		d := *c.like.Data()
		d.Name, d.Also, d.Like, d.FirstAddr, d.LastAddr = "another-"+c.field, nil, c.like, 0x08, 0x77
		if _, err := hal.AddPart(d); err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("%q: %q", c.field, c.addr)
		if !strings.Contains(riser, at) {
			t.Fatalf("the file has no %s", at)
		}
		text := strings.Replace(riser, at, fmt.Sprintf("%q: %q", c.field, c.moved), 1)
		if _, _, err := boardfile.Parse([]byte(text)); err == nil {
			t.Errorf("%v at %s was taken", c.like, c.moved)
		}
		text = strings.Replace(text, fmt.Sprintf("%q: %q", c.field, c.like.Data().Name), fmt.Sprintf("%q: %q", c.field, d.Name), 1)
		if _, _, err := boardfile.Parse([]byte(text)); err != nil {
			t.Errorf("%s at %s: %v", d.Name, c.moved, err)
		}
	}
}
