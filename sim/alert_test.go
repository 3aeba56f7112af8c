package sim

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
)

// watched lets the lanes ADC of a lit module scan with a window on every channel.
func (r adcRig) watched(w ads7138.Window, alert byte) {
	r.t.Helper()
	for ch := range ads7138.Channels {
		regs := windowRegs(w)
		r.write(laneAddr, append([]byte{ads7138.OpWriteBlock, ads7138.WindowReg(ch)}, regs[:]...)...)
	}
	region := byte(0)
	if w.Inside {
		region = 0xFF
	}
	r.write(laneAddr, ads7138.OpWrite, ads7138.RegEventRegion, region)
	r.write(laneAddr, ads7138.OpWrite, ads7138.RegAlertSel, alert)
	r.scan(laneAddr, 0)
	r.write(laneAddr, ads7138.OpWrite, ads7138.RegGeneral, ads7138.GeneralStats|ads7138.GeneralComparator)
	r.run(time.Millisecond)
	r.clear()
}

func (r adcRig) clear() {
	r.write(laneAddr, ads7138.OpWrite, ads7138.RegEventHigh, 0xFF)
	r.write(laneAddr, ads7138.OpWrite, ads7138.RegEventLow, 0xFF)
}

func (r adcRig) flags() (all, high, low byte) {
	f := r.read(laneAddr, 5, ads7138.OpReadBlock, ads7138.RegEvent)
	return f[0], f[2], f[4]
}

// windowRegs are the registers of a channel's window.
func windowRegs(w ads7138.Window) [ads7138.WindowBytes]byte {
	r := [ads7138.WindowBytes]byte{byte(w.High<<4) | byte(w.Hysteresis/ads7138.HysteresisStep), byte(w.High >> 4), byte(w.Low<<4) | byte(w.Count-1), byte(w.Low >> 4)}
	if back := ads7138.ParseWindow(r, w.Inside); back != w {
		panic("sim: the chip has no such window")
	}
	return r
}

// alert is the level of the ALERT pin of the lanes' ADC, which the default board
// leaves open: it is latched, and names neither channel nor direction.
func (r *adcRig) alert() bool {
	m := r.w.module(r.id, 0, 0)
	m.compare(laneADC)
	c := &m.adc[laneADC]
	active := (c.reg[ads7138.RegEventHigh]|c.reg[ads7138.RegEventLow])&c.reg[ads7138.RegAlertSel] != 0
	return active != (c.reg[ads7138.RegAlertPin]&ads7138.AlertLogic&1 == ads7138.AlertLow)
}

// Goal: light that goes is found by the window comparator, of the lane that went,
// latched until it is cleared, and ALERT says so for the channels chosen.
// Method: a lit module with a low threshold at half its light; each laser dies in
// turn and comes back before anybody reads.
func TestComparatorLatchesWhatIsGone(t *testing.T) {
	r := newADCRig(t)
	r.lit()
	r.watched(ads7138.Window{Low: 200, High: ads7138.CodeFull, Hysteresis: 16, Count: 4}, 0x0F)
	if all, _, _ := r.flags(); all != 0 || !r.alert() {
		t.Fatalf("lit: flags %#02x", all)
	}
	for lane := range hal.Lanes {
		f := Fault{Kind: LaserDead, Index: lane}
		if err := r.w.Inject(r.id, f); err != nil {
			t.Fatal(err)
		}
		r.run(300 * time.Microsecond)
		if err := r.w.Repair(r.id, f); err != nil {
			t.Fatal(err)
		}
		r.run(2 * time.Millisecond)
		all, high, low := r.flags()
		want := byte(1) << ((lane + hal.HalfLanes) % hal.Lanes) // the diode where it ends
		if all != want || low != want || high != 0 {
			t.Errorf("lane %d was dark: flags %#02x, high %#02x, low %#02x; want %#02x", lane, all, high, low, want)
		}
		if level := r.alert(); level != (want&0x0F == 0) {
			t.Errorf("lane %d: ALERT is %v for flags %#02x, channels 0x0F, active low", lane, level, all)
		}
		r.write(laneAddr, ads7138.OpWrite, ads7138.RegEvent, 0xFF)
		if all, _, _ := r.flags(); all != want {
			t.Errorf("EVENT_FLAG could be written: %#02x", all)
		}
		r.clear()
		r.run(time.Millisecond)
		if all, _, _ := r.flags(); all != 0 {
			t.Errorf("lane %d is back and cleared: flags %#02x", lane, all)
		}
	}
}

// Goal: fewer results than the count are no event, and a level that is still out
// sets a cleared flag again.
// Method: a laser dead for two rounds of the scan with a count of 8, and for
// longer.
func TestComparatorCounts(t *testing.T) {
	r := newADCRig(t)
	r.lit()
	r.watched(ads7138.Window{Low: 200, High: ads7138.CodeFull, Count: 8}, 0xFF)
	blink := func(d time.Duration) (all byte) {
		f := Fault{Kind: LaserDead, Index: 1}
		if err := r.w.Inject(r.id, f); err != nil {
			t.Fatal(err)
		}
		r.run(d)
		if err := r.w.Repair(r.id, f); err != nil {
			t.Fatal(err)
		}
		r.run(time.Millisecond)
		all, _, _ = r.flags()
		r.clear()
		return all
	}
	if all := blink(40 * time.Microsecond); all != 0 { // five rounds of 8 us
		t.Errorf("five results in a row are an event of eight: %#02x", all)
	}
	if all := blink(90 * time.Microsecond); all != 1<<5 {
		t.Errorf("eleven results in a row: %#02x, want 0x20", all)
	}
	if err := r.w.Inject(r.id, Fault{Kind: LaserDead, Index: 1}); err != nil {
		t.Fatal(err)
	}
	r.run(time.Millisecond)
	r.clear()
	r.run(time.Millisecond)
	if all, _, _ := r.flags(); all != 1<<5 {
		t.Errorf("dark still, but cleared for good: %#02x", all)
	}
}

// Goal: events inside a window, the upper threshold with its hysteresis, and a
// comparator that is off.
// Method: results fed to the chip's comparator one by one.
func TestComparatorRules(t *testing.T) {
	feed := func(w ads7138.Window, codes ...uint16) (high, low byte) {
		var c adc
		c.reset()
		c.events = &comparing{}
		regs := windowRegs(w)
		copy(c.reg[ads7138.WindowReg(0):], regs[:])
		if w.Inside {
			c.reg[ads7138.RegEventRegion] = 1
		}
		for _, code := range codes {
			c.judge(0, code)
		}
		return c.reg[ads7138.RegEventHigh], c.reg[ads7138.RegEventLow]
	}
	for _, tc := range []struct {
		name      string
		w         ads7138.Window
		codes     []uint16
		high, low byte
	}{
		{"at the threshold", ads7138.Window{Low: 10, High: 100, Count: 1}, []uint16{100, 10}, 0, 0},
		{"beyond both", ads7138.Window{Low: 10, High: 100, Count: 1}, []uint16{101, 9}, 1, 1},
		{"not in a row", ads7138.Window{High: 100, Count: 2}, []uint16{101, 99, 101, 99}, 0, 0},
		{"in a row", ads7138.Window{High: 100, Count: 2}, []uint16{101, 101}, 1, 0},
		{"inside", ads7138.Window{Low: 10, High: 100, Count: 2, Inside: true}, []uint16{50, 60}, 1, 1},
		{"inside once", ads7138.Window{Low: 10, High: 100, Count: 2, Inside: true}, []uint16{50, 5, 50, 101}, 0, 0},
	} {
		if high, low := feed(tc.w, tc.codes...); high != tc.high || low != tc.low {
			t.Errorf("%s: high %d low %d, want %d and %d", tc.name, high, low, tc.high, tc.low)
		}
	}
	// Within the hysteresis an event goes on: no new one begins, none is counted.
	h := hits{}
	for i, x := range []struct{ out, back, event, held bool }{
		{true, false, false, false}, {true, false, true, true}, {false, false, false, true}, {true, false, true, true}, {false, true, false, false}, {true, false, false, false}} {
		if got := h.take(x.out, x.back, 2); got != x.event || h.held != x.held {
			t.Errorf("result %d: event %v held %v, want %v %v", i, got, h.held, x.event, x.held)
		}
	}
	r := newADCRig(t)
	r.lit()
	r.watched(ads7138.Window{Low: ads7138.CodeFull, High: ads7138.CodeFull, Count: 1}, 0xFF)
	r.run(time.Millisecond)
	if all, _, _ := r.flags(); all != 0xFF {
		t.Errorf("everything is below full scale: %#02x", all)
	}
	r.write(laneAddr, ads7138.OpWrite, ads7138.RegGeneral, ads7138.GeneralStats)
	r.clear()
	r.run(time.Millisecond)
	if all, _, _ := r.flags(); all != 0 {
		t.Errorf("the comparator is off: %#02x", all)
	}
}
