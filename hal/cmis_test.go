package hal

import "testing"

// Goal: a board of CMIS modules gives every module a place of its own.
// Method: with and without mux, no two modules of one segment on one channel.
func TestDefaultCMIS(t *testing.T) {
	for _, mux := range []bool{false, true} {
		b, err := DefaultCMIS(4, 2, 8, mux)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 16, true: 2}[mux]; len(b.Buses) != want || len(b.Lines) != 6 || len(b.Latches) != 0 {
			t.Errorf("mux %v: %d buses, %d lines", mux, len(b.Buses), len(b.Lines))
		}
		seen := map[[2]int]bool{}
		for _, bu := range b.Bundles {
			for _, m := range bu.Modules {
				at := [2]int{int(m.MCI), int(m.MuxChannel)}
				if m.Kind != KindCMIS || seen[at] || (m.Mux != 0) != mux {
					t.Errorf("mux %v: %+v", mux, m)
				}
				seen[at] = true
			}
		}
	}
	for _, bad := range [][2]int{{0, 1}, {9, 1}, {1, 0}, {1, 9}} {
		if _, err := DefaultCMIS(4, bad[0], bad[1], true); err == nil {
			t.Errorf("%v: accepted", bad)
		}
	}
}
