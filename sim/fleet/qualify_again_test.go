package fleet

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: with before_use a dirty fibre of two spares that are let in stays out, and good ones
// do not wait for ever, whoever dies before, in or after the trial: the planner, an agent, a
// node.
func TestATrialOutlivesWhoDies(t *testing.T) {
	o, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []Verb{PlannerKill, AgentCrash, NodeDark} {
		for _, delay := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, 900 * time.Millisecond} {
			b := newBenchOf(t, o, 16, 8, 1, 1, func(b *bench) { b.cfg.Fabric.Qualify = &fabric.Qualify{BeforeUse: true} })
			b.run(15 * time.Second)
			for _, id := range []proto.NodeID{13, 14} {
				b.answer(proto.OpRequest{Noun: proto.NounDrain, Node: id})
			}
			node, bundle, path := port(named(b, "13-14"), 0)
			if err := b.world.Inject(b.nodes[node].board, sim.Fault{Kind: sim.Dirt, Bundle: bundle, Path: path, Index: 5000}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []proto.NodeID{13, 14} {
				b.asked++
				b.inject.ask(proto.OpRequest{Noun: proto.NounUndrain, Node: id, Corr: corrOf(b.asked), Bundle: -1})
			}
			b.run(delay)
			f := Fault{Verb: verb, For: 2 * time.Second}
			if verb != PlannerKill {
				f.Node = 14
			}
			if err := b.inject.apply(&f); err != nil {
				t.Fatal(err)
			}
			b.run(30 * time.Second)
			for _, l := range b.answer(proto.OpRequest{Noun: proto.NounLinks}).Links {
				switch out := l.State == proto.FibreDark; {
				case l.Fibre == "13-14" && (!out || l.Qualified == nil || l.Qualified.Result != proto.Bad):
					t.Errorf("%v after %v: the dirty fibre is %v: %+v", verb, delay, l.State, l.Qualified)
				case l.Fibre != "13-14" && (out || l.State == proto.FibreDoubted):
					t.Errorf("%v after %v: fibre %s is %v: %+v", verb, delay, l.Fibre, l.State, l.Qualified)
				}
			}
			b.quiet(verb.String())
		}
	}
}

// Goal: what came of a count outlives the planner: each fibre has its last result, with the time of
// the count, and why tells it. Method: a good and a dirty fibre are counted, the planner is killed
// and comes back, twice; then the dirty one is cleaned and counted again.
func TestResultsOutliveThePlanner(t *testing.T) {
	b := newBench(t, 12, 8, 1, 3)
	node, bundle, path := port(named(b, "8-9"), 0)
	dirt := func(m int) {
		t.Helper()
		if err := b.world.Inject(b.nodes[node].board, sim.Fault{Kind: sim.Dirt, Bundle: bundle, Path: path, Index: m}); err != nil {
			t.Fatal(err)
		}
	}
	dirt(5000)
	results := func() map[string]proto.Qualification {
		out := map[string]proto.Qualification{}
		for _, l := range b.answer(proto.OpRequest{Noun: proto.NounLinks}).Links {
			if l.Qualified != nil {
				out[l.Fibre] = *l.Qualified
			}
		}
		return out
	}
	got, _ := b.qualify("8-9", "10-11")
	if got["8-9"].Result != proto.Bad || got["10-11"].Result != proto.Good || !maps.Equal(results(), got) {
		t.Fatalf("%+v, later %+v", got, results())
	}
	for life := range 2 {
		if err := b.inject.apply(&Fault{Verb: PlannerKill, For: 2 * time.Second}); err != nil {
			t.Fatal(err)
		}
		b.run(15 * time.Second)
		if then := results(); !maps.Equal(then, got) {
			t.Errorf("life %d: %+v, was %+v", life, then, got)
		}
	}
	at := got["8-9"].AtMillis
	if !slices.ContainsFunc(b.answer(proto.OpRequest{Noun: proto.NounWhy, Node: 9, Bundle: -1}).Why, func(l proto.WhyLine) bool {
		return l.Rule == "qualify" && l.AtMillis == at && strings.Contains(l.Text, "fibre 8-9 is bad")
	}) {
		t.Error("why does not tell")
	}
	dirt(0)
	if again, _ := b.qualify("8-9"); again["8-9"].Result != proto.Good || results()["8-9"].AtMillis <= at || results()["10-11"] != got["10-11"] {
		t.Errorf("%+v, then %+v", again, results())
	}
}
