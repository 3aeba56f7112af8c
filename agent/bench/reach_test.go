package bench

import (
	"errors"
	"testing"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/sim/solo"
)

func TestReachOfABoardOfOnesOwn(t *testing.T) {
	// Goal: registers are read and written on a board that no agent has, and a
	// memory that programs is waited for.
	hw, b := soloBoard(t)
	st := Station{Board: hw}
	for _, tc := range []struct {
		name  string
		value uint32
	}{{"0/1/temp/high", 0x4440}, {"0/0/eeprom/0x1ff0", 0xA7}} {
		reg, err := ocs.FindRegister(hw, tc.name)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := Reach(Alone(b), st, reg, true, tc.value); err != nil || v != tc.value {
			t.Errorf("poke %s: %#x, %v", tc.name, v, err)
		}
		if v, err := Reach(Alone(b), st, reg, false, 0); err != nil || v != tc.value {
			t.Errorf("peek %s: %#x, %v", tc.name, v, err)
		}
	}
	if _, err := DumpModule(Alone(b), st, 0, 0); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("dump of chips: %v", err)
	}
}

func TestDumpOfAModule(t *testing.T) {
	// Goal: a dump of a simulated CMIS module has its identity where public
	// tools look for it, and its pages' check sums are right.
	hw, err := boardfile.DefaultCMIS(4, 1, 2, true)
	if err != nil {
		t.Fatal(err)
	}
	b, err := solo.New(solo.Config{Board: &hw, Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	image, err := DumpModule(Alone(b), Station{Board: &hw}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	page := image[128:256] // page 00h
	sum := byte(0)
	for _, x := range page[:222-128] {
		sum += x
	}
	if image[0] != 0x18 || string(page[1:10]) != "RINGLIGHT" || sum != page[222-128] {
		t.Errorf("identifier %#x, vendor %q, sum %#x, said %#x", image[0], page[1:10], sum, page[222-128])
	}
	for _, n := range []int{-1, 2} {
		if _, err := DumpModule(Alone(b), Station{Board: &hw}, 0, n); err == nil {
			t.Errorf("module %d of 2 was dumped", n)
		}
	}
}
