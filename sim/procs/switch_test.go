package procs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/sim/live"
	"ringlight/sim/step"
)

// Circuit switches among real processes: boards of mirrors and their agents,
// whose journals are damaged too.

// procsCore is chosen: two switches are enough for a stage, of which one may die.
var procsCore = fabric.Core{Kind: fabric.KindLeafSpine, GPUsPerServer: 4, LeafSpine: &fabric.LeafSpine{Leaves: 3, Spines: 4, GPUsPerLeaf: 8, Switches: 2, AnyToAny: true}}

// procsJobs come one after the other, each in place of the one before; the last
// one stays. Whatever is lit of it must stay lit.
var procsJobs = []string{
	`{"jobs":[{"id":1,"gpus_total":12},{"id":2,"gpus_total":12}]}`,
	`{"jobs":[{"id":3,"gpus_total":24}]}`,
	`{"jobs":[{"id":4,"gpus_total":16},{"id":5,"gpus_total":8}]}`,
	`{"jobs":[{"id":6,"gpus_total":10},{"id":7,"gpus_total":14}]}`,
}

func switchName(s int) string  { return fmt.Sprintf("switch%d", s) }
func mirrorsName(s int) string { return fmt.Sprintf("mirrors%d", s) }

func (p *procs) switches() int {
	if p.f.Core == nil {
		return 0
	}
	return p.f.Core.Switches()
}

func (p *procs) startSwitch(s int) {
	p.start(switchName(s), "ocs-agent", "run", "-config", p.path(switchName(s)+".json"))
}

// buildSwitch starts a board of mirrors and its agent.
func (p *procs) buildSwitch(ctx context.Context, s int) {
	ports, name, factory := p.f.Core.SwitchSize(), mirrorsName(s), p.path(mirrorsName(s)+".factory")
	layout := map[string]any{"kind": "sim", "ports": ports, "seed": 2000 + s}
	socket := map[string]any{"kind": "socket", "path": p.path(name + ".sock"), "ports": ports, "factory": factory}
	p.write(switchName(s)+".json", map[string]any{"fabric": p.f.Name, "node": s, "broker": p.url, "state": p.path(switchName(s)), "board": socket})
	p.write(name+".json", layout)
	p.startBoard(name, "-factory", factory)
	p.answers(ctx, name)
	p.startSwitch(s)
}

// circuitsLit waits until the planner has all circuits proven by light.
func (s *spoiling) circuitsLit(ctx context.Context) {
	p := s.run
	if p.switches() == 0 {
		return
	}
	await(ctx, procsService, "circuits lit", func() (bool, string) {
		var r struct {
			Core struct {
				Online   int  `json:"switches_online"`
				Wanted   int  `json:"circuits_wanted"`
				Tuned    int  `json:"circuits_tuned"`
				Quiet    bool `json:"quiet"`
				Asked    int  `json:"links_asked"`
				Realised int  `json:"links_realised"`
			} `json:"core"`
		}
		p.ctl(ctx, &r, "circuit", "list")
		c := &r.Core
		return c.Online == p.switches() && c.Wanted == c.Tuned && c.Quiet && c.Asked == c.Realised, fmt.Sprintf("%+v", *c)
	})
}

// switchRecords are what all boards of mirrors say.
func (s *spoiling) switchRecords() []live.BoardRecord {
	out := make([]live.BoardRecord, s.run.switches())
	for n := range out {
		out[n] = s.run.tell(mirrorsName(n), "record")
	}
	return out
}

// moveCircuits applies lists of jobs, and keeps the journals of all switches while
// circuits are made and when they are.
func (s *spoiling) moveCircuits(ctx context.Context) {
	began := time.Now()
	keep := func() {
		for n := s.run.f.Nodes; n < len(s.keepers); n++ {
			files, err := s.keepers[n].readJournal()
			if !os.IsNotExist(err) { // folded up meanwhile
				step.Must(err)
			}
			if had := s.journals[n]; err == nil && (len(had) == 0 || !maps.EqualFunc(had[len(had)-1], files, bytes.Equal)) {
				s.journals[n] = append(had, files)
			}
		}
	}
	for _, list := range procsJobs {
		step.Must(os.WriteFile(s.run.path("jobs.json"), []byte(list), 0o600))
		step.Got(s.run.once(ctx, "ocsctl", "circuit", "apply", "-prune", s.run.path("jobs.json"), "-broker", s.run.url))
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			keep()
		}
		s.circuitsLit(ctx)
	}
	lit, states := 0, 0
	for n, is := range s.switchRecords() {
		lit += len(is.Circuits)
		states += len(s.journals[s.run.f.Nodes+n])
	}
	if lit == 0 {
		step.Fail("no circuit has light")
	}
	s.run.done(began, fmt.Sprintf("%d lists of jobs", len(procsJobs)), "%d circuits with light; %d states of journals of %d switches", lit, states, s.run.switches())
}

// switchTurns is how many journals of nodes there are for one of a switch, which
// takes some seconds. chosen.
const switchTurns = 10

// damageSwitches does the same with the agents of switches. Their broker is
// stopped meanwhile: nobody but a journal could move light. Then it goes on, and
// all light is where it was; what a switch did not know any more was made again.
func (s *spoiling) damageSwitches(ctx context.Context) {
	began, before, told := time.Now(), s.tally, 0
	for round := 0; told*switchTurns < s.run.Damage; round++ {
		was := s.switchRecords()
		s.run.hold("broker", func() { s.damageSwitchesOnce(ctx, round, was) })
		told += s.run.switches()
		s.circuitsLit(ctx)
		is := s.switchRecords()
		for n := range is {
			s.tally.Remade += is[n].Darkened - was[n].Darkened
			if !slices.Equal(is[n].Circuits, was[n].Circuits) {
				s.tally.WrongLights++
				step.Fail("%s: light passes %v, was %v", mirrorsName(n), is[n].Circuits, was[n].Circuits)
			}
		}
	}
	t := &s.tally
	s.run.done(began, fmt.Sprintf("%d damaged journals of circuit switches", told), "%d told by their agents, %d refused by name, %d as of before as a whole; %d circuits made again by the planner's word; %d panics, %d wrong lights",
		t.JournalsTold-before.JournalsTold, t.JournalsRefus-before.JournalsRefus, t.JournalsWhole-before.JournalsWhole, t.Remade, t.Panics, t.WrongLights)
}

func (s *spoiling) damageSwitchesOnce(ctx context.Context, round int, was []live.BoardRecord) {
	for n := range was {
		// Each switch its own way, and all ways on each.
		what, from := s.damageOne(s.run.f.Nodes+n, round+5*n)
		step.Within(switchName(n)+": "+what, func() {
			s.started(ctx, s.run.f.Nodes+n, what, from)
			await(ctx, procsBypass, switchName(n)+" has read its board", func() (bool, string) {
				st := statusIn(s.keepers[s.run.f.Nodes+n].folder)
				return !st.Switch.Busy && st.Switch.Reason == "", fmt.Sprintf("%+v", st.Switch)
			})
		})
		is := s.run.tell(mirrorsName(n), "record")
		if is.Darkened != was[n].Darkened || !slices.Equal(is.Circuits, was[n].Circuits) {
			s.tally.WrongLights++
			step.Fail("%s: %s: %d circuits lost their light; it passes %v, was %v", mirrorsName(n), what, is.Darkened-was[n].Darkened, is.Circuits, was[n].Circuits)
		}
	}
}
