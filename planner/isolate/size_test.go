package isolate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Goal: a size of which there is no virtual Clos is refused with the next that there is,
// or the largest.
// Method: every size on cores of many shapes; what there is is counted by l and s.
func TestNextSizeIsTold(t *testing.T) {
	told := 0
	for _, c := range []Core{Clos(4, 8, 4, 8), Clos(16, 32, 4, 32), Clos(6, 12, 2, 6), Clos(5, 16, 8, 8)} {
		var fits []int // sizes, rising
		for g := c.GPUsPerServer; g <= c.GPUs(); g += c.GPUsPerServer {
			is := g <= c.GPUsPerServer*c.Servers[0]
			for l := 2; l <= c.Leaves(); l++ {
				is = is || g%l == 0 && g/l <= c.Spines() && g/l%c.GPUsPerServer == 0
			}
			if is {
				fits = append(fits, g)
			}
		}
		for g := 1; g <= c.GPUs(); g++ {
			whole, next := (g+c.GPUsPerServer-1)/c.GPUsPerServer*c.GPUsPerServer, 0
			for _, f := range fits {
				if next = f; f >= whole {
					break
				}
			}
			var e *Error
			switch err := c.Check(g); {
			case err == nil && next != whole:
				t.Errorf("%d GPUs pass", g)
			case err != nil && (!errors.As(err, &e) || next == whole || !strings.HasSuffix(e.Limit, fmt.Sprintf(", as %d", next))):
				t.Errorf("%d GPUs: %v, want %d", g, err, next)
			case err != nil:
				told++
			}
		}
	}
	if told == 0 {
		t.Error("no size was refused")
	}
}

// Clone is a copy that shares nothing that changes.
func (s *State) Clone() *State {
	c := s.probe()
	c.jobs = maps.Clone(s.jobs)
	return c
}

// Jobs gives the jobs that own something, by id.
func (s *State) Jobs() []JobID {
	return slices.Sorted(maps.Keys(s.jobs))
}

// GPUs is the number of GPUs.
func (c Core) GPUs() int {
	n := 0
	for _, s := range c.Servers {
		n += s * c.GPUsPerServer
	}
	return n
}
