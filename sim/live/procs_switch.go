package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"ringlight/planner/fabric"
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

func (p *procs) startSwitch(s int) error {
	return p.start(switchName(s), "ocs-agent", "run", "-config", p.path(switchName(s)+".json"))
}

// buildSwitch starts a board of mirrors and its agent.
func (p *procs) buildSwitch(ctx context.Context, s int) error {
	ports, name, factory := p.f.Core.SwitchSize(), mirrorsName(s), p.path(mirrorsName(s)+".factory")
	layout := map[string]any{"kind": "sim", "ports": ports, "seed": 2000 + s}
	socket := map[string]any{"kind": "socket", "path": p.path(name + ".sock"), "ports": ports, "factory": factory}
	err := p.write(switchName(s)+".json", map[string]any{"fabric": p.f.Name, "node": s, "broker": p.url, "state": p.path(switchName(s)), "board": socket})
	if err == nil {
		err = p.write(name+".json", layout)
	}
	if err == nil {
		err = p.start(name, "ocs-sim", "board", "-config", p.path(name+".json"), "-listen", "unix:"+p.path(name+".sock"), "-control", "unix:"+p.path(name+".ctl"), "-factory", factory)
	}
	if err != nil {
		return err
	}
	if _, err := await(ctx, procsBypass, name, func() (bool, string) {
		_, err := p.tell(name, "record")
		return err == nil, fmt.Sprint(err)
	}); err != nil {
		return err
	}
	return p.startSwitch(s)
}

// circuitsLit waits until the planner has all circuits proven by light.
func (p *procs) circuitsLit(ctx context.Context) error {
	if p.switches() == 0 {
		return nil
	}
	_, err := await(ctx, procsService, "circuits lit", func() (bool, string) {
		raw, err := p.once(ctx, "ocsctl", "circuit", "list", "-json", "-broker", p.url)
		if err != nil {
			return false, err.Error()
		}
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
		err = json.Unmarshal(raw, &r)
		c := &r.Core
		return err == nil && c.Online == p.switches() && c.Wanted == c.Tuned && c.Quiet && c.Asked == c.Realised, fmt.Sprintf("%+v %v", *c, err)
	})
	return err
}

// switchRecords are what all boards of mirrors say.
func (p *procs) switchRecords() ([]BoardRecord, error) {
	out := make([]BoardRecord, p.switches())
	for s := range out {
		var err error
		if out[s], err = p.tell(mirrorsName(s), "record"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// moveCircuits applies lists of jobs, and keeps the journals of all switches while
// circuits are made and when they are.
func (s *spoiling) moveCircuits(ctx context.Context) error {
	began := time.Now()
	keep := func() error {
		for n := s.f.Nodes; n < len(s.keepers); n++ {
			files, err := s.keepers[n].readJournal()
			if err != nil && !os.IsNotExist(err) { // folded up meanwhile
				return err
			}
			if had := s.journals[n]; err == nil && (len(had) == 0 || !maps.EqualFunc(had[len(had)-1], files, bytes.Equal)) {
				s.journals[n] = append(had, files)
			}
		}
		return nil
	}
	for _, list := range procsJobs {
		if err := os.WriteFile(s.path("jobs.json"), []byte(list), 0o600); err != nil {
			return err
		}
		if _, err := s.once(ctx, "ocsctl", "circuit", "apply", "-prune", s.path("jobs.json"), "-broker", s.url); err != nil {
			return err
		}
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			if err := keep(); err != nil {
				return err
			}
		}
		if err := s.circuitsLit(ctx); err != nil {
			return err
		}
	}
	lit, states := 0, 0
	after, err := s.switchRecords()
	for n := range after {
		lit += len(after[n].Circuits)
		states += len(s.journals[s.f.Nodes+n])
	}
	if err == nil && lit == 0 {
		err = fmt.Errorf("no circuit has light")
	}
	s.done(began, fmt.Sprintf("%d lists of jobs", len(procsJobs)), "%d circuits with light; %d states of journals of %d switches", lit, states, s.switches())
	return err
}

// switchTurns is how many journals of nodes there are for one of a switch, which
// takes some seconds. chosen.
const switchTurns = 10

// damageSwitches does the same with the agents of switches. Their broker is
// stopped meanwhile: nobody but a journal could move light. Then it goes on, and
// all light is where it was; what a switch did not know any more was made again.
func (s *spoiling) damageSwitches(ctx context.Context) error {
	began, before, told := time.Now(), s.tally, 0
	for round := 0; told*switchTurns < s.Damage; round++ {
		was, err := s.switchRecords()
		if err != nil {
			return err
		}
		s.signal("broker", syscall.SIGSTOP)
		err = s.damageSwitchesOnce(ctx, round, was)
		s.signal("broker", syscall.SIGCONT)
		if err != nil {
			return err
		}
		told += s.switches()
		if err := s.circuitsLit(ctx); err != nil {
			return err
		}
		is, err := s.switchRecords()
		if err != nil {
			return err
		}
		for n := range is {
			s.tally.Remade += is[n].Darkened - was[n].Darkened
			if !slices.Equal(is[n].Circuits, was[n].Circuits) {
				s.tally.WrongLights++
				return fmt.Errorf("%s: light passes %v, was %v", mirrorsName(n), is[n].Circuits, was[n].Circuits)
			}
		}
	}
	t := &s.tally
	s.done(began, fmt.Sprintf("%d damaged journals of circuit switches", told), "%d told by their agents, %d refused by name, %d as of before as a whole; %d circuits made again by the planner's word; %d panics, %d wrong lights",
		t.JournalsTold-before.JournalsTold, t.JournalsRefus-before.JournalsRefus, t.JournalsWhole-before.JournalsWhole, t.Remade, t.Panics, t.WrongLights)
	return nil
}

func (s *spoiling) damageSwitchesOnce(ctx context.Context, round int, was []BoardRecord) error {
	for n := range was {
		// Each switch its own way, and all ways on each.
		what, from, err := s.damageOne(s.f.Nodes+n, round+5*n)
		if err == nil {
			err = s.started(ctx, s.f.Nodes+n, what, from)
		}
		if err == nil {
			_, err = await(ctx, procsBypass, switchName(n)+" has read its board", func() (bool, string) {
				st, err := statusIn(s.keepers[s.f.Nodes+n].folder)
				return err == nil && !st.Switch.Busy && st.Switch.Reason == "", fmt.Sprint(err)
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", switchName(n), what, err)
		}
		is, err := s.tell(mirrorsName(n), "record")
		if err != nil {
			return err
		}
		if is.Darkened != was[n].Darkened || !slices.Equal(is.Circuits, was[n].Circuits) {
			s.tally.WrongLights++
			return fmt.Errorf("%s: %s: %d circuits lost their light; it passes %v, was %v", mirrorsName(n), what, is.Darkened-was[n].Darkened, is.Circuits, was[n].Circuits)
		}
	}
	return nil
}
