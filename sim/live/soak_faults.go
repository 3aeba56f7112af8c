package live

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
)

// What a soak does to its cluster.

// soakFault is something that happens to the cluster. It returns when all is in
// service, with the nodes whose light might change for it.
type soakFault struct {
	what string
	do   func(*soak, context.Context) (may map[int]bool, err error)
}

// soakFaults come in an order drawn anew each time round.
var soakFaults = []soakFault{
	{"agent killed with -9", func(s *soak, _ context.Context) (map[int]bool, error) { return nil, s.restart(syscall.SIGKILL) }},
	{"agent stopped and started", func(s *soak, _ context.Context) (map[int]bool, error) { return nil, s.restart(syscall.SIGTERM) }},
	{"node without power", (*soak).losePower},
	{"optics without supply", (*soak).blink},
	{"fibre cut and mended", (*soak).cutFibre},
	{"node drained and let in", (*soak).drain},
	{"broker hangs for 5 s", func(s *soak, ctx context.Context) (map[int]bool, error) {
		return nil, s.hang(ctx, "broker", 5*time.Second)
	}},
	{"planner hangs for 3 s", func(s *soak, ctx context.Context) (map[int]bool, error) {
		return nil, s.hang(ctx, "planner", 3*time.Second)
	}},
	{"levels of logs read again", (*soak).reload},
	{"fabric edited", (*soak).edit},
	{"edit that is refused", (*soak).refused},
	{"host of a member fails", (*soak).failHost},
	{"host of a spare flaps", (*soak).flapHost},
}

// restart ends an agent that may be killed, and starts it again.
func (s *soak) restart(with syscall.Signal) error {
	n := s.rnd.IntN(s.f.Nodes)
	if immortal(n) {
		n++
	}
	name := agentName(n)
	if s.signal(name, with); with == syscall.SIGKILL {
		s.res.ProcsKilled++
	} else {
		_ = s.runs[name].Wait()
		delete(s.runs, name)
	}
	return s.startAgent(n)
}

func (s *soak) revive(name string, start func() error) error {
	s.signal(name, syscall.SIGKILL)
	s.res.ProcsKilled++
	return start()
}

// around are the nodes whose light a fault at a node may change: those of its ring
// as it is and as it becomes, and whoever comes in, also where it goes out again.
func (s *soak) around(ctx context.Context, n int, do func(context.Context) error) (map[int]bool, error) {
	was, err := s.rings(ctx)
	idle, failed := s.idle(ctx)
	if err = errors.Join(err, failed); err == nil {
		err = do(ctx)
	}
	if err == nil {
		err = s.serving(ctx)
	}
	if err != nil {
		return nil, err
	}
	is, err := s.rings(ctx)
	idleNow, failed := s.idle(ctx)
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
	return may, errors.Join(err, failed)
}

// idle are the nodes in no ring, with the generation that each was told last.
func (s *soak) idle(ctx context.Context) (map[int]uint64, error) {
	nodes, err := s.nodes(ctx)
	out := map[int]uint64{}
	for _, n := range nodes {
		if n.Ring == nil {
			out[n.Node] = n.Generation
		}
	}
	return out, err
}

// losePower takes a node's supply, waits for its ring's repair, and gives it back.
func (s *soak) losePower(ctx context.Context) (map[int]bool, error) {
	rings, err := s.rings(ctx)
	if err != nil {
		return nil, err
	}
	x, err := s.loser(rings, s.rnd.IntN(len(rings)))
	if err != nil {
		return nil, nil // every ring steps over somebody just now
	}
	return s.around(ctx, x.dead, func(ctx context.Context) (err error) {
		if x.before, err = s.records(); err != nil {
			return err
		}
		if _, err := s.tell(boardName(x.dead), "power off"); err != nil {
			return err
		}
		s.signal(agentName(x.dead), syscall.SIGKILL)
		s.res.ProcsKilled++
		if err := s.repaired(ctx, x); err != nil {
			return err
		}
		if _, err := s.tell(boardName(x.dead), "power on"); err != nil {
			return err
		}
		return s.startAgent(x.dead)
	})
}

// member draws a node in the middle of a ring.
func (s *soak) member(ctx context.Context) (ring procRing, at int, err error) {
	rings, err := s.rings(ctx)
	if err != nil || len(rings) == 0 {
		return ring, 0, errors.Join(err, errors.New("no ring"))
	}
	ring = rings[s.rnd.IntN(len(rings))]
	return ring, 1 + s.rnd.IntN(len(ring.Nodes)-2), nil
}

// blink takes the supply of a node's optics for a moment; its agent lives on.
func (s *soak) blink(ctx context.Context) (map[int]bool, error) {
	ring, at, err := s.member(ctx)
	if err != nil {
		return nil, err
	}
	n := ring.Nodes[at]
	return s.around(ctx, n, func(ctx context.Context) error {
		if _, err := s.tell(boardName(n), "power off"); err != nil {
			return err
		}
		if err := s.pause(ctx, outages[s.rnd.IntN(len(outages)-1)]); err != nil {
			return err
		}
		_, err := s.tell(boardName(n), "power on")
		return err
	})
}

// cutFibre cuts the fibre between two members of a ring, where that can be whole
// without it, and mends it when it is in service again.
func (s *soak) cutFibre(ctx context.Context) (map[int]bool, error) {
	rings, err := s.rings(ctx)
	if err != nil {
		return nil, err
	}
	var fibres [][2]int
	for _, r := range rings {
		for i := 1; i < len(r.Nodes); i++ {
			if s.mends(rings, r.Nodes[i-1], r.Nodes[i]) {
				fibres = append(fibres, [2]int{r.Nodes[i-1], r.Nodes[i]})
			}
		}
	}
	if len(fibres) == 0 {
		return nil, nil // every ring goes over the only fibre that it can just now
	}
	x := fibres[s.rnd.IntN(len(fibres))]
	a, b := x[0], x[1]
	link, ok := s.f.Link(proto.NodeID(a), proto.NodeID(b))
	if !ok {
		return nil, fmt.Errorf("no fibre from %d to %d", a, b)
	}
	both := func(what string) error {
		_, errA := s.tell(boardName(a), fmt.Sprintf("%s %d/%v", what, link.Local.Bundle, link.Local.Path))
		_, errB := s.tell(boardName(b), fmt.Sprintf("%s %d/%v", what, link.Remote.Bundle, link.Remote.Path))
		return errors.Join(errA, errB)
	}
	return s.around(ctx, a, func(ctx context.Context) error {
		if err := both("cut"); err != nil {
			return err
		}
		if err := s.serving(ctx); err != nil {
			return err
		}
		return both("mend")
	})
}

// drain takes a member of a ring out by an operator's word, and lets it in again.
func (s *soak) drain(ctx context.Context) (map[int]bool, error) {
	ring, at, err := s.member(ctx)
	if err != nil {
		return nil, err
	}
	n := ring.Nodes[at]
	return s.around(ctx, n, func(ctx context.Context) error {
		if _, err := s.once(ctx, "ocsctl", "drain", fmt.Sprint(n), "-reason", "soak", "-timeout", "60s", "-broker", s.url); err != nil {
			return err
		}
		_, err := s.once(ctx, "ocsctl", "undrain", fmt.Sprint(n), "-timeout", "60s", "-broker", s.url)
		return err
	})
}

// host tells a node's agent of its host.
func (s *soak) host(n int, verb string) error {
	a, err := agent.AskSocket(filepath.Join(s.path(fmt.Sprintf("node%d", n)), "agent.sock"), agent.Question{Verb: verb, Text: "soak"})
	if err == nil && a.Err != nil {
		err = a.Err
	}
	return err
}

// failHost has the host of a member fail and come back.
func (s *soak) failHost(ctx context.Context) (map[int]bool, error) {
	ring, at, err := s.member(ctx)
	if err != nil {
		return nil, err
	}
	n := ring.Nodes[at]
	return s.around(ctx, n, func(ctx context.Context) error {
		if err := s.host(n, "host_fault"); err != nil {
			return err
		}
		if err := s.pause(ctx, time.Second); err != nil {
			return err
		}
		return s.host(n, "host_ok")
	})
}

// soakFlaps fill a journal until it is folded, within a few rounds. chosen.
const soakFlaps = 1000

// flapHost has the host of a node in no ring fail and come back again and again:
// nobody's light, and many records in its journal and the planner's.
func (s *soak) flapHost(ctx context.Context) (map[int]bool, error) {
	rings, err := s.rings(ctx)
	if err != nil {
		return nil, err
	}
	n := s.flaps // the same again, if it still is in none
	for slices.ContainsFunc(rings, func(r procRing) bool { return slices.Contains(r.Nodes, n) }) {
		n = (n + 1) % s.f.Nodes
	}
	s.flaps = n
	for range soakFlaps {
		if err := errors.Join(s.host(n, "host_fault"), s.pause(ctx, 2*time.Millisecond), s.host(n, "host_ok"), s.pause(ctx, 2*time.Millisecond)); err != nil {
			return nil, err
		}
	}
	return map[int]bool{n: true}, nil
}

func (s *soak) hang(ctx context.Context, name string, d time.Duration) error {
	s.signal(name, syscall.SIGSTOP)
	defer s.signal(name, syscall.SIGCONT)
	return s.pause(ctx, d)
}

// reload has planner and agents read another level from their files.
func (s *soak) reload(ctx context.Context) (map[int]bool, error) {
	s.debug = !s.debug
	level := "info"
	if s.debug {
		level = "debug"
	}
	names := []string{"planner"}
	for n := range s.f.Nodes {
		names = append(names, agentName(n))
	}
	for _, name := range names {
		raw, err := os.ReadFile(s.path(name + ".json"))
		if err != nil {
			return nil, err
		}
		cfg := map[string]any{}
		if err := json.Unmarshal(raw, &cfg); err != nil {
			return nil, err
		}
		cfg["log_level"] = level
		if err := s.write(name+".json", cfg); err != nil {
			return nil, err
		}
		from := len(s.printed(name, 0))
		s.signal(name, syscall.SIGHUP)
		if _, err := await(ctx, procsBypass, name+": SIGHUP", func() (bool, string) {
			said := s.printed(name, from)
			return strings.Contains(said, "configuration read again") && strings.Contains(said, level), "does not say that it has read its configuration again"
		}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// printed is what a process has printed since a place in its log.
func (h *processes) printed(name string, from int) string {
	raw, _ := os.ReadFile(h.path(name + ".log"))
	return string(raw[min(from, len(raw)):])
}

// edit has the planner plan for another hold-off, which every ring is told of with
// the light that it has.
func (s *soak) edit(ctx context.Context) (map[int]bool, error) {
	s.holds = !s.holds
	f := *s.f
	if f.HoldOffUS = 0; s.holds {
		f.HoldOffUS = 50
	}
	said, err := s.apply(ctx, &f)
	if err == nil && (!said.Done || said.Told == 0) {
		err = fmt.Errorf("fabric apply: %+v", said)
	}
	return nil, err
}

// refused has it plan for more spares than the rings that run leave.
func (s *soak) refused(ctx context.Context) (map[int]bool, error) {
	f := *s.f
	f.Spares += f.GroupNodes()
	said, err := s.apply(ctx, &f)
	if err == nil || len(said.Refused) == 0 || said.Done {
		return nil, fmt.Errorf("fabric apply that would end a ring is not refused: %+v, %w", said, err)
	}
	return nil, nil
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
func (p *procs) apply(ctx context.Context, f *fabric.Fabric, more ...string) (said procEdit, err error) {
	file := p.path("edit.json")
	if err := os.WriteFile(file, f.Encode(), 0o644); err != nil {
		return said, err
	}
	p.edited = true
	raw, failed := p.once(ctx, "ocsctl", append([]string{"fabric", "apply", file, "-json", "-timeout", "60s", "-broker", p.url}, more...)...)
	if err := json.NewDecoder(strings.NewReader(string(raw))).Decode(&said); err != nil {
		return said, errors.Join(failed, err)
	}
	return said, failed
}
