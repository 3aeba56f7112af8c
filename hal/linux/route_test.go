package linux

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
)

// tree is a bus with muxes: what it was asked, and who answers where. A chip at an address
// answers only while every mux on its way, and no other way to that address, is open.
type tree struct {
	open  map[uint16]byte // of each mux
	log   []string
	reply string
	fail  uint16 // does not answer
}

func (w *tree) transfer(m *hal.Msg) error {
	if m.Addr == w.fail {
		return hal.ErrAddressNACK
	}
	if m.Addr >= 0x70 {
		w.open[m.Addr] = m.W[0]
		w.log = append(w.log, fmt.Sprintf("%#x=%#02x", m.Addr, m.W[0]))
		return nil
	}
	w.reply = ""
	for mux := uint16(0x70); mux < 0x78; mux++ {
		if w.open[mux] != 0 {
			w.reply += fmt.Sprintf("%x.%x ", mux, w.open[mux])
		}
	}
	w.log = append(w.log, fmt.Sprintf("%#x", m.Addr))
	return nil
}

func (w *tree) read() []byte { return []byte(fmt.Sprintf("%-16s", w.reply)) }
func (w *tree) close() error { return nil }

func TestMuxesBehindMuxes(t *testing.T) {
	// Goal: an op of a bus behind muxes of ours has them switched before it, the nearest
	// first; those of the way before that are not on this one are switched off first, so that
	// one way alone is open; a mux that fails is named, and nothing of the op is sent.
	w := &tree{open: map[uint16]byte{}}
	board := &hal.Board{Buses: []hal.Bus{
		{Device: "wires"},
		{Adapter: true, Via: []hal.Via{{Addr: 0x70, Channel: 1}, {Addr: 0x71, Channel: 2}}},
		{Adapter: true, Via: []hal.Via{{Addr: 0x70, Channel: 1}, {Addr: 0x71, Channel: 7}}},
		{Adapter: true, Via: []hal.Via{{Addr: 0x70, Channel: 6}, {Addr: 0x71, Channel: 2}}},
		{Adapter: true, Via: []hal.Via{{Addr: 0x72, Channel: 0}}},
	}}
	events := make(chan hal.Event, 4)
	o, err := open(board, func(ev hal.Event) { events <- ev }, func(hal.BusID) (wire, error) { return w, nil }, newFakeGPIO().gpio())
	if err != nil {
		t.Fatal(err)
	}
	do := func(bus hal.BusID) *hal.Completion {
		t.Helper()
		w.log = nil
		op := &hal.Op{Deadline: time.Minute, Msgs: []hal.Msg{{Addr: 0x48, R: make([]byte, 16)}}}
		if err := o.Submit(bus, op); err != nil {
			t.Fatal(err)
		}
		c := (<-events).Completion
		if c.Bus != bus || c.Op != op {
			t.Errorf("bus %d: completion of bus %d", bus, c.Bus)
		}
		return c
	}
	for _, tc := range []struct {
		bus       hal.BusID
		log, open string
	}{
		{0, "0x48", ""},
		{1, "0x70=0x02 0x71=0x04 0x48", "70.2 71.4"},
		{1, "0x70=0x02 0x71=0x04 0x48", "70.2 71.4"},
		{2, "0x70=0x02 0x71=0x80 0x48", "70.2 71.80"},
		{3, "0x71=0x00 0x70=0x40 0x71=0x04 0x48", "70.40 71.4"},
		{4, "0x71=0x00 0x70=0x00 0x72=0x01 0x48", "72.1"},
		{0, "0x72=0x00 0x48", ""},
	} {
		c := do(tc.bus)
		if got := strings.Join(w.log, " "); c.Err != nil || got != tc.log || strings.TrimSpace(string(c.Op.Msgs[0].R)) != tc.open {
			t.Errorf("bus %d: %s, open %s, %v; want %s, open %s", tc.bus, got, c.Op.Msgs[0].R, c.Err, tc.log, tc.open)
		}
	}
	w.fail = 0x71
	if c := do(1); !errors.Is(c.Err, hal.ErrAddressNACK) || !strings.Contains(c.Err.Error(), "0x71") || strings.Contains(strings.Join(w.log, " "), "0x48") {
		t.Errorf("%v, %v", c.Err, w.log)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
