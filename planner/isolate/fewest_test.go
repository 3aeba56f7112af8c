package isolate

import "testing"

// A virtual Clos has the fewest leaves that there is one of, whatever the
// objective says of more: 64 GPUs on an empty core are 2 x 32, although 4 x 16
// costs 384 and 2 x 32 costs 576.
// Reference: [VCLOS] A.2, Algorithm 3
func TestFewestLeavesFirst(t *testing.T) {
	s := Clos(16, 32, 4, 32).Empty()
	for want := 2; want <= 8; want *= 2 {
		p, why := s.Place(32 * want)
		if why != Fits || p.L != want || p.S != 32 {
			t.Fatalf("%d GPUs: %v, %d x %d, want %d x 32", 32*want, why, p.L, p.S, want)
		}
		if want == 2 && p.Cost != 576 {
			t.Errorf("cost %d, want 576", p.Cost)
		}
		if err := s.Take(JobID(want), p); err != nil {
			t.Fatal(err)
		}
	}
}
