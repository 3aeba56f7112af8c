package procs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/proto"
	"ringlight/sim/live"
	"ringlight/sim/step"
)

// UpgradeConfig is agents that become another release and go back.
type UpgradeConfig struct {
	// Dir has a folder for each release: old, with ocs-agent and ocs-planner of the last
	// one; new, with today's ocs-agent; bad, with an ocs-agent that must be found out.
	// "": no upgrade.
	Dir string
}

// UpgradeResult is what became of that.
type UpgradeResult struct {
	Old         string `json:"old"`
	New         string `json:"new"`
	Restarts    int    `json:"restarts"`    // of agents, by the roll-outs
	ByHand      int    `json:"by_hand"`     // of those, of agents that could not start anew by themselves
	Faults      int    `json:"faults"`      // nodes without power meanwhile
	Interrupted int    `json:"interrupted"` // roll-outs that stopped for one of those, and went on
	Untouched   int    `json:"untouched"`   // nodes that no fault touched, judged over all of it
	EventGaps   uint64 `json:"event_gaps"`  // events lost
	BadStopped  string `json:"bad_stopped"` // why the planted release stopped
	BadSeen     string `json:"bad_seen"`    // what the boards' record had of it
	BadReached  int    `json:"bad_reached"` // nodes
}

// Releases, by their folders.
const (
	releaseOld = "old"
	releaseNew = "new"
	releaseBad = "bad"
)

// upgradePatience bounds a roll-out. chosen: 64 nodes take a minute or two on a machine
// that has time.
const upgradePatience = 20 * time.Minute

// faultEvery is how long a node with power is left in peace.
const faultEvery = 10 * time.Second

// upgrading is a run of it.
type upgrading struct {
	run     *procs
	tally   UpgradeResult
	touched map[int]bool // nodes that a fault, or its repair, touched
	way     map[int]bool // nodes under way in the roll-out
	without int          // node without power, -1: none
	next    time.Time    // when the next fault is due
	turn    int
}

// upgrade lets agents of the last release become today's and go back, while nodes lose
// their power, spares step in and the planner is killed. The boards' own record judges.
func (p *procs) upgrade(ctx context.Context) {
	u := &upgrading{run: p, touched: map[int]bool{}, way: map[int]bool{}, without: -1}
	p.res.Upgrade = &u.tally
	p.agentPath, p.spared = p.path("ocs-agent"), func(n int) bool { return u.way[n] } // else no restart would be seen to its end
	u.tally.Old, u.tally.New = u.version(ctx, releaseOld), u.version(ctx, releaseNew)
	u.install(releaseOld)
	for _, step := range []func(context.Context){p.build, u.forth, u.formerPlanner, u.badRelease, u.back} {
		step(ctx)
	}
}

func (u *upgrading) agentOf(release string) string {
	return u.run.Upgrade.Dir + "/" + release + "/ocs-agent"
}

func (u *upgrading) version(ctx context.Context, release string) string {
	return strings.TrimSpace(string(step.Got(u.run.once(ctx, u.agentOf(release), "version"))))
}

// install puts a release in the place of the one that is there, as a package does: by
// one rename.
func (u *upgrading) install(release string) {
	step.Must(os.Symlink(u.agentOf(release), u.run.agentPath+".new"))
	step.Must(os.Rename(u.run.agentPath+".new", u.run.agentPath))
}

// rolloutStatus is what ocsctl tells.
type rolloutStatus struct {
	State, Reason string
	Node          *int
	Wave          int
	Nodes         struct{ Current, Restarted int }
	UnderWay      []struct {
		Node   int
		ByHand bool `json:"by_hand"`
	} `json:"under_way"`
}

func (u *upgrading) rollout(ctx context.Context, words ...string) (s rolloutStatus) {
	u.run.ctl(ctx, &s, append([]string{"rollout"}, words...)...)
	return s
}

// forth brings today's release to agents of the last one. Where those cannot start
// themselves anew the planner names the next node, and its agent is restarted by hand.
func (u *upgrading) forth(ctx context.Context) {
	u.all(ctx, releaseNew, u.tally.New, "agents of the last release become today's", nil)
}

// back brings the last release to today's agents, which start themselves anew as it. The
// planner is killed in the middle of a wave.
func (u *upgrading) back(ctx context.Context) {
	u.all(ctx, releaseOld, u.tally.Old, "today's agents go back, the planner killed in mid-wave", func() {
		u.run.kill("planner")
		u.run.startPlanner()
	})
}

// all brings a release to all nodes under load. kill is done once, in the middle of the
// second wave.
func (u *upgrading) all(ctx context.Context, release, version, what string, kill func()) {
	before := u.run.records()
	u.install(release)
	u.rollout(ctx, "run", version)
	began, was, hand := time.Now(), u.tally, map[int]bool{}
	clear(u.touched)
	for u.next = time.Now().Add(faultEvery / 2); ; {
		var s rolloutStatus
		err := step.Attempt(func() { s = u.rollout(ctx, "status") })
		switch {
		case time.Since(began) > upgradePatience:
			step.Fail("%s: not within %v: %+v, %v", what, upgradePatience, s, err)
		case err != nil:
			continue // the planner may be listening
		case s.State == "stopped" && (s.Node == nil || !u.touched[*s.Node]):
			step.Fail("%s: %s", what, s.Reason)
		case s.State == "stopped": // for a node that the script had hurt
			u.tally.Interrupted++
			u.mend(ctx)
			u.rollout(ctx, "run", version)
		case s.State == "done":
			u.mend(ctx)
			u.tally.Restarts += u.run.f.Nodes
			step.Within(what, func() { u.judge(ctx, before, version) })
			u.run.done(began, fmt.Sprintf("%s: %s", what, version), "%s, %d by hand; %s lost power meanwhile, %s for one of them; no light changed at %s untouched, 0 events lost",
				proto.Count(s.Wave, "wave"), u.tally.ByHand-was.ByHand, proto.Count(u.tally.Faults-was.Faults, "node"), proto.Count(u.tally.Interrupted-was.Interrupted, "stop"), proto.Count(u.tally.Untouched, "node"))
			return
		}
		clear(u.way)
		for _, x := range s.UnderWay {
			u.way[x.Node] = true
			if x.ByHand && !hand[x.Node] {
				hand[x.Node] = true
				u.tally.ByHand++
				u.restartByHand(x.Node)
			}
		}
		if kill != nil && s.Wave >= 2 && len(s.UnderWay) > 0 {
			kill()
			kill = nil
			continue
		}
		u.load(ctx, s)
	}
}

// restartByHand is what a service manager does when a person says so.
func (u *upgrading) restartByHand(n int) {
	c := u.run.runs[agentName(n)]
	step.Must(c.Process.Signal(syscall.SIGTERM))
	_ = c.Wait()
	u.run.startAgent(n)
}

// load takes a node's power away now and then, and gives it back.
func (u *upgrading) load(ctx context.Context, s rolloutStatus) {
	if time.Now().Before(u.next) || s.State != "running" {
		time.Sleep(200 * time.Millisecond)
		return
	}
	u.next = time.Now().Add(faultEvery)
	if u.without >= 0 {
		u.mend(ctx)
		return
	}
	var rings []procRing
	if step.Attempt(func() { rings = u.run.rings(ctx) }) != nil {
		return // the planner may be listening
	}
	x, err := u.run.loser(rings[:min(2, len(rings))], u.turn)
	if err != nil {
		return // all are near a node that restarts
	}
	u.turn++
	for _, n := range append(slices.Clone(x.ring.Nodes), x.dead) {
		u.touched[n] = true
	}
	u.without = x.dead
	u.tally.Faults++
	u.run.hold("planner", func() { u.run.lose(ctx, &x) }) // its repair would come into the bypass
	maps.Copy(u.touched, u.run.repaired(ctx, x))
}

// mend gives the node without power its supply and agent back.
func (u *upgrading) mend(ctx context.Context) {
	n := u.without
	if n < 0 {
		return
	}
	u.without = -1
	u.run.plugIn(n)
}

// judge looks at what the boards recorded, at what runs, and whether an event is missing.
func (u *upgrading) judge(ctx context.Context, before []live.BoardRecord, version string) {
	u.run.serving(ctx)
	u.run.unchanged(before, "upgrade", u.touched)
	u.tally.Untouched = 0
	for n := range before {
		if !u.touched[n] {
			u.tally.Untouched++
		}
	}
	for n := range u.run.f.Nodes {
		await(ctx, procsBypass, agentName(n), func() (bool, string) {
			st := u.run.status(n)
			return st.Unacked == 0, fmt.Sprintf("%+v", st)
		})
	}
	var f struct {
		EventGaps uint64 `json:"event_gaps"`
	}
	u.run.ctl(ctx, &f, "fabric", "show")
	if u.tally.EventGaps += f.EventGaps; f.EventGaps > 0 {
		step.Fail("%d events lost", f.EventGaps)
	}
	if s := u.rollout(ctx, "plan", version); s.Nodes.Current != u.run.f.Nodes {
		step.Fail("%d of %d nodes run %s", s.Nodes.Current, u.run.f.Nodes, version)
	}
}

// formerPlanner lets a planner of the last release serve today's agents, from the store
// that today's left, and today's again.
func (u *upgrading) formerPlanner(ctx context.Context) {
	u.run.plannerPath = u.run.Upgrade.Dir + "/" + releaseOld + "/ocs-planner"
	step.Within("the last release's planner", func() { u.run.bounce("planner", 0, u.run.startPlanner)(ctx) })
	u.run.plannerPath = ""
	u.run.bounce("planner", 0, u.run.startPlanner)(ctx)
}

// badRelease brings a release that sets its optics up anew at its start. It must stop
// after the first node, and the boards' record must have seen it.
func (u *upgrading) badRelease(ctx context.Context) {
	began := time.Now()
	before := u.run.records()
	version := u.version(ctx, releaseBad)
	u.install(releaseBad)
	u.rollout(ctx, "run", version)
	var s rolloutStatus
	await(ctx, procsService, "a bad release is stopped", func() (bool, string) {
		s = u.rollout(ctx, "status")
		return s.State == "stopped", fmt.Sprintf("%+v", s)
	})
	u.tally.BadStopped, u.tally.BadReached = s.Reason, s.Nodes.Current
	lost := u.run.res.LightLost
	seen := step.Attempt(func() { u.run.unchanged(before, "bad release", nil) })
	u.run.res.LightLost = lost // it was ours
	switch {
	case seen == nil:
		step.Fail("a release that darkens its board was not seen by the boards' own record")
	case s.Node == nil || s.Wave != 1 || s.Nodes.Current > 1:
		step.Fail("a bad release reached %s in %s: %s", proto.Count(s.Nodes.Current, "node"), proto.Count(s.Wave, "wave"), s.Reason)
	}
	u.tally.BadSeen, _, _ = strings.Cut(seen.Error(), "\n")
	u.install(releaseNew)
	u.restartByHand(*s.Node)
	u.rollout(ctx, "stop")
	u.run.serving(ctx)
	u.run.done(began, "a release that sets its optics up anew", "stopped at the first node: %s; the record: %s", s.Reason, u.tally.BadSeen)
}
