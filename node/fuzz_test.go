package node

import (
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/proto"
)

// reader gives out a fuzzer's bytes, then zeros.
type reader struct{ in []byte }

func (r *reader) next() byte {
	if len(r.in) == 0 {
		return 0
	}
	b := r.in[0]
	r.in = r.in[1:]
	return b
}

// kinds weighs what a node hears most.
var kinds = [...]EventKind{Light, Light, Light, Light, Light, Light, Switched, Switched, Switched, Switched, Tick, Tick, Stage, Stage,
	Decide, Decide, Decide, Ready, Adopt, PathFailed, PathOK, PathOK, Ready, Ready, Unready, DropStaged, HeardTerm, HostFault, HostOK, HostOK, Drain, Undrain,
	Request, Request, Degrade}

func (r *reader) event(m *Machine) Event {
	ev := Event{Kind: kinds[int(r.next())%len(kinds)], Bundle: proto.BundleID(r.next() % 5), Path: proto.Path(r.next() % 5), Lit: r.next()&1 == 0}
	switch ev.Kind {
	case Adopt:
		for b := range r.next() % 6 {
			ev.Lits = append(ev.Lits, BundleLight{Bundle: proto.BundleID(b), Path: proto.Path(r.next() % 5), Lit: r.next(), Ready: r.next()&3 != 0})
		}
	case PathFailed, HostFault, Drain, Unready:
		if r.next()&7 != 0 {
			ev.Kind = Tick
		}
	case Light:
		if b := r.next(); ev.Bundle < 4 && b&3 != 0 && m.bundles[ev.Bundle].path.External() {
			ev.Path = m.bundles[ev.Bundle].path
			ev.Lit = m.bundles[ev.Bundle].lit&(1<<ev.Path) == 0
		}
	case Switched:
		if ev.Bundle < 4 && r.next()&7 != 0 {
			ev.Path = m.bundles[ev.Bundle].path
		}
	case Stage:
		ev.Desired = r.desired(m)
	case Decide:
		ev.Decision = &proto.Decision{Term: proto.Term(r.next() % 4), Generation: proto.Generation(r.next() % 8), Plan: proto.Digest{r.next() % 3}, Verdict: proto.Verdict(r.next() % 4)}
		if s := m.State(); s.Staged != nil && r.next()&7 != 0 {
			d := &s.Staged.Desired
			*ev.Decision = proto.Decision{Term: d.Term, Generation: d.Generation, Plan: d.Plan, Verdict: proto.Commit}
		}
	case Request:
		ev.Side, ev.Request = proto.Side(r.next()%3), proto.Request(r.next()%9)
	case HeardTerm, DropStaged:
		ev.Term = proto.Term(r.next() % 4)
	}
	return ev
}

// desired is mostly a valid next plan: the eight ways out assigned to two sides.
func (r *reader) desired(m *Machine) *proto.Desired {
	d := &proto.Desired{Node: 5, Term: max(m.seenTerm, 1), Plan: proto.Digest{r.next() % 3}, BypassSeq: m.bypassSeq, Decisions: []proto.RingID{1, proto.RingID(r.next())}}
	_, g := m.inForce()
	d.Generation = g + 1
	if r.next()&7 == 0 {
		d.Term, d.Generation = proto.Term(r.next()%4), proto.Generation(r.next()%8)
	}
	if r.next()&7 == 0 {
		return d
	}
	ways := []proto.Candidate{}
	for w, at := range [8]byte{0, 2, 4, 6, 1, 3, 5, 7} {
		ways = append(ways, proto.Candidate{Bundle: proto.BundleID(at / 2), Path: proto.External1 + proto.Path(at%2), Peer: proto.NodeID(10 + w), Others: r.next()&1 == 0})
	}
	for i := range ways {
		j := int(r.next()) % (i + 1)
		ways[i], ways[j] = ways[j], ways[i]
	}
	left, right := int(r.next()%4), int(r.next()%5)
	d.Rings = []proto.RingAssignment{{Ring: 1, Position: 1, Size: 8, Policy: proto.Policy(r.next() % 5 / 4), Envelope: defaultEnvelope,
		Left: ways[:left], Right: ways[left : left+right], LeftWorking: r.next() % 4, RightWorking: r.next() % 4}}
	if left > 0 {
		d.Rings[0].LeftWorking %= uint8(left)
	}
	if right > 0 {
		d.Rings[0].RightWorking %= uint8(right)
	}
	return d
}

// Goal: no sequence of events breaks the machine or its word.
// Method: any events at any times; after each: no path asked for twice, a
// bundle for one side at most, terms and generations that never go back, a
// timer that is later than now.
func FuzzStep(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Fuzz(stepAll)
}

// Goal: as FuzzStep's, on more and longer sequences than its seeds.
// Method: bytes from a seeded generator.
func TestRandomSteps(t *testing.T) {
	in := make([]byte, 400)
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0x6e6f6465))
		for i := range in {
			in[i] = byte(rng.Uint32())
		}
		stepAll(t, in)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func stepAll(t *testing.T, in []byte) {
	r := &reader{in}
	m := New(Config{ID: 5, Bundles: 4})
	m.Step(Event{Kind: Adopt, Lits: []BundleLight{{Path: proto.Loopback, Lit: 2, Ready: true}, {Bundle: 1, Path: proto.Loopback, Lit: 2, Ready: true},
		{Bundle: 2, Path: proto.External1, Lit: 4, Ready: true}, {Bundle: 3, Path: proto.Dark, Ready: r.next()&1 == 0}}}, nil)
	var now time.Duration
	before := m.State()
	paths := map[proto.BundleID]proto.Path{0: proto.Loopback, 1: proto.Loopback, 2: proto.External1, 3: m.bundles[3].path}
	for len(r.in) > 0 {
		now += time.Duration(r.next()) * 10 * time.Microsecond
		if r.next()&7 == 0 && m.Next() != Never {
			now = max(now, m.Next())
		}
		ev := r.event(m)
		ev.At = now
		if ev.Kind == Ready && int(ev.Path) < proto.NumPaths {
			paths[ev.Bundle] = ev.Path
		}
		for _, a := range m.Step(ev, nil) {
			if a.Kind == Select {
				if paths[a.Bundle] == a.Path {
					t.Fatalf("bundle %d asked again for %s", a.Bundle, a.Path)
				}
				paths[a.Bundle] = a.Path
			}
		}
		after := m.State()
		checkStep(t, m, &before, &after, now)
		before = after
	}
}

func checkStep(t *testing.T, m *Machine, before, after *State, now time.Duration) {
	if after.SeenTerm < before.SeenTerm || after.BypassSeq < before.BypassSeq {
		t.Fatalf("term %d after %d, bypass count %d after %d", after.SeenTerm, before.SeenTerm, after.BypassSeq, before.BypassSeq)
	}
	if b, a := before.Applied, after.Applied; b != nil && (a == nil || b.compare(a.Desired.Term, a.Desired.Generation) < 0) {
		t.Fatalf("applied %v after %v", a, b)
	}
	if m.Next() <= now {
		t.Fatalf("the next timer is at %v, now is %v", m.Next(), now)
	}
	for b, x := range m.bundles {
		if x.owner == nobody {
			continue
		}
		s := &m.sides[x.owner]
		if !s.uses(s.cur, b) && !s.uses(s.probe, b) {
			t.Fatalf("bundle %d belongs to the %s side, which does not use it", b, s.id)
		}
		for _, k := range []int{s.cur, s.probe} {
			if s.uses(k, b) && x.ready && x.path != s.list[k].Path {
				t.Fatalf("bundle %d is on %s, its side on %s", b, x.path, s.list[k].Path)
			}
		}
	}
	var r proto.Reported
	m.Report(&r)
}
