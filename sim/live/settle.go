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
	// network makes the nodes wait is neither stretched nor skipped. What everybody
	// waits for is skipped, by the planner's clock too.
	busyGap = 2 * time.Millisecond
	// After such a gap without a packet the nodes' own timers are let run,
	// this much at a time: a report that is held back, an event sent again.
	leap = 100 * time.Millisecond
	// Work of a planner that is at it may have larger gaps: a disk, a garbage
	// collection.
	planGap = 6 * time.Millisecond
	// On a machine that wakes this program late, so many times that is a gap.
	lateGaps = 2
	// Where nothing is on its way, so long a gap is enough for what nobody waits for.
	stillGap = 500 * time.Microsecond
	// A wait of the planner that is no longer than this is not for an answer.
	shortWait = 50 * time.Millisecond
	// A timer farther away than this is none that the planner waits for.
	horizon = 5 * time.Second
	// quietGap without a packet, with all else quiet, is quiet.
	quietGap = time.Millisecond
)

// settleLimit is how much time of the planner's and of the nodes' may be skipped in
// which nobody has anything to say. chosen: longer than anything is put off for.
const settleLimit = 10 * time.Minute

// settlePatience is how long what has not settled by then is waited for at the wall's pace: a
// machine that stands still lets nobody speak. chosen.
const settlePatience = 30 * time.Second

// settle runs the nodes until the planner is quiet: it has every event, every
// node is where the committed generation wants it and has said so, and the
// planner is right about which nodes are well. What all of them wait for is skipped; it
// fails when so much was skipped in vain, and patience does not help. With events
// alone it waits until each is acknowledged, and for no more.
func (s *stepper) settle(ctx context.Context, events bool) error {
	began := time.Now()
	last := began // when the last packet came
	wall, virtual, skipped := last, s.now, time.Duration(0)
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
		why := "" // a device that was just heard is not asked
		if events {
			why = s.unacked()
		} else if idle >= stillGap {
			why = s.unquiet()
		}
		if why == "" && (events || idle >= quietGap) {
			return nil
		} else if why != "" && skipped > settleLimit && now.Sub(began) > settlePatience {
			return fmt.Errorf("live: the planner is not quiet when %v were skipped: %s", skipped, why)
		}
		if pace := virtual + now.Sub(wall); pace > s.now {
			if err := s.runTo(pace); err != nil {
				return err
			}
		}
		v, gap := s.watch.view(), planGap
		if v.overview.Quiet {
			gap = busyGap
		}
		// A disk is waited for as long as it takes: its time is the wall's.
		if still := s.still(&v, idle); why != "" && skipped <= settleLimit && !v.overview.Writing && (still || idle >= max(gap, lateGaps*s.late)) {
			by, err := s.leap(&v, still)
			if err != nil {
				return err
			}
			skipped += by
			wall, virtual = time.Now(), s.now
			last = wall
			continue
		}
		wait := busyGap/4 - idle%(busyGap/4) // every gap is a multiple of it
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.watch.news: // the planner may be where it was waited for
		case a := <-s.inbox:
			last = time.Now()
			if err := s.receive(a); err != nil {
				return err
			}
		case <-timer.C:
			s.late = max(time.Since(now)-wait, s.late-s.late/8)
		}
	}
}

// still: nothing is on its way that planner or nodes wait for; or the planner has it,
// and waits a moment for more, as before it writes.
func (s *stepper) still(v *view, idle time.Duration) bool {
	if queued, seen := s.eventCounts(); v.overview.Asking || !v.at.After(s.leapt) || idle < stillGap && seen < queued {
		return false
	}
	return v.overview.Wait-time.Since(v.at) <= shortWait || s.unacked() == ""
}

// unacked names a node whose events are not all acknowledged, "" when none is.
func (s *stepper) unacked() string {
	for _, st := range s.stations {
		if st.host != nil && st.host.Unacked() > 0 {
			return fmt.Sprintf("node %d: %s not acknowledged", st.id, proto.Count(st.host.Unacked(), "event"))
		}
	}
	return ""
}

// leap skips what nodes and planner wait for: to what is due first. The planner's
// clock stands where something is on its way, for which a machine that is busy may take
// longer than the planner would wait.
func (s *stepper) leap(v *view, still bool) (by time.Duration, err error) {
	wait := v.overview.Wait - time.Since(v.at)
	if by = min(max(leap, wait), horizon); still {
		by = min(max(0, wait), horizon)
	}
	if next, ok := s.nextDue(); ok && next < s.now+horizon {
		by = min(by, max(leap, next-s.now))
	}
	if err := s.runTo(s.now + by); err != nil || !still {
		return by, err
	}
	s.owed, s.leapt = s.owed+by, time.Now()
	select {
	case s.skips <- s.owed:
		s.owed = 0
	default: // it looks soon
	}
	return by, nil
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

// unquiet names what is still under way, "" when nothing is.
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
	}
	return s.unacked()
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
			if err := s.runTo(s.now + persistDelay); err != nil {
				return err
			}
			if err := s.settle(ctx, true); err != nil {
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
