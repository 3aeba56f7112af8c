package node

import (
	"testing"
	"time"

	"ringlight/proto"
)

// fenced is a machine of either kind.
type fenced interface {
	Restore(State)
	State() State
	Step(Event, []Action) []Action
	Report(*proto.Reported)
}

// eachKind calls f with what makes a machine of each kind, of a journal if there
// is one, that has read its hardware back.
func eachKind(t *testing.T, f func(t *testing.T, start func(*State) fenced)) {
	for name, of := range map[string]func() fenced{ // any order: each by itself
		"node":   func() fenced { return New(Config{ID: 1, Bundles: 1}) },
		"switch": func() fenced { return NewCrossConnect(1, 4) },
	} {
		t.Run(name, func(t *testing.T) {
			f(t, func(s *State) fenced {
				m := of()
				if s != nil {
					m.Restore(*s)
				}
				m.Step(Event{Kind: Adopt, Lits: []BundleLight{{Path: proto.Loopback, Ready: true}}}, nil)
				return m
			})
		})
	}
}

// Goal: a term belongs to the life of a planner that it was heard from first: a
// copy of that planner's store, which counts itself up to the same term, stages
// nothing and takes no term over, not after a restart of the agent either, until
// it has a term of its own. One that does not say its life is taken as before.
// Method: plans of two lives, one word at a time, to a node and to a switch.
func TestTermBelongsToOneLife(t *testing.T) { eachKind(t, termBelongsToOneLife) }

func termBelongsToOneLife(t *testing.T, start func(*State) fenced) {
	for _, restart := range []bool{false, true} {
		h, now := start(nil), time.Second
		step := func(ev Event) (acks []proto.Ack) {
			now += time.Second
			ev.At = now
			for _, a := range h.Step(ev, nil) {
				if a.Kind == Answer {
					acks = append(acks, a.Ack)
				}
			}
			return acks
		}
		gen := proto.Generation(0)
		stage := func(term proto.Term, life uint64, want proto.Code, field string) {
			t.Helper()
			gen++
			d := &proto.Desired{Version: proto.Version, Node: 1, Term: term, Generation: gen, Plan: proto.Digest{byte(gen)}, Decisions: []proto.RingID{0}, Life: life}
			acks := step(Event{Kind: Stage, Desired: d, Digest: proto.Digest{byte(gen)}})
			if len(acks) != 1 || acks[0].Code != want || acks[0].Field != field {
				t.Errorf("restart %v: term %d of life %d: %+v, want %s %s", restart, term, life, acks, want, field)
			}
		}
		seen := func(term proto.Term, life uint64) {
			t.Helper()
			var r proto.Reported
			if h.Report(&r); r.SeenTerm != term || r.SeenLife != life {
				t.Errorf("restart %v: term %d of life %d, want %d of %d", restart, r.SeenTerm, r.SeenLife, term, life)
			}
		}
		step(Event{Kind: HeardTerm, Term: 3, Life: 7})
		seen(3, 7)
		stage(3, 8, proto.Stale, "life")
		step(Event{Kind: HeardTerm, Term: 3, Life: 8})
		seen(3, 7)
		stage(3, 7, proto.OK, "")
		stage(3, 0, proto.OK, "")
		seen(3, 7)
		if restart {
			s := h.State()
			h = start(&s)
		}
		seen(3, 7)
		stage(3, 8, proto.Stale, "life")
		stage(4, 8, proto.OK, "")
		seen(4, 8)
		stage(4, 7, proto.Stale, "life")
		stage(3, 7, proto.Stale, "term")
	}
}

// Goal: a term of one message reaches as far as both ends agree on, and no
// farther; a planner that is there and alone is followed wherever it is.
// Method: signs of life at the limit and beyond; then three in a row.
func TestFarTermNeedsALivingPlanner(t *testing.T) { eachKind(t, farTermNeedsALivingPlanner) }

func farTermNeedsALivingPlanner(t *testing.T, start func(*State) fenced) {
	m := start(nil)
	now := time.Second
	heard := func(term proto.Term) proto.Term {
		now += 2 * time.Second
		m.Step(Event{Kind: HeardTerm, At: now, Term: term, Life: 7}, nil)
		var r proto.Reported
		m.Report(&r)
		return r.SeenTerm
	}
	if got := heard(proto.MaxTermJump + 1); got != 0 {
		t.Errorf("term %d is believed of one message", got)
	}
	if got := heard(proto.MaxTermJump); got != proto.MaxTermJump {
		t.Errorf("term %d, want the limit", got)
	}
	const far = proto.MaxFirst + 5
	for i, want := range []proto.Term{proto.MaxTermJump, proto.MaxTermJump, far} {
		if got := heard(far); got != want {
			t.Errorf("sign of life %d: term %d, want %d", i+1, got, want)
		}
	}
}

// Goal: a term that is far is believed of a planner that is alive, and alone.
// Method: three signs of life of one term, fewer, in less than four seconds, and
// with one of another term among them.
func TestFarTermNeedsSignsInARow(t *testing.T) {
	const far, other = 5 * proto.MaxTermJump, 6 * proto.MaxTermJump
	type sign struct {
		t  proto.Term
		at time.Duration
	}
	for _, c := range []struct {
		signs    []sign
		believed bool
	}{
		{[]sign{{far, 0}, {far, 2}, {far, 4}}, true},
		{[]sign{{far, 0}, {far, 4}}, false},
		{[]sign{{far, 0}, {far, 1}, {far, 2}, {far, 3}}, false},
		{[]sign{{far, 0}, {far, 2}, {other, 3}, {far, 4}, {far, 8}}, false},
		{[]sign{{far, 0}, {far, 2}, {other, 3}, {far, 4}, {far, 6}, {far, 8}}, true},
	} {
		r := reach{settled: 1}
		for _, s := range c.signs {
			r.alive(s.t, s.at*time.Second)
		}
		if believed := r.term() > far; believed != c.believed {
			t.Errorf("%v: believed %t", c.signs, believed)
		}
	}
}
