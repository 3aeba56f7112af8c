package hostile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: a bypass that the wiring does not have is not waited for.
// Method: rings of a run that waited in vain, by the boards' light for want of a bundle:
// at three hops of three the bundle that both sides share was the other neighbour's.
func TestBypassesThatTheWiringHas(t *testing.T) {
	for _, c := range []struct {
		ring []proto.NodeID
		at   int
		want bool
	}{
		{[]proto.NodeID{9, 10, 11, 12}, 1, true},
		{[]proto.NodeID{9, 12, 13, 14}, 2, true}, // two hops beside three
		{[]proto.NodeID{9, 12, 13, 15}, 2, false},
		{[]proto.NodeID{0, 2, 3, 6}, 1, false},
		{[]proto.NodeID{0, 3, 5, 6}, 2, false},
		{[]proto.NodeID{0, 1, 3, 4}, 1, true}, // three hops, and no other
		{[]proto.NodeID{0, 1, 4, 5}, 1, false},
	} {
		if got := passable(c.ring, c.at, 3); got != c.want {
			t.Errorf("ring %v without %d: %v", c.ring, c.ring[c.at], got)
		}
	}
}

// Goal: an attack that is felt fails the run, by the p99 of many and the p90 of few, and
// so does one under which agents tell no ledgers; two that are alike do not.
func TestFeltAttacksFail(t *testing.T) {
	list := func(n int, usual, late time.Duration, lates int) (out []time.Duration) {
		for i := range n {
			if out = append(out, usual); i < lates {
				out[i] = late
			}
		}
		return out
	}
	alike := list(200, time.Millisecond, 3*time.Millisecond, 3)
	for _, c := range []struct {
		what            string
		board, reaction []time.Duration // under the attack
		rate            int64
		fails           bool
	}{
		{"alike", alike, alike, 94, false},
		{"one late one in 200", list(200, time.Millisecond, 50*time.Millisecond, 1), alike, 94, false},
		{"three of 200", list(200, time.Millisecond, 50*time.Millisecond, 3), alike, 94, true},
		{"three of the agents' own", alike, list(200, time.Millisecond, 50*time.Millisecond, 3), 94, true},
		{"a few, a fifth late", list(20, time.Millisecond, 50*time.Millisecond, 4), alike[:20], 94, true},
		{"no ledgers", alike, nil, 94, true},
		{"none", nil, nil, 0, false},
	} {
		quiet := measured{board: alike, reaction: alike}
		lines, err := compared([2]measured{quiet, {board: c.board, reaction: c.reaction}}, c.rate)
		if c.fails != errors.Is(err, errFell) || c.fails == (err == nil) {
			t.Errorf("%s: %v", c.what, err)
		}
		if want := "bypass, by the boards' clock"; !strings.Contains(lines, want) || strings.Contains(lines, "attack") != (c.rate > 0) {
			t.Errorf("%s: %s", c.what, lines)
		}
	}
}

// Goal: a reaction is the agent's own count of a switch with a ledger, once a node,
// whatever it tells again, and of the nodes that are asked for.
func TestReactionsAreTheLedgers(t *testing.T) {
	e := &ear{}
	event := func(n proto.NodeID, seq uint64, kind proto.EventKind, decide uint32) {
		x := proto.Event{Version: proto.Version, Node: n, Session: 1, Seq: seq, Kind: kind, Count: 1, Measured: proto.NoPower, Expected: proto.NoPower}
		if decide > 0 {
			x.Ledger = &proto.Ledger{DetectMicros: 9000, HoldoffMicros: 9000, DecideMicros: decide}
		}
		e.react(raw(&x))
	}
	event(1, 1, proto.EvSwitched, 400) // before anybody asks
	e.reactions(nil)
	event(1, 2, proto.EvSwitched, 80)
	event(1, 2, proto.EvSwitched, 80)
	event(2, 1, proto.EvSwitched, 0)
	event(3, 1, proto.EvSwitched, 120)
	event(4, 1, proto.EvSwitched, 5000)
	e.react([]byte("no event"))
	got := e.reactions([]proto.NodeID{1, 2, 3})
	if len(got) != 2 || got[0] != 80*time.Microsecond || got[1] != 120*time.Microsecond {
		t.Errorf("%v", got)
	}
	if got := e.reactions([]proto.NodeID{1, 3}); len(got) != 0 {
		t.Errorf("told twice: %v", got)
	}
}
