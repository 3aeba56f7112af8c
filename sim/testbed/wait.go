package testbed

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// pause lets time pass.
func pause(ctx context.Context, span time.Duration) error {
	select {
	case <-time.After(span):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// until asks again and again, with patience.
func until(ctx context.Context, what string, ok func() bool) error {
	for end := time.Now().Add(patience); !ok(); {
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("testbed: not %s within %v", what, patience)
		}
	}
	return nil
}

// Quantile is the smallest of values that so many thousandths of them are at most.
func Quantile(values []int64, mille int) int64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*mille+999)/1000-1)]
}
