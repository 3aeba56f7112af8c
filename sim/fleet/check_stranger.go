package fleet

import (
	"fmt"

	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim"
)

// Invariant 2, no stranger's light: beyond the switching window no node's
// receivers are set to a path with light that its applied plan does not list
// for its ring.
func (a *audit) strangers(st *station) {
	if st.agent == nil || st.lame(a.r.now) || st.hostBad || st.busy() > a.r.now {
		return
	}
	rep := a.reportOf(st)
	for b := range a.r.cfg.Fabric.Bundles {
		path, shining := a.r.world.Selected(st.board, b)
		port := sim.Port{Board: st.board, Bundle: b, Path: path}
		if path == hal.LOSLoopback || !shining || !a.r.world.Lit(port) || listed(rep, port) {
			continue
		}
		far, _ := a.r.world.Far(port)
		a.violate(st.id, "no stranger's light", fmt.Sprintf("listens on %v to node %d, which is not of its ring", port, far.Board))
	}
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
