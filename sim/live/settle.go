package live

import (
	"context"
	"fmt"
	"time"

	"ringlight/agent"
	"ringlight/proto"
	"ringlight/sim/trace"
)

// How wall and virtual time hang together while the demo waits. chosen.
const (
	// While packets come, virtual time goes no faster than the wall: what the
	// network makes the nodes wait is neither stretched nor skipped.
	busyGap = 2 * time.Millisecond
	// After such a gap without a packet the nodes' own timers are let run,
	// this much at a time: a report that is held back, an event sent again.
	leap = 100 * time.Millisecond
	// Work of a planner that is at it may have larger gaps: a disk, a garbage
	// collection.
	planGap = 6 * time.Millisecond
	// A timer farther away than this is none that the planner waits for.
	horizon = 5 * time.Second
	// quietGap without a packet, with all else quiet, is quiet.
	quietGap = 3 * time.Millisecond
)

// Limits of waiting in wall time. chosen: they bound a hang, not speed.
const (
	settleLimit   = 10 * time.Second
	convergeLimit = 90 * time.Second
)

// settle runs the nodes until the planner is quiet: it has every event, every
// node is where the committed generation wants it and has said so, and the
// planner's idea of who is well is right. It fails after a limit in wall time.
func (s *stepper) settle(ctx context.Context, limit time.Duration) error {
	start := time.Now()
	last := start // when the last packet came
	wall, virtual := start, s.now
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		got, err := s.drain()
		if err != nil {
			return err
		}
		now := time.Now()
		if got > 0 {
			last = now
		}
		idle := now.Sub(last)
		if idle >= quietGap {
			if why := s.unquiet(); why == "" {
				return nil
			} else if now.Sub(start) > limit {
				return fmt.Errorf("live: the planner is not quiet after %v: %s", limit, why)
			}
		}
		if pace := virtual + now.Sub(wall); pace > s.now {
			if err := s.runTo(pace); err != nil {
				return err
			}
		}
		if next, ok := s.nextDue(); ok && next < s.now+horizon && idle >= s.gap() {
			if err := s.runTo(max(next, s.now+leap)); err != nil {
				return err
			}
			wall, virtual = time.Now(), s.now
			last = wall
			continue
		}
		timer.Reset(busyGap / 4)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.inbox:
			last = time.Now()
			if err := s.receive(a); err != nil {
				return err
			}
		case <-timer.C:
		}
	}
}

// gap is how long nothing must come before timers are let run.
func (s *stepper) gap() time.Duration {
	if s.watch.overview().Quiet {
		return busyGap
	}
	return planGap
}

// drain hands in what has arrived, without waiting.
func (s *stepper) drain() (n int, err error) {
	for {
		select {
		case a := <-s.inbox:
			n++
			if err := s.receive(a); err != nil {
				return n, err
			}
		default:
			return n, nil
		}
	}
}

// soon is how near a timer must be for a node to have something to say: a
// report is held back for 200 ms.
const soon = 300 * time.Millisecond

// unquiet says what is still under way, or nothing.
func (s *stepper) unquiet() string {
	well, on := 0, 0
	for _, st := range s.stations {
		if st.host == nil {
			continue
		}
		on++
		if st.effect == trace.None {
			well++
		}
	}
	v := s.watch.view()
	o := v.overview
	usable := o.Spares
	for _, r := range v.rings {
		usable += len(r.Nodes)
	}
	switch {
	case !o.Quiet:
		return "the planner is at work"
	case o.Pending > 0:
		return "the planner waits for " + proto.Count(o.Pending, "node")
	case o.Online != on:
		return fmt.Sprintf("the planner sees %s on line, %d are", proto.Count(o.Online, "node"), on)
	case o.LinksConfirmed != o.LinksTotal:
		return fmt.Sprintf("%d of %d links confirmed", o.LinksConfirmed, o.LinksTotal)
	case usable != well:
		return fmt.Sprintf("the planner counts on %s, %d are well", proto.Count(usable, "node"), well)
	}
	for _, st := range s.stations {
		if st.host == nil {
			continue
		}
		if !st.linkUp {
			return fmt.Sprintf("node %d has no link", st.id)
		}
		if st.due() < s.now+soon {
			return fmt.Sprintf("node %d has something due", st.id)
		}
		if n := st.host.Status(s.now).Unacked; n > 0 {
			return fmt.Sprintf("node %d: %d events not acknowledged", st.id, n)
		}
	}
	return ""
}

// jump lets virtual time go on to t: nothing but health rounds is due. Packets that
// come in between are handed in. A node that has an event to tell, of optics that
// drift, is waited for: days that went by meanwhile would have it told again and
// again, and faster than anybody reads.
func (s *stepper) jump(ctx context.Context, t time.Duration) error {
	for s.now < t {
		if _, err := s.drain(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		next, ok := s.nextDue()
		if !ok {
			next = agent.Never
		}
		s.told = false
		if err := s.runTo(min(t, max(next, s.now+time.Minute))); err != nil {
			return err
		}
		if s.told && !s.alone {
			if err := s.settle(ctx, settleLimit); err != nil {
				return err
			}
		}
	}
	return nil
}

// realTime lets virtual time go with the wall until the context ends.
func (s *stepper) realTime(ctx context.Context) error {
	wall, virtual := time.Now(), s.now
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if _, err := s.drain(); err != nil {
			return err
		}
		if err := s.runTo(max(s.now, virtual+time.Since(wall))); err != nil {
			return err
		}
		wait := time.Second
		if next, ok := s.nextDue(); ok {
			wait = min(wait, next-s.now)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.inbox:
			if err := s.receive(a); err != nil {
				return err
			}
		case <-timer.C:
		}
	}
}
