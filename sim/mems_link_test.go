package sim

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ad5535b"
)

// through is transceivers on external 1 at the first ports of a board of
// mirrors.
type through struct {
	*rig
	mirrors BoardID
	hw      hal.Board
	boards  []BoardID
}

func newThrough(t *testing.T, n int) *through {
	r := &through{rig: newRig(t, 1, 1)}
	var err error
	if r.hw, err = hal.DefaultMEMS(8); err != nil {
		t.Fatal(err)
	}
	if r.mirrors, err = r.w.AddBoard(BoardConfig{Board: r.hw, Seed: 5, Powered: true}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		id := r.board(uint64(20 + i))
		if err := r.w.Through(Port{id, 0, hal.LOSExternal1}, r.mirrors, i, Fibre{LossMilliDB: 200}); err != nil {
			t.Fatal(err)
		}
		r.on(id)
		r.perfect(id, 0)
		r.latch(id, 0, pathExternal1)
		r.boards = append(r.boards, id)
	}
	r.run(5 * time.Millisecond)
	return r
}

// aim points a mirror of each side at the other, as the maker would.
func (r *through) aim(a, b int) {
	d := r.w.Maker(r.mirrors).Drive(a, b)
	for side, port := range [hal.NumSides]int{a, b} {
		for i, x := range d[2*side : 2*side+2] {
			for pole, code := range [2]int16{hal.MirrorBias + x, hal.MirrorBias - x} {
				at := int(r.hw.Mirrors.Arrays[side][port].Electrodes[2*i+pole])
				dac := r.hw.Mirrors.DACs[at/hal.MirrorDACChannels]
				r.do(r.mirrors, dac.SPI, hal.Msg{Addr: dac.ChipSelect, Frame: 3, W: ad5535b.AppendWrite(nil, at%hal.MirrorDACChannels, uint16(code))})
			}
		}
	}
}

func (r *through) from(i, want int) {
	r.t.Helper()
	at := Port{r.boards[i], 0, hal.LOSExternal1}
	switch from, ok := r.w.From(at); {
	case !ok && want >= 0:
		r.t.Errorf("%d receives nothing, want the light of %d", i, want)
	case ok && (want < 0 || from.Board != r.boards[want]):
		r.t.Errorf("%d receives the light of board %d, want %d", i, from.Board-r.boards[0], want)
	}
	if r.w.Lit(at) != (want >= 0) || r.line(r.boards[i], 0, hal.LOSExternal1) != (want >= 0) {
		r.t.Errorf("%d: light %v, line %v, want %v", i, r.w.Lit(at), r.line(r.boards[i], 0, hal.LOSExternal1), want >= 0)
	}
}

// Goal: light goes from a transceiver to the one that the mirrors join it to,
// one way, and to nobody while they are on their way. Method: a ring of three
// over mirrors, then one circuit turned round, a transceiver that sends
// elsewhere, and a cut.
func TestMirrorsJoinTransceivers(t *testing.T) {
	r := newThrough(t, 3)
	for i := range 3 { // mirrors at rest may look at each other by chance
		r.aim(i, (i+1)%3)
	}
	r.run(30 * time.Millisecond)
	for i := range 3 {
		r.from((i+1)%3, i)
	}
	// 0 -> 2 takes the port of 1 -> 2, and 0 -> 1 is nobody's.
	before := r.w.Now()
	r.aim(0, 2)
	r.run(30 * time.Millisecond)
	r.from(2, 0)
	r.from(1, -1)
	r.from(0, 2)
	at, lit := r.w.LastChange(Port{r.boards[2], 0, hal.LOSExternal1})
	if dark := at - before; !lit || dark < time.Millisecond || dark > 30*time.Millisecond {
		t.Errorf("light came %v after the mirrors were told, lit %v: want some milliseconds", dark, lit)
	}
	r.latch(r.boards[2], 0, pathLoopback)
	r.run(5 * time.Millisecond)
	r.from(0, -1)
	r.from(2, 0) // what arrives is not what is sent
	if err := r.w.Cut(Port{r.boards[0], 0, hal.LOSExternal1}, Out); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	r.from(2, -1)
	if err := r.w.Mend(Port{r.boards[0], 0, hal.LOSExternal1}, Out); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	r.from(2, 0)
}

// Goal: a port has one fibre, of a board that has mirrors.
func TestThroughRefusesWhatIsNotFree(t *testing.T) {
	r := newThrough(t, 2)
	for name, err := range map[string]error{
		"a port that has a fibre":        r.w.Through(Port{r.boards[0], 0, hal.LOSExternal1}, r.mirrors, 5, Fibre{}),
		"a place on the mirrors in use":  r.w.Through(Port{r.boards[0], 0, hal.LOSExternal2}, r.mirrors, 1, Fibre{}),
		"a place beyond the mirrors":     r.w.Through(Port{r.boards[0], 0, hal.LOSExternal2}, r.mirrors, 8, Fibre{}),
		"a board without mirrors":        r.w.Through(Port{r.boards[0], 0, hal.LOSExternal2}, r.boards[1], 1, Fibre{}),
		"a board that there is not":      r.w.Through(Port{r.boards[0], 0, hal.LOSExternal2}, 99, 1, Fibre{}),
		"a second fibre between bundles": r.w.Connect(Port{r.boards[0], 0, hal.LOSExternal1}, Port{r.boards[1], 0, hal.LOSExternal2}, Fibre{}),
	} { // any order: each by itself
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
