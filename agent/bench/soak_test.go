package bench

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/mzi/detmath"
	"ringlight/sim"
	"ringlight/sim/solo"
)

func soloBoard(t *testing.T, faults ...sim.Fault) (*hal.Board, *solo.Board) {
	t.Helper()
	hw, err := boardfile.Default(4, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	b, err := solo.New(solo.Config{Board: &hw, Seed: 4, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	return &hw, b
}

func TestChipsAreReadAsWritten(t *testing.T) {
	// Goal: every form of a chip comes back as its text; what is out of range or
	// misspelt is refused with what is wanted.
	for _, s := range []string{"eeprom=/dev/i2c-0@0x50", "temp=/dev/i2c-1@0x48/0x70.7", "mux=/dev/i2c-12@0x77", "absent=/dev/i2c-0@0x33", "flash=/dev/spidev2.1"} {
		c, err := ParseChip(s)
		if err != nil || c.String() != s {
			t.Errorf("%s: %v, %v", s, c, err)
		}
	}
	for _, s := range []string{"", "eeprom", "clock=/dev/i2c-0@0x50", "eeprom=/dev/i2c-0", "eeprom=@0x50", "eeprom=/dev/i2c-0@0x78", "eeprom=/dev/i2c-0@7",
		"temp=/dev/i2c-1@0x48/0x70", "temp=/dev/i2c-1@0x48/0x70.8", "temp=/dev/i2c-1@0x48/0x7.1", "flash=/dev/i2c-0@0x50", "flash=/dev/spidev2"} {
		if c, err := ParseChip(s); err == nil {
			t.Errorf("%s: %+v", s, c)
		}
	}
}

func TestSoakKnowsWrongFromRight(t *testing.T) {
	// Goal: reads that are right pass, a byte that changed is named as wrong,
	// and a chip that does not answer is an error; the memory is restored after
	// a write over a page's end.
	hw, b := soloBoard(t)
	s := OnBoard(hw)
	if err := s.Learn(b); err != nil {
		t.Fatal(err)
	}
	if len(s.Chips) != 5 || s.Chips[0].Chip.Kind != ChipMux {
		t.Fatalf("chips %+v", s.Chips)
	}
	for i, k := range s.Chips {
		if k.Chip.Kind != ChipEEPROM {
			continue
		}
		if polls, err := s.TryWrite(b, i); err != nil || polls < 4 {
			t.Errorf("%v: %d polls, %v", k.Chip, polls, err)
		}
	}
	h := &direct{field: Alone(b)}
	var dice detmath.Random
	kinds := map[ChipKind]int{}
	for range 300 {
		tr := s.Draw(&dice)
		kinds[tr.Chip.Chip.Kind]++
		if err := h.op(tr.Chip.Bus, tr.Op); err != nil {
			t.Fatal(err)
		}
		if w := tr.Wrong(); w != "" {
			t.Fatal(w)
		}
		got := tr.Op.Msgs[len(tr.Op.Msgs)-1].R
		if got[0] ^= 0x80; tr.Wrong() == "" {
			t.Fatalf("%v: a wrong first byte passed", tr.Chip.Chip)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("drawn: %v", kinds)
	}
	m := hw.Bundles[0].Modules[1]
	if err := b.World().Inject(b.ID(), sim.Fault{Kind: sim.ChipGone, Bus: m.Slow, Addr: m.Mux}); err != nil {
		t.Fatal(err)
	}
	if err := OnBoard(hw).Learn(b); !errors.Is(err, hal.ErrAddressNACK) {
		t.Errorf("without the mux: %v", err)
	}
}

func TestAbsentChipMustNotAnswer(t *testing.T) {
	// Goal: an address where nothing is gives its cause; one that answers is an
	// error.
	hw, b := soloBoard(t)
	m := hw.Bundles[0].Modules[0]
	for _, tc := range []struct {
		addr uint16
		ok   bool
	}{{0x33, true}, {m.Mux, false}} {
		s := newSoak(*hw, []Chip{{Kind: ChipAbsent, Addr: tc.addr}}, []hal.BusID{m.Slow})
		err := s.Learn(b)
		if (err == nil) != tc.ok || tc.ok && !errors.Is(s.Chips[0].Cause, hal.ErrAddressNACK) {
			t.Errorf("%#x: %v, cause %v", tc.addr, err, s.Chips[0].Cause)
		}
	}
}

func TestLostBusEndsInTime(t *testing.T) {
	// Goal: a bus that is held low ends a look at its chips with the cause, not
	// with a wait.
	hw, b := soloBoard(t)
	if err := b.World().Inject(b.ID(), sim.Fault{Kind: sim.BusStuck, Bus: hw.Bundles[0].Modules[0].Slow}); err != nil {
		t.Fatal(err)
	}
	s := OnBoard(hw)
	if err := s.Learn(b); err == nil || b.Now() > time.Minute {
		t.Errorf("%v after %v", err, b.Now())
	}
	r, err := BringUp{}.Run(Alone(b), []Station{{Board: hw}})
	if err != nil {
		t.Fatal(err)
	}
	if bad := strings.Join(failures(r), "\n"); !strings.Contains(bad, "scan, bus 4") || !strings.Contains(bad, "eeprom, bundle 0 module 1") {
		t.Error(bad)
	}
}
