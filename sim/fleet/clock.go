package fleet

import "time"

// clock is a node's own monotonic clock: zero at its boot, and a little fast
// or slow. drift is in parts of 2^20, about one in a million each.
type clock struct {
	base  time.Duration // virtual time of the boot
	drift int64
}

// maxDrift of a node's clock, in parts of 2^20. chosen: twice what a cheap
// crystal is specified for.
const maxDrift = 100

func (c clock) local(t time.Duration) time.Duration {
	d := int64(t - c.base)
	if d <= 0 {
		return 0
	}
	return time.Duration(d + d>>20*c.drift + d&(1<<20-1)*c.drift>>20)
}

// world is the first virtual time at which the clock shows local, or later.
func (c clock) world(local time.Duration) time.Duration {
	t := c.base + local
	// Each round leaves a ten-thousandth of the error before.
	for range 8 {
		miss := local - c.local(t)
		if miss == 0 {
			break
		}
		t += miss
	}
	for c.local(t) < local {
		t++
	}
	return t
}
