package flow

import (
	"math"
	"math/bits"
	"time"
)

// Limits of what is put in. They keep every product below in 128 bits and
// every sum in 63.
const (
	MaxCapacity = int64(1) << 50 // bit/s, 1,126 Tbit/s
	MaxBytes    = int64(1) << 50 // of one flow and of one phase on one link
	MaxLinks    = 1 << 28
)

// unlimited is faster than every rate.
const unlimited = int64(math.MaxInt64)

// Never is later than everything.
const Never = time.Duration(math.MaxInt64)

// amount is what a flow has left, in bit/s times ns: 1e-9 bits.
type amount struct{ hi, lo uint64 }

func amountOf(bytes int64) amount {
	hi, lo := bits.Mul64(uint64(bytes)*8, uint64(time.Second))
	return amount{hi, lo}
}

// after is what is left when dt went by at a rate, at least nothing.
func (a amount) after(rate int64, dt time.Duration) amount {
	hi, lo := bits.Mul64(uint64(rate), uint64(dt))
	lo, borrow := bits.Sub64(a.lo, lo, 0)
	hi, borrow = bits.Sub64(a.hi, hi, borrow)
	if borrow != 0 {
		return amount{}
	}
	return amount{hi, lo}
}

// time is how long it takes at a rate, rounded up.
func (a amount) time(rate int64) time.Duration {
	if a == (amount{}) {
		return 0
	}
	if uint64(rate) <= a.hi { // rate 0, or longer than 2^64 ns
		return Never
	}
	q, r := bits.Div64(a.hi, a.lo, uint64(rate))
	if r != 0 {
		q++
	}
	if q > uint64(Never) {
		return Never
	}
	return time.Duration(q)
}

// TransferTime is how long some bytes take alone, rounded up.
func TransferTime(bytes, rate int64) time.Duration { return amountOf(bytes).time(rate) }

// later is t+d, at most Never.
func later(t, d time.Duration) time.Duration {
	if d >= Never-t {
		return Never
	}
	return t + d
}
