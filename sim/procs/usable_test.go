package procs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/live"
)

// Invariant 9 of package node, usable and out, at the quiet points of processes: by
// what ocsctl is told, and by the boards' own record.

// procNode is a node as ocsctl tells of it.
type procNode struct {
	Node   int    `json:"node"`
	Online bool   `json:"online"`
	Usable bool   `json:"usable"`
	Reason string `json:"reason"`
	Ring   *int   `json:"ring"`

	Generation uint64 `json:"generation"`
}

// online counts the nodes whose agent is there.
func online(nodes []procNode) (count int) {
	for _, n := range nodes {
		if n.Online {
			count++
		}
	}
	return count
}

func (p *procs) nodes(ctx context.Context) []procNode {
	var r struct{ Nodes []procNode }
	p.ctl(ctx, &r, "node", "list")
	return r.Nodes
}

// out names nodes that are usable and out, "" when there are none: rings are in service, all that
// can be. A board with power whose node is left out, or a member that does not have
// its neighbour's light, is; an alarm with the next try excuses a node.
func (p *procs) out(ctx context.Context, rings []procRing, nodes []procNode) string {
	boards := p.records()
	for _, n := range nodes {
		if !n.Usable && boards[n.Node].Powered && !p.excused(ctx, n.Node) {
			return fmt.Sprintf("node %d has power and is left out: %s", n.Node, n.Reason)
		}
	}
	for _, r := range rings {
		for i := 1; i < len(r.Nodes); i++ {
			link, ok := p.f.Link(proto.NodeID(r.Nodes[i-1]), proto.NodeID(r.Nodes[i]))
			if !ok || !hears(boards[r.Nodes[i-1]], link.Local) || !hears(boards[r.Nodes[i]], link.Remote) {
				return fmt.Sprintf("ring %d is in service, and the boards of nodes %d and %d have no light from each other", r.Ring, r.Nodes[i-1], r.Nodes[i])
			}
		}
	}
	return ""
}

// hears: a board listens to a port, with light.
func hears(r live.BoardRecord, at fabric.Port) bool {
	return slices.ContainsFunc(r.Paths, func(p live.PathRecord) bool {
		return p.Bundle == int(at.Bundle) && p.Path == at.Path.String() && p.Selected && p.Lit
	})
}

// excused: the status names why a node is out, and says when it is tried again.
func (p *procs) excused(ctx context.Context, node int) bool {
	var s struct {
		Alarms []struct {
			Node *int
			Why  string
		}
	}
	raw, _ := p.once(ctx, "ocsctl", "status", "-json", "-broker", p.url) // a fabric that has failed is told with exit 1
	err := json.Unmarshal(raw, &s)
	for _, a := range s.Alarms {
		if a.Node != nil && *a.Node == node && (strings.Contains(a.Why, "again in ") || strings.Contains(a.Why, "next try ")) {
			return err == nil
		}
	}
	return false
}
