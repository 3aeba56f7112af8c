package fleet

import (
	"fmt"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim"
)

// Invariant 2, no stranger's light: beyond the switching window no node's
// receivers are set to a path with light that its applied plan does not list
// for its ring, or to a node that has applied a plan for another ring.
func (a *audit) strangers(st *station) {
	if st.host == nil || st.lame(a.r.now) || st.hostBad || st.busy() > a.r.now {
		return
	}
	rep := a.reportOf(st)
	for b := range a.r.cfg.Fabric.Bundles {
		path, shining := a.r.world.Selected(st.board, b)
		port := sim.Port{Board: st.board, Bundle: b, Path: path}
		if path == hal.LOSLoopback || !shining || !a.r.world.Lit(port) {
			continue
		}
		far, _ := a.r.world.Far(port)
		if a.r.now < st.watch.tried && len(rep.Rings) == 0 {
			continue // its fibres are tried
		}
		if listed(rep, port) && !a.parted(rep, a.r.stations[far.Board]) {
			continue
		}
		a.violate(st.id, "no stranger's light", fmt.Sprintf("listens on %v to node %d, which is not of its ring", port, far.Board))
	}
}

// parted: a node that is at rest has applied a plan for another ring than the
// one reported, and no decision is on its way to either.
func (a *audit) parted(rep *proto.Reported, far *station) bool {
	if far.host == nil || far.lame(a.r.now) || far.busy() > a.r.now || len(rep.Rings) == 0 {
		return false
	}
	far.host.View().Report(&a.other)
	if r := a.other.Rings; len(r) > 0 && r[0].Ring == rep.Rings[0].Ring {
		return false
	}
	return rep.StagedGeneration == 0 && a.other.StagedGeneration == 0
}

// listed: the plan has a port for one of the node's sides.
func listed(rep *proto.Reported, port sim.Port) bool {
	for i := range rep.Rings {
		for _, list := range [2][]proto.Candidate{rep.Rings[i].Left, rep.Rings[i].Right} {
			for k := range list {
				if SimPort(fabricPort(rep.Node, &list[k])) == port {
					return true
				}
			}
		}
	}
	return false
}
