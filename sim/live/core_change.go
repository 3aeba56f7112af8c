package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim/fleet"
)

// Jobs that come are drawn at random. Most changes find free ports for all of
// them, and then nothing that runs is touched; so of several lists the planner
// is asked what each would do, and one is taken that moves links if any does.

const (
	listTries  = 40 // lists asked for a change; chosen: a second at most
	firstJobs  = 3  // of the first list, a pod; chosen: more than find room
	killedBack = time.Second
)

func (r *coreRun) changes(ctx context.Context) error {
	chance := rand.New(rand.NewPCG(r.cfg.Seed, 0xc0e))
	var list []proto.JobSpec
	next := 1
	for n := range r.cfg.Changes + 1 {
		before := list
		come := 1 + chance.IntN(3)
		if n == 0 {
			come = firstJobs * max(r.core.Pods, r.core.Leaves()/4)
		}
		wanted, err := r.choose(ctx, chance, list, come, &next)
		if err != nil {
			return err
		}
		list = wanted
		kill := n > 0 && n >= r.cfg.Changes/2 && r.result.AgentsKilled == 0
		if err := r.change(ctx, &list, before, kill); err != nil {
			return fmt.Errorf("change %d: %w", n, err)
		}
	}
	return nil
}

// draw makes a job of a quarter of a pod to nearly two, or of a leaf-spine core
// one of up to half of it.
func (r *coreRun) draw(chance *rand.Rand, next *int) proto.JobSpec {
	if r.core.LeafSpine != nil {
		sizes := fleet.AloneSizes(r.core)
		*next++
		return proto.JobSpec{Job: proto.JobID(*next - 1), TP: 1, EP: 1, PP: 1, DP: uint32(sizes[chance.IntN(len(sizes))])}
	}
	pod := r.core.LeavesPerPod * r.core.ServersPerLeaf
	pp := 1 << chance.IntN(3)
	servers := max(pod/4, 1) + chance.IntN(pod+pod/2)
	servers = (servers + pp - 1) / pp * pp
	s := proto.JobSpec{Job: proto.JobID(*next), TP: uint32(r.core.GPUsPerServer), EP: 1, PP: uint32(pp), Servers: uint32(servers)}
	if len(r.cfg.Mix) > 1 {
		s.Collective = r.cfg.Mix[chance.IntN(len(r.cfg.Mix))]
	} else if len(r.cfg.Mix) == 1 {
		s.Collective = r.cfg.Mix[0]
	}
	*next++
	return s
}

// choose asks the planner what some lists would do, and takes one that moves
// links if it can, else one that does something, and of those the one with the
// most links.
func (r *coreRun) choose(ctx context.Context, chance *rand.Rand, list []proto.JobSpec, come int, next *int) ([]proto.JobSpec, error) {
	var best []proto.JobSpec
	var worth uint64
	for range listTries {
		id := *next
		wanted := slices.DeleteFunc(slices.Clone(list), func(proto.JobSpec) bool { return chance.IntN(3) == 0 })
		for range come {
			wanted = append(wanted, r.draw(chance, &id))
		}
		reply, err := r.operator.Ask(ctx, proto.OpRequest{Noun: proto.NounApply, Jobs: wanted, DryRun: true})
		if err != nil {
			return nil, err
		}
		w := uint64(reply.Change.Realised)
		if reply.Change.Stages > 0 {
			w += 1 << 32
		}
		if reply.Change.Moved > 0 {
			w += 1 << 33
		}
		if best == nil || w > worth {
			best, worth = wanted, w
		}
	}
	for _, s := range best {
		*next = max(*next, int(s.Job)+1)
	}
	return best, nil
}

// change applies a list, waits for its light and judges it. Jobs that find no
// room leave the list: nobody waits here.
func (r *coreRun) change(ctx context.Context, list *[]proto.JobSpec, before []proto.JobSpec, kill bool) error {
	was, err := r.operator.circuits(ctx)
	if err != nil {
		return err
	}
	r.guard(was)
	drops, made, generation, begin := len(r.circuits.Drops()), len(r.made), r.now().Generation, time.Now()
	reply, err := r.operator.Ask(ctx, proto.OpRequest{Noun: proto.NounApply, Jobs: *list})
	if err != nil {
		return err
	}
	c := CoreChange{Change: len(r.result.Changes), Stages: int(reply.Change.Stages), LinksMoved: int(reply.Change.Moved), LinksKept: int(reply.Change.Kept),
		WorstMoved: int(reply.Change.Worst), WorstOf: int(reply.Change.WorstOf), Waiting: []proto.JobID{}}
	*list = slices.DeleteFunc(*list, func(s proto.JobSpec) bool { return slices.Contains(reply.Change.Waiting, s.Job) })
	c.Came, c.Ended = missing(*list, before), missing(before, *list)
	c.Waiting = append(c.Waiting, reply.Change.Waiting...)
	if kill && reply.Change.Stages > 0 {
		if err := r.killInStage(ctx, &c, generation); err != nil {
			return err
		}
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	c.Millis = time.Since(begin).Milliseconds()
	if len(reply.Change.Waiting) > 0 { // what waits would be placed as soon as others end
		if _, err := r.operator.Ask(ctx, proto.OpRequest{Noun: proto.NounApply, Jobs: *list}); err != nil {
			return err
		}
	}
	if err := r.operator.Listen(ctx, reportLag); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	return r.judge(ctx, &c, was, drops, made, generation)
}

// reportLag is longer than agents gather what they report. chosen.
const reportLag = 300 * time.Millisecond

// killInStage ends the agent of a switch as soon as a stage is under way, and
// starts it again a while later.
func (r *coreRun) killInStage(ctx context.Context, c *CoreChange, generation proto.Generation) error {
	if err := r.reach(ctx, func(s proto.CoreStatus) bool { return s.Generation > generation }); err != nil {
		return err
	}
	victim := c.Change % r.core.Switches()
	r.cluster.Kill(proto.FirstSwitch + proto.NodeID(victim))
	c.Killed = &victim
	r.result.AgentsKilled++
	if err := r.operator.Listen(ctx, killedBack); err != nil {
		return err
	}
	return r.cluster.Revive(ctx, proto.FirstSwitch+proto.NodeID(victim))
}

// missing are the jobs of one list that another has not.
func missing(list, from []proto.JobSpec) []proto.JobID {
	out := []proto.JobID{}
	for _, s := range list {
		if !slices.ContainsFunc(from, func(o proto.JobSpec) bool { return o.Job == s.Job }) {
			out = append(out, s.Job)
		}
	}
	return out
}

// guard has the boards watch all circuits that there are.
func (r *coreRun) guard(circuits []proto.CircuitStatus) {
	of := make([][]circuit.Pair, r.core.Switches())
	for i := range circuits {
		s := int(circuits[i].Switch - proto.FirstSwitch)
		of[s] = append(of[s], circuit.Pair{A: circuits[i].A, B: circuits[i].B})
	}
	for s := range of {
		r.circuits.Guard(s, of[s])
	}
}

// judge compares what is wanted with the light, and looks for circuits that
// stay and were dark meanwhile.
func (r *coreRun) judge(ctx context.Context, c *CoreChange, was []proto.CircuitStatus, drops, made int, generation proto.Generation) error {
	is, err := r.operator.circuits(ctx)
	if err != nil {
		return err
	}
	c.CircuitsPlanned = len(is)
	l := r.compare(is)
	c.CircuitsLit, c.CircuitsTuned, c.StrayPairs, c.Equal = l.lit, l.tuned, l.stray, l.equal
	s := r.now()
	c.Generations = int(s.Generation - generation)
	c.JobsPlaced = int(s.Placed)
	c.LinksAsked, c.LinksGranted, c.LinksRealised = int(s.Asked), int(s.Granted), int(s.Realised)
	for _, d := range r.circuits.Drops()[drops:] {
		if indexOf(is, d.circuit()) >= 0 {
			c.CircuitsDropped++
		}
	}
	r.darkness(c, was, is, drops)
	for i := range is {
		if indexOf(was, is[i]) >= 0 {
			c.CircuitsKept++
		}
	}
	for _, d := range r.made[made:] {
		c.MadeMicros = max(c.MadeMicros, int64(d))
	}
	r.result.Changes = append(r.result.Changes, *c)
	r.screen.coreChange(r.core, c)
	return nil
}

// indexOf finds a circuit by its switch and ports; -1: it is not there.
func indexOf(list []proto.CircuitStatus, x proto.CircuitStatus) int {
	return slices.IndexFunc(list, func(o proto.CircuitStatus) bool { return o.Switch == x.Switch && o.A == x.A && o.B == x.B })
}

// circuit is the one that had no light.
func (d Drop) circuit() proto.CircuitStatus {
	return proto.CircuitStatus{Switch: proto.FirstSwitch + proto.NodeID(d.Switch), A: d.A, B: d.B}
}

// darkness measures each circuit that moved: from the last light over its old
// ports to the first over its new ones, as the boards saw it. A job's circuits
// from one pod to another in a group stand for each other, the first that is
// lit for the first that is lost. One that takes over a circuit of a job that
// ended, or is lit before the old one goes, is not dark at all.
func (r *coreRun) darkness(c *CoreChange, was, is []proto.CircuitStatus, drops int) {
	type way struct {
		group int
		job   proto.JobID
		a, b  uint16
	}
	group := func(sw proto.NodeID) int { return int(sw-proto.FirstSwitch) / r.core.GroupSwitches() }
	lit, taken := map[way][]time.Duration{}, map[way]int{}
	for _, x := range is {
		n := indexOf(was, x)
		if n >= 0 && was[n].Job != x.Job {
			taken[way{group(x.Switch), x.Job, x.A, x.B}]++ // of a job that ended, lit all the time
		}
		at, ok := r.circuits.LitSince(int(x.Switch-proto.FirstSwitch), circuit.Pair{A: x.A, B: x.B})
		if ok && x.Job != 0 && n < 0 {
			k := way{group(x.Switch), x.Job, x.A, x.B}
			lit[k] = append(lit[k], at)
		}
	}
	for _, d := range r.circuits.Drops()[drops:] {
		n := indexOf(was, d.circuit())
		if n < 0 || indexOf(is, was[n]) >= 0 {
			continue
		}
		k := way{group(was[n].Switch), was[n].Job, d.A, d.B}
		dark := int64(0)
		switch {
		case len(lit[k]) > 0:
			at := slices.Min(lit[k])
			lit[k] = slices.Delete(lit[k], slices.Index(lit[k], at), slices.Index(lit[k], at)+1)
			dark = max(0, (at - d.At).Microseconds())
		case taken[k] > 0:
			taken[k]--
		default:
			continue // its job ended
		}
		c.CircuitsMoved++
		c.DarkMicros = max(c.DarkMicros, dark)
		r.result.darks = append(r.result.darks, dark)
	}
}
