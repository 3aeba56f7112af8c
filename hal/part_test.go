package hal

import (
	"errors"
	"testing"

	"periph.io/x/conn/v3/physic"
)

func TestPartsHaveAllTheirNames(t *testing.T) {
	// Goal: every name of a part finds it, no name is of two, and nothing else is found.
	seen := map[string]Part{}
	for _, p := range Parts() {
		for _, name := range append([]string{p.Data().Name}, p.Data().Also...) {
			if other, twice := seen[name]; twice || PartOf(name) != p {
				t.Errorf("%q of %v: found %v, also of %v", name, p, PartOf(name), other)
			}
			seen[name] = p
		}
	}
	for _, name := range []string{"", "tca9548", "LTC2688"} {
		if p := PartOf(name); p != NoPart {
			t.Errorf("%q is %v", name, p)
		}
	}
}

func TestPartsAreAdded(t *testing.T) {
	// Goal: a part that is like another is a part of boards, with limits of its own; what
	// is not whole or would be taken for another is refused.
	four := PartData{Name: "tca9546a", Also: []string{"pca9546a"}, Like: PCA9548, Role: RoleMux, Bus: I2C, MaxClock: 400 * physic.KiloHertz, FirstAddr: 0x70, LastAddr: 0x77, Channels: 4}
	p, err := AddPart(four)
	if err != nil || PartOf("pca9546a") != p || p.Like() != PCA9548 || p.Data().Channels != 4 || p.String() != "tca9546a" || PCA9548.Like() != PCA9548 {
		t.Fatalf("%v, %v", p, err)
	}
	for what, change := range map[string]func(*PartData){ // any order: independent rows
		"its name twice":     func(d *PartData) { d.Name = "tca9546a" },
		"another's name":     func(d *PartData) { d.Also = []string{"tca9548a"} },
		"no name":            func(d *PartData) { d.Name = "" },
		"capitals":           func(d *PartData) { d.Name = "TCA9546B" },
		"like none":          func(d *PartData) { d.Like = NoPart },
		"like what is not":   func(d *PartData) { d.Like = 250 },
		"like one like one":  func(d *PartData) { d.Like = p },
		"another role":       func(d *PartData) { d.Role = RoleLatch },
		"another bus":        func(d *PartData) { d.Bus = SPI },
		"more channels":      func(d *PartData) { d.Channels = 16 },
		"no clock":           func(d *PartData) { d.MaxClock = 0 },
		"addresses reversed": func(d *PartData) { d.FirstAddr = 0x78 },
	} {
		d := four
		d.Name, d.Also = "new", nil
		change(&d)
		if _, err := AddPart(d); !errors.Is(err, ErrOutOfRange) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
