package procs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ringlight/sim/damage"
	"ringlight/sim/live"
	"ringlight/sim/step"
)

// spoiling damages what agents and planner keep, and kills them while they write.
type spoiling struct {
	run      *procs
	rnd      *rand.Rand
	before   []live.BoardRecord
	keepers  []keeper         // nodes' agents, then switches'
	journals [][]damage.Files // by keeper, the last one as it is now
	stores   []damage.Files
	tally    DamageResult
}

// keeper is an agent that keeps a journal.
type keeper struct {
	name, folder string
	start        func()
}

func (k *keeper) journal() string { return filepath.Join(k.folder, "journal") }

func (k *keeper) readJournal() (damage.Files, error) {
	return kept(filepath.Join(k.journal(), "journal.*"), k.journal()+".mark")
}

// DamageResult counts what became of damaged files and killed writers.
type DamageResult struct {
	Journals      int `json:"journals"`      // damaged
	JournalsTold  int `json:"journals_told"` // of them: said to be, in the log
	JournalsRefus int `json:"journals_refused"`
	JournalsWhole int `json:"journals_whole"` // of them: all as of before, mark and all
	NumbersBack   int `json:"numbers_back"`   // told by the planner
	Stores        int `json:"stores"`
	StoresRefused int `json:"stores_refused"`
	StoresWhole   int `json:"stores_whole"`
	Remade        int `json:"circuits_remade"` // by a planner's word to a switch that did not know them any more
	Kills         int `json:"kills"`
	PlannerKills  int `json:"planner_kills"`
	Panics        int `json:"panics"`
	WrongLights   int `json:"wrong_lights"`
}

// storeLives is how many damaged stores that are not refused it takes until one
// of their planners is let go on until all is in service, which takes it ten
// seconds. chosen.
const storeLives = 30

// spoil is the run that damages files: a history first, then rounds.
func (p *procs) spoil(ctx context.Context) {
	s := &spoiling{run: p, rnd: rand.New(rand.NewPCG(p.Seed, 3))}
	for n := range p.f.Nodes {
		s.keepers = append(s.keepers, keeper{agentName(n), p.folder(n), func() { p.startAgent(n) }})
	}
	for n := range p.switches() {
		s.keepers = append(s.keepers, keeper{switchName(n), p.path(switchName(n)), func() { p.startSwitch(n) }})
	}
	s.journals = make([][]damage.Files, len(s.keepers))
	p.res.Damage = &s.tally
	for _, step := range []func(context.Context){p.killAgents, s.remember, p.bounce("planner", 0, p.startPlanner), p.dieUnheard, p.comeBack, s.remember, s.moveCircuits,
		s.damageJournals, s.damageSwitches, s.killWriters, s.damageStores} {
		step(ctx)
	}
}

// kept reads a journal, which is a folder and the mark beside it, or a store.
func kept(patterns ...string) (damage.Files, error) {
	out := damage.Files{}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".lock") {
				continue
			}
			if out[name], err = os.ReadFile(name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// lay puts files in the place of those that are there.
func lay(there, content damage.Files) {
	for name := range there { // any order: each its own file
		if _, ok := content[name]; !ok {
			step.Must(os.Remove(name))
		}
	}
	for name, raw := range content { // any order: each its own file
		step.Must(os.WriteFile(name, raw, 0o600))
	}
}

func (s *spoiling) readStore() damage.Files { return step.Got(kept(s.run.path("planner.db"))) }

// remember keeps journals and store as they are, for later damage to go back to.
func (s *spoiling) remember(context.Context) {
	for k := range s.run.f.Nodes {
		s.journals[k] = append(s.journals[k], step.Got(s.keepers[k].readJournal()))
	}
	s.stores = append(s.stores, s.readStore())
}

// log is what a process has printed since a place in its log.
func (s *spoiling) log(name string, from int) string {
	raw, _ := os.ReadFile(s.run.path(name + ".log"))
	if bytes.Contains(raw, []byte("panic:")) || bytes.Contains(raw, []byte("fatal error:")) || bytes.Contains(raw, []byte("SIGSEGV")) {
		s.tally.Panics++
	}
	return string(raw[min(from, len(raw)):])
}

// ended tells whether a process has ended by itself, and forgets it then.
func (s *spoiling) ended(name string) bool {
	c := s.run.runs[name]
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(c.Process.Pid, &status, syscall.WNOHANG, nil)
	if err != nil || pid == 0 {
		return false
	}
	_ = c.Process.Release()
	delete(s.run.runs, name)
	return true
}

// damageJournals kills all agents, damages the journal of each and starts them,
// again and again. What an agent will not go on from is taken away, as it asks.
func (s *spoiling) damageJournals(ctx context.Context) {
	began := time.Now()
	s.before = s.run.records()
	for round := 0; s.tally.Journals < s.run.Damage; round++ {
		s.damageRound(ctx, round)
		if round%4 != 3 && s.tally.Journals < s.run.Damage {
			continue
		}
		s.run.serving(ctx)
		s.lights("damaged journals")
	}
	t := &s.tally
	t.NumbersBack = strings.Count(s.log("planner", 0), "a device's numbers went back")
	s.run.done(began, fmt.Sprintf("%d damaged journals under ocs-agent run", t.Journals),
		"%d told by their agents, %d refused by name, %d as of before as a whole, %d times the planner said that numbers went back; %d panics, %d wrong lights",
		t.JournalsTold, t.JournalsRefus, t.JournalsWhole, t.NumbersBack, t.Panics, t.WrongLights)
}

func (s *spoiling) damageRound(ctx context.Context, round int) {
	what, from := make([]string, s.run.f.Nodes), make([]int, s.run.f.Nodes)
	for n := range s.run.f.Nodes {
		what[n], from[n] = s.damageOne(n, round+n)
	}
	for n := range s.run.f.Nodes {
		s.started(ctx, n, what[n], from[n])
	}
	s.lights("damaged journals")
}

// damageOne kills an agent, damages its journal, one way after the other, and
// starts it. It gives what was done and where its log goes on.
func (s *spoiling) damageOne(n, turn int) (what string, from int) {
	k := &s.keepers[n]
	s.run.signal(k.name, syscall.SIGKILL)
	now := step.Got(k.readJournal())
	way := turn % (damage.Ways + 1)
	if way == damage.Whole {
		s.tally.JournalsWhole++
	}
	content, what := damage.Spoil(s.rnd, way, append(s.journals[n][:len(s.journals[n]):len(s.journals[n])], now), k.journal()+".mark")
	lay(now, content)
	s.tally.Journals++
	from = len(s.log(k.name, 0))
	k.start()
	return what, from
}

// started waits until an agent speaks, or has refused its journal by name.
func (s *spoiling) started(ctx context.Context, n int, what string, from int) {
	k, refused := &s.keepers[n], false
	await(ctx, procsBypass, k.name+": "+what, func() (bool, string) {
		if refused = s.ended(k.name); !refused {
			statusIn(k.folder)
		}
		return true, ""
	})
	said := s.log(k.name, from)
	switch {
	case refused && !strings.Contains(said, k.journal()):
		step.Fail("%s: %s: ended without naming its journal: %s", k.name, what, said)
	case refused:
		s.tally.JournalsRefus++
		step.Must(errors.Join(os.RemoveAll(k.journal()), os.RemoveAll(k.journal()+".mark")))
		k.start()
	case strings.Contains(said, "journal damaged") || strings.Contains(said, "no readable mark") || strings.Contains(said, "was not whole"):
		s.tally.JournalsTold++
	}
}

// lights holds the boards' own records to those of before.
func (s *spoiling) lights(what string) {
	lost := s.run.res.LightLost
	err := step.Attempt(func() { s.run.unchanged(s.before, what, nil) })
	s.tally.WrongLights += s.run.res.LightLost - lost
	step.Must(err)
}

// killWriters kills agents shortly after their start, when they write what they
// found, and the planner among them.
func (s *spoiling) killWriters(ctx context.Context) {
	began := time.Now()
	for s.tally.Kills+s.tally.PlannerKills < s.run.Kills {
		k := &s.keepers[s.rnd.IntN(s.run.f.Nodes)]
		name, start := k.name, k.start
		if s.rnd.IntN(10) == 0 {
			name, start = "planner", s.run.startPlanner
			s.tally.PlannerKills++
		} else {
			s.tally.Kills++
		}
		s.run.signal(name, syscall.SIGKILL)
		start()
		pause(ctx, time.Duration(s.rnd.IntN(40))*time.Millisecond)
	}
	s.lights("killed writers")
	s.run.serving(ctx)
	for n := range s.run.f.Nodes {
		if said := s.log(agentName(n), 0); strings.Count(said, "journal damaged") > s.tally.JournalsTold {
			step.Fail("agent %d: a kill left a damaged journal", n)
		}
	}
	s.run.done(began, fmt.Sprintf("%d kills -9 within 40 ms of a start, %d of the planner", s.tally.Kills+s.tally.PlannerKills, s.tally.PlannerKills),
		"all back in service; %d panics, %d wrong lights", s.tally.Panics, s.tally.WrongLights)
	s.lights("killed writers")
}

// damageStores kills the planner and damages its store, again and again. One that
// is refused by name is taken away, as the planner asks.
func (s *spoiling) damageStores(ctx context.Context) {
	began, lives := time.Now(), 0
	good := s.readStore()
	s.stores = append(s.stores, good)
	for ; s.tally.Stores < s.run.Damage; s.tally.Stores++ {
		s.run.signal("planner", syscall.SIGKILL)
		now := s.readStore()
		way := s.tally.Stores % (damage.Ways + 1)
		if way == damage.Whole || way == 8 { // one file: that is all of it
			s.tally.StoresWhole++
		}
		content, what := damage.Spoil(s.rnd, way, s.stores)
		lay(now, content)
		from, refused := len(s.log("planner", 0)), false
		s.run.startPlanner()
		await(ctx, procsBypass, what, func() (bool, string) {
			refused = s.ended("planner")
			return refused || strings.Contains(s.log("planner", from), "planner started"), "says nothing"
		})
		if refused {
			if said := s.log("planner", from); !strings.Contains(said, s.run.path("planner.db")) {
				step.Fail("%s: the planner ended without naming its store: %s", what, said)
			}
			s.tally.StoresRefused++
			lay(content, good)
			s.run.startPlanner()
		} else if lives++; lives%storeLives == 1 {
			step.Within(what, func() { s.run.serving(ctx) })
		}
		if s.tally.Stores%16 == 0 {
			s.lights(what)
		}
	}
	s.run.serving(ctx)
	t := &s.tally
	s.run.done(began, fmt.Sprintf("%d damaged stores under ocs-planner run", t.Stores),
		"%d refused by name, %d as of before as a whole; %d panics, %d wrong lights", t.StoresRefused, t.StoresWhole, t.Panics, t.WrongLights)
	s.lights("damaged stores")
}
