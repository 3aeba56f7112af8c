package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// elected is a world of 8 nodes whose rings a planner of election 5 has formed, and
// what a process of another life hears of it.
func elected(t *testing.T, with func(*Config)) (w *fleet, beat func(life, election uint64)) {
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16})
	if err != nil {
		t.Fatal(err)
	}
	w = newFleet(t, f)
	w.with = func(c *Config) { c.Election = 5 }
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.run(30 * time.Second)
	if s := w.p.Status(); s.Rings.InService != 2 || s.Since == 0 {
		t.Fatalf("%+v", s)
	}
	sign := *w.p.pulse.sign(true)
	beat = func(life, election uint64) {
		sign.Seq++
		m := sign
		m.Life, m.Election = life, election
		payload, err := proto.Encode(&m)
		if err != nil {
			t.Fatal(err)
		}
		w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Planner(), Payload: payload}})
	}
	w.listens, w.with = true, with
	w.start()
	return w, beat
}

// Goal: a follower that is drawn anew from what it remembers has not heard anybody just now:
// with one device away, an elected one does not listen for others that it heard long ago.
// Method: one that followed for 20 s is drawn anew, as the process does.
func TestWhoIsDrawnAnewHasHeardLongAgo(t *testing.T) {
	w, _ := elected(t, func(c *Config) { c.Election, c.Follow = 5, true })
	w.run(20 * time.Second)
	was := w.p
	count, since := was.heard()
	if count == 0 || w.now-since < 20*time.Second {
		t.Fatalf("%d devices heard, the last new one at %v of %v", count, since, w.now)
	}
	for _, before := range []*Planner{nil, was} {
		w.with = func(c *Config) { c.Election, c.Follow, c.Before = 5, true, before }
		w.start()
		w.run(time.Second)
		w.p.listenFrom = was.listenFrom // the link's own word is remembered too
		n, at := w.p.heard()
		if n != count || (at == since) != (before != nil) {
			t.Errorf("drawn from %p: %d devices heard, the last new one at %v; before it were %d, at %v", before, n, at, count, since)
		}
	}
}

// Goal: one that follows says nothing to agents and stores nothing, and when it is
// elected its next word is a higher term, at once, and no light is touched; a stranger
// in service is waited for as ever. Method: beats of the one in service as the store's
// mate, then as a stranger of another store.
func TestElectedPlannerBeginsAtOnce(t *testing.T) {
	for _, mate := range []bool{true, false} {
		w, beat := elected(t, func(c *Config) { c.Election, c.Follow = 5, true })
		leader, term := w.life+75, w.p.j.Term // the life before this one
		var said []string
		w.trace = func(s string) {
			if !strings.HasPrefix(s, "log ") {
				said = append(said, s)
			}
		}
		light := func() (out string) {
			for i := range w.nodes {
				n := &w.nodes[i]
				out += fmt.Sprintln(n.id, n.applied.Term, n.applied.Generation, n.current, n.darkened, n.bypass)
			}
			return out
		}
		before := light()
		for range 10 {
			beat(leader, map[bool]uint64{true: 5, false: 6}[mate])
			w.run(2 * time.Second)
		}
		for _, s := range said {
			if !strings.HasPrefix(s, "persist log") && !strings.Contains(s, "planner/state") {
				t.Errorf("said while it follows: %s", s)
			}
		}
		if s := w.p.Status(); s.Planner.Life != leader || len(s.Standbys) != 1 || s.Standbys[0].Life != w.p.j.Life {
			t.Errorf("%+v", s)
		}
		beat(leader, map[bool]uint64{true: 5, false: 6}[mate])
		at := w.now
		w.step(Event{Kind: Lead})
		if !mate {
			if w.p.state != standby {
				t.Errorf("a planner of another store is in service, and this one is %v", w.p.state)
			}
			continue
		}
		if w.p.state != serving || w.p.j.Term != term+1 || w.now != at {
			t.Errorf("%v in term %d, was %d", w.p.state, w.p.j.Term, term)
		}
		w.run(10 * time.Second)
		if after := light(); after != before {
			t.Errorf("light is\n%s\nwas\n%s", after, before)
		}
	}
}

// Goal: a picture for those who look on is drawn from all that is heard, and nothing is
// stored, logged or said but answers to them. Method: a node dies, and the ring is asked for.
func TestPictureOnlyShows(t *testing.T) {
	w, beat := elected(t, func(c *Config) { c.Election, c.Follow, c.Picture = 5, true, true })
	var said []string
	w.trace = func(s string) { said = append(said, s) }
	beat(w.life+75, 5)
	w.run(5 * time.Second)
	w.die(3)
	w.run(5 * time.Second)
	for _, s := range said {
		if !strings.Contains(s, "planner/state") {
			t.Errorf("a picture says %s", s)
		}
	}
	if s := w.p.Status(); s.Nodes.Online != 7 {
		t.Errorf("%d nodes online", s.Nodes.Online)
	}
	q := proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1}, TTLMillis: 5000, Noun: proto.NounRings, Bundle: -1}
	payload, err := proto.Encode(&q)
	if err != nil {
		t.Fatal(err)
	}
	w.replies = nil
	w.step(Event{Kind: Question, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Request("view"), Payload: payload}})
	if len(w.replies) != 1 || len(w.replies[0].Rings) != 2 {
		t.Errorf("answers %+v", w.replies)
	}
}

// Goal: where the broker keeps nothing rings form over a network that loses, repeats and
// shuffles; one that comes back without its journal is told again; a planner whose link
// was gone misses nobody, and its next life finds all as they are. Method: a third of all
// messages suffers; the broker retains nothing.
func TestNothingIsLeftWithTheBroker(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16})
	if err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, f)
	w.forgetful, w.with = true, func(c *Config) { c.Uncached = true }
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	serving := func(what string) {
		t.Helper()
		w.run(0) // births come through: a link gives them again
		w.chaos = 0.3
		defer func() { w.chaos = 0 }()
		for range 20 {
			if w.run(10 * time.Second); w.p.Status().Rings.InService == 2 && w.p.Status().Confirmed == 6 {
				return
			}
		}
		t.Fatalf("%s: %s", what, w.show())
	}
	serving("at first")
	w.die(3)
	w.run(20 * time.Second)
	w.birth(3, true)
	serving("a node came back with nothing")
	var dark uint64
	lost := func() (n uint64) {
		for i := range w.nodes {
			n += w.nodes[i].darkened
		}
		return n
	}
	dark = lost()
	w.step(Event{Kind: LinkDown})
	w.connect()
	for range 60 {
		if w.run(time.Second); w.p.Status().Nodes.Online != 8 {
			t.Fatalf("after a new connection: %s", w.show())
		}
	}
	w.listens = true
	w.start()
	for range 20 {
		w.run(time.Second)
	}
	if s := w.p.Status(); s.Nodes.Online != 8 || s.Rings.InService != 2 || lost() != dark {
		t.Errorf("after a new life: %s", w.show())
	}
}
