package study

import (
	"math/bits"
	"time"

	"ringlight/planner/topo"
	"ringlight/sim/flow"
)

// direct is TopoOpt: any idle servers, joined directly by planner/topo for what
// the job sends. Jobs share no link; an iteration takes as long as the fullest
// link of each phase ([TOPO] eq. 1).
type direct struct {
	leaves
	known map[directKey]directTime
}

// directKey is a topology: servers, and what is reduced and what goes to each
// other GPU, the larger of them directUnit, with directDigits digits.
type directKey struct {
	servers          int
	reduce, exchange int64
}

// directTime is what the fullest link has of it.
type directTime struct{ reduce, exchange int64 }

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
	key := directKey{n, t.reduce, t.exchange}
	whole := max(t.reduce, t.exchange)
	for _, v := range []*int64{&key.reduce, &key.exchange} {
		*v = scaled(*v, directUnit, whole)
		if digits := bits.Len64(uint64(*v)); digits > directDigits {
			*v = *v >> (digits - directDigits) << (digits - directDigits)
		}
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
	if t.reduce > 0 {
		sends += flow.TransferTime(scaled(fullest.reduce, t.reduce, key.reduce), h.far)
	}
	if t.exchange > 0 {
		sends += flow.TransferTime(scaled(fullest.exchange, t.exchange, key.exchange), h.far)
	}
	return fixedWork(t, sends, steps), nil
}

// fullest finds a topology: a server has as many interfaces as GPUs, and both
// fibres of one end at the same peer where that can be.
func (h *direct) fullest(key directKey) (directTime, error) {
	if known, ok := h.known[key]; ok {
		return known, nil
	}
	r := topo.Request{Servers: key.servers, Degree: h.perServer, Bidirectional: h.perServer%2 == 0, Seed: 1}
	if key.reduce > 0 {
		r.AllReduce = []topo.Group{{Servers: packed(key.servers), Bytes: 2 * int64(key.servers-1) * key.reduce}}
	}
	if key.exchange > 0 {
		r.MP = topo.AllToAll(key.servers, int64(h.perServer*h.perServer)*key.exchange)
	}
	found, err := topo.Find(r)
	if err != nil {
		return directTime{}, err
	}
	h.known[key] = directTime{found.FullestReduce, found.FullestSend}
	return h.known[key], nil
}
