package hostile

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// in a ring of its own. chosen: there are spares for so many.
	batch = 8
	// mostRatio of the p99s is not exceeded. chosen: of two hundred the p99 is the third
	// longest, which differs by half between two quiet runs on a loaded machine.
	mostRatio = 2.0
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
			if ring[at+1]-ring[at-1] != 2 {
				continue // over three hops there may be none: a bundle serves both sides
			}
			var saw struct {
				Micros int64 `json:"bypass_us"`
			}
			err := s.tell(&saw, "bypass %d %d %d", ring[at-1], n, ring[at+1])
			dead = append(dead, n)
			if err != nil {
				return took, dead, fmt.Errorf("%w: %w", errFell, err)
			}
			took = append(took, time.Duration(saw.Micros)*time.Microsecond)
			break
		}
	}
	return took, dead, nil
}

// back gives nodes their supply, and waits until all is in service, and all but a few may be used again.
func (s *stranger) back(ctx context.Context, dead []proto.NodeID, missing int) error {
	for _, n := range dead {
		var any struct{}
		if err := s.tell(&any, "power on %d", n); err != nil {
			return err
		}
	}
	for end := time.Now().Add(slowPatience); ; pause(ctx, 200*time.Millisecond) {
		_, well, err := s.asker.rings(ctx)
		usable := 0
		if err == nil && well {
			var r *proto.OpReply
			if r, err = s.asker.ask(ctx, proto.NounNodes); err == nil {
				for _, n := range r.Nodes {
					if n.Usable {
						usable++
					}
				}
			}
		}
		if err == nil && usable >= s.cfg.Nodes-missing {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("%w: not as before %v after nodes lost their supply: %d of %d usable: %w", errFell, slowPatience, usable, s.cfg.Nodes, err)
		}
	}
}

// bypasses measures them in turn, a round quietly and a round under the attack.
func (s *stranger) bypasses(ctx context.Context, counts [][ways]int) (note string, said int, err error) {
	var took [2][]time.Duration
	var cpu [2]time.Duration
	var spent [2]time.Duration
	for i := 0; len(took[1]) < s.cfg.Seals.Bypasses && ctx.Err() == nil; i++ {
		under := i % 2
		attacking, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		if under == 1 {
			go func() {
				n, err := s.assault(attacking, 1<<40, counts)
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
			list, dead, err = s.round(ctx, i/2*batch)
			now, lit := s.light()
			cpu[under] += time.Duration(now.CPUMillis-before.CPUMillis) * time.Millisecond
			spent[under] += time.Since(begin)
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
	if len(took[1]) == 0 {
		return "", said, nil
	}
	quiet, under := quantiles(took[0]), quantiles(took[1])
	ratio := float64(under[1]) / float64(max(quiet[1], 1))
	note = fmt.Sprintf("bypasses, wall clock of the boards, p50, p99, most: %d quietly %v, %d under the attack %v, p99 %.2f of quiet; processor of all agents %.0f and %.0f ms a second; ",
		len(took[0]), quiet, len(took[1]), under, ratio, share(cpu[0], spent[0]), share(cpu[1], spent[1]))
	if ratio > mostRatio {
		return "", said, fmt.Errorf("%w: %smore than %.1f", errFell, note, mostRatio)
	}
	return note, said, nil
}

func share(part, whole time.Duration) float64 {
	return 1000 * part.Seconds() / max(whole.Seconds(), 1e-9)
}

// quantiles are the p50, the p99 and the most.
func quantiles(list []time.Duration) (q [3]time.Duration) {
	if len(list) == 0 {
		return q
	}
	list = slices.Sorted(slices.Values(list))
	for i, share := range []float64{.5, .99, 1} {
		q[i] = list[min(int(share*float64(len(list))), len(list)-1)].Round(10 * time.Microsecond)
	}
	return q
}
