package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"ringlight/proto"
)

// Bypasses beside each other in one run: on a machine that others load, only the ratio
// of what was measured quietly and under the attack says something. Their times are
// the boards' own, on a clock that goes with the wall, so that whatever keeps an agent
// from its processor is in them.

const (
	// batch is how many nodes lose their supply in one round, one after the other, each
	// in a ring of its own. chosen: as many again may be back late, and half of the spares
	// are left, so that a ring finds its spare near and stays one that can be bypassed.
	batch = 4
	// mostRatio of the p99s is not exceeded. chosen: of two hundred the p99 is the third
	// longest, which differs by half between two quiet runs on a loaded machine.
	mostRatio = 2.0
	// enough make a p99 something else than the longest; of fewer the p90s are compared.
	enough = 101
	// slow are not waited for: optics that lost their supply for a moment are tried
	// again by their agent later and later.
	slow         = 3
	slowPatience = 4 * time.Minute
	// bite is how long an attack goes on before the first node dies.
	bite = time.Second
)

// light is what the boards say of themselves.
type light struct {
	SinceMillis int64 `json:"since_last_change_ms"`
	CPUMillis   int64 `json:"cpu_ms"` // of all agents, since their start
	// How long their threads were ready and waited for a processor, and how often they had one.
	WaitedMicros int64 `json:"waited_us"`
	Turns        int64 `json:"turns"`
}

func (l light) since() time.Duration { return time.Duration(l.SinceMillis) * time.Millisecond }

// tell asks the boards something.
func (s *stranger) tell(answer any, format string, args ...any) error {
	c, err := net.DialTimeout("unix", s.cfg.Seals.Control, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // who hangs is noticed by what is read
	if _, err := fmt.Fprintf(c, format+"\n", args...); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadBytes('\n')
	if err != nil {
		return err
	}
	var bad struct{ Error string }
	if json.Unmarshal(line, &bad) == nil && bad.Error != "" {
		return errors.New(bad.Error)
	}
	return json.Unmarshal(line, answer)
}

func (s *stranger) light() (l light, err error) { return l, s.tell(&l, "light") }

// round takes the supply of one node of each of a few rings, from the first-th on, and
// says how long their neighbours took to find each other.
func (s *stranger) round(ctx context.Context, first int) (took []time.Duration, dead []proto.NodeID, err error) {
	f, err := s.asker.ask(ctx, proto.NounFabric)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.asker.ask(ctx, proto.NounRings)
	if err != nil {
		return nil, nil, err
	}
	s.front.still.Lock()
	defer s.front.still.Unlock()
	for i := range r.Rings {
		ring := r.Rings[(first+i)%len(r.Rings)].Nodes
		for at := 1; at < len(ring)-1 && len(dead) < batch; at++ {
			n := ring[at]
			if !passable(ring, at, proto.NodeID(f.Fabric.K)) {
				continue
			}
			var saw struct {
				Micros int64 `json:"bypass_us"`
			}
			err := s.tell(&saw, "bypass %d %d %d", ring[at-1], n, ring[at+1])
			dead = append(dead, n)
			if err != nil {
				return took, dead, fmt.Errorf("%w: ring %v: %w", errFell, ring, err)
			}
			took = append(took, time.Duration(saw.Micros)*time.Microsecond)
			break
		}
	}
	if len(dead) == 0 {
		err = fmt.Errorf("%w: no ring has a node whose neighbours reach each other past it: %s", errFell, membersOf(r.Rings))
	}
	return took, dead, err
}

// passable says that the neighbours of a ring's node can reach each other: at k hops, in
// the default wiring, one bundle is both sides of a node, and light goes to one of them.
func passable(ring []proto.NodeID, at int, k proto.NodeID) bool {
	span := ring[at+1] - ring[at-1]
	before := at > 1 && ring[at-1]-ring[at-2] == k
	after := at+2 < len(ring) && ring[at+2]-ring[at+1] == k
	return span < k || span == k && !before && !after
}

// back gives nodes their supply, and waits until all is in service and where it
// should be, and all but a few nodes may be used again.
func (s *stranger) back(ctx context.Context, dead []proto.NodeID, missing int) error {
	for _, n := range dead {
		var any struct{}
		if err := s.tell(&any, "power on %d", n); err != nil {
			return err
		}
	}
	for end := time.Now().Add(slowPatience); ; pause(ctx, 200*time.Millisecond) {
		_, well, err := s.asker.rings(ctx)
		usable, pending := 0, uint32(0)
		if err == nil && well {
			usable, pending, err = s.standing(ctx)
		}
		if err == nil && usable >= s.cfg.Nodes-missing && pending == 0 {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("%w: not as before %v after nodes lost their supply: %d of %d usable, %d on their way: %w", errFell, slowPatience, usable, s.cfg.Nodes, pending, err)
		}
	}
}

// standing is how many nodes may be used, and how many are not yet where they should be.
func (s *stranger) standing(ctx context.Context) (usable int, pending uint32, err error) {
	r, err := s.asker.ask(ctx, proto.NounNodes)
	if err != nil {
		return 0, 0, err
	}
	for _, n := range r.Nodes {
		if n.Usable {
			usable++
		}
	}
	if r, err = s.asker.ask(ctx, proto.NounFabric); err != nil {
		return 0, 0, err
	}
	return usable, r.Fabric.Pending, nil
}

// bypasses measures them in turn, a round quietly and a round under the attack; with no
// messages a second there is none, and as many are measured quietly.
func (s *stranger) bypasses(ctx context.Context, counts [][ways]int) (note string, said int, err error) {
	var took [2][]time.Duration
	var cost [2]cost
	last := min(1, s.cfg.Seals.Rate)
	for i := 0; len(took[last]) < s.cfg.Seals.Bypasses && ctx.Err() == nil; i++ {
		under := i % 2 * last
		attacking, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		if under == 1 {
			go func() {
				n, err := s.assault(attacking, math.MaxInt, counts)
				said += n
				ended <- err
			}()
		} else {
			ended <- nil
		}
		before, err := s.light()
		begin := time.Now()
		var list []time.Duration
		var dead []proto.NodeID
		if err == nil {
			pause(ctx, bite)
			list, dead, err = s.round(ctx, i/(1+last)*batch)
			now, lit := s.light()
			cost[under].add(before, now, time.Since(begin))
			err = errors.Join(err, lit)
		}
		stop()
		took[under] = append(took[under], list...)
		if err = errors.Join(err, <-ended); err == nil {
			err = s.back(ctx, dead, slow)
		}
		if err != nil {
			return "", said, err
		}
	}
	if len(took[0]) == 0 {
		return "", said, nil
	}
	quiet, under := quantiles(took[0]), quantiles(took[1])
	note = fmt.Sprintf("bypasses, wall clock of the boards, p50, p90, p99 (of fewer than 101: the most), most: %d quietly %v, %v; ", len(took[0]), quiet, cost[0])
	if last == 0 {
		return note, said, nil
	}
	name, at := "p99", 2
	if len(took[0]) < enough {
		name, at = "p90", 1
	}
	ratio := float64(under[at]) / float64(max(quiet[at], 1))
	note += fmt.Sprintf("%d under the attack %v, %v; %s %.2f of quiet; ", len(took[1]), under, cost[1], name, ratio)
	if ratio > mostRatio {
		return "", said, fmt.Errorf("%w: %smore than %.1f", errFell, note, mostRatio)
	}
	return note, said, nil
}

// cost is what all agents took of their processors, and how long they waited for one.
type cost struct{ cpu, waited, turns, took int64 }

func (c *cost) add(from, to light, took time.Duration) {
	c.cpu += to.CPUMillis - from.CPUMillis
	c.waited += to.WaitedMicros - from.WaitedMicros
	c.turns += to.Turns - from.Turns
	c.took += took.Milliseconds()
}

func (c cost) String() string {
	return fmt.Sprintf("processor of all agents %d ms a second, its threads waited %d us for each of %d turns a second",
		1000*c.cpu/max(c.took, 1), c.waited/max(c.turns, 1), 1000*c.turns/max(c.took, 1))
}

// quantiles are the p50, the p90, the p99 and the most.
func quantiles(list []time.Duration) (q [4]time.Duration) {
	if len(list) == 0 {
		return q
	}
	list = slices.Sorted(slices.Values(list))
	for i, share := range []float64{.5, .9, .99, 1} {
		q[i] = list[min(int(share*float64(len(list))), len(list)-1)].Round(10 * time.Microsecond)
	}
	return q
}
