package study

import (
	"math/bits"
	"slices"
	"time"

	"ringlight/planner/topo"
	"ringlight/sim/flow"
)

// direct is TopoOpt: any idle servers, joined directly by planner/topo for what
// the job sends. Jobs share no link; an iteration takes as long as the fullest
// link of each phase ([TOPO] eq. 1).
type direct struct {
	leaves
	known map[directKey][2]int64 // what the fullest link has of either way
}

// directKey is a topology: servers, and what goes to each other GPU and what is
// reduced, the larger of them directUnit, with directDigits digits.
type directKey struct {
	servers int
	bytes   [2]int64
}

// Of the traffic for which a topology is found; chosen: finer ones give the same.
const (
	directUnit   = 1 << 20
	directDigits = 8
)

func (h *direct) circuits(job int) bool { return len(h.placed[job].Servers) > 1 }

func (h *direct) work(job int, steps int64) (*work, error) {
	t, n := &h.talks[job], len(h.placed[job].Servers)
	if t.silent() {
		return fixedWork(t, 0, steps), nil
	}
	key := directKey{servers: n}
	for way, bytes := range t.bytes {
		v := scaled(bytes, directUnit, slices.Max(t.bytes[:]))
		low := max(0, bits.Len64(uint64(v))-directDigits)
		key.bytes[way] = v >> low << low
	}
	fullest, err := h.fullest(key)
	if err != nil {
		return nil, err
	}
	var sends time.Duration
	for _, p := range t.parts {
		if p.far == 0 {
			sends += flow.TransferTime(p.near, h.near)
		}
	}
	for way, bytes := range t.bytes {
		if bytes > 0 {
			sends += flow.TransferTime(scaled(fullest[way], bytes, key.bytes[way]), h.far)
		}
	}
	return fixedWork(t, sends, steps), nil
}

// fullest finds a topology: a server has as many interfaces as GPUs, and both
// fibres of one end at the same peer where that can be.
func (h *direct) fullest(key directKey) (known [2]int64, err error) {
	if known, ok := h.known[key]; ok {
		return known, nil
	}
	r := topo.Request{Servers: key.servers, Degree: h.perServer, Bidirectional: h.perServer%2 == 0, Seed: 1}
	if bytes := key.bytes[reducing]; bytes > 0 {
		r.AllReduce = []topo.Group{{Servers: packed(key.servers), Bytes: 2 * int64(key.servers-1) * bytes}}
	}
	if bytes := key.bytes[exchanging]; bytes > 0 {
		r.MP = topo.AllToAll(key.servers, int64(h.perServer*h.perServer)*bytes)
	}
	found, err := topo.Find(r)
	if err != nil {
		return known, err
	}
	known = [2]int64{exchanging: found.FullestSend, reducing: found.FullestReduce}
	h.known[key] = known
	return known, nil
}
