package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// fabricJSON is the form that scripts rely on.
type fabricJSON struct {
	Name           string           `json:"name"`
	Term           proto.Term       `json:"term"`
	Generation     proto.Generation `json:"generation"`
	Nodes          uint32           `json:"nodes"`
	Online         uint32           `json:"online"`
	Pending        uint32           `json:"pending"`
	GPUsPerNode    uint32           `json:"gpus_per_node"`
	K              uint32           `json:"k"`
	TP             uint32           `json:"tp"`
	Links          uint32           `json:"links"`
	LinksConfirmed uint32           `json:"links_confirmed"`
	EventsSeen     uint64           `json:"events_seen"`
	EventGaps      uint64           `json:"event_gaps"`
	Refused        uint64           `json:"messages_refused"`
	UnknownKeys    uint64           `json:"unknown_keys"`
	Shed           uint64           `json:"messages_shed"`
	Planner        uint64           `json:"planner"`          // its id, as its store has it
	Life           uint64           `json:"life"`             // drawn at its start
	Others         string           `json:"others,omitempty"` // what is known of other planners
	Waiting        []string         `json:"waiting"`          // what the planner waits for, and for whom
}

// fabricShow asks the planner what it runs and what it refused.
func fabricShow(ctx context.Context, args []string, out io.Writer) error {
	var c clientFlags
	fs := cli.NewFlags("fabric show")
	c.register(fs)
	words, err := cli.Parse(fs, args, fabricHelp)
	if err != nil {
		return err
	}
	if len(words) > 0 {
		return wrongUsage("fabric", "show alone", "%q", strings.Join(words, " "))
	}
	r, err := c.one(ctx, &proto.OpRequest{Noun: proto.NounFabric, Bundle: -1})
	if err != nil {
		return err
	}
	s := r.Fabric
	f := fabricJSON{s.Name, s.Term, s.Generation, s.Nodes, s.Online, s.Pending, s.GPUsPerNode, s.K, s.TP,
		s.LinksTotal, s.LinksConfirmed, s.EventsSeen, s.EventGaps, s.Refused, s.UnknownKeys, s.Shed,
		s.Planner, s.Life, s.Others, append([]string{}, s.Waiting...)}
	if c.json {
		return printJSON(out, f)
	}
	t := cli.Table{Screen: cli.ScreenOf(out)}
	t.Row("fabric "+f.Name, fmt.Sprintf("%d of %d nodes online, %d not yet where they should be; %d of %d links have light", f.Online, f.Nodes, f.Pending, f.LinksConfirmed, f.Links))
	t.Row("  form", fmt.Sprintf("%s a node, K %d, TP %d", proto.Count(int(f.GPUsPerNode), "GPU"), f.K, f.TP))
	t.Row("  planner", fmt.Sprintf("%s, term %d, generation %d", proto.PlannerCopy{Planner: f.Planner, Life: f.Life}, f.Term, f.Generation))
	t.Row("  heard", fmt.Sprintf("%s, %d missing; %s refused, %s skipped, %d not read for there were too many", proto.Count(int(f.EventsSeen), "event"), f.EventGaps,
		proto.Count(int(f.Refused), "message"), proto.Count(int(f.UnknownKeys), "unknown key"), f.Shed))
	if f.Others != "" {
		t.Row("  others", f.Others)
	}
	for _, text := range f.Waiting {
		t.Row("  blocked by", text)
	}
	return t.Print(out)
}
