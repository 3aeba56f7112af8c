package solo

import (
	"bytes"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/boardfile"
	"ringlight/hal/pca9548"
	"ringlight/sim"
)

func board(t *testing.T) *hal.Board {
	t.Helper()
	b, err := boardfile.Default(4, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	return &b
}

// eeprom is the op that selects a module on the slow segment and sends it a
// message; what follows the address is read back when read is over 0.
func eeprom(b *hal.Board, bundle, mod int, write []byte, read int) (hal.BusID, *hal.Op) {
	m := b.Bundles[bundle].Modules[mod]
	op := &hal.Op{Msgs: []hal.Msg{{Addr: m.Mux, W: pca9548.AppendSelect(nil, m.MuxChannel)}, {Addr: m.EEPROM, W: write}}}
	if read > 0 {
		op.Msgs[1].R = make([]byte, read)
	}
	return m.Slow, op
}

func TestEEPROMOutlivesTheProcess(t *testing.T) {
	// Goal: what was written to a module is there in the next process, for that
	// module alone; time on the virtual clock passes only when stepped.
	hw, dir := board(t), t.TempDir()
	cfg := Config{Board: hw, Seed: 9, State: dir}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	page, n := at24.Of(hal.AT24C64).AppendWrite(nil, 160, []byte("calibrated on a monday"))
	if n != 22 {
		t.Fatal(n)
	}
	do := func(b *Board, bundle, mod int, w []byte, r int) []byte {
		t.Helper()
		bus, op := eeprom(hw, bundle, mod, w, r)
		if err := b.Submit(bus, op); err != nil {
			t.Fatal(err)
		}
		before := b.Now()
		ev, ok := b.Advance(before + time.Second)
		if !ok || ev.Completion == nil || ev.Completion.Op != op || ev.Completion.Err != nil || b.Now() != ev.Completion.End {
			t.Fatalf("%+v at %v", ev.Completion, b.Now())
		}
		return op.Msgs[1].R
	}
	do(b, 1, 0, page, 0)
	if _, ok := b.Advance(b.Now() + 10*time.Millisecond); ok {
		t.Error("a quiet board had something to tell")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if got := do(b, 1, 0, at24.Of(hal.AT24C64).AppendRead(nil, 160), 22); !bytes.Equal(got, page[2:]) {
		t.Errorf("module 1/0 holds %q", got)
	}
	if got := do(b, 1, 1, at24.Of(hal.AT24C64).AppendRead(nil, 160), 22); bytes.Equal(got, page[2:]) {
		t.Error("module 1/1 holds it too")
	}
}

func TestLiveBoardKeepsRealTime(t *testing.T) {
	// Goal: on the real clock a completion comes by itself, not before its end,
	// what is done to a board happens then, and a closed board takes nothing more.
	hw := board(t)
	events := make(chan hal.Event, 16)
	l, err := Open(Config{Board: hw, Seed: 9}, func(ev hal.Event) { events <- ev })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		bus, op := eeprom(hw, 0, 0, at24.Of(hal.AT24C64).AppendRead(nil, uint16(i)), 4)
		asked := l.Now()
		if err := l.Submit(bus, op); err != nil {
			t.Fatal(err)
		}
		select {
		case ev := <-events:
			done := ev.Completion
			if done == nil || done.Op != op || done.Err != nil || done.Start < asked || done.End > l.Now() {
				t.Fatalf("%+v, asked at %v, now %v", done, asked, l.Now())
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no completion")
		}
	}
	<-time.After(20 * time.Millisecond) // nothing is due meanwhile
	asked := l.Now()
	l.With(func(b *Board) {
		if b.Now() < asked {
			t.Errorf("what is done to a board at %v happens at %v", asked, b.Now())
		}
	})
	if high, err := l.Level(hw.Bundles[0].LOS[hal.LOSLoopback]); err != nil || high {
		t.Errorf("a dark board has light: %v, %v", high, err)
	}
	if _, err := l.Level(999); err == nil {
		t.Error("line 999 exists")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	bus, op := eeprom(hw, 0, 0, at24.Of(hal.AT24C64).AppendRead(nil, 0), 4)
	if err := l.Submit(bus, op); err == nil {
		t.Error("a closed board took work")
	}
}

func TestFibresAreParsedAndLaid(t *testing.T) {
	f, err := parseFibre("0/external1-1/external2")
	if err != nil || f.A != (sim.Port{Bundle: 0, Path: hal.LOSExternal1}) || f.B != (sim.Port{Bundle: 1, Path: hal.LOSExternal2}) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, s := range []string{"", "0/external1", "0/loopback-1/external1", "x/external1-1/external1", "0/external1-1/external1-2/external1"} {
		if _, err := parseFibre(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
	if _, err := New(Config{Board: board(t), Fibres: []Fibre{f, f}}); err == nil {
		t.Error("two fibres in one port")
	}
}
