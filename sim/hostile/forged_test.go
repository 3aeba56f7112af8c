package hostile

import (
	"context"
	"fmt"
	"time"

	"ringlight/proto"
)

// Attacks by a speaker of the protocol: a false planner, and an
// operator who asks for anything. Without signatures an agent cannot tell the
// first from the true one; so what counts is how soon all is as before.

// forgedPatience is how long that may take. chosen: as long as it took when
// nothing was done about it.
const forgedPatience = 15 * time.Second

// forgedPlanner takes a node out of its ring, with a commit: in another life's
// name, in the true one's, and with the term after it.
func forgedPlanner(ctx context.Context, s *stranger) (int, error) {
	w, err := s.speaker()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	before, err := s.asker.settled(ctx, backPatience)
	if err != nil {
		return 0, err
	}
	note := ""
	for i, how := range []struct {
		name string
		term proto.Term
		life uint64
	}{{"same term, another life", 0, 1}, {"same term and life", 0, 0}, {"next term", 1, 1}} {
		if err := s.hear(ctx, 3*time.Second); err != nil {
			return w.sent, err
		}
		d, ok := s.plan(s.cfg.Nodes/2 + 3*i)
		if !ok {
			return w.sent, fmt.Errorf("hostile: heard no plan of a member to begin with")
		}
		decided := d.Decisions
		d.Term, d.Life, d.Generation, d.Rings, d.Plan = s.state.Term+how.term, s.state.Life^how.life, d.Generation+100, nil, proto.Digest{}
		if d.Plan, err = proto.PlanDigest([]proto.Desired{d}); err != nil {
			return w.sent, err
		}
		w.say(ctx, s.topics.Desired(d.Node), raw(&d), 1, false)
		pause(ctx, 100*time.Millisecond)
		for _, ring := range decided {
			w.say(ctx, s.topics.Decision(ring), raw(&proto.Decision{Version: proto.Version, Ring: ring, Term: d.Term, Generation: d.Generation, Plan: d.Plan, Verdict: proto.Commit}), 1, false)
		}
		pause(ctx, 500*time.Millisecond) // the planner may think that all is well until the node reports
		begin := time.Now()
		if _, err := s.asker.same(ctx, before, backPatience); err != nil {
			return w.sent, fmt.Errorf("%w: %s: %w", errFell, how.name, err)
		}
		back := time.Since(begin)
		note += fmt.Sprintf("; %s: as before after %d ms", how.name, back.Milliseconds())
		if back > forgedPatience {
			return w.sent, fmt.Errorf("%w: %s", errFell, note[2:])
		}
	}
	return w.sent, fmt.Errorf("%s", note[2:])
}

// plan is the last plan that was heard of a node, or of the next one that has
// a place in a ring.
func (s *stranger) plan(n int) (d proto.Desired, ok bool) {
	for i := range s.cfg.Nodes {
		topic := s.topics.Desired(proto.NodeID((n + i) % s.cfg.Nodes))
		for _, p := range s.heard {
			if p.Topic != topic {
				continue
			}
			var m proto.Desired
			if _, err := proto.Decode(p.Payload, &m); err == nil && len(m.Rings) > 0 {
				d, ok = m, true
			}
		}
		if ok {
			return d, true
		}
	}
	return d, false
}

// firstJobs is what runs on the circuits before and after: each is larger than
// a pod of eight servers.
var firstJobs = []proto.JobSpec{{Job: 1, TP: 4, EP: 1, PP: 4, Servers: 12}, {Job: 2, TP: 4, EP: 1, PP: 2, Servers: 12}}

// jobLists asks a fabric of circuits for lists of jobs, and for mutants of
// them: none stops the planner, and the first list is had again at the end.
func jobLists(ctx context.Context, s *stranger) (int, error) {
	if s.cfg.Core == "" {
		return 0, fmt.Errorf("no -core given, not tried")
	}
	topics := proto.Topics{Fabric: s.cfg.Core}
	a, err := s.cfg.newAsker(topics)
	if err != nil {
		return 0, err
	}
	defer a.Link.Close()
	before, err := a.placed(ctx, firstJobs)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errFell, err)
	}
	w, err := s.speaker()
	if err != nil {
		return 0, err
	}
	defer w.Close()
	lists := s.scaled(30)
	for i := range lists {
		q := proto.OpRequest{Noun: proto.NounApply, Jobs: s.jobs(), DryRun: i%3 == 0}
		if _, err := a.Ask(ctx, q); proto.AsError(err) != nil && proto.AsError(err).Code == proto.Expired {
			return i, fmt.Errorf("%w: list %d: %w", errFell, i, err)
		}
	}
	for i := range s.scaled(2400) {
		q := proto.OpRequest{Version: proto.Version, Corr: proto.Corr{7, byte(i >> 8), byte(i)}, TTLMillis: 10_000, Noun: proto.NounApply, Bundle: -1, Jobs: s.jobs(), DryRun: i%2 == 0}
		w.say(ctx, topics.Request("jobs"), s.mutate(raw(&q)), 1, false)
		pause(ctx, time.Millisecond)
	}
	after, err := a.placed(ctx, firstJobs)
	if err != nil {
		return lists + w.sent, fmt.Errorf("%w: %w", errFell, err)
	}
	return lists + w.sent, fmt.Errorf("%d circuits before, %d after", before, after)
}

// jobs is a list of any jobs, some of which have no room or make no sense.
func (s *stranger) jobs() (list []proto.JobSpec) {
	for n := range s.random.Below(6) {
		j := proto.JobSpec{Job: proto.JobID(1 + n + s.random.Below(2)), TP: uint32(s.random.Below(3) * 4), EP: uint32(1 + s.random.Below(2)), PP: uint32(1 << s.random.Below(4)),
			Servers: uint32(s.random.Below(40))}
		for range s.random.Below(3) {
			j.Pods = append(j.Pods, uint16(s.random.Below(6)))
		}
		list = append(list, j)
	}
	return list
}

// placed has a list carried out, and gives the circuits that are there by light.
func (a *asker) placed(ctx context.Context, list []proto.JobSpec) (circuits uint32, err error) {
	last := "no answer"
	for end := time.Now().Add(backPatience); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		if _, err := a.Ask(ctx, proto.OpRequest{Noun: proto.NounApply, Jobs: list}); err != nil {
			last = err.Error() // a change is under way, or the planner has just begun
			continue
		}
		for time.Now().Before(end) && ctx.Err() == nil {
			r, err := a.ask(ctx, proto.NounCore)
			if err != nil {
				last = err.Error()
				break
			}
			c := r.Core
			if last = fmt.Sprintf("%+v", *c); c.Quiet && int(c.Jobs) == len(list) && int(c.Placed) == len(list) && c.Circuits > 0 && c.Tuned == c.Circuits {
				return c.Circuits, nil
			}
			pause(ctx, 200*time.Millisecond)
		}
	}
	return 0, fmt.Errorf("hostile: the jobs are not in place: %s", last)
}
