package heater

import "testing"

// Goal: root is the largest number whose square is not above, wherever it begins to look.
// Method: numbers at, below and above squares and powers of two, up to the largest.
func TestRootIsOfTheLargestSquareBelow(t *testing.T) {
	var some []uint64
	for i := range uint64(2000) {
		some = append(some, i, i*i*7919*7919)
	}
	for b := range 64 {
		some = append(some, 1<<b, 1<<b-1, 1<<b+1)
	}
	for _, n := range append(some, 1<<64-1, (1<<32-1)*(1<<32-1), (1<<32-1)*(1<<32-1)-1) {
		x := root(n)
		if x > 1<<32-1 || x*x > n || x < 1<<32-1 && (x+1)*(x+1) <= n {
			t.Errorf("root of %d: %d", n, x)
		}
	}
}
