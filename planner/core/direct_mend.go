package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Servers joined directly: what did not come up is given to nobody again, and a job that
// runs over it is mended with as few circuits moved as that takes: a server takes its
// other fibre, an idle one takes its place, or two of the job change places. Its rings
// stay as they are, by rank.

// dark are the links of a shard of which a circuit did not come up, by ranks, and those
// on servers that are out; all, or those of some ranks.
func (c *direct) dark(s *shard, of ...int) (links [][2]int) {
	if len(c.from.bad)+len(c.from.out.why) == 0 {
		return nil
	}
	in := func(rank int) bool { return len(of) == 0 || slices.Contains(of, rank) }
	for rank, server := range s.Servers {
		if in(rank) && c.from.out.of(server) { // it counts for more than all its links
			links = append(links, slices.Repeat([][2]int{{rank, rank}}, 2*len(s.Layers)+1)...)
		}
	}
	for layer := range s.Layers {
		for a, b := range s.joined(layer) {
			if (in(a) || in(b)) && c.from.failed(c.way(s, layer, a, b)) {
				links = append(links, [2]int{a, b})
			}
		}
	}
	return links
}

// lost are links of which a circuit is gone.
func (c direct) lost(j *job) (links int, part string) {
	if j.shard == nil {
		return 0, ""
	}
	for layer := range j.shard.Layers {
		for a, b := range j.shard.joined(layer) {
			if way := c.way(j.shard, layer, a, b); c.from.failed(way) {
				links++
				part = cmp.Or(part, c.from.out.hits(way...))
			}
		}
	}
	return links, part
}

// way is what a link of a shard goes over; of one that stands by the transceivers are
// another's as yet.
func (c *direct) way(s *shard, layer, a, b int) []slot {
	way := c.layout.slots(layer, c.end(s, a), c.end(s, b))
	if !s.Active {
		way = way[:1]
	}
	return way
}

// mendTries bounds the changes from which a shard that is left with dark links is mended
// again. chosen: of a hundred servers a second.
const mendTries = 500

// mended is a shard with as few dark links as steps come to of which each leaves fewer;
// the least of those that do as well. Where some are left, any one change is made first.
// It is the same one where there is nothing better.
func (c *direct) mended(f *floor, j *job, s *shard) *shard {
	s = c.descent(f, j, s)
	for tries, again := 0, true; again; {
		again = false
		best, least := s, len(c.dark(s))
		for rank := 0; rank < len(s.Servers) && least > 0 && tries < mendTries; rank++ {
			c.besides(f, j, s, rank, func(x *shard, _ ...int) bool {
				tries++
				if x = c.descent(f, j, x); len(c.dark(x)) < least {
					best, least, again = x, len(c.dark(x)), true
				}
				return least > 0 && tries < mendTries
			})
		}
		s = best
	}
	return s
}

func (c *direct) descent(f *floor, j *job, s *shard) *shard {
	for {
		links := c.dark(s)
		best, least, done := s, len(links), make([]bool, len(s.Servers))
		for _, link := range links {
			for _, rank := range link {
				if done[rank] {
					continue
				}
				done[rank] = true
				c.besides(f, j, s, rank, func(x *shard, ranks ...int) bool {
					if n := len(links) - len(c.dark(s, ranks...)) + len(c.dark(x, ranks...)); n < least {
						best, least = x, n
					}
					return least > 0
				})
			}
		}
		if best == s {
			return s
		}
		s = best
	}
}

// besides are the shards in which one rank is elsewhere, or two, those first that move least.
func (c *direct) besides(f *floor, j *job, s *shard, rank int, yield func(x *shard, ranks ...int) bool) {
	changed := func(change func(*shard), ranks ...int) bool {
		x := *s
		x.Servers, x.Path = slices.Clone(s.Servers), slices.Clone(s.Path)
		change(&x)
		return yield(&x, ranks...)
	}
	out, other := c.from.out.only(&j.spec, len(f.active)), func(of *job) bool { return of != nil && of != j }
	server := s.Servers[rank]
	if !other(f.active[server]) && !other(f.look[server]) && !changed(func(x *shard) { x.Path[rank] = 1 - x.Path[rank] }, rank) {
		return
	}
	for y := range f.active {
		if f.idle(y) && !out.of(y) && !slices.Contains(s.Servers, y) && !changed(func(x *shard) { x.Servers[rank], x.Path[rank] = y, 0 }, rank) {
			return
		}
	}
	for r := range s.Servers {
		if r != rank && !changed(func(x *shard) {
			x.Servers[r], x.Servers[rank] = x.Servers[rank], x.Servers[r]
			x.Path[r], x.Path[rank] = x.Path[rank], x.Path[r]
		}, r, rank) {
			return
		}
	}
}

// mend gives jobs that run, or stand by, other fibres, servers or places for links that
// did not come up. What cannot be told now is not planned for.
func (c *direct) mend(f *floor, jobs []*job) {
	for _, j := range jobs {
		if j.shard == nil || len(c.dark(j.shard)) == 0 {
			continue
		}
		next := c.mended(f, j, j.shard)
		if next == j.shard || c.silent(next) != "" {
			continue
		}
		for _, s := range j.shard.Servers {
			if f.active[s] == j {
				f.active[s] = nil
			}
			if f.look[s] == j {
				f.look[s] = nil
			}
		}
		j.shard = next
		f.take(j)
	}
}

// moved says what of a shard is elsewhere than it was, "" where nothing is.
func (s *shard) moved(was *shard) string {
	var out []string
	for rank, x := range s.Servers {
		switch {
		case rank >= len(was.Servers):
		case was.Servers[rank] != x:
			out = append(out, fmt.Sprintf("rank %d from server %d to %d", rank, was.Servers[rank], x))
		case was.Path[rank] != s.Path[rank]:
			out = append(out, fmt.Sprintf("server %d takes its other fibre", x))
		}
	}
	return strings.Join(out, ", ")
}
