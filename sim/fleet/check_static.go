package fleet

import (
	"fmt"
	"time"

	"ringlight/proto"
	"ringlight/sim"
)

// Invariant 3, fail static: killing the broker, the planner or an agent
// changes no light. What every bundle is set to is noted at the moment of the
// death and compared later, at nodes where nothing else happened.

// compareAfter is when an agent that died without a fault around it has long come
// to rest. chosen.
const compareAfter = 50 * time.Millisecond

type snapshot struct {
	st   *station
	at   time.Duration // the death
	due  time.Duration
	life uint32
	set  []setting
}

type setting struct {
	path    int
	shining bool
}

func (a *audit) settings(st *station) []setting {
	out := make([]setting, a.r.cfg.Fabric.Bundles)
	for b := range out {
		out[b].path, out[b].shining = a.r.world.Selected(st.board, b)
	}
	return out
}

// atRest: nothing goes on at a node. One that has isolated itself may be
// calibrating, which makes and takes light; one with a fault on its board may
// find it any time.
func (a *audit) atRest(st *station) bool {
	return !st.id.IsSwitch() && !st.dark && st.host != nil && st.busy() <= a.r.now && st.host.View().Mode() != proto.ModeIsolated && !st.lame(a.r.now)
}

// dying is called before a node's agent dies, or nil, the broker or a planner.
func (a *audit) dying(dead *station) {
	if dead != nil {
		if a.on && a.atRest(dead) {
			dead.watch.death = &snapshot{st: dead, at: a.r.now, due: a.r.now + compareAfter, set: a.settings(dead)}
			a.snapshots = append(a.snapshots, *dead.watch.death)
			a.r.agenda.Push(a.r.now+compareAfter, task{kind: taskCompare})
		}
		return
	}
	for _, st := range a.r.nodes {
		if a.atRest(st) {
			a.snapshots = append(a.snapshots, snapshot{st: st, at: a.r.now, due: a.r.now + compareAfter, life: st.life, set: a.settings(st)})
		}
	}
	a.r.agenda.Push(a.r.now+compareAfter, task{kind: taskCompare})
}

// restarted is called when an agent starts beside a board that kept its
// light: adopting it changes nothing either.
func (a *audit) restarted(st *station) {
	if s := st.watch.death; s != nil {
		st.watch.death = nil
		s.due = a.r.now + compareAfter
		a.snapshots = append(a.snapshots, *s)
		a.r.agenda.Push(s.due, task{kind: taskCompare})
	}
}

// compare looks at what was noted and is due.
func (a *audit) compare() {
	n := 0
	for _, s := range a.snapshots {
		if a.r.now < s.due {
			a.snapshots[n] = s
			n++
			continue
		}
		a.compareOne(&s)
	}
	clear(a.snapshots[n:])
	a.snapshots = a.snapshots[:n]
}

func (a *audit) compareOne(s *snapshot) {
	if s.st.dark || s.st.lame(a.r.now) {
		return
	}
	if s.life != 0 && (s.st.life != s.life || s.st.watch.touched >= s.at || s.st.watch.acted >= s.at) {
		return // something else happened here
	}
	if s.life == 0 {
		// The dead agent's own neighbours may have had a fault meanwhile.
		disturbed := s.st.watch.planned >= s.at
		a.r.neighbours(s.st.id, func(near *station) {
			a.r.neighbours(near.id, func(st *station) {
				disturbed = disturbed || st != s.st && st.watch.touched >= s.at
			})
		})
		if disturbed {
			return
		}
	}
	for b, now := range a.settings(s.st) {
		was := s.set[b]
		if now != was {
			a.violate(s.st.id, "fail static", fmt.Sprintf("bundle %d went from path %d, shining %t, to path %d, shining %t after a death at %v",
				b, was.path, was.shining, now.path, now.shining, s.at))
			continue
		}
		if at, lit := a.r.world.LastChange(sim.Port{Board: s.st.board, Bundle: b, Path: was.path}); at >= s.at {
			a.violate(s.st.id, "fail static", fmt.Sprintf("bundle %d, path %d: light turned %t at %v after a death at %v", b, was.path, lit, at, s.at))
		}
	}
}
