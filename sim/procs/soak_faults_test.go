package procs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/agent"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/step"
)

// What a soak does to its cluster.

// soakFault is something that happens to the cluster. It returns when all is in
// service, with the nodes whose light might change for it.
type soakFault struct {
	what string
	do   func(*soak, context.Context) (may map[int]bool)
}

// quietly is what may change nobody's light.
func quietly(what string, do func(*soak, context.Context)) soakFault {
	return soakFault{what, func(s *soak, ctx context.Context) map[int]bool {
		do(s, ctx)
		return nil
	}}
}

// soakFaults come in an order drawn anew each time round.
var soakFaults = []soakFault{
	quietly("agent killed with -9", func(s *soak, _ context.Context) { s.restart(syscall.SIGKILL) }),
	quietly("agent stopped and started", func(s *soak, _ context.Context) { s.restart(syscall.SIGTERM) }),
	{"node without power", (*soak).losePower},
	{"optics without supply", (*soak).blink},
	{"fibre cut and mended", (*soak).cutFibre},
	{"node drained and let in", (*soak).drain},
	quietly("broker hangs for 5 s", func(s *soak, ctx context.Context) { s.run.hold("broker", func() { pause(ctx, 5*time.Second) }) }),
	quietly("planner hangs for 3 s", func(s *soak, ctx context.Context) { s.run.hold("planner", func() { pause(ctx, 3*time.Second) }) }),
	quietly("levels of logs read again", (*soak).reload),
	quietly("fabric edited", (*soak).edit),
	quietly("edit that is refused", (*soak).refused),
	{"host of a member fails", (*soak).failHost},
	{"host of a spare flaps", (*soak).flapHost},
}

// restart ends an agent that may be killed, and starts it again.
func (s *soak) restart(with syscall.Signal) {
	n := s.rnd.IntN(s.run.f.Nodes)
	if immortal(n) {
		n++
	}
	name := agentName(n)
	if s.run.signal(name, with); with == syscall.SIGKILL {
		s.run.res.ProcsKilled++
	} else {
		_ = s.run.runs[name].Wait()
		delete(s.run.runs, name)
	}
	s.run.startAgent(n)
}

func (s *soak) revive(name string, start func()) {
	s.run.kill(name)
	start()
}

// around are the nodes whose light a fault at a node may change: those of its ring
// as it is and as it becomes, and whoever comes in, also where it goes out again.
func (s *soak) around(ctx context.Context, n int, do func()) map[int]bool {
	was, idle := s.run.rings(ctx), s.idle(ctx)
	do()
	s.run.serving(ctx)
	is, idleNow := s.run.rings(ctx), s.idle(ctx)
	may := map[int]bool{n: true}
	for i := range was {
		if !slices.Contains(was[i].Nodes, n) {
			continue
		}
		for _, r := range append(is, was[i]) {
			if r.Ring == was[i].Ring {
				for _, m := range r.Nodes {
					may[m] = true
				}
			}
		}
	}
	for m, generation := range idle {
		if now, still := idleNow[m]; still && now != generation {
			may[m] = true
		}
	}
	return may
}

// idle are the nodes in no ring, with the generation that each was told last.
func (s *soak) idle(ctx context.Context) map[int]uint64 {
	out := map[int]uint64{}
	for _, n := range s.run.nodes(ctx) {
		if n.Ring == nil {
			out[n.Node] = n.Generation
		}
	}
	return out
}

// losePower takes a node's supply, waits for its ring's repair, and gives it back.
func (s *soak) losePower(ctx context.Context) map[int]bool {
	rings := s.run.rings(ctx)
	x, err := s.run.loser(rings, s.rnd.IntN(len(rings)))
	if err != nil {
		return nil // every ring steps over somebody just now
	}
	return s.around(ctx, x.dead, func() {
		x.before = s.run.records()
		s.run.unplug(x.dead)
		s.run.repaired(ctx, x)
		s.run.plugIn(x.dead)
	})
}

// member draws a node in the middle of a ring.
func (s *soak) member(ctx context.Context) (ring procRing, at int) {
	rings := s.run.rings(ctx)
	if len(rings) == 0 {
		step.Fail("no ring")
	}
	ring = rings[s.rnd.IntN(len(rings))]
	return ring, 1 + s.rnd.IntN(len(ring.Nodes)-2)
}

// blink takes the supply of a node's optics for a moment; its agent lives on.
func (s *soak) blink(ctx context.Context) map[int]bool {
	ring, at := s.member(ctx)
	n := ring.Nodes[at]
	return s.around(ctx, n, func() {
		s.run.tell(boardName(n), "power off")
		pause(ctx, outages[s.rnd.IntN(len(outages)-1)])
		s.run.tell(boardName(n), "power on")
	})
}

// cutFibre cuts the fibre between two members of a ring, where that can be whole
// without it, and mends it when it is in service again.
func (s *soak) cutFibre(ctx context.Context) map[int]bool {
	rings := s.run.rings(ctx)
	var fibres [][2]int
	for _, r := range rings {
		for i := 1; i < len(r.Nodes); i++ {
			if s.run.mends(rings, r.Nodes[i-1], r.Nodes[i]) {
				fibres = append(fibres, [2]int{r.Nodes[i-1], r.Nodes[i]})
			}
		}
	}
	if len(fibres) == 0 {
		return nil // every ring goes over the only fibre that it can just now
	}
	x := fibres[s.rnd.IntN(len(fibres))]
	a, b := x[0], x[1]
	link, ok := s.run.f.Link(proto.NodeID(a), proto.NodeID(b))
	if !ok {
		step.Fail("no fibre from %d to %d", a, b)
	}
	both := func(what string) {
		s.run.tell(boardName(a), fmt.Sprintf("%s %d/%v", what, link.Local.Bundle, link.Local.Path))
		s.run.tell(boardName(b), fmt.Sprintf("%s %d/%v", what, link.Remote.Bundle, link.Remote.Path))
	}
	return s.around(ctx, a, func() {
		both("cut")
		s.run.serving(ctx)
		both("mend")
	})
}

// drain takes a member of a ring out by an operator's word, and lets it in again.
func (s *soak) drain(ctx context.Context) map[int]bool {
	ring, at := s.member(ctx)
	n := ring.Nodes[at]
	return s.around(ctx, n, func() {
		step.Got(s.run.once(ctx, "ocsctl", "drain", fmt.Sprint(n), "-reason", "soak", "-timeout", "60s", "-broker", s.run.url))
		step.Got(s.run.once(ctx, "ocsctl", "undrain", fmt.Sprint(n), "-timeout", "60s", "-broker", s.run.url))
	})
}

// host tells a node's agent of its host.
func (s *soak) host(n int, verb string) {
	a := step.Got(agent.AskSocket(filepath.Join(s.run.folder(n), "agent.sock"), agent.Question{Verb: verb, Text: "soak"}))
	if a.Err != nil {
		step.Must(a.Err)
	}
}

// failHost has the host of a member fail and come back.
func (s *soak) failHost(ctx context.Context) map[int]bool {
	ring, at := s.member(ctx)
	n := ring.Nodes[at]
	return s.around(ctx, n, func() {
		s.host(n, "host_fault")
		pause(ctx, time.Second)
		s.host(n, "host_ok")
	})
}

// soakFlaps fill a journal until it is folded, within a few rounds. chosen.
const soakFlaps = 1000

// flapHost has the host of a node in no ring fail and come back again and again:
// no light changes, and many records in its journal and the planner's.
func (s *soak) flapHost(ctx context.Context) map[int]bool {
	rings := s.run.rings(ctx)
	n := s.flaps // the same again, if it still is in none
	for slices.ContainsFunc(rings, func(r procRing) bool { return slices.Contains(r.Nodes, n) }) {
		n = (n + 1) % s.run.f.Nodes
	}
	s.flaps = n
	for range soakFlaps {
		for _, verb := range []string{"host_fault", "host_ok"} {
			s.host(n, verb)
			pause(ctx, 2*time.Millisecond)
		}
	}
	return map[int]bool{n: true}
}

// reload has planner and agents read another level from their files.
func (s *soak) reload(ctx context.Context) {
	s.debug = !s.debug
	level := "info"
	if s.debug {
		level = "debug"
	}
	names := []string{"planner"}
	for n := range s.run.f.Nodes {
		names = append(names, agentName(n))
	}
	for _, name := range names {
		cfg := map[string]any{}
		step.Must(json.Unmarshal(step.Got(os.ReadFile(s.run.path(name+".json"))), &cfg))
		cfg["log_level"] = level
		s.run.write(name+".json", cfg)
		from := len(s.run.printed(name, 0))
		s.run.signal(name, syscall.SIGHUP)
		await(ctx, procsBypass, name+": SIGHUP", func() (bool, string) {
			said := s.run.printed(name, from)
			return strings.Contains(said, "configuration read again") && strings.Contains(said, level), "does not say that it has read its configuration again"
		})
	}
}

// printed is what a process has printed since a place in its log.
func (h *processes) printed(name string, from int) string {
	raw, _ := os.ReadFile(h.path(name + ".log"))
	return string(raw[min(from, len(raw)):])
}

// edit has the planner plan for another hold-off, which every ring is told of with
// the light that it has.
func (s *soak) edit(ctx context.Context) {
	s.holds = !s.holds
	f := *s.run.f
	if f.HoldOffUS = 0; s.holds {
		f.HoldOffUS = 50
	}
	said, err := s.apply(ctx, &f)
	if step.Must(err); !said.Done || said.Told == 0 {
		step.Fail("fabric apply: %+v", said)
	}
}

// refused has it plan for more spares than the rings that run leave.
func (s *soak) refused(ctx context.Context) {
	f := *s.run.f
	f.Spares += f.GroupNodes()
	said, err := s.apply(ctx, &f)
	if err == nil || len(said.Refused) == 0 || said.Done {
		step.Fail("fabric apply that would end a ring is not refused: %+v, %w", said, err)
	}
}

// procEdit is what ocsctl says of an edit.
type procEdit struct {
	Done    bool     `json:"done"`
	Refused []string `json:"refused"`
	Dark    []string `json:"dark_fibres"`
	Told    int      `json:"rings_told_again"`
	Tried   int      `json:"fibres_tried"`
	Untried int      `json:"fibres_untried"`
}

// apply runs ocsctl fabric apply.
func (s *soak) apply(ctx context.Context, f *fabric.Fabric, more ...string) (said procEdit, err error) {
	file := s.run.path("edit.json")
	step.Must(os.WriteFile(file, f.Encode(), 0o644))
	s.run.edited = true
	raw, failed := s.run.once(ctx, "ocsctl", append([]string{"fabric", "apply", file, "-json", "-timeout", "60s", "-broker", s.run.url}, more...)...)
	if err := json.NewDecoder(strings.NewReader(string(raw))).Decode(&said); err != nil {
		return said, errors.Join(failed, err)
	}
	return said, failed
}
