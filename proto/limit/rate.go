package limit

import "time"

// Rate is how often something may happen: Burst times at once, and from then
// on each time once an Interval.
type Rate struct {
	Interval time.Duration
	Burst    int
}

// Bucket holds one source to a Rate. The zero Bucket is full.
type Bucket struct {
	full time.Time // when all of its burst is there again
}

// Take takes n if there are so many.
func (b *Bucket) Take(now time.Time, r Rate, n int) bool {
	has := b.Has(now, r, n)
	if has {
		b.full = b.after(now, r, n)
	}
	return has
}

// Has tells whether there are n.
func (b *Bucket) Has(now time.Time, r Rate, n int) bool {
	return b.after(now, r, n).Sub(now) <= time.Duration(r.Burst)*r.Interval
}

// Spend takes n even if there are less, and says how long to wait until there
// are none too few.
func (b *Bucket) Spend(now time.Time, r Rate, n int) (wait time.Duration) {
	b.full = b.after(now, r, n)
	return max(0, b.full.Sub(now)-time.Duration(r.Burst)*r.Interval)
}

func (b *Bucket) after(now time.Time, r Rate, n int) time.Time {
	from := b.full
	if from.Before(now) {
		from = now
	}
	return from.Add(time.Duration(n) * r.Interval)
}

// Sources holds each of many sources to one Rate. Names are a stranger's to
// choose: beyond Max of them, those not known yet share a bucket. It belongs
// to one goroutine.
type Sources struct {
	Rate Rate
	Max  int

	buckets map[string]*Bucket
	others  Bucket
	swept   time.Time
}

// Take takes n of a source's share if there are so many.
func (s *Sources) Take(now time.Time, source string, n int) bool {
	return s.Of(now, source).Take(now, s.Rate, n)
}

// Of is the bucket of a source, until the next call.
func (s *Sources) Of(now time.Time, source string) *Bucket {
	b := s.buckets[source]
	if b == nil {
		if len(s.buckets) >= s.Max {
			s.sweep(now)
		}
		if len(s.buckets) >= s.Max {
			return &s.others
		}
		if s.buckets == nil {
			s.buckets = map[string]*Bucket{}
		}
		b = new(Bucket)
		s.buckets[source] = b
	}
	return b
}

// sweep forgets buckets that are full again: a new bucket is the same. A
// second apart, so that a flood of names does not make it the work.
func (s *Sources) sweep(now time.Time) {
	if now.Sub(s.swept) < time.Second {
		return
	}
	s.swept = now
	for name, b := range s.buckets { // any order: each is looked at alone
		if !b.full.After(now) {
			delete(s.buckets, name)
		}
	}
}
