package fleet

import (
	"fmt"

	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Invariant 8, no half switch: at a quiet moment the far end of every link
// that a node is set to is set to it as well.
func (a *audit) half(st *station) {
	if st.host == nil || st.lame(a.r.now) || st.hostBad || st.busy() > a.r.now || a.tied(st) {
		return
	}
	for b := range a.r.cfg.Fabric.Bundles {
		path, shining := a.r.world.Selected(st.board, b)
		if path == hal.LOSLoopback || !shining {
			continue
		}
		port := sim.Port{Board: st.board, Bundle: b, Path: path}
		far, ok := a.r.world.Far(port)
		if !ok {
			continue
		}
		peer := a.r.stations[far.Board]
		if peer.busy() > a.r.now || !peer.dark && (peer.host == nil || peer.lame(a.r.now) || a.tied(peer)) {
			continue
		}
		if set, shines := a.r.world.Selected(far.Board, far.Bundle); peer.dark || set != far.Path || !shines {
			a.violate(st.id, "no half switch", fmt.Sprintf("is set to %v, whose far end %v is not", port, far))
		}
	}
}

// fabricPort is a candidate's port.
func fabricPort(id proto.NodeID, c *proto.Candidate) fabric.Port {
	return fabric.Port{Node: id, Bundle: c.Bundle, Path: c.Path}
}
