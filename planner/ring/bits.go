package ring

import "math/bits"

// nodeSet is a set of positions with successor, predecessor, rank and selection
// in time that hardly grows with its size: a tree of 64-way summaries, and a
// Fenwick tree over the words.
type nodeSet struct {
	levels [][]uint64 // levels[0]: a bit a position; above: a bit a word that is not 0
	sums   []int32    // Fenwick tree of the words' counts, from index 1
	raw    bool       // being filled: only levels[0] is kept, until filled
}

func newNodeSet(n int) nodeSet {
	var s nodeSet
	words := (n + 63) / 64
	s.sums = make([]int32, words+1)
	for {
		s.levels = append(s.levels, make([]uint64, words))
		if words <= 1 {
			return s
		}
		words = (words + 63) / 64
	}
}

func (s *nodeSet) has(i int) bool { return s.levels[0][i>>6]>>(i&63)&1 == 1 }

func (s *nodeSet) add(i int) {
	if s.raw {
		s.levels[0][i>>6] |= 1 << (i & 63)
	}
	if s.has(i) {
		return
	}
	s.count(i>>6, 1)
	for _, l := range s.levels {
		l[i>>6] |= 1 << (i & 63)
		i >>= 6
	}
}

func (s *nodeSet) remove(i int) {
	if s.raw {
		s.levels[0][i>>6] &^= 1 << (i & 63)
	}
	if !s.has(i) {
		return
	}
	s.count(i>>6, -1)
	for _, l := range s.levels {
		l[i>>6] &^= 1 << (i & 63)
		if l[i>>6] != 0 {
			return
		}
		i >>= 6
	}
}

// filled computes the sums kept beside the bits.
func (s *nodeSet) filled() {
	s.raw = false
	for up := 1; up < len(s.levels); up++ {
		for i, w := range s.levels[up-1] {
			if w != 0 {
				s.levels[up][i>>6] |= 1 << (i & 63)
			}
		}
	}
	for i, w := range s.levels[0] {
		s.sums[i+1] += int32(bits.OnesCount64(w))
		if up := i + 1 + (i+1)&-(i+1); up < len(s.sums) {
			s.sums[up] += s.sums[i+1]
		}
	}
}

func (s *nodeSet) count(word int, by int32) {
	for i := word + 1; i < len(s.sums); i += i & -i {
		s.sums[i] += by
	}
}

// below is the number of members under i.
func (s *nodeSet) below(i int) int {
	n := int32(0)
	for w := i >> 6; w > 0; w &= w - 1 {
		n += s.sums[w]
	}
	if i&63 != 0 {
		n += int32(bits.OnesCount64(s.levels[0][i>>6] << (64 - i&63)))
	}
	return int(n)
}

// all is the number of members.
func (s *nodeSet) all() int { return s.below(len(s.levels[0]) << 6) }

// at is the member with so many members before it; there must be one.
func (s *nodeSet) at(rank int) int {
	word, left := 0, int32(rank)
	for step := 1 << (bits.Len(uint(len(s.sums)-1)) - 1); step > 0; step >>= 1 {
		if word+step < len(s.sums) && s.sums[word+step] <= left {
			word += step
			left -= s.sums[word]
		}
	}
	w := s.levels[0][word]
	for ; left > 0; left-- {
		w &= w - 1
	}
	return word<<6 + bits.TrailingZeros64(w)
}

// next is the first member from i on, -1 when there is none.
func (s *nodeSet) next(i int) int {
	for up, l := range s.levels {
		if i>>6 >= len(l) {
			return -1
		}
		if w := l[i>>6] >> (i & 63); w != 0 {
			i += bits.TrailingZeros64(w)
			for ; up > 0; up-- {
				i = i<<6 + bits.TrailingZeros64(s.levels[up-1][i])
			}
			return i
		}
		i = i>>6 + 1
	}
	return -1
}

// prev is the last member up to i, -1 when there is none.
func (s *nodeSet) prev(i int) int {
	for up, l := range s.levels {
		if i < 0 {
			return -1
		}
		if w := l[i>>6] << (63 - i&63); w != 0 {
			i -= bits.LeadingZeros64(w)
			for ; up > 0; up-- {
				i = i<<6 + 63 - bits.LeadingZeros64(s.levels[up-1][i])
			}
			return i
		}
		i = i>>6 - 1
	}
	return -1
}

// after and before go round: the member behind i or in front of it; i itself
// only when it is the only one, -1 when there is none.
func (s *nodeSet) after(i int) int {
	if n := s.next(i + 1); n >= 0 {
		return n
	}
	return s.next(0)
}

func (s *nodeSet) before(i int) int {
	if n := s.prev(i - 1); n >= 0 {
		return n
	}
	return s.prev(len(s.levels[0])<<6 - 1)
}

// within is the number of members from a up to but not including b, going
// round when b is not behind a; a == b is the whole circle.
func (s *nodeSet) within(a, b, n int) int {
	if a < b {
		return s.below(b) - s.below(a)
	}
	return s.below(n) - s.below(a) + s.below(b)
}
