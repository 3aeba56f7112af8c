package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/proto"
)

// changes tells what a planner has done between two quiet moments; nothing
// when no ring was touched.
func changes(was, now *view, took time.Duration) string {
	before := map[proto.RingID]*proto.RingStatus{}
	for i := range was.rings {
		before[was.rings[i].Ring] = &was.rings[i]
	}
	var parts []string
	touched := 0
	tell := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for i := range now.rings {
		r := &now.rings[i]
		old := before[r.Ring]
		delete(before, r.Ring)
		if old == nil {
			tell("ring %d formed", r.Ring)
			touched++
			continue
		}
		if slices.Equal(old.Nodes, r.Nodes) {
			if old.Generation != r.Generation {
				touched++
			}
			continue
		}
		touched++
		if joined := without(r.Nodes, old.Nodes); len(joined) > 0 {
			tell("node %s joins ring %d", nodeList(joined), r.Ring)
		}
		if left := without(old.Nodes, r.Nodes); len(left) > 0 {
			tell("node %s leaves ring %d", nodeList(left), r.Ring)
		}
	}
	for _, r := range was.rings {
		if before[r.Ring] != nil {
			tell("ring %d dissolved", r.Ring)
			touched++
		}
	}
	if touched == 0 {
		return ""
	}
	tell("%s touched", proto.Count(touched, "ring"))
	degraded := now.overview.Degraded
	if degraded > 0 {
		tell("%d degraded", degraded)
	}
	return fmt.Sprintf("generation %d: %s, in service after %d ms", now.overview.Generation, strings.Join(parts, ", "), took.Milliseconds())
}

// without lists what is in a but not in b.
func without(a, b []proto.NodeID) []proto.NodeID {
	return slices.DeleteFunc(slices.Clone(a), func(n proto.NodeID) bool { return slices.Contains(b, n) })
}
