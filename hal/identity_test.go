package hal

import (
	"errors"
	"strings"
	"testing"
)

// An identity must come back, and every flipped bit must be seen.
func TestIdentity(t *testing.T) {
	id, err := Identity("RL0123456789")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := ParseIdentity(id[:]); err != nil || s != "RL0123456789" {
		t.Errorf("%q, %v", s, err)
	}
	for bit := range 8 * IdentityBytes {
		bad := id
		bad[bit/8] ^= 1 << (bit % 8)
		if _, err := ParseIdentity(bad[:]); !errors.Is(err, errIdentity) {
			t.Errorf("bit %d flipped: %v", bit, err)
		}
	}
	if _, err := ParseIdentity(id[:31]); !errors.Is(err, errIdentity) {
		t.Errorf("cut short: %v", err)
	}
	for _, s := range []string{"", strings.Repeat("x", 25)} {
		if _, err := Identity(s); !errors.Is(err, ErrOutOfRange) {
			t.Errorf("serial %q: %v", s, err)
		}
	}
}

// The matrix must be able to bring any lane anywhere.
// Method: count the outputs that each input reaches.
func TestMatrixWiring(t *testing.T) {
	for in := range Lanes {
		at := map[int]bool{in: true}
		for stage := range MatrixStages {
			out := map[int]bool{}
			for p := range at { // any order: sets
				out[p], out[p^1] = true, true
			}
			if stage < MatrixStages-1 {
				at = map[int]bool{}
				for p := range out { // any order: sets
					at[MatrixWire(stage, p)] = true
				}
				continue
			}
			at = out
		}
		if len(at) != Lanes {
			t.Errorf("lane %d reaches %d outputs", in, len(at))
		}
	}
	for stage := range MatrixStages - 1 {
		seen := map[int]bool{}
		for p := range Lanes {
			seen[MatrixWire(stage, p)] = true
		}
		if len(seen) != Lanes {
			t.Errorf("stage %d: two ports lead to one", stage)
		}
	}
}
