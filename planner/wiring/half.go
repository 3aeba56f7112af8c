package wiring

import "fmt"

// Half is the configuration of the even switches of one group: To[k*Pods+i]
// is the pod that switch 2k leads pod i's light to, or -1. Switch 2k+1 is the
// transpose.
type Half struct {
	Pods, Switches int
	To             []int32
}

// None is the entry of a port that carries nothing.
const None = -1

// NewHalf is a half with nothing in it.
func NewHalf(pods, switches int) Half {
	h := Half{pods, switches, make([]int32, pods*switches)}
	for n := range h.To {
		h.To[n] = None
	}
	return h
}

// Row is even switch k: the pod each pod's light goes to.
func (h Half) Row(k int) []int32 { return h.To[k*h.Pods : (k+1)*h.Pods : (k+1)*h.Pods] }

// Clone is a copy that shares nothing.
func (h Half) Clone() Half {
	h.To = append([]int32(nil), h.To...)
	return h
}

// Mirror is the odd half: row k is the transpose of even switch k.
func (h Half) Mirror() Half {
	m := NewHalf(h.Pods, h.Switches)
	for k := range h.Switches {
		row := m.Row(k)
		for i, j := range h.Row(k) {
			if j >= 0 {
				row[j] = int32(i)
			}
		}
	}
	return m
}

// Kept counts the circuits that are in both halves in the same place.
func (h Half) Kept(old Half) int {
	n := 0
	for s, j := range h.To {
		if j >= 0 && old.To[s] == j {
			n++
		}
	}
	return n
}

// HalfFrom reads rows of pods; every row must be a partial permutation.
// field names the rows in errors.
func HalfFrom(field string, pods, switches int, rows [][]int) (Half, error) {
	if len(rows) != switches {
		return Half{}, wrong(field, fmt.Sprintf("spine_ports/2 = %d rows", switches), "%d rows", len(rows))
	}
	h := NewHalf(pods, switches)
	for k, row := range rows {
		if len(row) != pods {
			return Half{}, wrong(fmt.Sprintf("%s[%d]", field, k), fmt.Sprintf("one entry a pod, %d", pods), "%d entries", len(row))
		}
		for i, j := range row {
			if j < None || j >= pods {
				return Half{}, wrong(fmt.Sprintf("%s[%d][%d]", field, k, i), fmt.Sprintf("-1 or a pod 0..%d", pods-1), "%d", j)
			}
			h.To[k*pods+i] = int32(j)
		}
	}
	if err := h.checkPermutations(field); err != nil {
		return Half{}, err
	}
	return h, nil
}

func (h Half) checkPermutations(field string) error {
	from := make([]int32, h.Pods)
	for k := range h.Switches {
		clear(from)
		for i, j := range h.Row(k) {
			if j < 0 {
				continue
			}
			if from[j] != 0 {
				return wrong(fmt.Sprintf("%s[%d]", field, k), "a partial permutation",
					"pods %d and %d both lead to pod %d", from[j]-1, i, j)
			}
			from[j] = int32(i) + 1
		}
	}
	return nil
}
