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
	"strings"
	"time"

	"ringlight/proto"
)

// Bypasses beside each other in one run: on a machine that others load, only the ratio
// of what was measured quietly and under the attack says something. Two times are taken
// of each. The boards' own, on a clock that goes with the wall: from the last light that
// both neighbours lost to the last that each has of the other, with all that the board's
// chips and their light take. And each neighbour's reaction, which its agent counts in
// the ledger of its switch: from the edge of the line that tells of the loss, noted by the
// board, to the write that answers it, on the bus; the hold-off, waited on purpose, is not
// in it. What messages keep an agent from is in both.

const (
	// batch is how many nodes lose their power in one round, one after the other, each
	// in a ring of its own. chosen: all rings of the bench, and more than half of the
	// spares are left, so that a ring finds its spare near and stays one that can be bypassed.
	batch = 6
	// mostRatio of the p99s is not exceeded. chosen: of two hundred the p99 is the third
	// longest, which differs by half between two quiet runs on a loaded machine.
	mostRatio = 2.0
	// enough make a p99 something else than the longest; of fewer the p90s are compared.
	enough = 101
	// slow are not waited for: of a node that died and lives again the broker says what it
	// said before, later, and a number that two sessions claim is out for up to two minutes.
	// chosen: of the sixteen spares one is left for each node of the next round.
	slow         = 10
	slowPatience = 4 * time.Minute
	// told is how long the ledgers of a round's switches are waited for. chosen: they
	// are events, and come in milliseconds.
	told = 300 * time.Millisecond
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

// measured is what was measured quietly, or under the attack.
type measured struct {
	board, reaction []time.Duration
	cost            cost
}

// round takes the power of one node of each of a few rings, from the first-th on, and
// notes how long their neighbours took to find each other.
func (s *stranger) round(ctx context.Context, first int, m *measured) (dead []proto.NodeID, err error) {
	f, err := s.insist(ctx, proto.NounFabric)
	if err != nil {
		return nil, err
	}
	r, err := s.insist(ctx, proto.NounRings)
	if err != nil {
		return nil, err
	}
	s.front.still.Lock()
	defer s.front.still.Unlock()
	s.ear.reactions(nil)
	var beside []proto.NodeID
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
			dead, beside = append(dead, n), append(beside, ring[at-1], ring[at+1])
			if err != nil {
				return dead, fmt.Errorf("%w: ring %v: %w", errFell, ring, err)
			}
			m.board = append(m.board, time.Duration(saw.Micros)*time.Microsecond)
			break
		}
	}
	if len(dead) == 0 {
		return nil, fmt.Errorf("%w: no ring has a node whose neighbours reach each other past it: %s", errFell, membersOf(r.Rings))
	}
	pause(ctx, told)
	m.reaction = append(m.reaction, s.ear.reactions(beside)...)
	return dead, nil
}

// insist asks again: under the attack the broker loses answers, and a question that it
// spoilt is refused in an answer of the same number.
func (s *stranger) insist(ctx context.Context, noun proto.Noun) (r *proto.OpReply, err error) {
	for range 10 {
		if r, err = s.asker.ask(ctx, noun); err == nil || ctx.Err() != nil {
			break
		}
	}
	return r, err
}

// passable says that the neighbours of a ring's node can reach each other: at k hops, in
// the default wiring, one bundle is both sides of a node, and light goes to one of them.
func passable(ring []proto.NodeID, at int, k proto.NodeID) bool {
	span := ring[at+1] - ring[at-1]
	before := at > 1 && ring[at-1]-ring[at-2] == k
	after := at+2 < len(ring) && ring[at+2]-ring[at+1] == k
	return span < k || span == k && !before && !after
}

// back gives nodes their power, and waits until all is in service and where it should
// be, and all nodes but a few may be used again.
func (s *stranger) back(ctx context.Context, dead []proto.NodeID, missing int) error {
	for _, n := range dead {
		var any struct{}
		if err := s.tell(&any, "power on %d", n); err != nil {
			return err
		}
	}
	for end := time.Now().Add(slowPatience); ; pause(ctx, 200*time.Millisecond) {
		_, well, err := s.asker.rings(ctx)
		out, pending := []string(nil), uint32(0)
		if err == nil && well {
			out, pending, err = s.standing(ctx)
		}
		if err == nil && well && len(out) <= missing && pending == 0 {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("%w: not as before %v after nodes lost their power: all rings in service: %v, %d nodes on their way, not usable: %q, %v", errFell, slowPatience, well, pending, out, err)
		}
	}
}

// standing is which nodes may not be used and why, and how many are not yet where they should be.
func (s *stranger) standing(ctx context.Context) (out []string, pending uint32, err error) {
	r, err := s.asker.ask(ctx, proto.NounNodes)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range r.Nodes {
		if !n.Usable {
			out = append(out, fmt.Sprintf("%d: %s", n.Node, n.Reason))
		}
	}
	if r, err = s.asker.ask(ctx, proto.NounFabric); err != nil {
		return nil, 0, err
	}
	return out, r.Fabric.Pending, nil
}

// bypasses measures them in turn, a round quietly and a round under the attack; with no
// messages a second there is none, and as many are measured quietly.
func (s *stranger) bypasses(ctx context.Context, counts [][ways]int) (note string, said int, err error) {
	var m [2]measured // quietly, and under the attack
	last := min(1, s.cfg.Seals.Rate)
	for i := 0; len(m[last].board) < s.cfg.Seals.Bypasses && ctx.Err() == nil; i++ {
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
		var dead []proto.NodeID
		if err == nil {
			pause(ctx, bite)
			dead, err = s.round(ctx, i/(1+last)*batch, &m[under])
			now, lit := s.light()
			m[under].cost.add(before, now, time.Since(begin))
			err = errors.Join(err, lit)
		}
		stop()
		if err = errors.Join(err, <-ended); err == nil {
			err = s.back(ctx, dead, slow)
		}
		if err != nil {
			return "", said, err
		}
	}
	if len(m[0].board) == 0 {
		return "", said, nil
	}
	toNodes := 0
	for row := range counts {
		if kinds[row].to == devices {
			for _, n := range counts[row] {
				toNodes += n
			}
		}
	}
	s.table, err = compared(m, int64(1000*toNodes/s.cfg.Nodes)/max(m[1].cost.took, 1))
	return fmt.Sprintf("%d bypasses quietly, %d under the attack; ", len(m[0].board), len(m[1].board)), said, err
}

// compared are the lines that tell of both, and an error where the attack was felt.
// rate is the messages a second to each node that nobody may believe; 0: there was no attack.
func compared(m [2]measured, rate int64) (lines string, err error) {
	var b strings.Builder
	attacked := rate > 0
	worst := 0.0
	row := func(what string, of func(*measured) []time.Duration) {
		quiet, under := quantiles(of(&m[0])), quantiles(of(&m[1]))
		fmt.Fprintf(&b, "%s, p50 p90 p99 longest: quietly %v of %d\n", what, quiet, len(of(&m[0])))
		if !attacked {
			return
		}
		fmt.Fprintf(&b, "%*s under the attack %v of %d, %.2f %.2f %.2f %.2f of quiet\n", len(what)+20, "", under, len(of(&m[1])),
			under.to(quiet, 0), under.to(quiet, 1), under.to(quiet, 2), under.to(quiet, 3))
		at := 2
		if min(len(of(&m[0])), len(of(&m[1]))) < enough {
			at = 1
		}
		worst = max(worst, under.to(quiet, at))
	}
	row("bypass, by the boards' clock", func(m *measured) []time.Duration { return m.board })
	row("reaction, by the agents' ledgers", func(m *measured) []time.Duration { return m.reaction })
	fmt.Fprintf(&b, "quietly: %v\n", m[0].cost)
	if attacked {
		fmt.Fprintf(&b, "under the attack, %d messages a second to each node: %v\n", rate, m[1].cost)
	}
	if worst > mostRatio || attacked && 2*len(m[1].reaction) < len(m[1].board) {
		err = fmt.Errorf("%w: under the attack bypasses take %.2f of quiet, more than %.1f, or their ledgers are missing:\n%s", errFell, worst, mostRatio, b.String())
	}
	return b.String(), err
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
	return fmt.Sprintf("processor of all agents %d ms a second, their threads waited %d us for each of %d turns a second",
		1000*c.cpu/max(c.took, 1), c.waited/max(c.turns, 1), 1000*c.turns/max(c.took, 1))
}

// spread are the p50, the p90, the p99 and the most.
type spread [4]time.Duration

func quantiles(list []time.Duration) (q spread) {
	if len(list) == 0 {
		return q
	}
	list = slices.Sorted(slices.Values(list))
	for i, share := range []float64{.5, .9, .99, 1} {
		q[i] = list[min(int(share*float64(len(list))), len(list)-1)].Round(time.Microsecond)
	}
	return q
}

func (q spread) to(p spread, at int) float64 { return float64(q[at]) / float64(max(p[at], 1)) }
