package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/proto"
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
	*procs
	tally   UpgradeResult
	touched map[int]bool // nodes that a fault, or its repair, touched
	way     map[int]bool // nodes under way in the roll-out
	without int          // node without power, -1: none
	next    time.Time    // when the next fault is due
	turn    int
}

// upgrade lets agents of the last release become today's and go back, while nodes lose
// their power, spares step in and the planner is killed. The boards' own record judges.
func (p *procs) upgrade(ctx context.Context) error {
	u := &upgrading{procs: p, touched: map[int]bool{}, way: map[int]bool{}, without: -1}
	p.res.Upgrade = &u.tally
	p.agentPath, p.spared = p.path("ocs-agent"), func(n int) bool { return u.way[n] } // else no restart would be seen to its end
	var err error
	if u.tally.Old, err = u.version(ctx, releaseOld); err == nil {
		u.tally.New, err = u.version(ctx, releaseNew)
	}
	if err == nil {
		err = u.install(releaseOld)
	}
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{p.build, u.forth, u.formerPlanner, u.badRelease, u.back} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (u *upgrading) agentOf(release string) string {
	return u.Upgrade.Dir + "/" + release + "/ocs-agent"
}

func (u *upgrading) version(ctx context.Context, release string) (string, error) {
	out, err := u.once(ctx, u.agentOf(release), "version")
	return strings.TrimSpace(string(out)), err
}

// install puts a release in the place of the one that is there, as a package does: by
// one rename.
func (u *upgrading) install(release string) error {
	if err := os.Symlink(u.agentOf(release), u.agentPath+".new"); err != nil {
		return err
	}
	return os.Rename(u.agentPath+".new", u.agentPath)
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

func (u *upgrading) rollout(ctx context.Context, words ...string) (s rolloutStatus, err error) {
	raw, err := u.once(ctx, "ocsctl", append([]string{"rollout", "-json", "-broker", u.url}, words...)...)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

// forth brings today's release to agents of the last one, which cannot start themselves
// anew: the planner says who is next, and somebody restarts that.
func (u *upgrading) forth(ctx context.Context) error {
	return u.all(ctx, releaseNew, u.tally.New, "agents of the last release become today's", nil)
}

// back brings the last release to today's agents, which start themselves anew as it. The
// planner is killed in the middle of a wave.
func (u *upgrading) back(ctx context.Context) error {
	return u.all(ctx, releaseOld, u.tally.Old, "today's agents go back, the planner killed in mid-wave", func() error {
		u.signal("planner", syscall.SIGKILL)
		u.res.ProcsKilled++
		return u.startPlanner()
	})
}

// all brings a release to all nodes under load. kill is done once, in the middle of the
// second wave.
func (u *upgrading) all(ctx context.Context, release, version, what string, kill func() error) error {
	before, err := u.records()
	if err == nil {
		err = u.install(release)
	}
	if err == nil {
		_, err = u.rollout(ctx, "run", version)
	}
	if err != nil {
		return err
	}
	began, was, hand := time.Now(), u.tally, map[int]bool{}
	clear(u.touched)
	for u.next = time.Now().Add(faultEvery / 2); ; {
		s, err := u.rollout(ctx, "status")
		switch {
		case time.Since(began) > upgradePatience:
			return fmt.Errorf("%s: not within %v: %+v, %v", what, upgradePatience, s, err)
		case err != nil:
			continue // the planner may be listening
		case s.State == "stopped" && (s.Node == nil || !u.touched[*s.Node]):
			return fmt.Errorf("%s: %s", what, s.Reason)
		case s.State == "stopped": // for a node that the script had hurt
			u.tally.Interrupted++
			if err := u.mend(ctx); err != nil {
				return err
			}
			if _, err := u.rollout(ctx, "run", version); err != nil {
				return err
			}
		case s.State == "done":
			if err := u.mend(ctx); err != nil {
				return err
			}
			u.tally.Restarts += u.f.Nodes
			if err := u.judge(ctx, before, version); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			u.done(began, fmt.Sprintf("%s: %s", what, version), "%s, %d by hand; %s lost power meanwhile, %s for one of them; no light changed at %s untouched, 0 events lost",
				proto.Count(s.Wave, "wave"), u.tally.ByHand-was.ByHand, proto.Count(u.tally.Faults-was.Faults, "node"), proto.Count(u.tally.Interrupted-was.Interrupted, "stop"), proto.Count(u.tally.Untouched, "node"))
			return nil
		}
		clear(u.way)
		for _, x := range s.UnderWay {
			u.way[x.Node] = true
			if x.ByHand && !hand[x.Node] {
				hand[x.Node] = true
				u.tally.ByHand++
				if err := u.restartByHand(x.Node); err != nil {
					return err
				}
			}
		}
		if kill != nil && s.Wave >= 2 && len(s.UnderWay) > 0 {
			if err := kill(); err != nil {
				return err
			}
			kill = nil
			continue
		}
		if err := u.load(ctx, s); err != nil {
			return err
		}
	}
}

// restartByHand is what a service manager does when a person says so.
func (u *upgrading) restartByHand(n int) error {
	c := u.runs[agentName(n)]
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = c.Wait()
	return u.startAgent(n)
}

// load takes a node's power away now and then, and gives it back.
func (u *upgrading) load(ctx context.Context, s rolloutStatus) error {
	if time.Now().Before(u.next) || s.State != "running" {
		time.Sleep(200 * time.Millisecond)
		return nil
	}
	u.next = time.Now().Add(faultEvery)
	if u.without >= 0 {
		return u.mend(ctx)
	}
	rings, err := u.rings(ctx)
	if err != nil {
		return nil // the planner may be listening
	}
	x, err := u.loser(rings[:min(2, len(rings))], u.turn)
	if err != nil {
		return nil // all are near a node that restarts
	}
	u.turn++
	for _, n := range append(slices.Clone(x.ring.Nodes), x.dead) {
		u.touched[n] = true
	}
	u.without = x.dead
	u.tally.Faults++
	u.signal("planner", syscall.SIGSTOP) // its repair would come into the bypass
	err = u.lose(ctx, &x)
	u.signal("planner", syscall.SIGCONT)
	if err != nil {
		return err
	}
	if err := u.repaired(ctx, x); err != nil {
		return err
	}
	if rings, err = u.rings(ctx); err != nil {
		return err
	}
	for _, r := range rings {
		for _, n := range r.Nodes {
			u.touched[n] = u.touched[n] || r.Ring == x.ring.Ring
		}
	}
	return nil
}

// mend gives the node without power its supply and agent back.
func (u *upgrading) mend(ctx context.Context) error {
	n := u.without
	if n < 0 {
		return nil
	}
	u.without = -1
	if _, err := u.tell(boardName(n), "power on"); err != nil {
		return err
	}
	return u.startAgent(n)
}

// judge looks at what the boards recorded, at what runs, and whether an event is missing.
func (u *upgrading) judge(ctx context.Context, before []BoardRecord, version string) error {
	if err := u.serving(ctx); err != nil {
		return err
	}
	if err := u.unchanged(before, "upgrade", u.touched); err != nil {
		return err
	}
	u.tally.Untouched = 0
	for n := range before {
		if !u.touched[n] {
			u.tally.Untouched++
		}
	}
	for n := range u.f.Nodes {
		if _, err := await(ctx, procsBypass, agentName(n), func() (bool, string) {
			st, err := statusIn(u.path(fmt.Sprintf("node%d", n)))
			return err == nil && st.Unacked == 0, fmt.Sprintf("%+v, %v", st, err)
		}); err != nil {
			return err
		}
	}
	raw, err := u.once(ctx, "ocsctl", "fabric", "show", "-json", "-broker", u.url)
	if err != nil {
		return err
	}
	var f struct {
		EventGaps uint64 `json:"event_gaps"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if u.tally.EventGaps += f.EventGaps; f.EventGaps > 0 {
		return fmt.Errorf("%d events lost", f.EventGaps)
	}
	s, err := u.rollout(ctx, "plan", version)
	if err == nil && s.Nodes.Current != u.f.Nodes {
		err = fmt.Errorf("%d of %d nodes run %s", s.Nodes.Current, u.f.Nodes, version)
	}
	return err
}

// formerPlanner lets a planner of the last release serve today's agents, from the store
// that today's left, and today's again.
func (u *upgrading) formerPlanner(ctx context.Context) error {
	u.plannerPath = u.Upgrade.Dir + "/" + releaseOld + "/ocs-planner"
	if err := u.bounce(ctx, "planner", 0, u.startPlanner); err != nil {
		return fmt.Errorf("the last release's planner: %w", err)
	}
	u.plannerPath = ""
	return u.bounce(ctx, "planner", 0, u.startPlanner)
}

// badRelease brings a release that sets its optics up anew at its start. It must stop
// after the first node, and the boards' record must have seen it.
func (u *upgrading) badRelease(ctx context.Context) error {
	began := time.Now()
	before, err := u.records()
	if err != nil {
		return err
	}
	version, err := u.version(ctx, releaseBad)
	if err == nil {
		err = u.install(releaseBad)
	}
	if err == nil {
		_, err = u.rollout(ctx, "run", version)
	}
	if err != nil {
		return err
	}
	var s rolloutStatus
	if _, err := await(ctx, procsService, "a bad release is stopped", func() (bool, string) {
		s, err = u.rollout(ctx, "status")
		return err == nil && s.State == "stopped", fmt.Sprintf("%+v, %v", s, err)
	}); err != nil {
		return err
	}
	u.tally.BadStopped, u.tally.BadReached = s.Reason, s.Nodes.Current
	lost := u.res.LightLost
	seen := u.unchanged(before, "bad release", nil)
	u.res.LightLost = lost // it was ours
	switch {
	case seen == nil:
		return errors.New("a release that darkens its board was not seen by the boards' own record")
	case s.Node == nil || s.Wave != 1 || s.Nodes.Current > 1:
		return fmt.Errorf("a bad release reached %s in %s: %s", proto.Count(s.Nodes.Current, "node"), proto.Count(s.Wave, "wave"), s.Reason)
	}
	u.tally.BadSeen = seen.Error()
	if err := u.install(releaseNew); err != nil {
		return err
	}
	if err := u.restartByHand(*s.Node); err != nil {
		return err
	}
	if _, err := u.rollout(ctx, "stop"); err != nil {
		return err
	}
	if err := u.serving(ctx); err != nil {
		return err
	}
	u.done(began, "a release that sets its optics up anew", "stopped at the first node: %s; the record: %s", s.Reason, seen)
	return nil
}
